"""Durable video tasks: submission, polls, notifications of callers, and the view of a stored task."""

"""Submission of video tasks: exactly once, to the first channel that accepts the task."""

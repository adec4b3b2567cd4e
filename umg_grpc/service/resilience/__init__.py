"""Limits and failure handling that all calls of a process share."""

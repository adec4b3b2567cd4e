"""Video tasks that survive a restart: submission, polls of the providers, notifications of callers, and results."""

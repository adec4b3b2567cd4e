"""Video tasks that survive a restart: polls of the providers, notifications of callers, look-up, and results."""

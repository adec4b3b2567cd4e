"""Caches of one process: of responses, and the choice of channels whose providers have cached a conversation."""

"""Coding agents that nobody of the project wrote, unmodified, against the gateway."""

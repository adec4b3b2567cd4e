"""Coding agents of other projects, unmodified, against the gateway."""

"""Errors of providers: their classification, and messages that callers may read."""

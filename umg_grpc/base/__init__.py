"""Errors, and small things that every layer may use."""

"""Errors, and small utilities that every layer may use."""

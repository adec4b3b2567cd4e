"""Errors of providers: their classification, and messages for callers."""

"""Limits of the schema's types, which generated code does not name."""

MAX_COUNT = 2**31 - 1
"""Largest int32, the type of the counts of one call: tokens, searches, dimensions, documents."""

"""Largest value of the integer fields of `umg.v1`, for which the code generated from the schema has no constant."""

MAX_COUNT = 2**31 - 1
"""Largest int32, the type of the counts of one call: tokens, searches, dimensions, documents."""

"""Marks of prompt caches by their places in an encoded prompt."""

from typing import NamedTuple


class PromptMark(NamedTuple):
    """Mark of a caller, at the end of a part of the encoded prompt."""

    content: int
    """Index of the turn."""
    parts: int
    """Number of parts of the turn in front of the mark; 0 for a mark at the end of the turn before or, in front of all
    turns, of the instructions and tools.
    """
    is_long: bool
    """Whether its lifetime is an hour."""

"""Marks of prompt caches: their lifetimes, and their positions in an encoded prompt."""

from typing import NamedTuple

from umg_grpc.v1 import pb


class PromptMark(NamedTuple):
    """Cache mark of a caller at the end of a part of the encoded prompt."""

    content: int
    parts: int
    """Number of parts of the turn before the mark; 0: end of the previous turn, or of the instructions and tools."""
    is_long: bool
    """Whether its lifetime is an hour."""


def lasts_an_hour(mark: pb.CacheControl) -> bool:
    """Return whether the lifetime of a mark is an hour."""
    return mark.ttl == pb.CACHE_TTL_ONE_HOUR

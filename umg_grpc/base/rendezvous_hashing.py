"""Weighted rendezvous hashing: selects the member of a group that an affinity key prefers.

Each member has a distance to a key, and the nearest one is preferred. A member that is added or removed changes the
preference only of keys that prefer it, and each member has a share of the keys by its weight. The result is the same
in every process. Pure: no I/O, clock and state.
"""

from hashlib import blake2b
from math import log2


def distance(member: str, affinity: bytes, weight: int = 1) -> float:
    """Return the distance of a group's member to an affinity key, a digest of fixed length. `weight`: at least 1."""
    number = int.from_bytes(blake2b(affinity + member.encode(), digest_size=8).digest())
    return -log2((number + 1) / 2**64) / weight

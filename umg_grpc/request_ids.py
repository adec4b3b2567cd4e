"""Request ids: those of callers, and new ones."""

import random
import time

MAX_REQUEST_ID_CHARACTERS = 128
RANDOM_BITS = 72


def is_request_id(given: str | None) -> bool:
    """Return whether a caller's request id is valid in headers and logs: 1 to 128 visible ASCII characters."""
    return (
        given is not None
        and 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS
        and given.isascii()
        and given.isprintable()
        and " " not in given
    )


def request_id_of(given: str | None = None) -> str:
    """Return the caller's own request id if it is valid, else a new one.

    A new id begins with the time, in microseconds, so that each one is close to the previous one in the index of the
    usage records, and its insertion touches no other page. Its random part is unique and no secret: the system's random
    numbers would take a system call for each request.
    """
    if given is not None and is_request_id(given):
        return given
    return f"req_{time.time_ns() // 1000:014x}{random.getrandbits(RANDOM_BITS):018x}"

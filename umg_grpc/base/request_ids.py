"""Request ids: validation of callers' ids, and creation of new ones."""

import random
import time

MAX_REQUEST_ID_CHARACTERS = 128
RANDOM_BITS = 72


def is_request_id(given: str | None) -> bool:
    """Return whether a caller's request id is valid: 1 to 128 visible ASCII characters, safe in headers and logs."""
    return (
        given is not None
        and 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS
        and given.isascii()
        and given.isprintable()
        and " " not in given
    )


def request_id_of(given: str | None = None) -> str:
    """Return the caller's request id if it is valid, otherwise a new one.

    A new id begins with the time in microseconds, so that new rows of the usage records are adjacent in their index.
    The rest of it is unique but can be guessed: random numbers of the system would cost a system call for each request.
    """
    if given is not None and is_request_id(given):
        return given
    return f"req_{time.time_ns() // 1000:014x}{random.getrandbits(RANDOM_BITS):018x}"

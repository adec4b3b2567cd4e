"""Request ids: those of callers, and new ones."""

import secrets
import time

MAX_REQUEST_ID_CHARACTERS = 128


def is_request_id(given: str | None) -> bool:
    """Return whether a caller's request id is valid in headers and logs: 1 to 128 visible ASCII characters."""
    return (
        given is not None
        and 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS
        and given.isascii()
        and given.isprintable()
        and " " not in given
    )


def new_request_id() -> str:
    """Return a new request id. It begins with the time, in microseconds, so that each one is close to the previous one
    in the index of the usage records, and its insertion touches no other page.
    """
    return f"req_{time.time_ns() // 1000:014x}{secrets.token_hex(9)}"


def request_id_of(given: str | None) -> str:
    """Return the caller's own request id if it is valid, else a new one."""
    return given if given is not None and is_request_id(given) else new_request_id()

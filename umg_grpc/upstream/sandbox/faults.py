"""Marks in what the user says that make the simulated provider misbehave."""

import asyncio
import re

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

FAIL = "fail"
CUT = "fail:mid"
BUSY = "fail:429"
SLOW = "slow"
REFUSE = "refuse"
BLOCK = "block"
REDACTED = "redacted"

_MARK = re.compile(r"\[\[(fail(?::mid|:429)?|slow|refuse|block)\]\]")


def mark(text: str) -> str:
    """The first mark of the text, "" without one."""
    found = _MARK.search(text)
    return found[1] if found else ""


async def befall(mark: str, seconds: float, *, first_byte: float, total: float) -> None:
    """Raises what goes wrong before the first byte. `SLOW` waits for the nearest deadline before: the caller's, in
    `seconds`, or the channel's.
    """
    if mark == FAIL:
        raise failed()
    if mark == BUSY:
        raise busy()
    if mark == SLOW:
        whole = min(max(seconds, 0), total)
        await asyncio.sleep(min(whole, first_byte))
        name = "total" if whole <= first_byte else "first_byte"
        raise late(name, callers=seconds <= min(first_byte, total))


def redacted(text: str) -> bool:
    """Whether the thoughts shall be hidden."""
    return f"[[{REDACTED}]]" in text


def failed() -> UmgError:
    """The provider answered with 500."""
    message = "the provider failed (status 500): a simulated failure, as [[fail]] in the prompt asks for"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status="500").of(Failure.TRANSIENT)


def busy() -> UmgError:
    """The provider answered with 429."""
    message = "the provider's rate limit is reached (simulated); try again in 1 s"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, message, retry_after_seconds="1")
    return error.of(Failure.OVERLOADED)


def cut() -> UmgError:
    """The provider's stream broke off."""
    message = "the provider's stream broke off before its end (simulated); the answer is not whole, try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).of(Failure.AMBIGUOUS)


def late(deadline: str, *, callers: bool) -> UmgError:
    """The provider took longer than `first_byte` or `total`, or than its caller waits, which is nobody's failure."""
    message = "the provider was too slow (simulated): the time for the answer is over; try again"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=deadline)
    return error if callers else error.of(Failure.AMBIGUOUS)

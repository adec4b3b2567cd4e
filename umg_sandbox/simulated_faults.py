"""Simulated faults, which callers select by marks in the text of the user, for example `[[fail]]`."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

FAIL_MARK = "fail"
CUT_MARK = "fail:mid"
BUSY_MARK = "fail:429"
SLOW_MARK = "slow"
REFUSE_MARK = "refuse"
BLOCK_MARK = "block"
REDACTED_MARK = "redacted"

_MARK = re.compile(r"\[\[(fail(?::mid|:429)?|slow|refuse|block)\]\]")


def mark(text: str) -> str:
    """Return the first fault mark in a text, for example `[[fail]]`; "" if there is none."""
    found = _MARK.search(text)
    return found[1] if found else ""


@dataclass(frozen=True)
class SimulatedDeadlines:
    """Time limits of a simulated channel, in seconds: until the first byte of a response, and in total."""

    first_byte: float
    total: float


async def raise_early(mark: str, seconds: float, deadlines: SimulatedDeadlines) -> None:
    """Raise the UmgError of a fault mark before the first byte of the response; do nothing for other marks. `SLOW_MARK`
    first waits until the caller's deadline, in `seconds`, or the channel's, whichever is earlier.
    """
    if mark == FAIL_MARK:
        raise failed()
    if mark == BUSY_MARK:
        raise busy()
    if mark == SLOW_MARK:
        whole = min(max(seconds, 0), deadlines.total)
        await asyncio.sleep(min(whole, deadlines.first_byte))
        name = "total" if whole <= deadlines.first_byte else "first_byte"
        raise late(name, callers=seconds <= min(deadlines.first_byte, deadlines.total))


async def raise_in_unary_call(texts: Iterable[str], seconds: float, deadlines: SimulatedDeadlines) -> None:
    """Raise the UmgError that the first fault mark in the texts selects, if there is one. A mark that breaks off a
    stream fails the call instead. `seconds`: time until the caller's deadline.
    """
    selected = next((found for text in texts if "[[" in text and (found := mark(text))), "")
    await raise_early(FAIL_MARK if selected == CUT_MARK else selected, seconds, deadlines)


def redacted(text: str) -> bool:
    """Return whether a text contains the mark for redacted reasoning."""
    return f"[[{REDACTED_MARK}]]" in text


def failed() -> UmgError:
    """Return the error of a provider that responds with status 500."""
    message = "the provider failed (status 500): a simulated failure, as [[fail]] in the prompt asks for"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status="500").with_failure(Failure.TRANSIENT)


def busy() -> UmgError:
    """Return the error of a provider whose rate limit is reached (status 429)."""
    message = "the provider's rate limit is reached (simulated); try again in 1 s"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, message, retry_after_seconds="1")
    return error.with_failure(Failure.OVERLOADED)


def cut() -> UmgError:
    """Return the error for a stream that broke off."""
    message = "the provider's stream broke off before its end (simulated); the answer is incomplete; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS)


def late(deadline: str, *, callers: bool) -> UmgError:
    """Return the error for an exceeded time limit. `deadline`: `first_byte` or `total`; `callers`: whether the
    caller's own deadline was the cause, which is no failure of the provider.
    """
    if callers:
        message = "the call's own deadline was over before the (simulated) answer; give it more time"
        return UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, message, deadline=deadline)
    message = "the provider was too slow (simulated): the time for the answer is over; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=deadline).with_failure(Failure.AMBIGUOUS)

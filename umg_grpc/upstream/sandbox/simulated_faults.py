"""Simulated faults, which marks in the user's text select, for example `[[fail]]`."""

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass

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
    """Return the first fault mark in a text, for example `[[fail]]`; "" if it has none."""
    found = _MARK.search(text)
    return found[1] if found else ""


@dataclass(frozen=True)
class Deadlines:
    """Time limits of a simulated channel, in seconds."""

    first_byte: float
    total: float


async def raise_early(mark: str, seconds: float, deadlines: Deadlines) -> None:
    """Raise the fault of a mark if it occurs before the first byte of the response.

    `SLOW` first waits until the nearest time limit: the caller's, in `seconds`, or the channel's.
    """
    if mark == FAIL:
        raise failed()
    if mark == BUSY:
        raise busy()
    if mark == SLOW:
        whole = min(max(seconds, 0), deadlines.total)
        await asyncio.sleep(min(whole, deadlines.first_byte))
        name = "total" if whole <= deadlines.first_byte else "first_byte"
        raise late(name, callers=seconds <= min(deadlines.first_byte, deadlines.total))


async def raise_in_unary_call(texts: Iterable[str], seconds: float, deadlines: Deadlines) -> None:
    """Raise the fault that the first mark in the texts selects, see `raise_early`; a unary response cannot break off
    midway.
    """
    selected = next((found for text in texts if "[[" in text and (found := mark(text))), "")
    await raise_early(FAIL if selected == CUT else selected, seconds, deadlines)


def redacted(text: str) -> bool:
    """Return whether the text has the mark for redacted reasoning."""
    return f"[[{REDACTED}]]" in text


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
    message = "the provider's stream broke off before its end (simulated); the answer is not whole, try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS)


def late(deadline: str, *, callers: bool) -> UmgError:
    """Return the error for the exceeded time limit `first_byte` or `total`.

    `callers`: whether it was the caller's own limit, which counts as no failure of the provider.
    """
    if callers:
        message = "the call's own deadline was over before the (simulated) answer; give it more time"
        return UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, message, deadline=deadline)
    message = "the provider was too slow (simulated): the time for the answer is over; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline=deadline).with_failure(Failure.AMBIGUOUS)

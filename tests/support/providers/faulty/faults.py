"""Table of all faults of the faulty provider: the response of each, the moment when it strikes, and the error that the
caller gets if no other channel can serve.

A fault of only streams, or of only whole responses, does not strike the other kind: calls of that kind are answered
right.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from tests.support.providers.faulty import broken_connections, odd_answers, rejected_calls, unreadable_answers
from tests.support.providers.faulty.answer_encoding import send_right
from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import Reply

Do = Callable[[Link, Reply], Awaitable[None]]


class Strikes(Enum):
    """Moment of a response when a fault strikes."""

    NEVER = "never"
    """Never: the response is odd, but right."""
    BEFORE = "before"
    """Before the first content: another channel can still serve."""
    AFTER = "after"
    """After content was sent, which cannot be taken back from the caller."""


NEVER, BEFORE, AFTER = Strikes.NEVER, Strikes.BEFORE, Strikes.AFTER


@dataclass(frozen=True)
class Fault:
    name: str
    do: Do
    whole: Strikes | None  # of a response that is no stream; None: the fault does not exist there
    stream: Strikes | None
    status: int = 502
    """HTTP status of the caller if no other channel can serve."""
    retry_after: str = ""
    """`Retry-After` of that answer, in seconds."""
    callers: bool = False
    """The provider reports that the request itself is wrong: no other channel is called."""
    begins: bool = False
    """Whether a stream begins without content: a caller may have received its beginning, and status 200."""
    mixes: bool = True
    """Whether the fault belongs to `any`. Faults that are costly to send do not."""

    def strikes(self, *, streamed: bool) -> Strikes | None:
        return self.stream if streamed else self.whole


NONE = Fault("none", send_right, NEVER, NEVER)


def _both(strikes: Strikes, named: dict[str, Do], *, status: int = 502, mixes: bool = True) -> Iterable[Fault]:
    return [Fault(name, do, strikes, strikes, status, mixes=mixes) for name, do in named.items()]


def _of_streams(strikes: Strikes, named: dict[str, Do], *, status: int = 502, mixes: bool = True) -> Iterable[Fault]:
    return [Fault(name, do, None, strikes, status, mixes=mixes) for name, do in named.items()]


def _of_whole(strikes: Strikes, named: dict[str, Do], *, status: int = 502) -> Iterable[Fault]:
    return [Fault(name, do, strikes, None, status) for name, do in named.items()]


CALLERS = frozenset({400, 413, 422})
"""Statuses which mean that the request is wrong for every channel of a model."""
REPORTED = {
    **{status: status for status in (400, 402, 409, 413, 422, 429, 451, 503, 504)},
    408: 504,
    524: 504,
    529: 503,
}
"""Status of a provider -> status of the caller; 502 for all others."""


def _statuses() -> Iterable[Fault]:
    for status in rejected_calls.STATUSES:
        callers, reported_status = status in CALLERS, REPORTED.get(status, 502)
        retry_after = "1" if status == 429 else ""
        for name, do in rejected_calls.by_status(status).items():
            yield Fault(name, do, BEFORE, BEFORE, reported_status, retry_after, callers)


BEGIN = frozenset(
    {
        *("reset-in-body", "close-in-body", "stalls-in-body", "error-before-content", "ends-in-first", "other-object"),
        "comments-for-ever",  # the headers of a slow stream are sent early
    }
)
ALL = [
    NONE,
    *_both(BEFORE, broken_connections.CONNECTIONS),
    *_both(BEFORE, broken_connections.STALLS, status=504),
    *_of_streams(AFTER, broken_connections.MID_STREAM),
    *_of_streams(AFTER, broken_connections.MID_STREAM_STALLS, status=504),
    *_of_streams(AFTER, broken_connections.MARKERS),
    *_statuses(),
    *(Fault(name, do, BEFORE, BEFORE, 429, "60") for name, do in rejected_calls.QUOTA.items()),
    *(Fault(name, do, None, BEFORE, 429, "1") for name, do in rejected_calls.LIMITS_FIRST.items()),
    *(Fault(name, do, BEFORE, BEFORE, status, wait) for name, (do, status, wait) in rejected_calls.LIMITS.items()),
    *(Fault(name, do, BEFORE, BEFORE, 400, callers=True) for name, do in rejected_calls.CONTEXT.items()),
    *(Fault(name, do, BEFORE, BEFORE, 400, callers=True) for name, do in rejected_calls.CONTENT.items()),
    *_both(BEFORE, rejected_calls.REDIRECTS),
    *_both(BEFORE, rejected_calls.INSIDE),
    *_of_streams(BEFORE, rejected_calls.EVENTS_FIRST),
    *_of_streams(AFTER, rejected_calls.EVENTS_MID),
    *_both(NEVER, odd_answers.HARMLESS),
    *_of_streams(NEVER, odd_answers.HARMLESS_STREAMS),
    *_both(BEFORE, unreadable_answers.UNREADABLE),
    *_both(BEFORE, unreadable_answers.COSTLY, mixes=False),
    *_of_whole(BEFORE, unreadable_answers.UNREADABLE_WHOLE),
    *_of_streams(BEFORE, unreadable_answers.UNREADABLE_STREAMS),
    *_of_streams(BEFORE, unreadable_answers.WITHOUT_END, status=504),
    *_of_streams(AFTER, unreadable_answers.UNREADABLE_MID),
    *_of_streams(AFTER, unreadable_answers.COSTLY_MID, mixes=False),
]
FAULTS = {fault.name: replace(fault, begins=fault.name in BEGIN) for fault in ALL}
"""Faults by name."""

"""Events of attempts, and the functions (observers) that are called with them for usage records, spans, metrics and the
protection of the channels. An observer is registered once in a process, gets the events of all calls, and neither waits
nor raises.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline import attempt_records
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import Attempt, EncodedRequest
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.service_metrics import Metrics

AttemptEvent: TypeAlias = Callable[[Call, Attempt[EncodedRequest]], None]
AttemptEnd: TypeAlias = Callable[[Call, Attempt[EncodedRequest], str, UmgError | None], None]
"""Function that gets the outcome of an attempt: a constant of the module `attempt` or the kind of the failure, and the
error; None for a success and for a cancelled attempt.
"""


class AttemptObservers(NamedTuple):
    """Functions that are called with the events of every attempt: a list for each event, in the order of the calls."""

    begun: Sequence[AttemptEvent]
    """Called when an attempt has its slot, before its request is sent."""
    selected: Sequence[AttemptEvent]
    """Called when an attempt becomes the one whose response the caller gets."""
    ended: Sequence[AttemptEnd]
    """Called once for each attempt that began."""
    hedged: Callable[[str, bool], None]
    """Called once for each hedge, with the public model id, and whether the caller gets the hedge's response."""
    fell_back: Callable[[str, str, str], None]
    """Called when a fallback is called in place of a model, with the ids of both and the cause."""
    mended: Callable[[str, str, str], None]
    """Called with channel, provider's model and member when a refused request succeeds with this member adapted."""


def attempt_observers(metrics: Metrics, protection: Resilience, *, has_spans: bool) -> AttemptObservers:
    """Return the observers of the attempts of a process. `has_spans`: whether calls have spans (telemetry)."""
    return AttemptObservers(
        begun=(attempt_records.attempt_begun, *((_begin_span,) if has_spans else ())),
        selected=(attempt_records.attempt_selected,),
        ended=(
            *((_end_span,) if has_spans else ()),  # first: its duration is the attempt's alone
            metrics.attempt_ended,
            attempt_records.attempt_ended,
            protection.attempt_ended,  # last: it releases the slot, with which another call begins
        ),
        hedged=metrics.hedged,
        fell_back=metrics.fell_back,
        mended=metrics.mended,
    )


def _begin_span(call: Call, attempt: Attempt[EncodedRequest]) -> None:
    if call.span is not None:
        attempt.span = call.span.begin_attempt(attempt.target)


def _end_span(call: Call, attempt: Attempt[EncodedRequest], outcome: str, error: UmgError | None) -> None:
    if attempt.span is not None:
        attempt.span.end(outcome, error)

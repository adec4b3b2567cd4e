"""Spans of the attempts of a call, begun and ended with the attempts."""

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import Attempt, EncodedRequest


def attempt_begun(call: Call, attempt: Attempt[EncodedRequest]) -> None:
    """Begin the span of the attempt."""
    if call.span is not None:
        attempt.span = call.span.begin_attempt(attempt.target)


def attempt_ended(call: Call, attempt: Attempt[EncodedRequest], outcome: str, error: UmgError | None) -> None:
    """End the span of the attempt."""
    if attempt.span is not None:
        attempt.span.end(outcome, error)

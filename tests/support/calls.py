"""Calls of the service that have ended, for tests of their metrics."""

from umg_grpc.service.pipeline.call import Arrival, Call, CallFacts
from umg_grpc.v1 import pb


def ended_call(
    *,
    method: str = "/umg.v1.S/M",
    model: str = "m",
    channel: str = "main",
    usage: pb.Usage | None = None,
    first_output_seconds: float | None = None,
    micro_credits: int = 0,
    is_cached: bool = False,
) -> Call:
    """Return a call that ended with these facts."""
    facts = CallFacts(
        model=model, channel=channel, usage=usage, first_output_seconds=first_output_seconds, is_cached=is_cached
    )
    call = Call(Arrival(method, {}, trusted=True, request_id="r"), facts)
    call.charges.micro_credits = micro_credits
    return call

"""Calls of the service that have ended, for tests of their metrics."""

from umg_grpc.service.pipeline.call import Arrival, Call
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
    """Return the state of a call that ended with these facts."""
    call = Call(Arrival(method, {}, trusted=True, request_id="r"))
    call.facts.model, call.facts.channel, call.facts.usage = model, channel, usage
    call.facts.first_output_seconds, call.facts.is_cached = first_output_seconds, is_cached
    call.charges.micro_credits = micro_credits
    return call

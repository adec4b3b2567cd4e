"""Calls of the service, and attempts, that have ended, for tests of their metrics."""

from collections.abc import Mapping
from types import MappingProxyType

from umg_grpc.config import Channel
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.call_state import Arrival, Call
from umg_grpc.service.pipeline.channel_attempt import Attempt
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report

NO_METADATA: Mapping[str, str] = MappingProxyType({})


def ended_call(
    *,
    method: str = "/umg.v1.S/M",
    model: str = "m",
    channel: str = "main",
    usage: pb.Usage | None = None,
    first_output_seconds: float | None = None,
    micro_credits: int = 0,
    is_cached: bool = False,
    metadata: Mapping[str, str] = NO_METADATA,
) -> Call:
    """Return the state of a call that ended with these facts."""
    call = Call(Arrival(method, metadata, trusted=True, request_id="r"))
    call.facts.model, call.facts.channel, call.facts.usage = model, channel, usage
    call.facts.first_output_seconds, call.facts.is_cached = first_output_seconds, is_cached
    call.charges.micro_credits = micro_credits
    return call


class _Request:
    """Request of a call, encoded for a channel."""

    report = Report()


def end_attempt(metrics: Metrics, model: str, outcome: str) -> None:
    """Count an attempt at the channel `main` that ended with the outcome. `model`: the provider's id of the model."""
    target = Target(Channel(name="main", protocols=("chat",), models=()), model, "", frozenset())
    metrics.attempt_ended(ended_call(), Attempt("main", target, _Request()), outcome, None)

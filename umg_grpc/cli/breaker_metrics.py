"""Circuit breaker states of the channels of a running gateway, read from its metrics over HTTP."""

import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import ceil
from typing import TYPE_CHECKING

from umg_grpc.service.metric_gauges import CHANNEL_PAUSE, CHANNEL_STATE
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState

if TYPE_CHECKING:
    from prometheus_client import Metric

WAIT_SECONDS = 1.0
STATE_NAMES: dict[int, str] = {
    CircuitState.CLOSED: "healthy",
    CircuitState.OPEN: "paused",
    CircuitState.HALF_OPEN: "half-open",
}

HEALTHY_STATE = STATE_NAMES[CircuitState.CLOSED]
Pair = tuple[str, str]
"""Channel and upstream model id."""
States = Mapping[Pair, str]
"""State of each channel at a model in a running gateway; empty if no gateway answers."""


def states(http: str, key: str | None = None, certificate: str | None = None) -> dict[Pair, str]:
    """Return the circuit breaker states by channel and upstream model id, for example `healthy` or `paused 4 s`, for
    channels that the gateway has called. Empty if no gateway answers at `http` (HOST:PORT), or if `key` is not the
    gateway's key for metrics. `certificate`: PEM file of the certificate that the gateway must have, for a call by TLS.
    """
    families = _families(http, key, certificate)
    open_seconds = _values(families.get(CHANNEL_PAUSE.name))
    states = _values(families.get(CHANNEL_STATE.name))
    return {pair: state_text(state, open_seconds.get(pair, 0)) for pair, state in states.items()}


def _families(http: str, key: str | None, certificate: str | None) -> "dict[str, Metric]":
    try:
        connection = _connection(http, certificate)
        try:
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {key}"} if key is not None else {})
            response = connection.getresponse()
            text = response.read().decode() if response.status == 200 else ""
        finally:
            connection.close()
        if not text:
            return {}
        from prometheus_client.parser import text_string_to_metric_families  # here: slow to import

        return {family.name: family for family in text_string_to_metric_families(text)}
    except (OSError, HTTPException, ValueError):  # no server, or no gateway, answers there
        return {}


def _connection(http: str, certificate: str | None) -> HTTPConnection:
    if certificate is None:
        return HTTPConnection(http, timeout=WAIT_SECONDS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the address may be none of the names in it: the whole certificate is compared
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return HTTPSConnection(http, timeout=WAIT_SECONDS, context=context)


def _values(family: "Metric | None") -> dict[Pair, float]:
    samples = family.samples if family is not None else []
    return {(sample.labels.get("channel", ""), sample.labels.get("model", "")): sample.value for sample in samples}


def state_text(state: float | None, seconds: float) -> str:
    """Return `healthy`, `half-open`, `paused 4 s` (open for `seconds`) or `unknown` for the state of a breaker."""
    name = STATE_NAMES.get(int(state), "unknown") if state is not None else "unknown"
    return f"{name} {ceil(seconds)} s" if state == CircuitState.OPEN else name


def state_of(states: States, pair: Pair) -> str:
    """Return the state of a channel at a model as text; `-` if no gateway answers."""
    return states.get(pair, HEALTHY_STATE if states else "-")

"""How the channels of a running gateway do, in words."""

from http.client import HTTPConnection, HTTPException
from math import ceil

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from umg_grpc.service.health import State
from umg_grpc.service.metrics import CHANNEL_REST, CHANNEL_STATE

WAIT_SECONDS = 1.0
WORDS: dict[int, str] = {State.WELL: "well", State.RESTING: "resting", State.PROBED: "about to be tried again"}

Pair = tuple[str, str]


def states(http: str) -> dict[Pair, str]:
    """By channel and model, as the channel's upstream names it: `well`, `resting 4 s`. Of those that were called since
    the gateway began; empty when none answers at `http` (HOST:PORT).
    """
    families = _families(http)
    rests = _values(families.get(CHANNEL_REST.name))
    states = _values(families.get(CHANNEL_STATE.name))
    return {pair: _words(state, rests.get(pair, 0)) for pair, state in states.items()}


def _families(http: str) -> dict[str, Metric]:
    try:
        connection = HTTPConnection(http, timeout=WAIT_SECONDS)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            text = answer.read().decode() if answer.status == 200 else ""
        finally:
            connection.close()
        return {family.name: family for family in text_string_to_metric_families(text)}
    except (OSError, HTTPException, ValueError):  # nobody there, or somebody else
        return {}


def _values(family: Metric | None) -> dict[Pair, float]:
    samples = family.samples if family is not None else []
    return {(sample.labels.get("channel", ""), sample.labels.get("model", "")): sample.value for sample in samples}


def _words(state: float, rest: float) -> str:
    words = WORDS.get(int(state), "unknown")
    return f"{words} {ceil(rest)} s" if state == State.RESTING else words

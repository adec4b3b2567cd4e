"""Config of a gateway with a channel for each fault."""

from collections.abc import Iterable

from tests.pairs.faults.table import ALL, BEHIND, Case
from tests.support.providers.faulty.faults import Fault
from tests.support.providers.faulty.server import Upstream

WAITED_FOR = (
    "stalls-",
    "drips",
    "body-drips",
    "rest-drips",
    "comments-for-ever",
    "takes-no-connection",
    "status-101",
)
"""Prefixes of the names of faults that only a deadline ends."""
SHORT = "{connect: 0.5, first_byte: 1, idle: 1, total: 5, images: 5}"
LONG = "{connect: 60, first_byte: 60, idle: 60, total: 120, images: 120}"  # for a busy machine
CONFIG = """
log: {level: error}
retries: {repeats: 1, backoff: 0.01, budget: 1}
breaker: {failures: 1000000, share: 1}
overload: {lag: 60}
stream_headers_after: 120
channels:
"""
"""Config in which no call is rejected because of others, nor because the machine is busy."""
CHANNEL = """
  - name: {name}
    protocols: [{protocol}]
    base_url: {url}
    api_key: sk-provider
    priority: {priority}
    timeout: {timeout}
    models: [{models}]
"""


def config(upstream: Upstream, protocol: str, way: str, table: list[Case], short: str = SHORT) -> str:
    """Return the config: a channel for each fault and, if `way` selects it, a healthy channel behind them for all.
    `short`: the deadlines of faults that only a deadline ends.
    """

    def channel(name: str, order: str, priority: int, models: Iterable[str]) -> str:
        timeout = short if order.startswith(WAITED_FOR) else LONG
        if protocol == "bedrock_rerank":  # the provider recognizes its format by the id
            models = (f"{{id: {model}, upstream: {model}-rerank}}" for model in models)
        return CHANNEL.format(
            name=name,
            protocol=protocol,
            url=upstream.url(order),
            priority=priority,
            timeout=timeout,
            models=", ".join(models),
        )

    def of(fault: Fault) -> list[str]:
        return [case.model for case in table if case.fault is fault]

    entries = [channel(fault.name, fault.name, 0, of(fault)) for fault in ALL if of(fault)]
    if way == BEHIND:
        entries.append(channel("healthy", "none", 1, [case.model for case in table]))
    return CONFIG + "".join(entries)

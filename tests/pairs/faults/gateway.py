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

    def of(fault: Fault) -> list[str]:
        return [case.model for case in table if case.fault is fault]

    entries = [
        channel(name, protocol, upstream.url(name), of(fault), timeout=short if name.startswith(WAITED_FOR) else LONG)
        for fault in ALL
        if of(fault)
        for name in [fault.name]
    ]
    if way == BEHIND:
        models = [case.model for case in table]
        entries.append(channel("healthy", protocol, upstream.url("none"), models, priority=1))
    return CONFIG + "".join(entries)


def channel(
    name: str, protocol: str, url: str, models: Iterable[str], *, priority: int = 0, timeout: str = LONG
) -> str:
    """Return the config of a channel."""
    if protocol == "bedrock_rerank":  # the provider recognizes its format by the id
        models = (f"{{id: {model}, upstream: {model}-rerank}}" for model in models)
    fields = {"name": name, "protocol": protocol, "url": url, "priority": priority, "timeout": timeout}
    return CHANNEL.format(**fields, models=", ".join(models))

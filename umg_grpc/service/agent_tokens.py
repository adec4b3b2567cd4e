"""Counter of the input tokens of calls by the program that made them, with those of prompt caches."""

from collections import defaultdict
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter

from umg_grpc.v1 import pb

UNKNOWN_AGENT = "unknown"
"""Value of the label `agent` for calls of unknown programs."""


@dataclass(slots=True)
class _Tokens:
    """Input tokens that are not yet added to the Prometheus library."""

    input: int = 0
    read: int = 0
    written: int = 0


class AgentTokens:
    """Metric `umg_agent_tokens`. Its tokens are counted in plain integers, and added to the library by `flush`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        help_text = "Input tokens by the program of the call, all and those of prompt caches."
        self._counter = Counter("umg_agent_tokens", help_text, ("agent", "kind"), registry=registry)
        self._tokens = defaultdict[str, _Tokens](_Tokens)

    def count(self, agent: str, usage: pb.Usage) -> None:
        """Count the usage of a call. `agent`: a name of the table of agents, or ""."""
        tokens = self._tokens[agent]
        tokens.input += usage.input_tokens
        tokens.read += usage.cache_read_tokens
        tokens.written += usage.cache_write_tokens + usage.long_cache_write_tokens

    def flush(self) -> None:
        """Add the tokens since the last flush to the Prometheus library."""
        counted, self._tokens = self._tokens, defaultdict(_Tokens)
        for agent, tokens in counted.items():
            if tokens.input:
                for kind in ("input", "read", "written"):
                    self._counter.labels(agent or UNKNOWN_AGENT, kind).inc(getattr(tokens, kind))

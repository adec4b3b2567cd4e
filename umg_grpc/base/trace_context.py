"""Trace context of a call (W3C Trace Context): the headers `traceparent` and `tracestate`."""

import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import NamedTuple

PARENT_HEADER, STATE_HEADER = "traceparent", "tracestate"
MAX_PARENT_CHARACTERS = 256  # versions after 00 may append fields
MAX_STATE_CHARACTERS = 512
"""Longest `tracestate` that is passed on; the specification requires at least as many."""
PARENT_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?")
STATE_FORM = re.compile(r"[\x20-\x7e\t]*")
TRACE_VERSION, INVALID_VERSION = "00", "ff"


class TraceContext(NamedTuple):
    """Position of a call in a distributed trace: the ids that `traceparent` and `tracestate` transport."""

    traceparent: str
    tracestate: str
    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits: the span of the caller, or the one that calls a provider."""
    is_sampled: bool

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Both headers as name-value pairs, for HTTP headers or gRPC metadata."""
        pairs = [(PARENT_HEADER, self.traceparent)]
        return [*pairs, (STATE_HEADER, self.tracestate)] if self.tracestate else pairs

    @property
    def head_lines(self) -> bytes:
        return "".join(f"{name}: {value}\r\n" for name, value in self.pairs).encode()


OUTGOING_TRACE: ContextVar[TraceContext | None] = ContextVar("outgoing trace context", default=None)
"""Trace context of requests to providers, set for each call and each traced attempt; None sends no headers."""


def read_trace_context(parents: Sequence[str], states: Sequence[str]) -> TraceContext | None:
    """Return the parsed headers; None without a valid `traceparent`, since the specification ignores invalid ones."""
    if len(parents) != 1 or len(parents[0]) > MAX_PARENT_CHARACTERS:
        return None
    if (match := PARENT_FORM.fullmatch(parents[0])) is None:
        return None
    number, trace_id, span_id, flags, more = match.groups()
    if number == INVALID_VERSION or (number == TRACE_VERSION and more):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    state = ",".join(states)
    if len(state) > MAX_STATE_CHARACTERS or not STATE_FORM.fullmatch(state):
        state = ""
    return TraceContext(parents[0], state.strip(), trace_id, span_id, bool(int(flags, 16) & 1))

"""Simulated operations with one request and one response: the table from which a channel takes them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

from google.protobuf.message import Message

from umg_grpc.operations import UNARY_OPERATIONS, StreamedMethod, UnaryOperation
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.upstream.http.provider_call import HasSource
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_sandbox.embedding_channel import SandboxEmbedding
from umg_sandbox.rerank_channel import SandboxRerank
from umg_sandbox.simulated_faults import CUT_MARK, SimulatedDeadlines, cut, mark, raise_early, raise_in_unary_call


@dataclass(frozen=True)
class SandboxExample:
    """Operation whose response is not computed: each call gets the example that the operation's row makes for the
    request. The marks `[[fail]]`, `[[fail:429]]` and `[[slow]]` in a text of the request select a fault.
    """

    example: Callable[[Any], Message]
    deadlines: SimulatedDeadlines
    method: StreamedMethod[Any] | None = None

    def is_slow(self, size: int) -> bool:
        return False

    def prepare(self, request: HasSource, model: str, notes: RequestNotes = NO_NOTES) -> "SandboxExampleCall":
        return SandboxExampleCall(self, request)


@dataclass(frozen=True)
class SandboxExampleCall:
    """Call that returns the example."""

    upstream: SandboxExample
    request: HasSource
    report: Report = field(default_factory=Report)

    async def send(self, seconds: float) -> Message:
        await raise_in_unary_call([_text(self.request)], seconds, self.upstream.deadlines)
        return await asyncio.to_thread(self.upstream.example, self.request)

    async def stream(self, seconds: float) -> AsyncGenerator[Message, None]:
        """Yield the messages of the example. The mark `[[fail:mid]]` cuts the stream after the first one."""
        selected = mark(_text(self.request))
        await raise_early(selected, seconds, self.upstream.deadlines)
        if (method := self.upstream.method) is None:
            raise TypeError("the operation has no streams")
        for message in method.messages(await asyncio.to_thread(self.upstream.example, self.request)):
            yield message
            if selected == CUT_MARK:
                raise cut()


def _text(request: HasSource) -> str:
    """Return the text of a request that may contain a mark: the caller's body if there is one, as it has no file."""
    body = request.source.body
    return body.decode(errors="replace") if body else str(request) if request.ByteSize() < BIG_BYTES else ""


def simulated_operations(
    engine: WordLlamaEngine, lengths: Mapping[str, int], first_byte_seconds: float, total_seconds: float
) -> Iterator[tuple[UnaryOperation[Any, Any], UnaryUpstream[Any, Any]]]:
    """Yield each operation that the simulated provider has, with its upstream. `lengths`: model -> vector length that
    the operator has set as the default. `first_byte_seconds`, `total_seconds`: time limits of a call.
    """
    first, total = first_byte_seconds, total_seconds
    yield EMBED_OPERATION, SandboxEmbedding(engine, lengths=lengths, first_byte_seconds=first, total_seconds=total)
    yield RERANK_OPERATION, SandboxRerank(engine, first_byte_seconds=first, total_seconds=total)
    for row in UNARY_OPERATIONS.values():
        if row.example is not None:
            example = resolve_name(row.example) if isinstance(row.example, str) else row.example
            yield row, SandboxExample(example, SimulatedDeadlines(first, total), row.stream)

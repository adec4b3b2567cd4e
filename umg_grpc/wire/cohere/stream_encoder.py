"""Encoding of a streamed response of Cohere's `POST /v2/chat`: canonical events become events of this format."""

from collections import OrderedDict
from collections.abc import Generator, Iterator
from typing import assert_never

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere.documents import documents_of
from umg_grpc.wire.cohere.response import (
    REASONING_SEPARATOR,
    TEXT_BLOCK,
    THINKING_BLOCK,
    arguments_of,
    encode_call,
    encode_citation,
    encode_logprob,
    encode_usage,
    finish_name,
)
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import named_frame

EVENT_BYTES = 512  # memory of an event beside its content

_encode = msgspec.json.Encoder().encode


class _Text:
    """Text part of a response: its offset in the content block that contains it, and its pieces."""

    def __init__(self, block: int, start: int) -> None:
        self.block, self.start = block, start
        self.pieces = list[str]()


class _Block:
    """Content block that is open: its index, its type and the length of its text."""

    def __init__(self, index: int, kind: str) -> None:
        self.index, self.kind, self.length = index, kind, 0
        self.citations = list[tuple[pb.Citation, int]]()  # with their parts, sent before the end of the block


class _Call:
    """Tool call that is open."""

    def __init__(self, index: int, part: int) -> None:
        self.index, self.part = index, part
        self.pieces = list[str]()
        self.checked_pieces = 0

    def is_complete(self) -> bool:
        """Return whether the arguments are one JSON object; they are decoded again once the pieces have doubled."""
        if len(self.pieces) < max(1, 2 * self.checked_pieces):
            return False
        self.checked_pieces = len(self.pieces)
        try:
            msgspec.json.decode("".join(self.pieces), type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            return False
        return True


class StreamEncoder:
    """Encoder of canonical events as events of Cohere's chat. One instance per stream.

    One content block is open at a time; consecutive texts are one block. One call is open at a time, too, since clients
    collect the arguments of only one: others wait until its arguments are complete.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self.retained_bytes = 0
        self._documents = documents_of(request)
        self._response_id = ""
        self._has_started = self._closed = self._has_refusal = False
        self._usage: pb.Usage | None = None
        self._finished = pb.CandidateFinished()
        self._blocks = self._calls = self._citations = 0
        self._block: _Block | None = None
        self._texts: dict[int, _Text] = {}  # by their parts
        self._early: dict[int, list[pb.Citation]] = {}  # part -> citations that came before its text
        self._thought: tuple[int, int] | None = None  # (part, text) of the last reasoning; summaries are -1, -2, ...
        self._call: _Call | None = None
        self._waiting = OrderedDict[int, list[pb.GenerateEvent]]()  # part -> events of a call that waits

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if self._closed:
            return b""
        return b"".join(frame for event in message.events if not event.candidate_index for frame in self._event(event))

    def close(self) -> bytes:
        if self._closed:
            return b""
        frames = [*self._start(), *self._end_block()]
        while self._call is not None:
            frames += self._end_call()
            frames += self._write_waiting()
        self._closed = True
        reason = finish_name(self._finished.finish_reason, calls=bool(self._calls), refused=self._has_refusal)
        delta: JsonObject = {"finish_reason": reason, "usage": encode_usage(self._usage or pb.Usage())}
        if notice := self._finished.finish_message or self._finished.block_reason:
            delta["error"] = notice
        return b"".join([*frames, self._end(delta)])

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        if self._closed:
            return b""
        frames = list(self._start())
        self._closed = True
        # without usage: with it the provider of Cohere in Vercel's SDK (4.0.52) ends the short text without an error
        return b"".join([*frames, self._end({"error": error.message, "finish_reason": "ERROR"})])

    def _end(self, delta: JsonObject) -> bytes:
        return _frame("message-end", {"id": self._response_id, "delta": delta})

    def _event(self, event: pb.GenerateEvent) -> Iterator[bytes]:  # noqa: PLR0912 - one case a kind
        part = event.part_index
        match event.WhichOneof("kind"):
            case "text_delta":
                yield from self._text(part, event.text_delta)
            case "refusal_delta":
                yield from self._text(part, event.refusal_delta)
            case "reasoning_delta":
                yield from self._reasoning((part, event.text_index), event.reasoning_delta)
            case "summary_delta":
                if self._thought is None or self._thought[0] != part or self._thought[1] < 0:  # texts are preferred
                    yield from self._reasoning((part, -1 - event.summary_delta.summary_index), event.summary_delta.text)
            case "arguments_delta" | "part_ended":
                yield from self._call_event(event)
            case "started":
                self._response_id = event.started.response_id
                yield from self._start()
            case "part_started":
                yield from self._part(event)
            case "citation":
                yield from self._citation(event.citation, part)
            case "logprobs":
                for entry in event.logprobs.logprobs:
                    yield from self._logprob(entry)
            case "finished":
                self._finished = event.finished
            case "usage":
                self._usage = event.usage
            case "state" | "part_updated" | "opaque" | "media_delta" | None:
                pass  # content of another format, or that this format cannot express
            case unhandled:
                assert_never(unhandled)

    def _start(self) -> Iterator[bytes]:
        if not self._has_started:
            self._has_started = True
            message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
            yield _frame("message-start", {"id": self._response_id, "delta": {"message": message}})

    def _part(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        part, started = event.part_index, event.part_started
        yield from self._start()
        match started.WhichOneof("kind"):
            case "text":
                yield from self._text(part, started.text.text)
                for citation in started.text.citations:
                    yield from self._citation(citation, part)
            case "refusal":
                self._has_refusal = True
                yield from self._text(part, started.refusal.text)
            case "reasoning":
                for number, text in enumerate(started.reasoning.texts):
                    yield from self._reasoning((part, number), text)
            case "tool_call":
                yield from self._call_event(event)
            case "media" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # a provider's own tool, or content that `can_express` rejects
            case unhandled:
                assert_never(unhandled)

    # --- content

    def _open_block(self, kind: str) -> Generator[bytes, None, _Block]:
        """Open a content block unless one of its type is open. Yield the frames; return the open block."""
        if self._block is None or self._block.kind != kind:
            yield from self._end_block()
            yield from self._start()
            self._block = _Block(self._blocks, kind)
            self._blocks += 1
            content = {"type": kind, kind: ""}
            yield _frame("content-start", {"index": self._block.index, "delta": {"message": {"content": content}}})
        return self._block

    def _end_block(self) -> Iterator[bytes]:
        if (block := self._block) is None:
            return
        self._block = None
        for citation, part in block.citations:
            yield from self._citation(citation, part)
        yield _frame("content-end", {"index": block.index})

    def _text(self, part: int, text: str) -> Iterator[bytes]:
        if not text:
            return
        block = yield from self._open_block(TEXT_BLOCK)
        known = self._texts.get(part)
        if known is None or known.block != block.index:  # of a text that was interrupted, the later piece is cited
            known = self._texts[part] = _Text(block.index, block.length)
            block.citations += [(citation, part) for citation in self._early.pop(part, ())]
        known.pieces.append(text)
        self.retained_bytes += len(text)
        block.length += len(text)
        yield self._delta(block, text)

    def _reasoning(self, piece: tuple[int, int], text: str) -> Iterator[bytes]:
        if not text:
            return
        block = yield from self._open_block(THINKING_BLOCK)
        if block.length and self._thought != piece:
            text = REASONING_SEPARATOR + text
        self._thought = piece
        block.length += len(text)
        yield self._delta(block, text)

    def _delta(self, block: _Block, text: str, **more: object) -> bytes:
        delta: JsonObject = {"message": {"content": {block.kind: text}}}
        return _frame("content-delta", {"index": block.index, "delta": delta, **more})

    def _logprob(self, entry: pb.TokenLogprob) -> Iterator[bytes]:
        block = yield from self._open_block(TEXT_BLOCK)
        yield self._delta(block, "", logprobs=encode_logprob(entry))

    def _citation(self, citation: pb.Citation, part: int) -> Iterator[bytes]:
        """Yield the events of a citation. One of the open block is kept until the block ends: its text may continue."""
        if (known := self._texts.get(part)) is None:  # of a text that has not begun
            self._early.setdefault(part, []).append(citation)
            self.retained_bytes += EVENT_BYTES + citation.ByteSize()
            return
        if self._block is not None and self._block.index == known.block:
            self._block.citations.append((citation, part))
            self.retained_bytes += EVENT_BYTES + citation.ByteSize()
            return
        encoded = encode_citation(citation, self._documents, known.block, "".join(known.pieces), known.start)
        if encoded is not None:
            index, self._citations = self._citations, self._citations + 1
            yield _frame("citation-start", {"index": index, "delta": {"message": {"citations": encoded}}})
            yield _frame("citation-end", {"index": index})

    # --- calls

    def _call_event(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        """Yield the frames of an event of a tool call, and of the calls that wait for its end; nothing for others."""
        part, kind = event.part_index, event.WhichOneof("kind")
        if part in self._waiting or (kind == "part_started" and self._call is not None):
            self._waiting.setdefault(part, []).append(event)
            self.retained_bytes += EVENT_BYTES + event.ByteSize()
            if self._call is not None and self._call.is_complete():
                yield from self._end_call()
                yield from self._write_waiting()
        elif kind == "part_started":
            yield from self._start_call(part, event.part_started.tool_call)
        elif self._call is None or self._call.part != part:
            return
        elif kind == "arguments_delta":
            yield from self._arguments(event.arguments_delta)
        else:
            yield from self._end_call()
            yield from self._write_waiting()

    def _start_call(self, part: int, call: pb.ToolCall) -> Iterator[bytes]:
        yield from self._end_block()
        self._call = _Call(self._calls, part)
        encoded = encode_call(call, self._response_id, self._calls)
        self._calls += 1
        delta = {"message": {"tool_calls": encoded}}
        yield _frame("tool-call-start", {"index": self._call.index, "delta": delta})
        yield from self._arguments(arguments_of(call))

    def _arguments(self, text: str) -> Iterator[bytes]:
        if self._call is None or not text:
            return
        self._call.pieces.append(text)
        self.retained_bytes += len(text)
        delta = {"message": {"tool_calls": {"function": {"arguments": text}}}}
        yield _frame("tool-call-delta", {"index": self._call.index, "delta": delta})

    def _end_call(self) -> Iterator[bytes]:
        if (call := self._call) is None:
            return
        if not call.pieces:
            yield from self._arguments("{}")
        self._call = None
        yield _frame("tool-call-end", {"index": call.index})

    def _write_waiting(self) -> Iterator[bytes]:
        while self._waiting and (self._call is None or self._call.is_complete()):
            part, events = self._waiting.popitem(last=False)
            for event in events:
                self.retained_bytes -= EVENT_BYTES + event.ByteSize()
                if event.HasField("part_started"):
                    yield from self._end_call()  # the one before is complete
                    yield from self._start_call(part, event.part_started.tool_call)
                elif event.HasField("arguments_delta"):
                    yield from self._arguments(event.arguments_delta)
                else:
                    yield from self._end_call()


def _frame(kind: str, members: JsonObject) -> bytes:
    return named_frame(kind.encode(), _encode({"type": kind, **members}))

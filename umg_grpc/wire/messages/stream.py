"""The streamed answer towards a caller: canonical events -> this format's events."""

from collections.abc import Iterable, Iterator

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import BLANK, RAW_ARGUMENTS
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.messages.answer import (
    BETWEEN_THOUGHTS,
    call_id,
    call_state,
    encode_blocks,
    encode_finish,
    encode_server_call,
    media_note,
    server_input,
    signature,
)
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.errors import error_frame
from umg_grpc.wire.messages.usage import encode_usage
from umg_grpc.wire.sse import named_frame

CHARACTERS_A_TOKEN = 4  # for the estimate at the start of a stream

_encode = msgspec.json.Encoder().encode


class _Written:
    """The part that is being written."""

    def __init__(self, index: int, part: pb.Part) -> None:
        self.index = index
        self.part = part  # as far as it is known
        self.kind = part.WhichOneof("kind")
        self.block: int | None = None  # index of its open block
        self.piece: int | None = None  # of the thoughts written last; summaries are pieces -1, -2, ...
        self.held: list[str] = []  # arguments of which it is not known that they are an object
        self.unreadable = False  # whether it is known that they are none
        self.arguments: list[str] = []  # what was told of them
        self.tried = 0  # how many of them there were when they were last found not to be whole
        self.size = 0  # bytes of a medium

    @property
    def interruptible(self) -> bool:
        """Whether another part may begin before its end: a text goes on in a block of its own."""
        return self.kind in {"text", "refusal"}

    def first_arguments(self, text: str) -> str:
        """The arguments so far, once they are known to begin as an object; "" until then, and where they do not."""
        self.held.append(text)
        said = text.lstrip(BLANK)
        self.unreadable = self.unreadable or (said != "" and said[0] != "{")
        return "".join(self.held) if said and not self.unreadable else ""

    def is_complete(self) -> bool:
        """Whether it is a call whose arguments are a whole object: nothing can follow them. Tried again only when they
        have doubled, since whoever asks may ask often.
        """
        pieces = len(self.arguments)
        if self.kind != "tool_call" or pieces < max(1, 2 * self.tried):
            return False
        self.tried = pieces
        try:
            msgspec.json.decode("".join(self.arguments), type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            return False
        return True


class StreamEncoder:
    """Canonical events -> events. One instance a stream.

    Blocks are numbered 0, 1, 2, ... and one is open at a time: what comes for another part meanwhile waits, but a text
    is interrupted, and a call that is whole is ended for the next. A block is opened by its first content, so that none
    is empty. The reason to stop is told at the end, with the usage that is known then; so there is one.

    Arguments of a call that begin as an object go on as they come; others are told at their end, as an object that
    holds their text. What begins as an object and in the end is none (cut off, say) cannot be taken back.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._response_id = ""
        self._usage: pb.Usage | None = None
        self._begun = False
        self._passed = False  # the provider's own frames were sent: they hold all there is to say
        self._closed = False
        self._finished = pb.CandidateFinished()
        self._blocks = 0
        self._called = False
        self._written: _Written | None = None
        self._text: _Written | None = None  # `_written` while its text block is open
        self._text_head = b""
        self._interrupted: dict[int, str] = {}  # texts whose block was ended before they were
        self._waiting: dict[int, list[pb.GenerateEvent]] = {}  # part -> its events so far, in the order of the parts
        self._states: dict[int, pb.ReasoningState] = {}  # of calls, known before they begin

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """All frames of one upstream read, for one write."""
        if message.source_frames:
            self._passed = True
            return message.source_frames
        if self._passed or self._closed:
            return b""
        frames = list[bytes]()
        for event in message.events:
            kind = event.WhichOneof("kind")
            if (
                kind == "text_delta"
                and self._text is not None
                and self._text.index == event.part_index
                and not event.candidate_index
            ):
                data = b"%b%b}}" % (self._text_head, _encode(event.text_delta))
                frames.append(named_frame(b"content_block_delta", data))
            elif not event.candidate_index:  # this format has one answer
                frames += self._event(event, kind, message.events)
        return b"".join(frames)

    def close(self) -> bytes:
        """The end of a whole answer: what is still open, why it stopped, the usage, the end marker."""
        if self._passed or self._closed:
            return b""
        self._closed = True
        frames = list(self._begin(pb.GenerationStarted(model=self._request.model), ()))
        while self._written is not None:
            frames += self._end()
            frames += self._drain()
        delta = encode_finish(self._finished, self._called, self._finished.block_reason)
        usage = encode_usage(self._usage or pb.Usage(), "")
        frames.append(_frame("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}))
        frames.append(_frame("message_stop", {"type": "message_stop"}))
        return b"".join(frames)

    def error(self, error: UmgError) -> bytes:
        """The event that ends a broken answer."""
        self._closed = True
        return error_frame(error)

    def _event(
        self, event: pb.GenerateEvent, kind: str | None, together: Iterable[pb.GenerateEvent]
    ) -> Iterator[bytes]:
        """`together`: what came with it, of which a beginning tells what is known."""
        match kind:
            case "started":
                yield from self._begin(event.started, together)
            case "usage":
                self._usage = event.usage
            case "finished":
                self._finished = event.finished
            case "opaque" | "logprobs" | None:
                pass  # another format's own, or what this one cannot say
            case "part_started":
                if event.part_started.HasField("tool_call"):
                    self._states.update(_states_of(event, together))
                yield from self._begin(pb.GenerationStarted(model=self._request.model), together)
                yield from self._place(event, kind)
            case _:
                yield from self._place(event, kind)

    def _begin(self, started: pb.GenerationStarted, together: Iterable[pb.GenerateEvent]) -> Iterator[bytes]:
        """`message_start`, once. The prompt is estimated unless a count came with it: clients take the later one."""
        if self._begun:
            return
        self._begun, self._response_id = True, started.response_id
        usage = next((event.usage for event in together if event.HasField("usage")), None)
        if usage is None:
            usage = pb.Usage(input_tokens=_estimate(self._request), output_tokens=1)
        message: JsonObject = {
            "id": started.response_id,
            "type": "message",
            "role": "assistant",
            "model": started.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": encode_usage(usage, started.service_tier),
        }
        yield _frame("message_start", {"type": "message_start", "message": message})

    # --- whose turn it is

    def _place(self, event: pb.GenerateEvent, kind: str) -> Iterator[bytes]:
        part, written = event.part_index, self._written
        if kind == "part_started":
            if written is not None and not written.interruptible:
                yield from self._wait(event)
                return
            yield from self._interrupt()
            yield from self._start(part, event.part_started)
        elif written is not None and written.index == part:
            yield from self._write(written, event, kind)
        elif part in self._waiting:
            yield from self._wait(event)
        elif part in self._interrupted and kind in {"text_delta", "refusal_delta"}:
            if written is not None and not written.interruptible:
                yield from self._wait(event)
                return
            yield from self._interrupt()
            self._written = resumed = _Written(part, pb.Part(text=pb.TextPart()))
            yield from self._write(resumed, event, kind)
        elif kind == "part_ended":
            self._interrupted.pop(part, None)
        # a source of a text whose block is ended has no place any more

    def _wait(self, event: pb.GenerateEvent) -> Iterator[bytes]:
        """Keeps the event for its part's turn, which comes when the open call is whole."""
        self._waiting.setdefault(event.part_index, []).append(event)
        if self._written is not None and self._written.is_complete():
            yield from self._end()
            yield from self._drain()

    def _drain(self) -> Iterator[bytes]:
        """Writes the parts that wait, up to the first that has not ended."""
        while self._waiting and (self._written is None or self._written.interruptible):
            part = next(iter(self._waiting))
            for event in self._waiting.pop(part):
                yield from self._place(event, event.WhichOneof("kind") or "")
            if self._written is not None and self._waiting and self._written.is_complete():
                yield from self._end()

    def _interrupt(self) -> Iterator[bytes]:
        """Ends the block of a text for another part."""
        if self._written is not None:
            self._interrupted[self._written.index] = ""
            yield from self._stop(self._written)
            self._written = None

    # --- blocks

    def _start(self, index: int, part: pb.Part) -> Iterator[bytes]:
        self._written = written = _Written(index, part)
        match written.kind:
            case "text":
                if part.text.text:
                    yield from self._say(written, part.text.text)
                for citation in part.text.citations:
                    yield from self._cite(written, citation)
            case "refusal" if part.refusal.text:
                yield from self._say(written, part.refusal.text)
            case "reasoning":
                for number, text in enumerate(part.reasoning.texts):
                    yield from self._think(written, number, text)
            case "tool_call":
                yield from self._call(written)
            case "media":
                written.size = len(part.media.data)

    def _write(self, written: _Written, event: pb.GenerateEvent, kind: str) -> Iterator[bytes]:
        match kind:
            case "text_delta":
                yield from self._say(written, event.text_delta)
            case "refusal_delta":
                yield from self._say(written, event.refusal_delta)
            case "citation":
                yield from self._cite(written, event.citation)
            case "reasoning_delta":
                yield from self._think(written, event.text_index, event.reasoning_delta)
            case "summary_delta":
                if written.piece is None or written.piece < 0:  # the thoughts themselves are better
                    yield from self._think(written, -1 - event.summary_delta.summary_index, event.summary_delta.text)
            case "arguments_delta":
                yield from self._argue(written, event.arguments_delta)
            case "state":
                written.part = _with_state(written.part, event.state)
            case "part_updated":
                _update(written, event.part_updated)
            case "media_delta":
                written.size += len(event.media_delta.data)
                _hear(written, event.media_delta.transcript)
            case "part_ended":
                yield from self._end()
                yield from self._drain()

    def _open(self, written: _Written, block: object) -> Iterator[bytes]:
        written.block = self._blocks
        self._blocks += 1
        started = {"type": "content_block_start", "index": written.block, "content_block": block}
        yield _frame("content_block_start", started)

    def _stop(self, written: _Written) -> Iterator[bytes]:
        if written.block is not None:
            yield _frame("content_block_stop", {"type": "content_block_stop", "index": written.block})
        written.block = self._text = None

    def _whole(self, written: _Written, block: object) -> Iterator[bytes]:
        """A block that comes at once."""
        yield from self._open(written, block)
        yield from self._stop(written)

    def _say(self, written: _Written, text: str) -> Iterator[bytes]:
        if not text:
            return
        if written.block is None:
            yield from self._open_text(written)
        yield _delta(self._text_head, text)

    def _open_text(self, written: _Written) -> Iterator[bytes]:
        yield from self._open(written, {"type": "text", "text": ""})
        self._text_head = _delta_head(written.block or 0, b"text_delta", b"text")
        self._text = written

    def _cite(self, written: _Written, citation: pb.Citation) -> Iterator[bytes]:
        encoded = encode_citation(citation)
        if encoded is None:
            return
        if written.block is None:
            yield from self._open_text(written)
        yield _delta(_delta_head(written.block or 0, b"citations_delta", b"citation"), encoded)

    def _think(self, written: _Written, piece: int, text: str) -> Iterator[bytes]:
        if not text:
            return
        if written.block is None:
            yield from self._open(written, {"type": "thinking", "thinking": "", "signature": ""})
        elif written.piece != piece:
            text = BETWEEN_THOUGHTS + text
        written.piece = piece
        yield _delta(_delta_head(written.block or 0, b"thinking_delta", b"thinking"), text)

    def _call(self, written: _Written) -> Iterator[bytes]:
        self._called = True
        call, state = written.part.tool_call, self._states.pop(written.index, written.part.state)
        if (shown := call_state(state)) is not None:
            yield from self._whole(written, shown)
        named = {"id": call_id(call, self._response_id, written.index), "name": call.name}
        yield from self._open(written, {"type": "tool_use", **named, "input": {}})
        if call.WhichOneof("input") == "text":
            yield from self._argue(written, call.text)
        elif call.arguments_json:
            yield from self._argue(written, call.arguments_json)

    def _argue(self, written: _Written, text: str) -> Iterator[bytes]:
        if not text or written.block is None:
            return
        if written.part.tool_call.WhichOneof("input") == "text":  # free text is the one member of the input
            text = _encode(text).decode()[1:-1]
            text = text if written.arguments else '{"input":"' + text
        elif not written.arguments and not (text := written.first_arguments(text)):
            return
        written.arguments.append(text)
        yield _delta(_delta_head(written.block, b"input_json_delta", b"partial_json"), text)

    def _end(self) -> Iterator[bytes]:
        """Ends the part that is being written."""
        written, self._written = self._written, None
        if written is None:
            return
        part = written.part
        match written.kind:
            case "reasoning" if not part.reasoning.redacted:
                if written.block is None and part.HasField("state"):
                    yield from self._open(written, {"type": "thinking", "thinking": "", "signature": ""})
                if written.block is not None:
                    head = _delta_head(written.block, b"signature_delta", b"signature")
                    yield _delta(head, signature(part))
            case "tool_call" if part.tool_call.WhichOneof("input") == "text" and written.block is not None:
                rest = '"}' if written.arguments else '{"input":""}'
                yield _delta(_delta_head(written.block, b"input_json_delta", b"partial_json"), rest)
            case "tool_call" if written.unreadable and written.block is not None:
                told = _encode({RAW_ARGUMENTS: "".join(written.held)}).decode()
                yield _delta(_delta_head(written.block, b"input_json_delta", b"partial_json"), told)
            case "server_tool_call":
                yield from self._server_call(written)
            case "media":
                yield from self._say(written, media_note(part.media, written.size))
            case "reasoning" | "server_tool_result" | "opaque":
                for block in encode_blocks(part, self._response_id, written.index):
                    yield from self._whole(written, block)
        yield from self._stop(written)

    def _server_call(self, written: _Written) -> Iterator[bytes]:
        call = written.part.server_tool_call
        block = encode_server_call(call, self._response_id)
        if block is None:
            return
        yield from self._open(written, {**block, "input": {}})
        asked = _encode(server_input(call)).decode()
        yield _delta(_delta_head(written.block or 0, b"input_json_delta", b"partial_json"), asked)


def _frame(name: str, event: JsonObject) -> bytes:
    return named_frame(name.encode(), _encode(event))


def _delta_head(index: int, kind: bytes, member: bytes) -> bytes:
    """All of a delta's data up to its value."""
    head = b'{"type":"content_block_delta","index":%d,' % index
    return head + b'"delta":{"type":"%b","%b":' % (kind, member)


def _delta(head: bytes, value: object) -> bytes:
    """Return the event of a delta, given its head (`_delta_head`)."""
    return named_frame(b"content_block_delta", b"%b%b}}" % (head, _encode(value)))


def _states_of(
    started: pb.GenerateEvent, together: Iterable[pb.GenerateEvent]
) -> Iterator[tuple[int, pb.ReasoningState]]:
    """State that came with the beginning of its call: it is shown before the call."""
    for event in together:
        if event.part_index == started.part_index and event.WhichOneof("kind") == "state":
            yield started.part_index, event.state


def _with_state(part: pb.Part, state: pb.ReasoningState) -> pb.Part:
    """A copy: messages are not ours to change."""
    copy = pb.Part()
    copy.CopyFrom(part)
    copy.state.CopyFrom(state)
    return copy


def _update(written: _Written, part: pb.Part) -> None:
    """The part as its provider left it. What was heard of a medium stays."""
    heard = written.part.media.transcript if written.kind == "media" else ""
    written.part = pb.Part()
    written.part.CopyFrom(part)
    if written.kind == "media":
        written.part.media.transcript = part.media.transcript or heard


def _hear(written: _Written, transcript: str) -> None:
    if transcript:
        copy = pb.Part()
        copy.CopyFrom(written.part)
        copy.media.transcript += transcript
        written.part = copy


def _estimate(request: pb.GenerateRequest) -> int:
    """Tokens of the prompt, roughly: from its length, without its media."""
    body = request.source.body
    if body and b"base64" not in body:
        return len(body) // CHARACTERS_A_TOKEN
    length = sum(len(part.text.text) for part in request.instructions)
    for message in request.messages:
        for part in message.parts:
            length += len(part.text.text) + len(part.tool_call.arguments_json)
            length += sum(len(inner.text.text) for inner in part.tool_result.parts)
    length += sum(len(tool.function.parameters_json) + len(tool.function.description) for tool in request.tools)
    return length // CHARACTERS_A_TOKEN

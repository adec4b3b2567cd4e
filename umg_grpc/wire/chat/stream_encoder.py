"""Encoding of a streamed chat response: canonical events become chunks."""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import error_frame
from umg_grpc.wire.chat.provider_reasoning_members import REASONING_SEPARATOR, State, from_canonical, put
from umg_grpc.wire.chat.shared_response_fields import (
    REASONING_BEGIN,
    REASONING_END,
    encode_audio,
    encode_citation,
    encode_image,
    encode_logprob,
    finish_name,
)
from umg_grpc.wire.chat.thought_signatures import encode_signature
from umg_grpc.wire.chat.tool_calls import call_id
from umg_grpc.wire.chat.usage import encode_usage
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.json_decoding import JsonObject

_encode = msgspec.json.Encoder().encode
CITATION_BYTES = 512  # approximate memory of a citation beside its content


class _Choice:
    """State of one choice (one of several alternative responses) while its chunks are sent."""

    def __init__(self) -> None:
        self.has_role = False  # whether its role was sent
        self.finished = False
        self.calls: dict[int, int] = {}  # part -> index among the calls, counted from 0
        self.custom: set[int] = set()  # parts of calls whose input is free text
        self.has_input: set[int] = set()  # parts of calls of which some input was sent
        self.starts: dict[int, int] = {}  # text part -> its offset in the content, in characters
        self.lengths: dict[int, int] = {}
        self.length = 0
        self.citations: list[tuple[pb.Citation, int]] = []
        self.images = 0
        self.state: pb.ReasoningState | None = None  # of the message, sent at the end: clients join repeated values
        self.refusals: set[int] = set()  # parts with a refusal
        self.in_reasoning = False  # whether the reasoning inside the text is open
        self.has_reasoning = False
        self.piece: tuple[int, int] | None = None  # (part, text) of the last reasoning; summaries are texts -1, -2, ...
        self.full_reasoning: set[int] = set()  # parts whose full reasoning is sent


class StreamEncoder(msgspec.Struct, eq=False):
    """Encoder of canonical events as chat chunks. One instance per stream.

    Only the first chunk of a choice has the role. Only the first chunk of a call has the call's id, type and name. All
    annotations are in one late delta. Usage is in the last chunk, if the request includes it. A choice begins with its
    first part, so that `content` can be null in a response that only calls tools.
    """

    _request: pb.GenerateRequest
    retained_bytes: int = 0
    _choices: dict[int, _Choice] = {}
    _head: bytes = b""
    _tail: bytes = b"]}"
    _response_id: str = ""
    _usage: pb.Usage | None = None
    _passed: bool = False  # the provider's own frames were sent: they are the whole response
    _closed: bool = False

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if passed := message.source_frames:
            return self.pass_frames(passed)
        if self._passed or self._closed:
            return b""
        if not self._head:
            self._start(pb.GenerationStarted(model=self._request.model))
        frames = list[bytes]()
        for event in message.events:
            if (text := event.text_delta) and (chunk := self._continue_text(event, text)):  # by far the most frequent
                frames.append(chunk)
            else:
                frames += self._chunks(event)
        return b"".join(frames)

    def pass_frames(self, frames: bytes) -> bytes:
        """Return the provider's own frames, which are the whole response."""
        self._passed = True
        return frames

    def close(self) -> bytes:
        if self._passed or self._closed:
            return b""
        self._closed = True
        if not self._head:
            self._start(pb.GenerationStarted(model=self._request.model))
        frames = list[bytes]()
        for index in list(self._choices) or [0]:
            if not self._choice(index).finished:
                frames += self._finish(index, pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))
        if self._request.face_hints.include_usage and self._usage is not None:
            usage = _encode(encode_usage(self._usage))
            frames.append(sse.frame(self._head + b'],"usage":' + usage + b"}"))
        return b"".join([*frames, sse.frame(sse.DONE_DATA)])

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        self._closed = True
        return error_frame(error, has_begun=self._passed or bool(self._head))

    def _start(self, started: pb.GenerationStarted) -> None:
        head: JsonObject = {
            "id": started.response_id,
            "object": "chat.completion.chunk",
            "created": started.create_time.seconds,
            "model": started.model,
            "system_fingerprint": started.system_fingerprint or None,
        }
        if started.service_tier:
            head["service_tier"] = started.service_tier
        self._response_id = started.response_id
        self._head = _encode(head)[:-1] + b',"choices":['
        self._tail = b'],"usage":null}' if self._request.face_hints.include_usage else b"]}"

    def _choice(self, index: int) -> _Choice:
        if index not in self._choices:
            self._choices[index] = _Choice()
        return self._choices[index]

    def _chunk(self, index: int, delta: object, finish: str | None = None, logprobs: object = None) -> bytes:
        rest = b',"logprobs":%b,"finish_reason":%b}' % (_encode(logprobs), _encode(finish))
        return sse.frame(b'%b{"index":%d,"delta":%b%b%b' % (self._head, index, _encode(delta), rest, self._tail))

    def _continue_text(self, event: pb.GenerateEvent, text: str) -> bytes:
        """Return a text delta's chunk, built from bytes to save time; b"" if its part is not a text already started."""
        index, part = event.candidate_index, event.part_index
        choice = self._choices.get(index)
        if choice is None or part not in choice.starts:
            return b""
        choice.length += len(text)
        choice.lengths[part] += len(text)
        return b'data: %b{"index":%d,"delta":{"content":%b},"logprobs":null,"finish_reason":null}%b\n\n' % (
            self._head,
            index,
            _encode(text),
            self._tail,
        )

    def _chunks(self, event: pb.GenerateEvent) -> Iterator[bytes]:  # noqa: PLR0912 - one case a kind
        index, part = event.candidate_index, event.part_index
        match event.WhichOneof("kind"):
            case "text_delta":
                yield from self._text(index, part, event.text_delta)
            case "reasoning_delta":
                yield from self._reasoning(index, (part, event.text_index), event.reasoning_delta)
            case "arguments_delta":
                yield from self._arguments(index, part, event.arguments_delta)
            case "started":
                self._start(event.started)
            case "part_started":
                yield from self._part(index, part, event.part_started)
            case "summary_delta":
                if part not in self._choice(index).full_reasoning:  # the full reasoning is sent instead
                    yield from self._reasoning(
                        index, (part, -1 - event.summary_delta.summary_index), event.summary_delta.text
                    )
            case "refusal_delta":
                yield from self._refusal(index, part, event.refusal_delta)
            case "citation":
                self._choice(index).citations.append((event.citation, part))
                self.retained_bytes += CITATION_BYTES + event.citation.ByteSize()
            case "state":
                yield from self._state(index, part, event.state)
            case "logprobs":
                yield from self._begin(index, "")
                entries = [encode_logprob(entry) for entry in event.logprobs.logprobs]
                refused = part in self._choice(index).refusals
                logprobs = {"content": None, "refusal": entries} if refused else {"content": entries, "refusal": None}
                yield self._chunk(index, {}, logprobs=logprobs)
            case "part_ended":
                yield from self._end_part(index, part)
            case "finished":
                yield from self._finish(index, event.finished)
            case "usage":
                self._usage = event.usage
            case "media_delta":
                yield from self._sound(index, event.media_delta)
            case "part_updated" if event.part_updated.HasField("media"):
                yield from self._sound_ended(index, event.part_updated.media)
            case "part_updated" | "opaque" | None:
                pass  # a provider's own tool, an opaque event, a kind newer than this build: chat has no field for them
            case unhandled:
                assert_never(unhandled)

    def _begin(self, index: int, content: str | None) -> Iterator[bytes]:
        choice = self._choice(index)
        if not choice.has_role:
            choice.has_role = True
            yield self._chunk(index, {"role": "assistant", "content": content, "refusal": None})

    def _part(self, index: int, part: int, started: pb.Part) -> Iterator[bytes]:
        kind, choice = started.WhichOneof("kind"), self._choice(index)
        if kind != "reasoning":
            yield from self._end_reasoning_text(index)
        if kind not in ("server_tool_call", "server_tool_result", "opaque", "compaction", None):
            is_text = kind == "text" or (kind == "reasoning" and self._request.face_hints.thinking_to_content)
            yield from self._begin(index, "" if is_text else None)
        match kind:
            case "text":
                choice.starts[part] = choice.length
                choice.lengths[part] = 0
                if started.text.text:
                    yield from self._text(index, part, started.text.text)
                choice.citations += [(citation, part) for citation in started.text.citations]
            case "reasoning":
                for number, text in enumerate(started.reasoning.texts):
                    yield from self._reasoning(index, (part, number), text)
            case "refusal":
                yield from self._refusal(index, part, started.refusal.text)
            case "tool_call":
                yield from self._call(index, part, started)
            case "media":
                yield from self._media(index, started.media)
            case "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # a provider's own tool; chat has no field for it
            case unhandled:
                assert_never(unhandled)
        if started.HasField("state") and kind != "tool_call":
            yield from self._state(index, part, started.state)

    def _text(self, index: int, part: int, text: str) -> Iterator[bytes]:
        choice = self._choice(index)
        if part not in choice.starts:  # the part was not started
            yield from self._part(index, part, pb.Part(text=pb.TextPart()))
        choice.length += len(text)
        choice.lengths[part] += len(text)
        yield self._chunk(index, {"content": text})

    def _refusal(self, index: int, part: int, text: str) -> Iterator[bytes]:
        yield from self._begin(index, None)
        self._choice(index).refusals.add(part)
        if text:
            yield self._chunk(index, {"refusal": text})

    def _reasoning(self, index: int, piece: tuple[int, int], text: str) -> Iterator[bytes]:
        choice = self._choice(index)
        if not text:
            return
        between = REASONING_SEPARATOR if choice.has_reasoning and choice.piece != piece else ""
        choice.piece, choice.has_reasoning = piece, True
        if piece[1] >= 0:
            choice.full_reasoning.add(piece[0])
        if not self._request.face_hints.thinking_to_content:
            yield from self._begin(index, None)
            yield self._chunk(index, {"reasoning_content": between + text})
            return
        yield from self._begin(index, "")
        text = between + text if choice.in_reasoning else REASONING_BEGIN + text
        choice.in_reasoning = True
        choice.length += len(text)
        yield self._chunk(index, {"content": text})

    def _end_reasoning_text(self, index: int) -> Iterator[bytes]:
        choice = self._choice(index)
        if choice.in_reasoning:
            choice.in_reasoning = False
            choice.length += len(REASONING_END)
            yield self._chunk(index, {"content": REASONING_END})

    def _call(self, index: int, part: int, started: pb.Part) -> Iterator[bytes]:
        choice, call = self._choice(index), started.tool_call
        number = choice.calls[part] = len(choice.calls)
        if self._request.face_hints.legacy_functions:
            if number == 0:  # the older form has one call
                yield self._chunk(index, {"function_call": {"name": call.name, "arguments": ""}})
        else:
            custom = call.HasField("text")
            kind, named = (
                ("custom", {"name": call.name, "input": ""})
                if custom
                else ("function", {"name": call.name, "arguments": ""})
            )
            first: JsonObject = {
                "index": number,
                "id": call_id(call, self._response_id, number),
                "type": kind,
                kind: named,
            }
            if started.state.format == "native":
                first["extra_content"] = encode_signature(started.state)
            state = from_canonical(started.state)
            put(state, first, "call")
            delta: JsonObject = {"tool_calls": [first]}
            put(state, delta, "message")
            yield self._chunk(index, delta)
            if custom:
                choice.custom.add(part)
        if text := call.arguments_json or call.text:
            yield from self._arguments(index, part, text)

    def _arguments(self, index: int, part: int, text: str) -> Iterator[bytes]:
        choice = self._choice(index)
        number = choice.calls.get(part)
        if number is None or not text:
            return
        choice.has_input.add(part)
        if not self._request.face_hints.legacy_functions:
            piece = {"custom": {"input": text}} if part in choice.custom else {"function": {"arguments": text}}
            yield self._chunk(index, {"tool_calls": [{"index": number, **piece}]})
        elif number == 0:
            yield self._chunk(index, {"function_call": {"arguments": text}})

    def _sound(self, index: int, delta: pb.MediaDelta) -> Iterator[bytes]:
        piece = encode_audio(pb.MediaPart(data=delta.data, transcript=delta.transcript))
        yield self._chunk(index, {"audio": {name: piece[name] for name in ("data", "transcript") if piece[name]}})

    def _sound_ended(self, index: int, media: pb.MediaPart) -> Iterator[bytes]:
        if media.kind == pb.MEDIA_KIND_AUDIO and media.expire_time.seconds:
            yield self._chunk(index, {"audio": {"expires_at": media.expire_time.seconds}})

    def _media(self, index: int, media: pb.MediaPart) -> Iterator[bytes]:
        if media.kind == pb.MEDIA_KIND_AUDIO:
            yield self._chunk(index, {"audio": {name: value for name, value in encode_audio(media).items() if value}})
        elif media.kind == pb.MEDIA_KIND_IMAGE:
            choice = self._choice(index)
            yield self._chunk(index, {"images": [{"index": choice.images, **encode_image(media)}]})
            choice.images += 1

    def _state(self, index: int, part: int, state: pb.ReasoningState) -> Iterator[bytes]:
        """Yield the chunk with a reasoning state. Vendor G's, unless of a call, is kept until the choice ends."""
        choice = self._choice(index)
        if state.format == "chat":
            yield from self._carried(index, part, from_canonical(state))
        if state.format != "native":
            return
        if part not in choice.calls:
            choice.state = state
        elif not self._request.face_hints.legacy_functions:
            piece = {"custom": {"input": ""}} if part in choice.custom else {"function": {"arguments": ""}}
            call = {"index": choice.calls[part], **piece, "extra_content": encode_signature(state)}
            yield self._chunk(index, {"tool_calls": [call]})

    def _carried(self, index: int, part: int, state: State) -> Iterator[bytes]:
        delta, call = JsonObject(), JsonObject()
        put(state, delta, "message")
        put(state, call, "call")
        choice = self._choice(index)
        if call and part in choice.calls and not self._request.face_hints.legacy_functions:
            piece = {"custom": {"input": ""}} if part in choice.custom else {"function": {"arguments": ""}}
            delta["tool_calls"] = [{"index": choice.calls[part], **piece, **call}]
        if delta:
            yield from self._begin(index, None)
            yield self._chunk(index, delta)

    def _end_part(self, index: int, part: int) -> Iterator[bytes]:
        """Yield `{}` as the arguments of a tool call that ends without arguments, since clients parse them as JSON."""
        choice = self._choice(index)
        if part in choice.calls and part not in choice.has_input and part not in choice.custom:
            yield from self._arguments(index, part, "{}")

    def _finish(self, index: int, finished: pb.CandidateFinished) -> Iterator[bytes]:
        choice = self._choice(index)
        if choice.finished:
            return
        choice.finished = True
        yield from self._begin(index, "")
        for part in choice.calls:
            yield from self._end_part(index, part)
        yield from self._end_reasoning_text(index)
        annotations = [
            encode_citation(citation, choice.starts.get(part, 0), choice.lengths.get(part, choice.length))
            for citation, part in choice.citations
        ]
        if shown := [annotation for annotation in annotations if annotation is not None]:
            yield self._chunk(index, {"annotations": shown})
        if choice.state is not None:
            yield self._chunk(index, {"extra_content": encode_signature(choice.state)})
        reason = pb.FINISH_REASON_CONTENT_FILTER if finished.block_reason else finished.finish_reason
        legacy = self._request.face_hints.legacy_functions
        yield self._chunk(index, {}, finish_name(reason, bool(choice.calls), bool(choice.refusals), legacy))

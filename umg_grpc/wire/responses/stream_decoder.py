"""Decoding of a provider's responses stream: its events become canonical events."""

from collections.abc import Callable, Iterator

from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.base64_media import OUTPUT_AUDIO_TYPES, decode_base64
from umg_grpc.wire.core.json_decoding import is_present
from umg_grpc.wire.core.lenient_number_reading import count, position
from umg_grpc.wire.core.logprobs import decode_logprob
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.tool_argument_objects import arguments_text
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import cut_off, unreadable
from umg_grpc.wire.responses.content_parts import decode_annotation
from umg_grpc.wire.responses.decode_output import (
    ContentPart,
    Head,
    ProviderResponse,
    check_status,
    decode_finish,
    decode_head,
    decode_output_item,
    decode_used,
)
from umg_grpc.wire.responses.decode_stream_parts import ARGUMENTS_KEY, REFUSAL_KEY, TEXT_KEY, Key, PartEmitter, Streamed
from umg_grpc.wire.responses.provider_stream_events import (
    ARGUMENTS_DELTA,
    BEGIN_EVENTS,
    END_EVENTS,
    EVENT_DECODER,
    HEAD_DECODER,
    IGNORED_EVENTS,
    ITEM_DECODER,
    PLAIN_DECODER,
    PLAIN_HEADS,
    RESPONSE_DECODER,
    SUMMARY_DELTA,
    TEXT_DELTA,
    Event,
    StreamedItem,
    stated_error,
)
from umg_grpc.wire.responses.server_tools import SERVER_TOOLS
from umg_grpc.wire.responses.tool_calls import CALL_ITEMS, rename_call, rename_calls


class _Item:
    """Output item being received: its type and id, its parts by index, and whether it is done."""

    def __init__(self, item: StreamedItem) -> None:
        self.kind = item.type or ""
        self.item_id = item.id or ""
        self.phase = item.phase or ""
        self.parts: dict[int, Streamed] = {}
        # whether it sent content before its part could start: only the complete item can provide that
        self.needs_item = False
        self.done = False


class TranslatingDecoder(EventDecoder):
    """Decoder of a translated responses stream. One per stream. Content that comes without deltas, only at the end of a
    part or item, is emitted then.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._items: dict[int, _Item] = {}
        self._emitter = PartEmitter()
        self._calls = False
        self._refused = False
        self._searches = 0
        self._audio_part: int | None = None
        self._names: ToolNames | None = None  # created with the first call
        self._handlers: dict[str, Callable[[Event], Iterator[pb.GenerateEvent]]] = {
            "response.output_text.delta": self._text_delta,
            "response.output_text.done": self._text_done,
            "response.output_text.annotation.added": self._annotation,
            "response.refusal.delta": self._refusal_delta,
            "response.refusal.done": self._refusal_done,
            "response.content_part.added": self._content_added,
            "response.content_part.done": self._content_done,
            "response.output_item.added": self._item_added,
            "response.output_item.done": self._item_done,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._arguments_delta,
            "response.custom_tool_call_input.done": self._arguments_done,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_summary_text.done": self._summary_done,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.reasoning_text.done": self._reasoning_done,
            "response.web_search_call.searching": self._searching,
            "response.file_search_call.searching": self._searching,
            "response.code_interpreter_call.interpreting": self._searching,
            "response.audio.delta": self._audio_delta,
            "response.audio.transcript.delta": self._transcript_delta,
        }

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        return self._plain(frames) or super()._take(frames)

    def _plain(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        """Return the events of a read that has only frequent deltas of open parts, to save time; else None."""
        if self._has_halves or self.done or not frames.startswith(PLAIN_HEADS):
            return None
        message, emitted = pb.StreamGenerateResponse(), list[tuple[Streamed, Key]]()
        for frame in frames[:-2].split(b"\n\n"):
            head = next(filter(frame.startswith, PLAIN_HEADS), None)
            if head is None or frame.count(b"\n") != 1:
                return None
            try:
                plain = PLAIN_DECODER.decode(frame[len(head) :])
            except (ValueError, RecursionError):
                return None
            item = self._items.get(plain.output_index)
            streamed = item.parts.get(plain.content_index) if item is not None else None
            if item is None or streamed is None or streamed.ended or not plain.delta or plain.logprobs:
                return None
            if head is TEXT_DELTA and item.kind == "message":
                message.events.add(part_index=streamed.part, text_delta=plain.delta)
                emitted.append((streamed, TEXT_KEY))
            elif head is ARGUMENTS_DELTA and item.kind == "function_call":
                message.events.add(part_index=streamed.part, arguments_delta=plain.delta)
                emitted.append((streamed, ARGUMENTS_KEY))
            elif head is SUMMARY_DELTA and item.kind == "reasoning":
                emitted.append((streamed, ("summary", plain.summary_index)))
                message.events.append(streamed.delta(emitted[-1][1], plain.delta))
            else:
                return None
        for streamed, key in emitted:
            streamed.sent.add(key)
        return message

    def _events(self, event: sse.SseEvent) -> Iterator[pb.GenerateEvent]:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return
        decoded, _ = self._read(EVENT_DECODER, data)
        if error := stated_error(event.name, decoded):
            raise error
        kind = decoded.type or event.name.decode("utf-8", "replace")
        if (handler := self._handlers.get(kind)) is not None:
            item = self._items.get(count(decoded.output_index))
            if item is None or not item.done or decoded.output_index is None:
                yield from handler(decoded)
        elif kind in END_EVENTS:
            yield from self._end(decoded)
        elif kind in BEGIN_EVENTS:
            yield from self._begin(HEAD_DECODER.decode(decoded.response) if is_present(decoded.response) else Head())
        elif kind not in IGNORED_EVENTS:
            opaque = pb.GenerateEvent()
            opaque.opaque.format, opaque.opaque.type, opaque.opaque.json = "responses", kind, data.decode()
            yield from self._begin(Head())
            yield opaque

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        raise cut_off()

    def _begin(self, head: Head) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            self._started = True
            event = pb.GenerateEvent()
            event.started.model = self._request.model or head.model or ""
            decode_head(head, event.started)
            yield event

    # --- parts

    def _open(self, item: _Item, index: int, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        if index not in item.parts:
            yield from self._begin(Head())
            item.parts[index] = Streamed(self._emitter.count)
            yield self._emitter.start(part)

    def _emit_text(self, streamed: Streamed, key: Key, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        if not text or streamed.ended or (whole and key in streamed.sent):
            return
        streamed.sent.add(key)
        if self._has_halves:
            text = streamed.replace_halves(key, text)
        if text:
            yield streamed.delta(key, text)

    def _item(self, event: Event, kind: str) -> _Item:
        index = count(event.output_index)
        if index not in self._items:
            self._items[index] = _Item(StreamedItem(type=kind))
        return self._items[index]

    # --- messages

    def _content(self, item: _Item, event: Event, refusal: bool) -> Iterator[pb.GenerateEvent]:
        part = pb.Part(message_id=item.item_id, phase=item.phase)
        if refusal:
            self._refused = True
            part.refusal.SetInParent()
        else:
            part.text.SetInParent()
        yield from self._open(item, count(event.content_index), part)

    def _content_added(self, event: Event) -> Iterator[pb.GenerateEvent]:
        kind = event.part.type if event.part else None
        if kind in ("output_text", "refusal"):
            yield from self._content(self._item(event, "message"), event, kind == "refusal")

    def _emit_message_text(
        self, event: Event, text: str | None, refusal: bool, whole: bool
    ) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "message")
        yield from self._content(item, event, refusal)
        streamed = item.parts[count(event.content_index)]
        yield from self._emit_text(streamed, REFUSAL_KEY if refusal else TEXT_KEY, text, whole)
        if event.logprobs and not whole and not streamed.ended:
            likely = pb.GenerateEvent(part_index=streamed.part)
            likely.logprobs.logprobs.extend(map(decode_logprob, event.logprobs))
            yield likely

    def _text_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_message_text(event, event.delta, refusal=False, whole=False)

    def _text_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_message_text(event, event.text, refusal=False, whole=True)

    def _refusal_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_message_text(event, event.delta, refusal=True, whole=False)

    def _refusal_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_message_text(event, event.refusal, refusal=True, whole=True)

    def _annotation(self, event: Event) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "message")
        yield from self._content(item, event, refusal=False)
        streamed = item.parts[count(event.content_index)]
        if is_present(event.annotation) and not streamed.ended:
            yield from self._emit_citations(streamed, [event.annotation])

    def _emit_citations(self, streamed: Streamed, annotations: list[Raw]) -> Iterator[pb.GenerateEvent]:
        for raw in annotations:
            streamed.cited += 1
            cited = pb.GenerateEvent(part_index=streamed.part)
            cited.citation.CopyFrom(decode_annotation(raw))
            yield cited

    def _content_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "message")
        streamed = item.parts.get(count(event.content_index))
        if item.kind != "message":
            return
        part = event.part or ContentPart()
        if streamed is None:
            item.needs_item = item.needs_item or bool(part.text or part.refusal)
        elif not streamed.ended:
            yield from self._emit_text(streamed, TEXT_KEY, part.text, whole=True)
            yield from self._emit_text(streamed, REFUSAL_KEY, part.refusal, whole=True)
            yield from self._emit_citations(streamed, (part.annotations or [])[streamed.cited :])
            yield from self._emitter.close(streamed)

    # --- calls, reasoning

    def _emit_arguments(self, event: Event, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "function_call")
        if (streamed := item.parts.get(0)) is not None:
            yield from self._emit_text(streamed, ARGUMENTS_KEY, text, whole)
        elif text:
            item.needs_item = True

    def _arguments_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_arguments(event, event.delta, whole=False)

    def _arguments_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_arguments(event, arguments_text(event.arguments) or event.input, whole=True)

    def _emit_reasoning(self, event: Event, kind: str, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "reasoning")
        part = pb.Part()
        part.reasoning.item_id = item.item_id
        yield from self._open(item, 0, part)
        index = position(event.summary_index if kind == "summary" else event.content_index)
        yield from self._emit_text(item.parts[0], (kind, index), text, whole)

    def _summary_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_reasoning(event, "summary", event.delta, whole=False)

    def _summary_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_reasoning(event, "summary", event.text, whole=True)

    def _reasoning_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_reasoning(event, "thought", event.delta, whole=False)

    def _reasoning_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_reasoning(event, "thought", event.text, whole=True)

    # --- items

    def _item_added(self, event: Event) -> Iterator[pb.GenerateEvent]:
        streamed_item = ITEM_DECODER.decode(event.item) if is_present(event.item) else StreamedItem()
        item = self._items[count(event.output_index)] = _Item(streamed_item)
        part = pb.Part()
        match item.kind:
            case "function_call" | "custom_tool_call" as kind:
                self._calls = True
                call = part.tool_call
                call.call_id, call.name, call.item_id = (
                    streamed_item.call_id or "",
                    streamed_item.name or "",
                    item.item_id,
                )
                call.namespace = streamed_item.namespace or ""
                rename_call(call, self._tool_names())
                if kind == "function_call":
                    call.arguments_json = ""
                else:
                    call.text = ""
            case "reasoning":
                part.reasoning.item_id = item.item_id
            case kind if kind in SERVER_TOOLS:
                part.server_tool_call.call_id, part.server_tool_call.name = item.item_id, SERVER_TOOLS[kind]
                part.server_tool_call.status = "in_progress"
            case _:  # its parts are sent one by one, or the item is sent complete when it is done
                return
        yield from self._open(item, 0, part)

    def _tool_names(self) -> ToolNames:
        if self._names is None:
            self._names = tool_names(self._request)
        return self._names

    def _searching(self, event: Event) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "")
        if (streamed := item.parts.get(0)) is not None and item.kind in SERVER_TOOLS:
            update = pb.GenerateEvent(part_index=streamed.part)
            call = update.part_updated.server_tool_call
            call.call_id, call.name, call.status = item.item_id, SERVER_TOOLS[item.kind], "searching"
            yield update

    def _item_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        index = count(event.output_index)
        if not is_present(event.item):
            return
        if index not in self._items:
            yield from self._item_added(event)
        item = self._items[index]
        if item.done:
            return
        item.done = True
        whole = pb.Message()
        decode_output_item(event.item, whole)
        rename_calls(whole, self._request)
        for content_index, part in enumerate(whole.parts):
            if content_index not in item.parts:
                self._refused = self._refused or part.HasField("refusal")
                yield from self._emitter.whole(part)
            else:
                yield from self._emitter.complete(item.parts[content_index], part)
        for content_index, streamed in item.parts.items():
            if content_index >= len(whole.parts):
                yield from self._emitter.close(streamed)
        self._record(item.kind)

    def _record(self, kind: str) -> None:
        self._calls = self._calls or kind in CALL_ITEMS
        self._searches += kind == "web_search_call"

    # --- audio, the end of the response

    def _emit_audio(self, data: bytes, transcript: str) -> Iterator[pb.GenerateEvent]:
        if self._audio_part is None:
            self._audio_part = self._emitter.count
            mime = OUTPUT_AUDIO_TYPES.get(self._request.audio_output.format, "")
            yield from self._begin(Head())
            yield self._emitter.start(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, mime_type=mime, data=b"")))
        delta = pb.GenerateEvent(part_index=self._audio_part)
        delta.media_delta.data, delta.media_delta.transcript = data, transcript
        yield delta

    def _audio_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        try:
            data = decode_base64(event.delta or "", "delta")
        except UmgError:
            raise unreadable() from None
        return self._emit_audio(data, "")

    def _transcript_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._emit_audio(b"", event.delta or "")

    def _end(self, event: Event) -> Iterator[pb.GenerateEvent]:
        response = RESPONSE_DECODER.decode(event.response) if is_present(event.response) else ProviderResponse()
        response.status = response.status or (event.type or "").removeprefix("response.")
        check_status(response)
        yield from self._begin(response)
        for index, raw in enumerate(response.output or ()):
            yield from self._item_done(Event(output_index=index, item=raw))
        if any(item.needs_item and not item.done for item in self._items.values()):
            raise unreadable()  # content would be lost silently
        for item in self._items.values():
            for streamed in item.parts.values():
                yield from self._emitter.close(streamed)
        if self._audio_part is not None:
            yield from self._emitter.close(Streamed(self._audio_part))
        used = pb.GenerateEvent()
        if decode_used(response, self._searches, used):
            yield used
        ended = pb.GenerateEvent()
        decode_finish(response, self._calls, self._refused, ended.finished)
        self.done = True
        yield ended

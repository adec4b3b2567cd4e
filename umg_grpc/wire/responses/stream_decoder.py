"""The streamed answer of a provider: its events -> canonical events."""

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.arguments import arguments_text
from umg_grpc.wire.chat.names import tool_names
from umg_grpc.wire.counts import count
from umg_grpc.wire.frames import EventDecoder
from umg_grpc.wire.json import given
from umg_grpc.wire.media import decode_base64
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.provider_errors import cut_off, unreadable
from umg_grpc.wire.ragged import placeheld
from umg_grpc.wire.responses.answer import (
    CALLS,
    ContentPart,
    Head,
    ProviderResponse,
    check_status,
    decode_finish,
    decode_head,
    decode_logprob,
    decode_output_item,
    decode_used,
)
from umg_grpc.wire.responses.content import decode_annotation
from umg_grpc.wire.responses.events import (
    ARGUMENTS_DELTA,
    AUDIO_TYPES,
    BEGINNINGS,
    ENDS,
    EVENT,
    HEAD,
    ITEM,
    PLAIN,
    PLAIN_HEADS,
    RESPONSE,
    SUMMARY_DELTA,
    TEXT_DELTA,
    Event,
    StreamedItem,
    stated_error,
)
from umg_grpc.wire.responses.items import SERVER_TOOLS
from umg_grpc.wire.responses.response import rename, rename_call
from umg_grpc.wire.responses.telling import ARGUMENTS, REFUSAL, TEXT, Key, PartTeller, Streamed


class _Item:
    """An item that is being streamed: its parts by their index in it."""

    def __init__(self, item: StreamedItem) -> None:
        self.kind = item.type or ""
        self.item_id = item.id or ""
        self.phase = item.phase or ""
        self.parts: dict[int, Streamed] = {}
        self.waits = False  # whether it said what no part could take: the whole item has to tell it
        self.done = False


class TranslatingDecoder(EventDecoder):
    """Events -> canonical events. One instance a stream.

    What a provider tells only at the end of a part or an item, without deltas before, is told then.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._started = False
        self._items: dict[int, _Item] = {}
        self._told = PartTeller()
        self._ragged = False
        self._calls = False
        self._refused = False
        self._searches = 0
        self._sound: int | None = None
        self._names: ToolNames | None = None  # made with the first call
        self._takes: dict[str, Callable[[Event], Iterator[pb.GenerateEvent]]] = {
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
        """What a read says that holds the most usual deltas alone, of parts that have begun; None for any other. For
        speed only.
        """
        if self._ragged or self._done or not frames.startswith(PLAIN_HEADS):
            return None
        message, told = pb.StreamGenerateResponse(), list[tuple[Streamed, Key]]()
        for frame in frames[:-2].split(b"\n\n"):
            head = next(filter(frame.startswith, PLAIN_HEADS), None)
            if head is None or frame.count(b"\n") != 1:
                return None
            try:
                plain = PLAIN.decode(frame[len(head) :])
            except (ValueError, RecursionError):
                return None
            item = self._items.get(plain.output_index)
            streamed = item.parts.get(plain.content_index) if item is not None else None
            if item is None or streamed is None or streamed.ended or not plain.delta or plain.logprobs:
                return None
            if head is TEXT_DELTA and item.kind == "message":
                message.events.add(part_index=streamed.part, text_delta=plain.delta)
                told.append((streamed, TEXT))
            elif head is ARGUMENTS_DELTA and item.kind == "function_call":
                message.events.add(part_index=streamed.part, arguments_delta=plain.delta)
                told.append((streamed, ARGUMENTS))
            elif head is SUMMARY_DELTA and item.kind == "reasoning":
                told.append((streamed, ("summary", plain.summary_index)))
                message.events.append(streamed.delta(told[-1][1], plain.delta))
            else:
                return None
        for streamed, key in told:
            streamed.told.add(key)
        return message

    def _events(self, event: sse.SseEvent) -> Iterator[pb.GenerateEvent]:
        data = event.data or b""
        if data.strip() == sse.DONE:
            return
        told = self._read(data)
        if error := stated_error(event.name, told):
            raise error
        kind = told.type or event.name.decode("utf-8", "replace")
        if (take := self._takes.get(kind)) is not None:
            item = self._items.get(count(told.output_index))
            if item is None or not item.done or told.output_index is None:
                yield from take(told)
        elif kind in ENDS:
            yield from self._end(told)
        elif kind in BEGINNINGS:
            yield from self._begin(HEAD.decode(told.response) if given(told.response) else Head())
        elif kind not in _SILENT:
            opaque = pb.GenerateEvent()
            opaque.opaque.format, opaque.opaque.type, opaque.opaque.json = "responses", kind, data.decode()
            yield from self._begin(Head())
            yield opaque

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        raise cut_off()

    def _read(self, data: bytes) -> Event:
        try:
            return EVENT.decode(data)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError):
            told = EVENT.decode(placeheld(data))
        self._ragged = True
        return told

    def _begin(self, head: Head) -> Iterator[pb.GenerateEvent]:
        if not self._started:
            self._started = True
            event = pb.GenerateEvent()
            event.started.model = self._request.model or head.model or ""
            decode_head(head, event.started)
            yield event

    # --- parts

    def _open(self, item: _Item, index: int, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """Begins a part of an item, unless it has begun."""
        if index not in item.parts:
            yield from self._begin(Head())
            item.parts[index] = Streamed(self._told.count)
            yield self._told.start(part)

    def _tell(self, streamed: Streamed, key: Key, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        """More of one of a part's texts. `whole`: it is all of the text, told only where no delta came before."""
        if not text or streamed.ended or (whole and key in streamed.told):
            return
        streamed.told.add(key)
        if self._ragged:
            text = streamed.mended(key, text)
        if text:
            yield streamed.delta(key, text)

    def _item(self, event: Event, kind: str) -> _Item:
        """The item of an event; one whose start was left out begins with it."""
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

    def _say(self, event: Event, text: str | None, refusal: bool, whole: bool) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "message")
        yield from self._content(item, event, refusal)
        streamed = item.parts[count(event.content_index)]
        yield from self._tell(streamed, REFUSAL if refusal else TEXT, text, whole)
        if event.logprobs and not whole and not streamed.ended:
            likely = pb.GenerateEvent(part_index=streamed.part)
            likely.logprobs.logprobs.extend(map(decode_logprob, event.logprobs))
            yield likely

    def _text_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._say(event, event.delta, refusal=False, whole=False)

    def _text_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._say(event, event.text, refusal=False, whole=True)

    def _refusal_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._say(event, event.delta, refusal=True, whole=False)

    def _refusal_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._say(event, event.refusal, refusal=True, whole=True)

    def _annotation(self, event: Event) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "message")
        yield from self._content(item, event, refusal=False)
        streamed = item.parts[count(event.content_index)]
        if given(event.annotation) and not streamed.ended:
            yield from self._cite(streamed, [event.annotation])

    def _cite(self, streamed: Streamed, annotations: list[Raw]) -> Iterator[pb.GenerateEvent]:
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
        said = event.part or ContentPart()
        if streamed is None:
            item.waits = item.waits or bool(said.text or said.refusal)
        elif not streamed.ended:
            yield from self._tell(streamed, TEXT, said.text, whole=True)
            yield from self._tell(streamed, REFUSAL, said.refusal, whole=True)
            yield from self._cite(streamed, (said.annotations or [])[streamed.cited :])
            yield from self._told.close(streamed)

    # --- calls, reasoning

    def _argue(self, event: Event, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "function_call")
        if (streamed := item.parts.get(0)) is not None:
            yield from self._tell(streamed, ARGUMENTS, text, whole)
        elif text:
            item.waits = True

    def _arguments_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._argue(event, event.delta, whole=False)

    def _arguments_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._argue(event, arguments_text(event.arguments) or event.input, whole=True)

    def _think(self, event: Event, kind: str, text: str | None, whole: bool) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "reasoning")
        part = pb.Part()
        part.reasoning.item_id = item.item_id
        yield from self._open(item, 0, part)
        index = count(event.summary_index if kind == "summary" else event.content_index)
        yield from self._tell(item.parts[0], (kind, index), text, whole)

    def _summary_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._think(event, "summary", event.delta, whole=False)

    def _summary_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._think(event, "summary", event.text, whole=True)

    def _reasoning_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._think(event, "thought", event.delta, whole=False)

    def _reasoning_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._think(event, "thought", event.text, whole=True)

    # --- items

    def _item_added(self, event: Event) -> Iterator[pb.GenerateEvent]:
        told = ITEM.decode(event.item) if given(event.item) else StreamedItem()
        item = self._items[count(event.output_index)] = _Item(told)
        part = pb.Part()
        match item.kind:
            case "function_call" | "custom_tool_call" as kind:
                self._calls = True
                call = part.tool_call
                call.call_id, call.name, call.item_id = told.call_id or "", told.name or "", item.item_id
                call.namespace = told.namespace or ""
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
            case _:
                return  # its parts are told one by one, or the item whole when it is done
        yield from self._open(item, 0, part)

    def _tool_names(self) -> ToolNames:
        if self._names is None:
            self._names = tool_names(self._request)
        return self._names

    def _searching(self, event: Event) -> Iterator[pb.GenerateEvent]:
        item = self._item(event, "")
        if (streamed := item.parts.get(0)) is not None and item.kind in SERVER_TOOLS:
            told = pb.GenerateEvent(part_index=streamed.part)
            call = told.part_updated.server_tool_call
            call.call_id, call.name, call.status = item.item_id, SERVER_TOOLS[item.kind], "searching"
            yield told

    def _item_done(self, event: Event) -> Iterator[pb.GenerateEvent]:
        index = count(event.output_index)
        if not given(event.item):
            return
        if index not in self._items:
            yield from self._item_added(event)
        item = self._items[index]
        if item.done:
            return
        item.done = True
        whole = pb.Message()
        decode_output_item(event.item, whole)
        rename(whole, self._request)
        for place, part in enumerate(whole.parts):
            if place not in item.parts:
                self._refused = self._refused or part.HasField("refusal")
                yield from self._told.whole(part)
            else:
                yield from self._told.complete(item.parts[place], part)
        for place, streamed in item.parts.items():
            if place >= len(whole.parts):
                yield from self._told.close(streamed)
        self._note(item.kind)

    def _note(self, kind: str) -> None:
        self._calls = self._calls or kind in CALLS
        self._searches += kind == "web_search_call"

    # --- sound, the end

    def _hear(self, data: bytes, transcript: str) -> Iterator[pb.GenerateEvent]:
        if self._sound is None:
            self._sound = self._told.count
            mime = AUDIO_TYPES.get(self._request.audio_output.format, "")
            yield from self._begin(Head())
            yield self._told.start(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, mime_type=mime, data=b"")))
        heard = pb.GenerateEvent(part_index=self._sound)
        heard.media_delta.data, heard.media_delta.transcript = data, transcript
        yield heard

    def _audio_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        try:
            data = decode_base64(event.delta or "", "delta")
        except UmgError:
            raise unreadable() from None
        return self._hear(data, "")

    def _transcript_delta(self, event: Event) -> Iterator[pb.GenerateEvent]:
        return self._hear(b"", event.delta or "")

    def _end(self, event: Event) -> Iterator[pb.GenerateEvent]:
        """The whole response: what of its output was not streamed, its usage, and why it ended."""
        response = RESPONSE.decode(event.response) if given(event.response) else ProviderResponse()
        response.status = response.status or (event.type or "").removeprefix("response.")
        check_status(response)
        yield from self._begin(response)
        for index, raw in enumerate(response.output or ()):
            yield from self._item_done(Event(output_index=index, item=raw))
        if any(item.waits and not item.done for item in self._items.values()):
            raise unreadable()  # silence would lose it
        for item in self._items.values():
            for streamed in item.parts.values():
                yield from self._told.close(streamed)
        if self._sound is not None:
            yield from self._told.close(Streamed(self._sound))
        used = pb.GenerateEvent()
        if decode_used(response, self._searches, used):
            yield used
        ended = pb.GenerateEvent()
        decode_finish(response, self._calls, self._refused, ended.finished)
        self._done = True
        yield ended


# States without content, and ends of what was told in deltas.
_SILENT = frozenset(
    {
        "keepalive",
        "response.audio.done",
        "response.audio.transcript.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.web_search_call.in_progress",
        "response.web_search_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.completed",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.completed",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
        "response.image_generation_call.completed",
    }
)

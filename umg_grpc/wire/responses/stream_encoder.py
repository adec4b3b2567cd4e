"""Encoding of a streamed response: canonical events become events of the responses format."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.responses.broken_stream_end import PassedFrames
from umg_grpc.wire.responses.echoed_request_fields import encode_echo
from umg_grpc.wire.responses.encode_output import (
    Ending,
    Ids,
    Shown,
    ending_of,
    has_state,
    image_text,
    kind_of,
    response_object,
)
from umg_grpc.wire.responses.errors import error_event, response_error
from umg_grpc.wire.responses.server_tools import SERVER_ITEMS
from umg_grpc.wire.responses.stream_event_writer import Writer
from umg_grpc.wire.responses.streamed_item_encoding import (
    Audio,
    Call,
    Compaction,
    Image,
    Item,
    Message,
    Opaque,
    ReasoningItem,
    Server,
    State,
)

IN_PROGRESS = Ending("in_progress")
END_STATUSES = ("completed", "incomplete", "failed")  # statuses with an event of their own


class StreamEncoder:
    """Encoder of canonical events as events of responses, in the orders that clients check. One instance per stream.

    Items have the indexes 0, 1, 2, ... in the order of their start. One is done when its parts have ended and another
    item starts or the response ends. The last event contains the items as they were sent. Only the first candidate is
    encoded.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._shown = Shown.of(request)
        self._writer = Writer()
        self._head = pb.GenerationStarted(model=request.model)
        self._echo = b""  # encoded when the stream starts
        self._begun = False
        self._ids = Ids("")
        self._items: list[Item] = []
        self._parts: dict[int, Item] = {}  # part -> its item, while the part is open
        self._audio_parts: dict[int, Audio] = {}
        self._servers: dict[str, list[Server]] = {}  # call id -> its items
        self._last: Item | None = None  # the item that started last, other than states
        self._refused = False
        self._ahead: pb.Part | None = None  # the state of a call, if it is known when the call starts
        self._sent_states: set[int] = set()  # calls whose state was sent before them
        self._ending: Ending | None = None
        self._completed_at: int | None = None
        self._usage: pb.Usage | None = None
        self._passed = PassedFrames()  # the provider's own frames, which are the whole response
        self._closed = False

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if passed := message.source_frames:
            return self.pass_frames(passed)
        if self._passed or self._closed:
            return b""
        events, states = message.events, None
        for event in events:
            if self._shown.states and event.part_started.HasField("tool_call"):
                if states is None:
                    states = _states_of(events)
                started = event.part_started
                self._ahead = started if started.HasField("state") else states.get(event.part_index)
            self._handle_event(event)
        return self._writer.take()

    def pass_frames(self, frames: bytes) -> bytes:
        """Return the provider's own frames, which are the whole response."""
        self._passed.feed(frames)
        return frames

    def set_ending(self, ending: Ending, completed_at: int | None) -> None:
        """Set the status with which a stored response's stream ends. `completed_at`: Unix seconds, if known."""
        self._ending, self._completed_at = ending, completed_at

    @property
    def retained_bytes(self) -> int:
        return self._writer.retained_bytes

    def close(self) -> bytes:
        return b"".join(self.closing())

    def closing(self) -> Iterator[bytes]:
        if self._passed or self._closed:
            return
        self._closed = True
        self._begin()
        ending = self._ending or Ending()
        for part_index in list(self._parts):
            self._end_part(part_index)
            yield self._writer.take()
        for item in self._items:
            if not item.encoded:
                item.finish(ending.status == "incomplete" and item is self._last)
                yield self._writer.take()
        name = ending.status if ending.status in END_STATUSES else "completed"
        self._lifecycle(name, ending, [item.encoded for item in self._items], self._usage, self._completed_at)
        yield self._writer.take()

    def error(self, error: UmgError) -> bytes:
        if self._passed:
            return self._passed.error(error)
        has_begun = self._begun
        if not self._closed:
            self._closed = True
            if not has_begun:  # no provider has given the response an id, which clients expect
                self._head.response_id = f"resp_{error.metadata.get('request_id', '').removeprefix('req_')}"
            self._begin()
            failure = response_error(error)
            output = [encoded for item in self._items if (encoded := item.encoded or item.unfinished())]
            self._lifecycle("failed", Ending("failed", code=failure.code, message=failure.message), output, self._usage)
        return self._writer.take() + error_event(error, self._writer.number, has_begun=has_begun)

    def _handle_event(self, event: pb.GenerateEvent) -> None:
        kind = event.WhichOneof("kind")
        if kind == "text_delta" and event.candidate_index == 0:  # by far the most frequent
            item = self._parts.get(event.part_index)
            if isinstance(item, Message):
                item.append_text(event.part_index, event.text_delta)
            return
        if kind == "started":
            self._start(event.started)
        elif kind == "usage":
            self._usage = event.usage
        elif event.candidate_index == 0:
            self._begin()
            self._encode_event(event)

    def _encode_event(self, event: pb.GenerateEvent) -> None:  # noqa: PLR0912 - one case a kind
        part_index = event.part_index
        item = self._parts.get(part_index)
        match event.WhichOneof("kind"):
            case "part_started":
                self._part(part_index, event.part_started)
            case "reasoning_delta":
                if isinstance(item, ReasoningItem):
                    item.append_reasoning((False, event.text_index), event.reasoning_delta)
            case "summary_delta":
                if isinstance(item, ReasoningItem):
                    item.append_reasoning((True, event.summary_delta.summary_index), event.summary_delta.text)
            case "arguments_delta":
                if isinstance(item, Call):
                    item.append_arguments(event.arguments_delta)
            case "refusal_delta":
                if isinstance(item, Message):
                    item.append_text(part_index, event.refusal_delta)
            case "citation":
                if isinstance(item, Message):
                    item.add_citation(part_index, event.citation)
            case "logprobs":
                if isinstance(item, Message):
                    item.add_logprobs(part_index, event.logprobs)
            case "state":
                self._state(part_index, pb.Part(state=event.state))
            case "part_updated":
                self._update(part_index, event.part_updated)
            case "media_delta":
                if isinstance(item, Image):
                    item.append_image(event.media_delta.data)
                elif part_index in self._audio_parts:
                    self._audio_parts[part_index].append_audio(event.media_delta.data, event.media_delta.transcript)
            case "part_ended":
                self._end_part(part_index)
            case "finished":
                self._finished(event.finished)
            case "text_delta" | "started" | "usage" | "opaque" | None:
                pass  # handled above; progress of a provider's own tool; a kind newer than this build
            case unhandled:
                assert_never(unhandled)

    # --- the response

    def _start(self, started: pb.GenerationStarted) -> None:
        self._head = started
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._ids = Ids(self._head.response_id)
            self._echo = encode_echo(self._request, self._head)
            self._lifecycle("created", IN_PROGRESS, ())
            self._lifecycle("in_progress", IN_PROGRESS, ())

    def _lifecycle(
        self,
        name: str,
        ending: Ending,
        items: Sequence[bytes],
        usage: pb.Usage | None = None,
        completed_at: int | None = None,
    ) -> None:
        response = response_object(self._head, ending, b"[%b]" % b",".join(items), usage, completed_at, self._echo)
        self._writer.raw(f"response.{name}".encode(), b',"response":' + response + b"}")

    def _finished(self, finished: pb.CandidateFinished) -> None:
        if finished.HasField("complete_time"):
            self._completed_at = finished.complete_time.seconds
        if finished.block_reason:
            self._ending = self._ending or Ending("incomplete", "content_filter")
        else:
            self._ending = ending_of(finished, self._refused)

    # --- items

    def _supersede(self) -> None:
        if (before := self._last) is not None:
            before.superseded = True
            if not before.open and not before.encoded:
                before.finish(incomplete=False)

    def _add(self, item: Item, part_index: int) -> None:
        self._items.append(item)
        self._last = item
        item.open.add(part_index)
        self._parts[part_index] = item

    def _part(self, part_index: int, part: pb.Part) -> None:
        kind = kind_of(part)
        if kind == "message":
            self._message(part_index, part)
        elif kind:
            self._supersede()
            if kind == "call" and self._ahead is not None:
                self._add_state_item(self._ahead, ahead=True)
                self._ahead = None
                self._sent_states.add(part_index)
            self._add(self._item(kind, part), part_index)
        elif part.HasField("server_tool_result"):
            self._add_result(part.server_tool_result)
        elif part.media.kind == pb.MEDIA_KIND_AUDIO:
            audio = self._audio_parts[part_index] = Audio(self._writer)
            audio.append_audio(part.media.data, part.media.transcript)
        self._part_content(part_index, part)
        if kind and part.HasField("state"):
            self._state(part_index, part)

    def _part_content(self, part_index: int, part: pb.Part) -> None:
        item = self._parts.get(part_index)
        if isinstance(item, Message):
            text = image_text(part.media) if part.HasField("media") else part.text.text or part.refusal.text
            if text:
                item.append_text(part_index, text)
            for citation in part.text.citations:
                item.add_citation(part_index, citation)
        elif isinstance(item, ReasoningItem):
            for index, text in enumerate(part.reasoning.texts):
                item.append_reasoning((False, index), text)
            for index, text in enumerate(part.reasoning.summaries):
                item.append_reasoning((True, index), text)
        elif isinstance(item, Call):
            item.append_arguments(part.tool_call.arguments_json or part.tool_call.text)

    def _message(self, part_index: int, part: pb.Part) -> None:
        item = self._last
        if not isinstance(item, Message) or item.sealed or item.message_id != part.message_id:
            self._supersede()
            index = len(self._items)
            item = Message(self._writer, index, self._ids.item("msg_", part.message_id, index), part)
            self._add(item, part_index)
        self._parts[part_index] = item
        self._refused = self._refused or part.HasField("refusal")
        item.start(part_index, part.HasField("refusal"))

    def _item(self, kind: str, part: pb.Part) -> Item:
        writer, index, ids = self._writer, len(self._items), self._ids
        match kind:
            case "reasoning":
                item_id = ids.item("rs_", part.reasoning.item_id, index)
                return ReasoningItem(writer, index, item_id, part, self._shown)
            case "call":
                return Call(writer, index, ids, part.tool_call)
            case "server":
                call = part.server_tool_call
                item_id = ids.item(SERVER_ITEMS[call.name][1], call.call_id, index)
                server = Server(writer, index, item_id, call, self._shown)
                self._servers.setdefault(call.call_id, []).append(server)
                return server
            case "image":
                return Image(writer, index, ids.item("ig_", part.media.media_id, index), part.media)
            case "compaction":
                item_id = ids.item("cmp_", part.compaction.item_id, index)
                return Compaction(writer, index, item_id, part.compaction.encrypted_content)
            case _:  # opaque
                return Opaque(writer, index, "", part.opaque)

    def _update(self, part_index: int, part: pb.Part) -> None:
        item = self._parts.get(part_index)
        if isinstance(item, Server) and part.HasField("server_tool_call"):
            item.update(part.server_tool_call)
        elif part.HasField("server_tool_result"):
            self._add_result(part.server_tool_result)

    def _add_result(self, result: pb.ServerToolResult) -> None:
        servers = self._servers.get(result.call_id, [])
        while servers and servers[-1].encoded:
            servers.pop()
        if servers:
            servers[-1].set_result(result)

    def _state(self, part_index: int, part: pb.Part) -> None:
        """Add a part's state to its reasoning item, else write a new item with it, unless it was sent before."""
        item = self._parts.get(part_index)
        if isinstance(item, ReasoningItem):
            item.set_state(part.state)
        elif item is not None and part_index not in self._sent_states and has_state(part, self._shown):
            if isinstance(item, Message):
                item.sealed = True
            self._add_state_item(part, ahead=False)

    def _add_state_item(self, part: pb.Part, *, ahead: bool) -> None:
        index = len(self._items)
        self._items.append(State(self._writer, index, self._ids.item("rs_", "", index), part, ahead=ahead))

    def _end_part(self, part_index: int) -> None:
        if (audio := self._audio_parts.pop(part_index, None)) is not None:
            audio.end()
        item = self._parts.pop(part_index, None)
        if item is None:
            return
        item.end(part_index)
        if item.superseded and not item.open and not item.encoded:
            item.finish(incomplete=False)


def _states_of(events: Iterable[pb.GenerateEvent]) -> dict[int, pb.Part]:
    states = dict[int, pb.Part]()
    for event in events:
        if not event.candidate_index and event.WhichOneof("kind") == "state" and event.part_index not in states:
            states[event.part_index] = pb.Part(state=event.state)
    return states

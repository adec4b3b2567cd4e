"""The streamed answer towards a caller: canonical events -> events of this format."""

from collections.abc import Sequence
from typing import assert_never

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.responses.echo import repeated
from umg_grpc.wire.responses.errors import error_event, response_error
from umg_grpc.wire.responses.failed import PassedFrames
from umg_grpc.wire.responses.output import (
    SERVER_ITEMS,
    Ending,
    Ids,
    Shown,
    ending_of,
    has_state,
    image_text,
    kind_of,
    response_object,
)
from umg_grpc.wire.responses.streamed import (
    Call,
    Item,
    Message,
    Opaque,
    Picture,
    Server,
    Sound,
    State,
    Thoughts,
    Writer,
)

IN_PROGRESS = Ending("in_progress")
ENDS = ("completed", "incomplete", "failed")  # that are events


class StreamEncoder:
    """Canonical events -> events of this format, in the orders that its clients check. One instance a stream.

    Items have the indexes 0, 1, 2, ... in the order in which they begin. An item is done once its parts are ended and
    another has begun, or the answer ends: only then is known whether it broke off in it. The response that completes
    the stream holds the items as they were told. Of several candidates the first is told.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._echo = repeated(request)
        self._shown = Shown.of(request)
        self._writer = Writer()
        self._head = pb.GenerationStarted(model=request.model)
        self._begun = False
        self._ids = Ids("")
        self._items: list[Item] = []
        self._parts: dict[int, Item] = {}  # part -> its item, while it is open
        self._sounds: dict[int, Sound] = {}
        self._last: Item | None = None  # the item that began last, save states
        self._refused = False
        self._ahead: pb.Part | None = None  # the state of a call, where it is known when the call begins
        self._stated: set[int] = set()  # calls whose state was told ahead
        self._ending: Ending | None = None
        self._completed_at: int | None = None
        self._usage: pb.Usage | None = None
        self._passed = PassedFrames()  # the provider's own: they hold all there is to say
        self._closed = False

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """All events of one upstream read, for one write."""
        if message.source_frames:
            self._passed.feed(message.source_frames)
            return message.source_frames
        if self._passed or self._closed:
            return b""
        for position, event in enumerate(message.events):
            if self._shown.states and event.part_started.HasField("tool_call"):
                self._ahead = _state_of(event, message.events[position + 1 :])
            self._take(event)
        return self._writer.take()

    def end_as(self, ending: Ending, completed_at: int | None) -> None:
        """How a stored answer that is told again ended, which its events do not say."""
        self._ending, self._completed_at = ending, completed_at

    def close(self) -> bytes:
        """The end of a whole answer: what is still open, then the whole response. Nothing follows it."""
        if self._passed or self._closed:
            return b""
        self._closed = True
        self._begin()
        ending = self._ending or Ending()
        self._finish_items(ending.status == "incomplete")
        name = ending.status if ending.status in ENDS else "completed"
        self._lifecycle(name, ending, [item.encoded for item in self._items], self._usage, self._completed_at)
        return self._writer.take()

    def error(self, error: UmgError) -> bytes:
        """Return the events that end a broken answer: `response.failed`, which has the output so far, then `error`.

        Clients of the format read the first (Codex shows no other), the SDKs raise at the second. Items that are not
        done stay so, since clients run a call whose item is done; of these the output has texts and thoughts alone.
        """
        if self._passed:
            return self._passed.error(error)
        if not self._closed:
            self._closed = True
            self._begin()
            said = response_error(error)
            output = [encoded for item in self._items if (encoded := item.encoded or item.so_far())]
            self._lifecycle("failed", Ending("failed", code=said.code, message=said.message), output, self._usage)
        return self._writer.take() + error_event(error, self._writer.number)

    def _take(self, event: pb.GenerateEvent) -> None:
        kind = event.WhichOneof("kind")
        if kind == "text_delta" and event.candidate_index == 0:  # by far the most
            item = self._parts.get(event.part_index)
            if isinstance(item, Message):
                item.say(event.part_index, event.text_delta)
            return
        if kind == "started":
            self._start(event.started)
        elif kind == "usage":
            self._usage = event.usage
        elif event.candidate_index == 0:
            self._begin()
            self._tell(event)

    def _tell(self, event: pb.GenerateEvent) -> None:  # noqa: PLR0912 - one case a kind
        place = event.part_index
        item = self._parts.get(place)
        match event.WhichOneof("kind"):
            case "part_started":
                self._part(place, event.part_started)
            case "reasoning_delta":
                if isinstance(item, Thoughts):
                    item.think((False, event.text_index), event.reasoning_delta)
            case "summary_delta":
                if isinstance(item, Thoughts):
                    item.think((True, event.summary_delta.summary_index), event.summary_delta.text)
            case "arguments_delta":
                if isinstance(item, Call):
                    item.argue(event.arguments_delta)
            case "refusal_delta":
                if isinstance(item, Message):
                    item.say(place, event.refusal_delta)
            case "citation":
                if isinstance(item, Message):
                    item.cite(place, event.citation)
            case "logprobs":
                if isinstance(item, Message):
                    item.weigh(place, event.logprobs)
            case "state":
                self._state(place, pb.Part(state=event.state))
            case "part_updated":
                self._update(place, event.part_updated)
            case "media_delta":
                if isinstance(item, Picture):
                    item.draw(event.media_delta.data)
                elif place in self._sounds:
                    self._sounds[place].hear(event.media_delta.data, event.media_delta.transcript)
            case "part_ended":
                self._end_part(place)
            case "finished":
                self._finished(event.finished)
            case "text_delta" | "started" | "usage" | "opaque" | None:
                pass  # told above; progress of a provider's own tool; a kind newer than this build
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

    def _finish_items(self, incomplete: bool) -> None:
        for place in list(self._parts):
            self._end_part(place)
        for item in self._items:
            if not item.encoded:
                item.finish(incomplete and item is self._last)

    # --- items

    def _supersede(self) -> None:
        """Another item begins."""
        if (before := self._last) is not None:
            before.superseded = True
            if not before.open and not before.encoded:
                before.finish(incomplete=False)

    def _add(self, item: Item, place: int) -> None:
        """Takes in an item that has begun with a part."""
        self._items.append(item)
        self._last = item
        item.open.add(place)
        self._parts[place] = item

    def _part(self, place: int, part: pb.Part) -> None:
        kind = kind_of(part)
        if kind == "message":
            self._message(place, part)
        elif kind:
            self._supersede()
            if kind == "call" and self._ahead is not None:
                self._show_state(self._ahead, ahead=True)
                self._ahead = None
                self._stated.add(place)
            self._add(self._item(kind, part), place)
        elif part.HasField("server_tool_result"):
            self._answer(part.server_tool_result)
        elif part.media.kind == pb.MEDIA_KIND_AUDIO:
            sound = self._sounds[place] = Sound(self._writer)
            sound.hear(part.media.data, part.media.transcript)
        self._words(place, part)
        if kind and part.HasField("state"):
            self._state(place, part)

    def _words(self, place: int, part: pb.Part) -> None:
        """What a part holds that could have been told in deltas."""
        item = self._parts.get(place)
        if isinstance(item, Message):
            text = image_text(part.media) if part.HasField("media") else part.text.text or part.refusal.text
            if text:
                item.say(place, text)
            for citation in part.text.citations:
                item.cite(place, citation)
        elif isinstance(item, Thoughts):
            for index, text in enumerate(part.reasoning.texts):
                item.think((False, index), text)
            for index, text in enumerate(part.reasoning.summaries):
                item.think((True, index), text)
        elif isinstance(item, Call):
            item.argue(part.tool_call.arguments_json or part.tool_call.text)

    def _message(self, place: int, part: pb.Part) -> None:
        item = self._last
        if not isinstance(item, Message) or item.sealed or item.message_id != part.message_id:
            self._supersede()
            index = len(self._items)
            item = Message(self._writer, index, self._ids.item("msg_", part.message_id, index), part)
            self._add(item, place)
        self._parts[place] = item
        self._refused = self._refused or part.HasField("refusal")
        item.start(place, part.HasField("refusal"))

    def _item(self, kind: str, part: pb.Part) -> Item:
        writer, index, ids = self._writer, len(self._items), self._ids
        match kind:
            case "reasoning":
                item_id = ids.item("rs_", part.reasoning.item_id, index)
                return Thoughts(writer, index, item_id, part, self._shown)
            case "call":
                return Call(writer, index, ids, part.tool_call)
            case "server":
                call = part.server_tool_call
                item_id = ids.item(SERVER_ITEMS[call.name][1], call.call_id, index)
                return Server(writer, index, item_id, call, self._shown)
            case "image":
                return Picture(writer, index, ids.item("ig_", part.media.media_id, index), part.media)
            case _:
                return Opaque(writer, index, "", part.opaque)

    def _update(self, place: int, part: pb.Part) -> None:
        item = self._parts.get(place)
        if isinstance(item, Server) and part.HasField("server_tool_call"):
            item.update(part.server_tool_call)
        elif part.HasField("server_tool_result"):
            self._answer(part.server_tool_result)

    def _answer(self, result: pb.ServerToolResult) -> None:
        for item in reversed(self._items):
            if isinstance(item, Server) and item.call_id == result.call_id and not item.encoded:
                item.answer(result)
                return

    def _state(self, place: int, part: pb.Part) -> None:
        """The state of a part: in its own item, or in one that follows at once."""
        item = self._parts.get(place)
        if isinstance(item, Thoughts):
            item.keep(part.state)
        elif item is not None and place not in self._stated and has_state(part, self._shown):
            if isinstance(item, Message):
                item.sealed = True
            self._show_state(part, ahead=False)

    def _show_state(self, part: pb.Part, *, ahead: bool) -> None:
        index = len(self._items)
        self._items.append(State(self._writer, index, self._ids.item("rs_", "", index), part, ahead=ahead))

    def _end_part(self, place: int) -> None:
        if (sound := self._sounds.pop(place, None)) is not None:
            sound.end()
        item = self._parts.pop(place, None)
        if item is None:
            return
        item.end(place)
        if item.superseded and not item.open and not item.encoded:
            item.finish(incomplete=False)


def _state_of(start: pb.GenerateEvent, following: Sequence[pb.GenerateEvent]) -> pb.Part | None:
    """The state of a call that begins, if it came with it."""
    if start.part_started.HasField("state"):
        return start.part_started
    for event in following:
        if event.HasField("state") and event.part_index == start.part_index:
            return pb.Part(state=event.state)
    return None

"""The items of a streamed answer: each knows how it is told, and what it is in the end."""

import base64
from abc import ABC, abstractmethod

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject, json_text
from umg_grpc.wire.responses.client_tools import CLIENT_TOOLS
from umg_grpc.wire.responses.content import encode_citation, encode_logprob
from umg_grpc.wire.responses.items import image_item, shown_state
from umg_grpc.wire.responses.output import (
    SERVER_ITEMS,
    Ids,
    Shown,
    action_of,
    call_item,
    call_prefix,
    code_of,
    message_item,
    reasoning_item,
    refusal_content,
    server_item,
    text_content,
)
from umg_grpc.wire.sse import named_frame

_encode = msgspec.json.Encoder().encode


class Writer:
    """Writes events, numbered in order."""

    def __init__(self) -> None:
        self.number = 0
        self.frames: list[bytes] = []

    def take(self) -> bytes:
        """What was written since."""
        frames = b"".join(self.frames)
        self.frames.clear()
        return frames

    def event(self, name: str, fields: JsonObject) -> None:
        """An event with its fields."""
        self.raw(name.encode(), b"," + _encode(fields)[1:] if fields else b"}")

    def raw(self, name: bytes, rest: bytes) -> None:
        """An event; `rest`: what follows its number, from the comma to the closing brace."""
        self.frames.append(named_frame(name, b'{"type":"%b","sequence_number":%d%b' % (name, self.number, rest)))
        self.number += 1


class Delta:
    """Deltas of one kind, in one place: all but the number and the text is joined once."""

    def __init__(self, name: str, place: JsonObject, tail: bytes = b"}") -> None:
        self._name = name.encode()
        self._head = b'{"type":"%b","sequence_number":' % self._name
        self._place = b"," + _encode(place)[1:-1] + b',"delta":'
        self._tail = tail

    def write(self, writer: Writer, text: str) -> None:
        """The event of one delta."""
        data = b"%b%d%b%b%b" % (self._head, writer.number, self._place, _encode(text), self._tail)
        writer.frames.append(named_frame(self._name, data))
        writer.number += 1


class Item(ABC):
    """An output item that is being told."""

    def __init__(self, writer: Writer, index: int, item_id: str) -> None:
        self.writer = writer
        self.index = index
        self.item_id = item_id
        self.open: set[int] = set()  # its parts that are not ended
        self.superseded = False  # whether another item has begun
        self.encoded = b""  # once it is done

    @property
    def place(self) -> JsonObject:
        """What its events have in common."""
        return {"item_id": self.item_id, "output_index": self.index}

    def added(self, item: object) -> None:
        """Tells that it begins."""
        self.writer.event("response.output_item.added", {"output_index": self.index, "item": item})

    def finish(self, incomplete: bool) -> None:
        """Tells that it is done. `incomplete`: whether the answer broke off in it."""
        self.encoded = _encode(self.last("incomplete" if incomplete else "completed"))
        rest = b',"output_index":%d,"item":%b}' % (self.index, self.encoded)
        self.writer.raw(b"response.output_item.done", rest)

    def so_far(self) -> bytes:
        """Return the item as far as it was sent, for the output of an answer that breaks off; b"" for one of no use
        until it is done.
        """
        return b""

    @abstractmethod
    def last(self, status: str) -> object:
        """Tells what stands before its end, and gives the item as it is then."""

    def end(self, part: int) -> None:
        """Ends one of its parts."""
        self.open.discard(part)


class _Content:
    """A part of a message."""

    def __init__(self, item: "Message", index: int, refusal: bool) -> None:
        self.index = index
        self.refusal = refusal
        self.texts: list[str] = []
        self.length = 0
        self.annotations: list[object] = []
        self.sources: list[pb.Citation] = []  # of all of it
        self.logprobs: list[JsonObject] = []
        self.place = item.place | {"content_index": index}
        if refusal:
            self.delta = Delta("response.refusal.delta", self.place)
        else:
            self.delta = Delta("response.output_text.delta", self.place, b',"logprobs":[]}')

    def content(self) -> JsonObject:
        """The part as it is now."""
        text = "".join(self.texts)
        return refusal_content(text) if self.refusal else text_content(text, self.annotations, self.logprobs)


class Message(Item):
    """A `message`: any number of texts and refusals."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part) -> None:
        super().__init__(writer, index, item_id)
        self.message_id = part.message_id
        self.sealed = False  # whether nothing is added to it any more
        self._phase = part.phase
        self._contents: dict[int, _Content] = {}
        self.added(message_item(item_id, "in_progress", self._phase, []))

    def start(self, part: int, refusal: bool) -> None:
        """Begins a part."""
        content = self._contents[part] = _Content(self, len(self._contents), refusal)
        self.open.add(part)
        self.writer.event("response.content_part.added", content.place | {"part": content.content()})

    def say(self, part: int, text: str) -> None:
        """More of its text."""
        content = self._contents[part]
        content.texts.append(text)
        content.length += len(text)
        content.delta.write(self.writer, text)

    def cite(self, part: int, citation: pb.Citation) -> None:
        """A source of its text. A page for the whole part waits for its end, where it is known how long that is."""
        content = self._contents[part]
        if citation.HasField("end_index") or not citation.HasField("web"):
            self._annotate(content, citation)
        else:
            content.sources.append(citation)

    def _annotate(self, content: "_Content", citation: pb.Citation) -> None:
        annotation = encode_citation(citation, content.length)
        if annotation is not None:
            place = {"annotation_index": len(content.annotations), "annotation": annotation}
            content.annotations.append(annotation)
            self.writer.event("response.output_text.annotation.added", content.place | place)

    def weigh(self, part: int, logprobs: pb.LogprobsDelta) -> None:
        """Likelihoods of what was said last: an event of their own, since the text was told before them."""
        content = self._contents[part]
        if not content.refusal:
            entries = [encode_logprob(entry) for entry in logprobs.logprobs]
            content.logprobs += entries
            self.writer.event("response.output_text.delta", content.place | {"delta": "", "logprobs": entries})

    def end(self, part: int) -> None:
        super().end(part)
        content = self._contents[part]
        for citation in content.sources:
            self._annotate(content, citation)
        text = "".join(content.texts)
        if content.refusal:
            self.writer.event("response.refusal.done", content.place | {"refusal": text})
        else:
            said: JsonObject = {"text": text, "logprobs": content.logprobs}
            self.writer.event("response.output_text.done", content.place | said)
        self.writer.event("response.content_part.done", content.place | {"part": content.content()})

    def so_far(self) -> bytes:
        return _encode(self.last("incomplete"))

    def last(self, status: str) -> object:
        contents = [content.content() for content in self._contents.values()]
        return message_item(self.item_id, status, self._phase, contents)


class Call(Item):
    """A call of a function or a custom tool."""

    def __init__(self, writer: Writer, index: int, ids: Ids, call: pb.ToolCall) -> None:
        self._custom = call.HasField("text")
        self._typed = call.tool_type in CLIENT_TOOLS  # its item has no events for arguments
        super().__init__(writer, index, ids.item(call_prefix(call), call.item_id, index))
        self._call = pb.ToolCall()
        self._call.CopyFrom(call)
        self._call_id = ids.call(call, index)
        self._texts: list[str] = []
        self._name = "response.custom_tool_call_input" if self._custom else "response.function_call_arguments"
        self._delta = Delta(f"{self._name}.delta", self.place)
        self.added(call_item(self.item_id, self._call_id, "in_progress", call, ""))

    def argue(self, text: str) -> None:
        """More of its arguments, or of its input."""
        if text:
            self._texts.append(text)
            if not self._typed:
                self._delta.write(self.writer, text)

    def end(self, part: int) -> None:
        super().end(part)
        if not self._texts and not self._custom:
            self.argue("{}")  # clients parse what they were sent
        text = "".join(self._texts)
        if self._typed:
            return
        self.writer.event(f"{self._name}.done", self.place | {"input" if self._custom else "arguments": text})

    def last(self, status: str) -> object:
        return call_item(self.item_id, self._call_id, status, self._call, "".join(self._texts))


class Thoughts(Item):
    """A `reasoning`: all thoughts are told as summaries, each piece as one of its own."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part, shown: Shown) -> None:
        super().__init__(writer, index, item_id)
        self._part = pb.Part()
        self._part.CopyFrom(part)
        self._shown = shown
        self._piece: tuple[bool, int] | None = None  # that is being told: whether it is a summary, and its index
        self._texts: list[list[str]] = []
        self._delta: Delta | None = None
        self.added(reasoning_item(item_id, (), ""))

    def think(self, piece: tuple[bool, int], text: str) -> None:
        """More of a piece."""
        if not text or not self._shown.thoughts:
            return
        if piece != self._piece or self._delta is None:
            self._end_piece()
            self._piece = piece
            place = self.place | {"summary_index": len(self._texts)}
            self._texts.append([])
            self._delta = Delta("response.reasoning_summary_text.delta", place)
            part = {"type": "summary_text", "text": ""}
            self.writer.event("response.reasoning_summary_part.added", place | {"part": part})
        self._texts[-1].append(text)
        self._delta.write(self.writer, text)

    def keep(self, state: pb.ReasoningState) -> None:
        """Its state, which stands in the item when it is done."""
        self._part.state.CopyFrom(state)

    def _end_piece(self) -> None:
        if self._delta is None:
            return
        place, text = self.place | {"summary_index": len(self._texts) - 1}, "".join(self._texts[-1])
        part = {"type": "summary_text", "text": text}
        self.writer.event("response.reasoning_summary_text.done", place | {"text": text})
        self.writer.event("response.reasoning_summary_part.done", place | {"part": part})
        self._delta = None

    def end(self, part: int) -> None:
        super().end(part)
        self._end_piece()

    def so_far(self) -> bytes:
        return _encode(self.last("incomplete"))

    def last(self, status: str) -> object:
        state = shown_state(self._part) if self._shown.states and self._part.HasField("state") else ""
        return reasoning_item(self.item_id, ["".join(pieces) for pieces in self._texts], state)


class Server(Item):
    """A tool that the provider runs."""

    def __init__(self, writer: Writer, index: int, item_id: str, call: pb.ServerToolCall, shown: Shown) -> None:
        super().__init__(writer, index, item_id)
        self.call_id = call.call_id
        self._shown = shown
        self._call, self._result = pb.ServerToolCall(), pb.ServerToolResult()
        self._call.CopyFrom(call)
        self._answered = False
        self._kind = SERVER_ITEMS[call.name][0]
        started: JsonObject = {"id": item_id, "type": self._kind, "status": "in_progress"}
        if self._kind == "web_search_call":
            started["action"] = action_of(call, None, shown)  # as far as it is known: the SDK types want one
        elif self._kind == "file_search_call":
            started |= {"queries": list(call.queries), "results": None}
        elif self._kind == "code_interpreter_call":
            started |= {"code": None, "container_id": "", "outputs": None}
        self.added(started)
        self._tell("in_progress")
        if self._kind != "code_interpreter_call":
            self._tell("searching")

    def update(self, call: pb.ServerToolCall) -> None:
        """The call as it is known now."""
        self._call.CopyFrom(call)

    def answer(self, result: pb.ServerToolResult) -> None:
        """What the tool gave."""
        self._result.CopyFrom(result)
        self._answered = True

    def _tell(self, state: str) -> None:
        self.writer.event(f"response.{self._kind}.{state}", self.place)

    def last(self, status: str) -> object:
        if self._kind == "code_interpreter_call":
            code = code_of(self._call)
            self.writer.event("response.code_interpreter_call_code.delta", self.place | {"delta": code})
            self.writer.event("response.code_interpreter_call_code.done", self.place | {"code": code})
            self._tell("interpreting")
        self._tell("completed")
        return server_item(self.item_id, self._call, self._result if self._answered else None, self._shown)


class Picture(Item):
    """An image that the model made."""

    def __init__(self, writer: Writer, index: int, item_id: str, media: pb.MediaPart) -> None:
        super().__init__(writer, index, item_id)
        self._media = pb.MediaPart()
        self._media.CopyFrom(media)
        self.added({"id": item_id, "type": "image_generation_call", "status": "in_progress", "result": None})
        for state in ("in_progress", "generating"):
            self.writer.event(f"response.image_generation_call.{state}", self.place)

    def draw(self, data: bytes) -> None:
        """More of its bytes."""
        self._media.data += data

    def last(self, status: str) -> object:
        self.writer.event("response.image_generation_call.completed", self.place)
        return image_item(self._media, self.item_id)


class Opaque(Item):
    """An item of a type that only this format knows, whole from its start."""

    def __init__(self, writer: Writer, index: int, item_id: str, opaque: pb.OpaquePart) -> None:
        super().__init__(writer, index, item_id)
        self._json = json_text(opaque.json, "opaque.json")
        self.added(self._json)

    def last(self, status: str) -> object:
        return self._json


class State(Item):
    """The state of a part that this format has no place for: reasoning without words."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part, *, ahead: bool) -> None:
        super().__init__(writer, index, item_id)
        self._state = shown_state(part, ahead=ahead)
        self.added(reasoning_item(item_id, (), ""))
        self.finish(incomplete=False)

    def last(self, status: str) -> object:
        return reasoning_item(self.item_id, (), self._state)


class Sound:
    """Sound that the model made: it has events, and no item."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._spoken = False

    def hear(self, data: bytes, transcript: str) -> None:
        """More of it."""
        if data:
            self._writer.event("response.audio.delta", {"delta": base64.b64encode(data).decode()})
        if transcript:
            self._spoken = True
            self._writer.event("response.audio.transcript.delta", {"delta": transcript})

    def end(self) -> None:
        """All of it was told."""
        self._writer.event("response.audio.done", {})
        if self._spoken:
            self._writer.event("response.audio.transcript.done", {})

"""Output items of a streamed response for a caller: each item writes its events, and encodes the finished item."""

from abc import ABC, abstractmethod

import msgspec
import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.core.streamed_text_buffers import Pieces
from umg_grpc.wire.responses.content_parts import encode_citation, encode_logprob
from umg_grpc.wire.responses.decode_messages import compaction_item, image_item, shown_state
from umg_grpc.wire.responses.encode_output import (
    Ids,
    Shown,
    message_item,
    reasoning_item,
    refusal_content,
    text_content,
)
from umg_grpc.wire.responses.server_tools import SERVER_ITEMS, action_of, code_of, server_item
from umg_grpc.wire.responses.stream_event_writer import Delta, Writer
from umg_grpc.wire.responses.tool_calls import call_item, call_prefix
from umg_grpc.wire.responses.typed_client_tools import CLIENT_TOOLS

ITEM_BYTES, ENTRY_BYTES = 2048, 512
"""Approximate memory of an item, and of an annotation or log probability, in bytes besides its text."""

_encode = msgspec.json.Encoder().encode


class Item(ABC):
    """Output item of a streamed response, which writes its events to `writer`. Each item type has a subclass."""

    def __init__(self, writer: Writer, index: int, item_id: str) -> None:
        self.writer = writer
        self.index = index
        self.item_id = item_id
        self.open: set[int] = set()  # its parts that have not ended
        self.superseded = False  # whether another item has started
        self.encoded = b""  # JSON of the item, once it is done
        self._retained_bytes = 0
        self.keep(ITEM_BYTES)

    @property
    def location(self) -> JsonObject:
        """Members that identify the item in each of its events."""
        return {"item_id": self.item_id, "output_index": self.index}

    def added(self, item: object) -> None:
        """Write the event that starts the item. `item`: the item as it is at the start."""
        self.writer.event("response.output_item.added", {"output_index": self.index, "item": item})

    def finish(self, incomplete: bool) -> None:
        """Write the event that ends the item, and keep only its JSON. `incomplete`: the response broke off in it."""
        self.encoded = _encode(self.finished_item("incomplete" if incomplete else "completed"))
        rest = b',"output_index":%d,"item":%b}' % (self.index, self.encoded)
        self.writer.raw(b"response.output_item.done", rest)
        self.release()
        self.keep(len(self.encoded) - self._retained_bytes)

    def keep(self, size: int) -> None:
        """Add `size` bytes to the memory that the item's content takes, and to the total of the stream."""
        self._retained_bytes += size
        self.writer.retained_bytes += size

    def release(self) -> None:
        """Release the memory of the item's content, which is no longer needed once the finished item is encoded."""
        self.open.clear()

    def unfinished(self) -> bytes:
        """Return the JSON of an unfinished item for a failed response; b"" for one that is useless then."""
        return b""

    @abstractmethod
    def finished_item(self, status: str) -> object:
        """Write the events that precede the item's end, and return the item. `status`: `completed` or `incomplete`."""

    def end(self, part: int) -> None:
        """Record that one of the item's parts has ended, and write the events of its end, if the item has any."""
        self.open.discard(part)


class _Content:
    """Content part of a message that is being sent: a text with citations and log probabilities, or a refusal."""

    def __init__(self, item: "Message", index: int, refusal: bool) -> None:
        self.index = index
        self.refusal = refusal
        self.texts = Pieces()
        self.annotations: list[object] = []
        self.sources: list[pb.Citation] = []  # sources of the whole text
        self.logprobs: list[JsonObject] = []
        self.location = item.location | {"content_index": index}
        if refusal:
            self.delta = Delta("response.refusal.delta", self.location)
        else:
            self.delta = Delta("response.output_text.delta", self.location, b',"logprobs":[]}')

    def content(self) -> JsonObject:
        """Return the content part as JSON, with the text, annotations and log probabilities sent so far."""
        text = self.texts.text()
        return refusal_content(text) if self.refusal else text_content(text, self.annotations, self.logprobs)


class Message(Item):
    """Item of type `message` with any number of texts and refusals."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part) -> None:
        super().__init__(writer, index, item_id)
        self.message_id = part.message_id
        self.sealed = False  # whether it accepts no more parts
        self._phase = part.phase
        self._contents: dict[int, _Content] = {}
        self.added(message_item(item_id, "in_progress", self._phase, []))

    def start(self, part: int, refusal: bool) -> None:
        content = self._contents[part] = _Content(self, len(self._contents), refusal)
        self.open.add(part)
        self.writer.event("response.content_part.added", content.location | {"part": content.content()})

    def append_text(self, part: int, text: str) -> None:
        content = self._contents[part]
        content.texts.append(text)
        self.keep(len(text))
        content.delta.write(self.writer, text)

    def add_citation(self, part: int, citation: pb.Citation) -> None:
        """Write a citation as an annotation. A page that the whole part cites is written at the part's end, since the
        end offset is the length of the text.
        """
        content = self._contents[part]
        if citation.HasField("end_index") or not citation.HasField("web"):
            self._annotate(content, citation)
        else:
            content.sources.append(citation)
            self.keep(ENTRY_BYTES + citation.ByteSize())

    def _annotate(self, content: "_Content", citation: pb.Citation) -> None:
        annotation = encode_citation(citation, content.texts.size)
        if annotation is not None:
            added = {"annotation_index": len(content.annotations), "annotation": annotation}
            content.annotations.append(annotation)
            self.keep(ENTRY_BYTES + citation.ByteSize())
            self.writer.event("response.output_text.annotation.added", content.location | added)

    def add_logprobs(self, part: int, logprobs: pb.LogprobsDelta) -> None:
        """Write log probabilities of a part's last text in a separate event, since the text was sent before."""
        content = self._contents[part]
        if not content.refusal:
            entries = [encode_logprob(entry) for entry in logprobs.logprobs]
            content.logprobs += entries
            # each log probability is an object of its own
            self.keep(len(entries) * ENTRY_BYTES + 4 * logprobs.ByteSize())
            self.writer.event("response.output_text.delta", content.location | {"delta": "", "logprobs": entries})

    def end(self, part: int) -> None:
        super().end(part)
        content = self._contents[part]
        for citation in content.sources:
            self._annotate(content, citation)
        text = content.texts.text()
        if content.refusal:
            self.writer.event("response.refusal.done", content.location | {"refusal": text})
        else:
            members: JsonObject = {"text": text, "logprobs": content.logprobs}
            self.writer.event("response.output_text.done", content.location | members)
        self.writer.event("response.content_part.done", content.location | {"part": content.content()})

    def unfinished(self) -> bytes:
        return _encode(self.finished_item("incomplete"))

    def finished_item(self, status: str) -> object:
        contents = [content.content() for content in self._contents.values()]
        return message_item(self.item_id, status, self._phase, contents)

    def release(self) -> None:
        super().release()
        self._contents.clear()


class Call(Item):
    """Item for a call of a function, a custom tool, or a tool that has a type instead of a schema."""

    def __init__(self, writer: Writer, index: int, ids: Ids, call: pb.ToolCall) -> None:
        self._custom = call.HasField("text")
        # whether it calls a tool with a type of its own, whose item has no events for arguments
        self._typed = call.tool_type in CLIENT_TOOLS
        super().__init__(writer, index, ids.item(call_prefix(call), call.item_id, index))
        self._call = pb.ToolCall()
        self._call.CopyFrom(call)
        self._call_id = ids.call(call, index)
        self._texts = Pieces()
        self._name = "response.custom_tool_call_input" if self._custom else "response.function_call_arguments"
        self._delta = Delta(f"{self._name}.delta", self.location)
        self.added(call_item(self.item_id, self._call_id, "in_progress", call, ""))

    def append_arguments(self, text: str) -> None:
        """Append to the call's arguments or free text; write a delta, except for tools without a schema."""
        if text:
            self._texts.append(text)
            self.keep(len(text))
            if not self._typed:
                self._delta.write(self.writer, text)

    def end(self, part: int) -> None:
        super().end(part)
        if not self._texts and not self._custom:
            self.append_arguments("{}")  # clients parse the arguments
        text = self._texts.text()
        if self._typed:
            return
        self.writer.event(f"{self._name}.done", self.location | {"input" if self._custom else "arguments": text})

    def finished_item(self, status: str) -> object:
        return call_item(self.item_id, self._call_id, status, self._call, self._texts.text())

    def release(self) -> None:
        super().release()
        self._texts = Pieces()


class ReasoningItem(Item):
    """`reasoning` item. Full texts and summaries are both sent as summaries, since clients display these."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part, shown: Shown) -> None:
        super().__init__(writer, index, item_id)
        self._part = pb.Part()
        self._part.CopyFrom(part)
        self._shown = shown
        # the piece that is being written: whether it is a summary, and its index
        self._piece: tuple[bool, int] | None = None
        self._texts: list[Pieces] = []
        self._delta: Delta | None = None
        self.added(reasoning_item(item_id, (), ""))

    def append_reasoning(self, piece: tuple[bool, int], text: str) -> None:
        """Write a delta, after ending another piece. `piece`: (whether it is a summary, its index)."""
        if not text or not self._shown.thoughts:
            return
        if piece != self._piece or self._delta is None:
            self._end_piece()
            self._piece = piece
            location = self.location | {"summary_index": len(self._texts)}
            self._texts.append(Pieces())
            self.keep(ENTRY_BYTES)
            self._delta = Delta("response.reasoning_summary_text.delta", location)
            part = {"type": "summary_text", "text": ""}
            self.writer.event("response.reasoning_summary_part.added", location | {"part": part})
        self._texts[-1].append(text)
        self.keep(len(text))
        self._delta.write(self.writer, text)

    def set_state(self, state: pb.ReasoningState) -> None:
        self._part.state.CopyFrom(state)

    def _end_piece(self) -> None:
        if self._delta is None:
            return
        location, text = self.location | {"summary_index": len(self._texts) - 1}, self._texts[-1].text()
        part = {"type": "summary_text", "text": text}
        self.writer.event("response.reasoning_summary_text.done", location | {"text": text})
        self.writer.event("response.reasoning_summary_part.done", location | {"part": part})
        self._delta = None

    def end(self, part: int) -> None:
        super().end(part)
        self._end_piece()

    def unfinished(self) -> bytes:
        return _encode(self.finished_item("incomplete"))

    def finished_item(self, status: str) -> object:
        state = shown_state(self._part) if self._shown.states and self._part.HasField("state") else ""
        return reasoning_item(self.item_id, [pieces.text() for pieces in self._texts], state)

    def release(self) -> None:
        super().release()
        self._texts.clear()


class Server(Item):
    """Item for a call of a tool that the provider runs, with the tool's result."""

    def __init__(self, writer: Writer, index: int, item_id: str, call: pb.ServerToolCall, shown: Shown) -> None:
        super().__init__(writer, index, item_id)
        self._shown = shown
        self._call, self._result = pb.ServerToolCall(), pb.ServerToolResult()
        self._call.CopyFrom(call)
        self._has_result = False
        self._kind = SERVER_ITEMS[call.name][0]
        started: JsonObject = {"id": item_id, "type": self._kind, "status": "in_progress"}
        if self._kind == "web_search_call":
            # with the queries known so far: the SDK types require an action
            started["action"] = action_of(call, None, sources=shown.sources)
        elif self._kind == "file_search_call":
            started |= {"queries": list(call.queries), "results": None}
        elif self._kind == "code_interpreter_call":
            started |= {"code": None, "container_id": call.container_id, "outputs": None}
        self.added(started)
        self._write_state("in_progress")
        if self._kind != "code_interpreter_call":
            self._write_state("searching")

    def update(self, call: pb.ServerToolCall) -> None:
        """Replace the call in the item by a later version of the call that the provider sent."""
        self._call.CopyFrom(call)

    def set_result(self, result: pb.ServerToolResult) -> None:
        self._result.CopyFrom(result)
        self._has_result = True

    def _write_state(self, state: str) -> None:
        self.writer.event(f"response.{self._kind}.{state}", self.location)

    def finished_item(self, status: str) -> object:
        if self._kind == "code_interpreter_call":
            code = code_of(self._call)
            self.writer.event("response.code_interpreter_call_code.delta", self.location | {"delta": code})
            self.writer.event("response.code_interpreter_call_code.done", self.location | {"code": code})
            self._write_state("interpreting")
        self._write_state("completed")
        result = self._result if self._has_result else None
        return server_item(self.item_id, self._call, result, sources=self._shown.sources)


class Image(Item):
    """Item of type `image_generation_call`: an image that the model made."""

    def __init__(self, writer: Writer, index: int, item_id: str, media: pb.MediaPart) -> None:
        super().__init__(writer, index, item_id)
        self._media = pb.MediaPart()
        self._media.CopyFrom(media)
        self._data: list[bytes] = [media.data]
        self.keep(media.ByteSize())
        self.added({"id": item_id, "type": "image_generation_call", "status": "in_progress", "result": None})
        for state in ("in_progress", "generating"):
            self.writer.event(f"response.image_generation_call.{state}", self.location)

    def append_image(self, data: bytes) -> None:
        self._data.append(data)
        self.keep(len(data))

    def finished_item(self, status: str) -> object:
        self.writer.event("response.image_generation_call.completed", self.location)
        self._media.data = b"".join(self._data)
        return image_item(self._media, self.item_id)

    def release(self) -> None:
        super().release()
        self._media.ClearField("data")
        self._data.clear()


class Opaque(Item):
    """Item of a type that only this format has, sent as the provider's raw JSON; it is complete when it starts."""

    def __init__(self, writer: Writer, index: int, item_id: str, opaque: pb.OpaquePart) -> None:
        super().__init__(writer, index, item_id)
        self._json = json_text(opaque.json, "opaque.json")
        self.added(self._json)

    def finished_item(self, status: str) -> object:
        return self._json


class Compaction(Item):
    """Item of type `compaction`: a sealed summary of the conversation."""

    def __init__(self, writer: Writer, index: int, item_id: str, encrypted_content: str) -> None:
        super().__init__(writer, index, item_id)
        self._encrypted_content = encrypted_content
        self.added(compaction_item("", item_id))

    def finished_item(self, status: str) -> object:
        return compaction_item(self._encrypted_content, self.item_id)


class State(Item):
    """Item of type `reasoning` without text, with the state of a part whose item has no field for it."""

    def __init__(self, writer: Writer, index: int, item_id: str, part: pb.Part, *, ahead: bool) -> None:
        super().__init__(writer, index, item_id)
        self._state = shown_state(part, ahead=ahead)
        self.added(reasoning_item(item_id, (), ""))
        self.finish(incomplete=False)

    def finished_item(self, status: str) -> object:
        return reasoning_item(self.item_id, (), self._state)


class Audio:
    """Writer of audio that the model made. This format sends audio as events without an item."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._spoken = False

    def append_audio(self, data: bytes, transcript: str) -> None:
        """Write a delta of the audio bytes and one of the transcript; none for b"" and ""."""
        if data:
            self._writer.event("response.audio.delta", {"delta": pybase64.b64encode_as_string(data)})
        if transcript:
            self._spoken = True
            self._writer.event("response.audio.transcript.delta", {"delta": transcript})

    def end(self) -> None:
        self._writer.event("response.audio.done", {})
        if self._spoken:
            self._writer.event("response.audio.transcript.done", {})

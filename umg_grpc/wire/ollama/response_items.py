"""Pieces of a response as Ollama's API has them: text, reasoning, complete tool calls and images."""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.held_stream_parts import HeldPart
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.tool_argument_objects import call_arguments

BETWEEN_THOUGHTS = "\n\n"


class Item(NamedTuple):
    """Piece of a response, of which exactly one field is set."""

    text: str = ""
    thinking: str = ""
    tool_call: JsonObject | None = None
    image: str = ""  # in base64
    logprobs: list[JsonObject] | None = None


class ResponseItems:
    """Converter of canonical events into content items. One per response. Only the first candidate is converted."""

    def __init__(self) -> None:
        self.retained_bytes = 0
        self.finished: pb.CandidateFinished | None = None
        self.usage = pb.Usage()
        self._held = dict[int, HeldPart]()
        self._thoughts = dict[int, tuple[int, bool]]()  # part -> (index written last, whether of a summary)
        self._has_thoughts = False
        self._calls = 0

    def feed(self, event: pb.GenerateEvent) -> Iterator[Item]:  # noqa: PLR0912 - one case a kind
        """Yield the items of one event; none for content that the format does not have."""
        part = event.part_index
        if event.candidate_index:
            return
        match event.WhichOneof("kind"):
            case "text_delta":
                yield from _text(event.text_delta)
            case "refusal_delta":
                yield from _text(event.refusal_delta)
            case "reasoning_delta":
                yield from self._thinking(part, event.reasoning_delta, event.text_index, summary=False)
            case "summary_delta":
                piece = event.summary_delta
                yield from self._thinking(part, piece.text, piece.summary_index, summary=True)
            case "arguments_delta":
                if (held := self._held.get(part)) is not None:
                    self.retained_bytes += held.append_input(event.arguments_delta)
            case "media_delta":
                if (held := self._held.get(part)) is not None:
                    self.retained_bytes += held.append_data(event.media_delta.data)
            case "part_started":
                yield from self._start(part, event.part_started)
            case "part_ended":
                yield from self._release(part)
            case "logprobs":
                yield Item(logprobs=[_logprob(entry) for entry in event.logprobs.logprobs])
            case "finished":
                self.finished = event.finished
            case "usage":
                self.usage = event.usage
            case "started" | "citation" | "state" | "part_updated" | "opaque" | None:
                pass  # the format has no place for them; `started` is read by the encoder of the stream
            case unhandled:
                assert_never(unhandled)

    def close(self) -> Iterator[Item]:
        """Yield the held items of parts that did not end."""
        for part in list(self._held):
            yield from self._release(part)

    def _start(self, part: int, started: pb.Part) -> Iterator[Item]:
        match started.WhichOneof("kind"):
            case "text":
                yield from _text(started.text.text)
            case "refusal":
                yield from _text(started.refusal.text)
            case "reasoning":
                for number, thought in enumerate(started.reasoning.texts):
                    yield from self._thinking(part, thought, number, summary=False)
            case "tool_call" | "media":
                held = self._held[part] = HeldPart(started)
                self.retained_bytes += held.size
            case "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # of a provider's own tools, which the format does not have
            case unhandled:
                assert_never(unhandled)

    def _thinking(self, part: int, text: str, number: int, *, summary: bool) -> Iterator[Item]:
        """Yield a piece of reasoning. A blank line separates it from the piece of another reasoning text."""
        last = self._thoughts.get(part)
        if not text or (summary and last is not None and not last[1]):
            return
        if self._has_thoughts and (last is None or last[0] != number):
            text = BETWEEN_THOUGHTS + text
        self._thoughts[part], self._has_thoughts = (number, summary), True
        yield Item(thinking=text)

    def _release(self, part: int) -> Iterator[Item]:
        if (held := self._held.pop(part, None)) is None:
            return
        self.retained_bytes -= held.size
        whole = held.whole()
        if whole.HasField("tool_call"):
            yield Item(tool_call=self._tool_call(whole.tool_call))
        elif is_image(whole.media):
            yield Item(image=pybase64.b64encode_as_string(whole.media.data))

    def _tool_call(self, call: pb.ToolCall) -> JsonObject:
        index, self._calls = self._calls, self._calls + 1
        function = {"index": index, "name": call.name, "arguments": call_arguments(call)}
        return {"id": call.call_id, "function": function} if call.call_id else {"function": function}


def is_image(media: pb.MediaPart) -> bool:
    """Return whether the media is an image that has its bytes. Responses of this format contain no other media."""
    return media.kind == pb.MEDIA_KIND_IMAGE and bool(media.data) and not media.uri


def _text(text: str) -> Iterator[Item]:
    if text:
        yield Item(text=text)


def _logprob(entry: pb.TokenLogprob) -> JsonObject:
    encoded: JsonObject = {"token": entry.token, "logprob": entry.logprob}
    if entry.HasField("raw_bytes"):
        encoded["bytes"] = list(entry.raw_bytes)
    if entry.alternatives:
        encoded["top_logprobs"] = [_logprob(other) for other in entry.alternatives]
    return encoded

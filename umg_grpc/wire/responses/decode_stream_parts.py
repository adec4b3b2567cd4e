"""Decoding of parts of a responses stream into events: deltas, ends, and content that came without deltas."""

from collections.abc import Iterator
from typing import assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.core.part_event_builder import PartEvents
from umg_grpc.wire.core.response_to_events import part_to_events
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner

Key = tuple[str, int]  # key of one text within a part: its kind, and its index among the part's texts of that kind

TEXT_KEY, REFUSAL_KEY, ARGUMENTS_KEY = ("text", 0), ("refusal", 0), ("arguments", 0)


class Streamed:
    """State of a part of a streamed response: its index, the texts with emitted deltas, and incomplete characters."""

    def __init__(self, part: int) -> None:
        self.part = part
        self.sent: set[Key] = set()  # texts of which a delta was emitted
        self.cited = 0
        self.ended = False
        self._joiners: dict[Key, SurrogateJoiner] = {}

    def replace_halves(self, key: Key, text: str) -> str:
        """Return a delta with split characters joined. An incomplete one is kept for the next delta of the text."""
        return self._joiners.setdefault(key, SurrogateJoiner()).join(text)

    def rest(self) -> Iterator[pb.GenerateEvent]:
        """Yield a delta for each of the part's texts that ends in an incomplete character."""
        for key, joiner in self._joiners.items():
            if rest := joiner.rest():
                yield self.delta(key, rest)

    def delta(self, key: Key, text: str) -> pb.GenerateEvent:
        """Return the event that appends to a text. `key`: its kind (`text`, `refusal`, `arguments`, `summary`; any
        other for full reasoning) and index.
        """
        event = pb.GenerateEvent(part_index=self.part)
        match key:
            case ("text", _):
                event.text_delta = text
            case ("refusal", _):
                event.refusal_delta = text
            case ("arguments", _):
                event.arguments_delta = text
            case ("summary", index):
                event.summary_delta.summary_index, event.summary_delta.text = index, text
            case (_, index):
                event.reasoning_delta, event.text_index = text, index
        return event


class PartEmitter(PartEvents):
    """Factory of the events for the parts of one streamed response; numbers them in the order of their start."""

    def close(self, streamed: Streamed) -> Iterator[pb.GenerateEvent]:
        """Yield the end of a part, after a delta for incomplete characters; nothing if the part has ended."""
        if streamed.ended:
            return
        streamed.ended = True
        yield from streamed.rest()
        yield self.end(streamed.part)

    def complete(self, streamed: Streamed, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """Yield the content of a complete part that `streamed` lacks, and the end; nothing if the part has ended."""
        if streamed.ended:
            return
        if part.HasField("server_tool_call"):
            yield pb.GenerateEvent(part_index=streamed.part, part_updated=part)
        cited = 0
        for event in part_to_events(part):
            match event.WhichOneof("kind"):
                case "part_started" | "part_ended":
                    continue
                case "citation":
                    cited += 1
                    sent = cited <= streamed.cited
                case "reasoning_delta":
                    sent = ("thought", event.text_index) in streamed.sent
                case "summary_delta":
                    sent = ("summary", event.summary_delta.summary_index) in streamed.sent
                case "state":
                    sent = False
                case "text_delta" | "refusal_delta" | "arguments_delta" | "media_delta" | "logprobs":
                    sent = bool(streamed.sent)
                case "started" | "part_updated" | "usage" | "finished" | "opaque" | None:
                    continue  # no content of a part
                case unhandled:
                    assert_never(unhandled)
            if not sent:
                event.part_index = streamed.part
                yield event
        yield from self.close(streamed)

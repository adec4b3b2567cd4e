"""Parts of a provider's stream as canonical events: their starts, what is told late, their ends."""

from collections.abc import Iterator

from umg_grpc.v1 import pb
from umg_grpc.wire.ragged import Mender

Key = tuple[str, int]
"""A text of a part: its kind, and its index among those of that kind."""

TEXT, REFUSAL, ARGUMENTS = ("text", 0), ("refusal", 0), ("arguments", 0)


class Streamed:
    """A part that is being streamed."""

    def __init__(self, part: int) -> None:
        self.part = part
        self.told: set[Key] = set()  # texts of which a delta came
        self.cited = 0
        self.ended = False
        self._menders: dict[Key, Mender] = {}

    def mended(self, key: Key, text: str) -> str:
        """What can be told now of a text whose characters may have been cut in two."""
        return self._menders.setdefault(key, Mender()).mend(text)

    def rest(self) -> Iterator[pb.GenerateEvent]:
        """Halves that stayed ones."""
        for key, mender in self._menders.items():
            if rest := mender.rest():
                yield self.delta(key, rest)

    def delta(self, key: Key, text: str) -> pb.GenerateEvent:
        """More of a text."""
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


class PartTeller:
    """Numbers the parts of one answer."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, part: pb.Part) -> pb.GenerateEvent:
        """The part begins."""
        event = pb.GenerateEvent(part_index=self.count)
        event.part_started.CopyFrom(part)
        self.count += 1
        return event

    def close(self, streamed: Streamed) -> Iterator[pb.GenerateEvent]:
        """The part is complete."""
        if streamed.ended:
            return
        streamed.ended = True
        yield from streamed.rest()
        event = pb.GenerateEvent(part_index=streamed.part)
        event.part_ended.SetInParent()
        yield event

    def whole(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """A part that was not streamed."""
        streamed = Streamed(self.count)
        start = pb.Part()
        start.CopyFrom(part)
        start.ClearField("state")
        match part.WhichOneof("kind"):
            case "text":
                start.text.Clear()
                start.text.SetInParent()
            case "refusal":
                start.refusal.Clear()
                start.refusal.SetInParent()
            case "reasoning":
                start.reasoning.ClearField("texts")
                start.reasoning.ClearField("summaries")
            case "tool_call" if part.tool_call.HasField("text"):
                start.tool_call.text = ""
            case "tool_call":
                start.tool_call.arguments_json = ""
        yield self.start(start)
        yield from self.complete(streamed, part, started=False)

    def complete(self, streamed: Streamed, part: pb.Part, *, started: bool = True) -> Iterator[pb.GenerateEvent]:
        """Tells what was not told of a part, and ends it. `started`: whether its start held less than it does now."""
        if streamed.ended:
            return
        place = streamed.part
        match part.WhichOneof("kind"):
            case "text":
                if not streamed.told and part.text.text:
                    yield streamed.delta(TEXT, part.text.text)
                    if part.text.logprobs:
                        likely = pb.LogprobsDelta(logprobs=part.text.logprobs)
                        yield pb.GenerateEvent(part_index=place, logprobs=likely)
                for citation in part.text.citations[streamed.cited :]:
                    yield pb.GenerateEvent(part_index=place, citation=citation)
            case "refusal" if not streamed.told and part.refusal.text:
                yield streamed.delta(REFUSAL, part.refusal.text)
            case "tool_call" if not streamed.told:
                if text := part.tool_call.arguments_json or part.tool_call.text:
                    yield streamed.delta(ARGUMENTS, text)
            case "reasoning":
                yield from self._thoughts(streamed, part.reasoning)
            case "server_tool_call" if started:
                yield pb.GenerateEvent(part_index=place, part_updated=part)
        if part.HasField("state"):
            yield pb.GenerateEvent(part_index=place, state=part.state)
        yield from self.close(streamed)

    def _thoughts(self, streamed: Streamed, thoughts: pb.ReasoningPart) -> Iterator[pb.GenerateEvent]:
        keys = [
            *((("thought", index), text) for index, text in enumerate(thoughts.texts)),
            *((("summary", index), text) for index, text in enumerate(thoughts.summaries)),
        ]
        yield from (streamed.delta(key, text) for key, text in keys if key not in streamed.told)

"""Parts of a provider's stream as canonical events: their starts, what is told late, their ends."""

from collections.abc import Iterator

from umg_grpc.v1 import pb
from umg_grpc.wire.ragged import Mender


class Streamed:
    """A part that is being streamed."""

    def __init__(self, part: int) -> None:
        self.part = part
        self.told: set[tuple[str, int]] = set()  # texts of which a delta came
        self.cited = 0
        self.mender = Mender()
        self.refusal = False
        self.ended = False

    def words(self, text: str) -> pb.GenerateEvent:
        """More of a text or a refusal."""
        if self.refusal:
            return pb.GenerateEvent(part_index=self.part, refusal_delta=text)
        return pb.GenerateEvent(part_index=self.part, text_delta=text)


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

    def close(self, streamed: Streamed, *, spoken: bool = False) -> Iterator[pb.GenerateEvent]:
        """The part is complete. `spoken`: whether it is a text or a refusal."""
        if streamed.ended:
            return
        streamed.ended = True
        if spoken and (rest := streamed.mender.rest()):
            yield streamed.words(rest)
        event = pb.GenerateEvent(part_index=streamed.part)
        event.part_ended.SetInParent()
        yield event

    def whole(self, part: pb.Part) -> Iterator[pb.GenerateEvent]:
        """A part that was not streamed."""
        streamed = Streamed(self.count)
        streamed.refusal = part.HasField("refusal")
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
                    yield streamed.words(part.text.text)
                    if part.text.logprobs:
                        likely = pb.LogprobsDelta(logprobs=part.text.logprobs)
                        yield pb.GenerateEvent(part_index=place, logprobs=likely)
                for citation in part.text.citations[streamed.cited :]:
                    yield pb.GenerateEvent(part_index=place, citation=citation)
            case "refusal" if not streamed.told and part.refusal.text:
                yield streamed.words(part.refusal.text)
            case "tool_call" if not streamed.told:
                if text := part.tool_call.arguments_json or part.tool_call.text:
                    yield pb.GenerateEvent(part_index=place, arguments_delta=text)
            case "reasoning":
                yield from self._thoughts(streamed, part.reasoning)
            case "server_tool_call" if started:
                yield pb.GenerateEvent(part_index=place, part_updated=part)
        if part.HasField("state"):
            yield pb.GenerateEvent(part_index=place, state=part.state)
        yield from self.close(streamed, spoken=part.HasField("text") or part.HasField("refusal"))

    def _thoughts(self, streamed: Streamed, thoughts: pb.ReasoningPart) -> Iterator[pb.GenerateEvent]:
        for index, text in enumerate(thoughts.texts):
            if ("text", index) not in streamed.told:
                yield pb.GenerateEvent(part_index=streamed.part, reasoning_delta=text, text_index=index)
        for index, text in enumerate(thoughts.summaries):
            if ("summary", index) not in streamed.told:
                summary = pb.SummaryDelta(summary_index=index, text=text)
                yield pb.GenerateEvent(part_index=streamed.part, summary_delta=summary)

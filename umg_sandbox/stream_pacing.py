"""Division of a complete simulated response into the events of a stream."""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_sandbox.output_truncation import pieces
from umg_sandbox.prompt_reader import Count


class PacedEvents(NamedTuple):
    """Events of a stream that are sent at the same time."""

    events: list[pb.GenerateEvent]
    tokens: int
    """Simulated duration of the step, in tokens of the response."""


def stream_steps(response: pb.GenerateResponse, count: Count) -> Iterator[PacedEvents]:
    """Yield a complete response in steps. `count`: returns the number of tokens of a text. The first step states the
    tokens of the prompt, which some formats send at the start.
    """
    for event in response_to_events(response).events:
        match event.WhichOneof("kind"):
            case "started":
                prompt = pb.Usage()
                prompt.CopyFrom(response.usage)
                for name in ("output_tokens", "reasoning_tokens", "image_output_tokens", "web_search_requests"):
                    prompt.ClearField(name)
                yield PacedEvents([event, pb.GenerateEvent(usage=prompt)], 0)
            case "text_delta":
                part = response.candidates[event.candidate_index].message.parts[event.part_index]
                yield from _text_steps(event, part.text, count)
            case "reasoning_delta" | "summary_delta" | "arguments_delta" | "refusal_delta" as kind:
                yield from _delta_steps(event, kind, count)
            case "citation" | "logprobs":
                part = response.candidates[event.candidate_index].message.parts[event.part_index]
                if not part.HasField("text"):
                    yield PacedEvents([event], 0)  # those of a text are sent with its pieces
            case "part_started" | "part_updated" | "part_ended" | "media_delta" | "state":
                yield PacedEvents([event], 0)
            case "finished" | "usage" | "opaque" | None:
                yield PacedEvents([event], 0)
            case unhandled:
                assert_never(unhandled)


def _delta_steps(event: pb.GenerateEvent, kind: str, count: Count) -> Iterator[PacedEvents]:
    is_summary = kind == "summary_delta"
    text: str = event.summary_delta.text if is_summary else getattr(event, kind)
    for piece in pieces(text):
        delta = pb.GenerateEvent()
        delta.CopyFrom(event)
        if is_summary:
            delta.summary_delta.text = piece
        else:
            setattr(delta, kind, piece)
        yield PacedEvents([delta], count(piece))


def _text_steps(event: pb.GenerateEvent, part: pb.TextPart, count: Count) -> Iterator[PacedEvents]:
    """Yield the text of a part in small pieces, each with its log probabilities and the citations that end in it."""
    ends = [citation.end_index for citation in part.citations]
    at, cited = 0, 0
    for index, piece in enumerate(pieces(part.text, ends)):
        delta = _same_part(event)
        delta.text_delta = piece
        events = [delta]
        if part.logprobs:
            events.append(_same_part(event))
            events[-1].logprobs.logprobs.append(part.logprobs[index])
        at += len(piece)
        while cited < len(part.citations) and part.citations[cited].end_index <= at:
            events.append(_same_part(event))
            events[-1].citation.CopyFrom(part.citations[cited])
            cited += 1
        yield PacedEvents(events, count(piece))


def _same_part(event: pb.GenerateEvent) -> pb.GenerateEvent:
    return pb.GenerateEvent(candidate_index=event.candidate_index, part_index=event.part_index)

"""A whole answer told as a stream: the same words in small pieces."""

from collections.abc import Iterator
from typing import NamedTuple

from umg_grpc.upstream.sandbox.limits import pieces
from umg_grpc.upstream.sandbox.prompt import Count
from umg_grpc.v1 import pb
from umg_grpc.wire.replay import replay


class Step(NamedTuple):
    """What is told at once."""

    events: list[pb.GenerateEvent]
    tokens: int
    """How long it takes, in tokens of the answer."""


def tell(response: pb.GenerateResponse, count: Count) -> Iterator[Step]:
    """The steps of the stream. The first has the tokens of the prompt, which some formats tell at once."""
    for event in replay(response).events:
        match event.WhichOneof("kind"):
            case "started":
                prompt = pb.Usage()
                prompt.CopyFrom(response.usage)
                for name in ("output_tokens", "reasoning_tokens", "image_output_tokens", "web_search_requests"):
                    prompt.ClearField(name)
                yield Step([event, pb.GenerateEvent(usage=prompt)], 0)
            case "text_delta":
                part = response.candidates[event.candidate_index].message.parts[event.part_index]
                yield from _text(event, part.text, count)
            case "reasoning_delta" | "summary_delta" | "arguments_delta" | "refusal_delta":
                yield from _pieces(event, count)
            case "citation" | "logprobs":
                part = response.candidates[event.candidate_index].message.parts[event.part_index]
                if not part.HasField("text"):
                    yield Step([event], 0)  # those of a text stand beside its words
            case _:
                yield Step([event], 0)


def _pieces(event: pb.GenerateEvent, count: Count) -> Iterator[Step]:
    kind = event.WhichOneof("kind")
    text = event.reasoning_delta or event.arguments_delta or event.refusal_delta or event.summary_delta.text
    for piece in pieces(text):
        told = _beside(event)
        told.text_index = event.text_index
        match kind:
            case "reasoning_delta":
                told.reasoning_delta = piece
            case "arguments_delta":
                told.arguments_delta = piece
            case "refusal_delta":
                told.refusal_delta = piece
            case _:
                told.summary_delta.CopyFrom(event.summary_delta)
                told.summary_delta.text = piece
        yield Step([told], count(piece))


def _text(event: pb.GenerateEvent, part: pb.TextPart, count: Count) -> Iterator[Step]:
    """Text with its likelihoods, and each source where the words that it says end."""
    ends = [citation.end_index for citation in part.citations]
    at, cited = 0, 0
    for index, piece in enumerate(pieces(part.text, ends)):
        told = _beside(event)
        told.text_delta = piece
        events = [told]
        if part.logprobs:
            events.append(_beside(event))
            events[-1].logprobs.logprobs.append(part.logprobs[index])
        at += len(piece)
        while cited < len(part.citations) and part.citations[cited].end_index <= at:
            events.append(_beside(event))
            events[-1].citation.CopyFrom(part.citations[cited])
            cited += 1
        yield Step(events, count(piece))


def _beside(event: pb.GenerateEvent) -> pb.GenerateEvent:
    """An empty event of the same part."""
    return pb.GenerateEvent(candidate_index=event.candidate_index, part_index=event.part_index)

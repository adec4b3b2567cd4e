"""Canonical streams that grow: many parts, in sequence or interleaved, and many events of one part."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from umg_grpc.v1 import pb

Events = Iterator[pb.GenerateEvent]
STATE = pb.ReasoningState(data="c2lnbmVk", format="native")
PAGE = pb.Citation(title="t", web=pb.WebSource(url="https://pages.test/1"), start_index=0, end_index=3)


@dataclass(frozen=True)
class EventGrowth:
    id: str
    events: Callable[[int], Events]
    """Size -> the events between the start and the finish."""

    def messages(self, size: int, *, apart: bool) -> list[pb.StreamGenerateResponse]:
        """Return the whole stream in one message, or each event in its own."""
        started = pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m"))
        finished = pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))
        events = [started, *self.events(size), finished]
        if apart:
            return [pb.StreamGenerateResponse(events=[event]) for event in events]
        return [pb.StreamGenerateResponse(events=events)]


def _started(part: int, **kind: object) -> pb.GenerateEvent:
    return pb.GenerateEvent(part_index=part, part_started=pb.Part(**kind))


def _ended(part: int) -> pb.GenerateEvent:
    return pb.GenerateEvent(part_index=part, part_ended=pb.PartEnded())


def _call(part: int, name: str = "f") -> pb.GenerateEvent:
    return _started(part, tool_call=pb.ToolCall(call_id=f"c{part}", name=name, arguments_json=""))


def _argued(part: int, text: str = "{}") -> pb.GenerateEvent:
    return pb.GenerateEvent(part_index=part, arguments_delta=text)


def _text_delta(part: int, text: str = "word ") -> pb.GenerateEvent:
    return pb.GenerateEvent(part_index=part, text_delta=text)


def _calls(size: int) -> Events:
    for part in range(size):
        yield _call(part)
        yield _argued(part)
        yield _ended(part)


def _signed_calls(size: int) -> Events:
    for part in range(size):
        yield _call(part)
        yield _argued(part)
        yield pb.GenerateEvent(part_index=part, state=STATE)
        yield _ended(part)


def _calls_side_by_side(size: int) -> Events:
    yield from (_call(part) for part in range(size))
    yield from (_argued(part, '{"a":') for part in range(size))
    yield from (_argued(part, "1}") for part in range(size))
    yield from (_ended(part) for part in range(size))


def _calls_behind_an_open_one(size: int) -> Events:
    yield from (_call(part) for part in range(size))
    yield from (_argued(part) for part in range(1, size))
    yield from (_ended(part) for part in reversed(range(1, size)))
    yield _argued(0)
    yield _ended(0)


def _custom_calls(size: int) -> Events:
    for part in range(size):
        yield _started(part, tool_call=pb.ToolCall(call_id=f"c{part}", name="f", text=""))
    for part in range(size):
        yield _argued(part, "free")
        yield _ended(part)


def _pieces_of_a_call(size: int) -> Events:
    """Yield many pieces of a call while another call waits, so that the arguments are tried again and again."""
    yield _call(0)
    yield _call(1)
    yield _argued(0, '{"a":"')
    for _ in range(size):
        yield _argued(0, "x")
        yield _argued(1, "")
    yield _argued(0, '"}')
    yield _ended(0)
    yield _ended(1)


def _texts(size: int) -> Events:
    for part in range(size):
        yield _started(part, text=pb.TextPart())
        yield _text_delta(part)
        yield _ended(part)


def _texts_side_by_side(size: int) -> Events:
    yield from (_started(part, text=pb.TextPart()) for part in range(size))
    yield from (_text_delta(part) for part in reversed(range(size)))
    yield from (_ended(part) for part in reversed(range(size)))


def _texts_and_calls_in_turn(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    for part in range(1, size):
        yield _text_delta(0)
        yield _call(part)
        yield _argued(part)
    yield from (_ended(part) for part in range(size))


def _refusals(size: int) -> Events:
    yield _started(0, refusal=pb.RefusalPart())
    yield from (pb.GenerateEvent(refusal_delta="no ") for _ in range(size))
    yield _ended(0)


def _deltas(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    yield from (_text_delta(0) for _ in range(size))
    yield _ended(0)


def _one_delta(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    yield _text_delta(0, 'é"\n ' * size)
    yield _ended(0)


def _citations(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    yield _text_delta(0, "text é " * size)
    for number in range(size):
        page = pb.WebSource(url=f"https://pages.test/{number}")
        yield pb.GenerateEvent(citation=pb.Citation(title="t", web=page, start_index=number, end_index=number + 3))
    yield _ended(0)


def _pages_of_one_span(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    yield _text_delta(0)
    for number in range(size):
        page = pb.WebSource(url=f"https://pages.test/{number}")
        yield pb.GenerateEvent(citation=pb.Citation(title="t", web=page, start_index=0, end_index=3))
    yield _ended(0)


def _cited_texts(size: int) -> Events:
    for part in range(size):
        yield _started(part, text=pb.TextPart())
        yield _text_delta(part, "é word")
        yield pb.GenerateEvent(part_index=part, citation=PAGE)
        yield _ended(part)


def _likelihoods(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    entry = pb.TokenLogprob(token="a", logprob=-1.0)
    for _ in range(size):
        yield _text_delta(0)
        yield pb.GenerateEvent(logprobs=pb.LogprobsDelta(logprobs=[entry]))
    yield _ended(0)


def _thoughts(size: int) -> Events:
    for part in range(size):
        yield _started(part, reasoning=pb.ReasoningPart())
        yield pb.GenerateEvent(part_index=part, reasoning_delta="hm")
        yield pb.GenerateEvent(part_index=part, state=STATE)
        yield _ended(part)


def _texts_of_a_thought(size: int) -> Events:
    yield _started(0, reasoning=pb.ReasoningPart())
    yield from (pb.GenerateEvent(reasoning_delta="hm", text_index=number) for number in range(size))
    yield _ended(0)


def _summaries(size: int) -> Events:
    yield _started(0, reasoning=pb.ReasoningPart())
    for number in range(size):
        yield pb.GenerateEvent(summary_delta=pb.SummaryDelta(summary_index=number, text="hm"))
    yield _ended(0)


def _states(size: int) -> Events:
    yield _started(0, text=pb.TextPart())
    for _ in range(size):
        yield pb.GenerateEvent(state=STATE)
    yield _ended(0)


def _searches(size: int) -> Events:
    """Yield many search calls before all their results."""
    for part in range(size):
        call = pb.ServerToolCall(call_id=f"s{part}", name="web_search", queries=["q"], input_json='{"query":"q"}')
        yield _started(part, server_tool_call=call)
        yield pb.GenerateEvent(part_index=part, part_updated=pb.Part(server_tool_call=call))
        yield _ended(part)
    for part in range(size):
        found = [pb.SearchResult(url="https://pages.test/1", title="t")]
        result = pb.ServerToolResult(call_id=f"s{part}", name="web_search", results=found)
        yield _started(size + part, server_tool_result=result)
        yield _ended(size + part)


def _open_searches(size: int) -> Events:
    for part in range(size):
        yield _started(part, server_tool_call=pb.ServerToolCall(call_id=f"s{part}", name="web_search"))
    for part in range(size):
        result = pb.ServerToolResult(call_id=f"s{part}", name="web_search")
        yield _started(size + part, server_tool_result=result)
        yield _ended(size + part)
    yield from (_ended(part) for part in range(size))


def _sound(size: int) -> Events:
    yield _started(0, media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, media_id="a", mime_type="audio/mpeg"))
    for _ in range(size):
        yield pb.GenerateEvent(media_delta=pb.MediaDelta(data=b"sound" * 20, transcript="la "))
    yield _ended(0)


def _picture(size: int) -> Events:
    yield _started(0, media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, media_id="a", mime_type="image/png"))
    yield from (pb.GenerateEvent(media_delta=pb.MediaDelta(data=b"image" * 20)) for _ in range(size))
    yield _ended(0)


def _pictures(size: int) -> Events:
    for part in range(size):
        yield _started(part, media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"i", mime_type="image/png"))
        yield _ended(part)


def _opaque(wire_format: str) -> Callable[[int], Events]:
    kept = pb.OpaquePart(format=wire_format, type="x", json='{"type":"x","n":1.0}')

    def events(size: int) -> Events:
        for part in range(size):
            yield _started(part, opaque=kept)
            yield pb.GenerateEvent(part_index=part, opaque=kept)
            yield _ended(part)

    return events


def _candidates(size: int) -> Events:
    for number in range(size):
        for event in (_started(0, text=pb.TextPart()), _text_delta(0), _call(1), _argued(1), _ended(0), _ended(1)):
            event.candidate_index = number
            yield event


def _usages(size: int) -> Events:
    yield from (pb.GenerateEvent(usage=pb.Usage(input_tokens=1, output_tokens=number)) for number in range(size))


def _events_of_no_part(size: int) -> Events:
    for part in range(size):
        yield _text_delta(part)
        yield _argued(size + part)
        yield _ended(part)


GROWTHS = [
    EventGrowth("tool calls", _calls),
    EventGrowth("signed tool calls", _signed_calls),
    EventGrowth("tool calls side by side", _calls_side_by_side),
    EventGrowth("tool calls behind an open one", _calls_behind_an_open_one),
    EventGrowth("custom tool calls", _custom_calls),
    EventGrowth("pieces of the arguments of a call", _pieces_of_a_call),
    EventGrowth("texts", _texts),
    EventGrowth("texts side by side", _texts_side_by_side),
    EventGrowth("tool calls between the pieces of a text", _texts_and_calls_in_turn),
    EventGrowth("pieces of a refusal", _refusals),
    EventGrowth("pieces of a text", _deltas),
    EventGrowth("characters of one piece", _one_delta),
    EventGrowth("citations", _citations),
    EventGrowth("pages of one place", _pages_of_one_span),
    EventGrowth("cited texts", _cited_texts),
    EventGrowth("logprobs", _likelihoods),
    EventGrowth("signed thoughts", _thoughts),
    EventGrowth("texts of a thought", _texts_of_a_thought),
    EventGrowth("summaries of a thought", _summaries),
    EventGrowth("states of a part", _states),
    EventGrowth("searches and then their results", _searches),
    EventGrowth("open searches", _open_searches),
    EventGrowth("pieces of sound", _sound),
    EventGrowth("pieces of an image", _picture),
    EventGrowth("images", _pictures),
    EventGrowth("parts that only messages has", _opaque("messages")),
    EventGrowth("parts that only responses has", _opaque("responses")),
    EventGrowth("candidates", _candidates),
    EventGrowth("counts of tokens", _usages),
    EventGrowth("events of parts that never began", _events_of_no_part),
]

"""Local stop sequences: where texts end, however the provider cuts its deltas."""

from dataclasses import dataclass
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.local_stop_sequences import MAX_CHARACTERS, StopCutter, cut_response
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.stream_aggregator import StreamAggregator

TEXTS = st.text("abc", max_size=12)
SEQUENCES = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3)


def text_part(text: str) -> pb.Part:
    logprobs = [pb.TokenLogprob(token=character, logprob=-1) for character in text]
    return pb.Part(text=pb.TextPart(text=text, logprobs=logprobs))


def call_part(arguments: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id="call_1", name="look", arguments_json=arguments))


def response(*candidates: list[pb.Part]) -> pb.GenerateResponse:
    """Return a complete response with these parts of each candidate."""
    answer = pb.GenerateResponse(response_id="r", model="m", usage=pb.Usage(input_tokens=3, output_tokens=9))
    for index, parts in enumerate(candidates):
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
        answer.candidates.add(index=index, message=message, finish_reason=pb.FINISH_REASON_STOP)
    return answer


def cut(answer: pb.GenerateResponse, *sequences: str) -> pb.GenerateResponse:
    copy = pb.GenerateResponse()
    copy.CopyFrom(answer)
    cut_response(copy, sequences)
    return copy


def streamed(answer: pb.GenerateResponse, cuts: list[int], *sequences: str) -> tuple[pb.GenerateResponse, StopCutter]:
    """Return the response of a stream whose texts are cut at these positions, and the state machine that ended it."""
    cutter, aggregator = StopCutter(sequences, len(answer.candidates)), StreamAggregator()
    for event in response_to_events(answer).events:
        for received in _messages(event, cuts):
            if (message := cutter.feed(received)) is not None:
                aggregator.feed(message)
            if cutter.stopped:
                return aggregator.response(), cutter
    return aggregator.response(), cutter


def _messages(event: pb.GenerateEvent, cuts: list[int]) -> list[pb.StreamGenerateResponse]:
    """Return the messages of an event: those of a text have one delta each, with its log probabilities."""
    if event.HasField("logprobs"):
        return []
    if not event.HasField("text_delta"):
        return [pb.StreamGenerateResponse(events=[event])]
    text, place = event.text_delta, {"candidate_index": event.candidate_index, "part_index": event.part_index}
    messages = []
    for start, end in pairwise(sorted({0, len(text), *(at for at in cuts if at < len(text))})):
        delta = pb.LogprobsDelta(logprobs=text_part(text[start:end]).text.logprobs)
        events = [pb.GenerateEvent(text_delta=text[start:end], **place), pb.GenerateEvent(logprobs=delta, **place)]
        messages.append(pb.StreamGenerateResponse(events=events))
    return messages


@given(TEXTS, TEXTS, SEQUENCES, st.lists(st.integers(1, 12)))
def test_a_stream_ends_where_the_whole_answer_ends(
    first: str, second: str, sequences: list[str], cuts: list[int]
) -> None:
    answer = response([text_part(first), call_part('{"a":"abc"}'), text_part(second)])
    whole, (stream, cutter) = cut(answer, *sequences), streamed(answer, cuts, *sequences)
    assert stream.candidates == whole.candidates
    assert cutter.stopped == bool(whole.candidates[0].stop_sequence)


@given(TEXTS, SEQUENCES)
def test_a_text_ends_in_front_of_the_sequence_that_is_complete_first(text: str, sequences: list[str]) -> None:
    [candidate] = cut(response([text_part(text)]), *sequences).candidates
    left = candidate.message.parts[0].text.text
    ends = [end for end in range(len(text) + 1) if text[:end].endswith(tuple(sequences))]
    if not ends:
        assert (left, candidate.finish_reason, candidate.stop_sequence) == (text, pb.FINISH_REASON_STOP, "")
        return
    longest = max((each for each in sequences if text[: ends[0]].endswith(each)), key=len)
    assert (left, candidate.stop_sequence) == (text[: ends[0] - len(longest)], longest)
    assert candidate.finish_reason == pb.FINISH_REASON_STOP_SEQUENCE
    assert "".join(each.token for each in candidate.message.parts[0].text.logprobs) == left


def test_a_text_is_held_back_only_while_it_may_begin_a_sequence() -> None:
    cutter = StopCutter(("STOP",), 1)
    sent = []
    for text in ("one S", "T", "ill ", "STO", "P two"):
        message = cutter.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta=text)]))
        sent.append("".join(event.text_delta for event in message.events) if message is not None else None)
    assert (sent, cutter.stopped) == (["one ", None, "STill ", None, ""], True)


def test_reasoning_and_tool_arguments_are_not_searched() -> None:
    thought = pb.Part(reasoning=pb.ReasoningPart(texts=["END"], summaries=["END"]))
    answer = response([thought, call_part('{"END":1}'), text_part("a")])
    assert cut(answer, "END") == answer
    assert streamed(answer, [], "END")[0] == answer


def test_each_of_several_candidates_ends_at_its_own_sequence() -> None:
    answer = response([text_part("aXb")], [text_part("plain")], [text_part("YcX")])
    stream, cutter = streamed(answer, [1, 2], "X", "Y")
    assert stream.candidates == cut(answer, "X", "Y").candidates
    assert [each.stop_sequence for each in stream.candidates] == ["X", "", "Y"]
    assert cutter.stopped  # with the last one: the provider is not needed for its usage


def test_a_citation_ends_with_its_text() -> None:
    part = text_part("one END two")
    for start, end in ((0, 8), (8, 11)):
        part.text.citations.add(start_index=start, end_index=end).web.url = "https://a.example/"
    [candidate] = cut(response([part]), "END").candidates
    assert [(each.start_index, each.end_index) for each in candidate.message.parts[0].text.citations] == [(0, 4)]


def test_a_usage_before_the_sequence_is_marked_as_incomplete() -> None:
    usage = pb.GenerateEvent(usage=pb.Usage(input_tokens=5, output_tokens=1))
    message = pb.StreamGenerateResponse(events=[usage, pb.GenerateEvent(text_delta="aX")])
    cut_message = StopCutter(("X",), 1).feed(message)
    assert cut_message is not None
    assert [event.usage.estimated for event in cut_message.events if event.HasField("usage")] == [False, True]


# --- the sequences that a provider is sent


@dataclass(frozen=True)
class Case:
    """Stop sequences of a request to a provider, and their split between the provider and the gateway."""

    id: str
    protocol: str
    stops: list[str]
    sent: object
    local: tuple[str, ...]
    quirks: Quirks = NO_QUIRKS
    dropped: str = ""
    own: bool = False  # the caller's body has the provider's format


MEMBERS = {"chat": "stop", "messages": "stop_sequences", "native": "stopSequences"}
CASES = [
    Case("chat", "chat", ["a"], ["a"], ()),
    Case("more than chat has", "chat", list("abcde"), list("abcd"), ("e",)),
    Case("a chat model without any", "chat", ["a", "b"], None, ("a", "b"), Quirks(max_stop_sequences=0)),
    Case("a chat model with one", "chat", ["a", "b"], ["a"], ("b",), Quirks(max_stop_sequences=1)),
    Case("a member that is refused", "chat", ["a"], None, ("a",), Quirks(rejects=frozenset({"stop"}))),
    Case("a list of members without it", "chat", ["a"], None, ("a",), Quirks(accepts=frozenset({"model", "messages", "max_tokens"}))),
    Case("a refusal while the model reasons", "chat", ["a"], None, ("a",), Quirks(thinking="always", rejects_beside_reasoning=frozenset({"stop"}))),
    Case("the caller's own chat body", "chat", ["a"], None, ("a",), Quirks(max_stop_sequences=0), own=True),
    Case("the caller's own chat body, unknown model", "chat", list("abcde"), list("abcde"), (), own=True),
    Case("responses", "responses", ["a", "b"], None, ("a", "b")),
    Case("messages", "messages", list("abcdef"), list("abcdef"), ()),
    Case("a messages model with one", "messages", ["a", "b"], ["a"], ("b",), Quirks(max_stop_sequences=1), own=True),
    Case("native", "native", list("abcdef"), list("abcde"), ("f",)),
    Case("a native model without any", "native", ["a"], None, ("a",), Quirks(max_stop_sequences=0), own=True),
    Case("too long to watch for", "responses", ["a", "b" * (MAX_CHARACTERS + 1)], None, ("a",), dropped="stop_sequences=1 of 2"),
    Case("an empty one", "responses", [""], None, ()),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_provider_is_sent_as_many_stop_sequences_as_it_accepts(case: Case) -> None:
    codec = TEXT_FORMATS[case.protocol]
    request = pb.GenerateRequest(model="m", max_output_tokens=9, stop_sequences=case.stops)
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "Hi"
    if case.own:
        body = codec.encode_request(request, "m", False).body
        decoded = codec.decode_request(body, {}, "m")
        request = decoded.canonical
        request.stop_sequences[:] = case.stops
        request.source.body = _with_stops(case, body)
    encoded = codec.encode_request(request, "m", False, case.quirks)
    named = case.dropped or ("stop_sequences=by the gateway" if case.local else "")
    assert (encoded.local_stops, encoded.report.header()) == (case.local, named)
    if not case.dropped:
        encoded.report.refuse()  # strict mode accepts the effect that the gateway has
    assert _sent(case.protocol, encoded.body) == case.sent


def _sent(protocol: str, body: bytes) -> object:
    members = msgspec.json.decode(body)
    return members.get("generationConfig", members).get(MEMBERS.get(protocol, "stop"))


def _with_stops(case: Case, body: bytes) -> bytes:
    members = msgspec.json.decode(body)
    members.get("generationConfig", members)[MEMBERS[case.protocol]] = case.stops
    return msgspec.json.encode(members)

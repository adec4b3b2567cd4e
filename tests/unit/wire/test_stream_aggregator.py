"""An aggregated stream equals the whole response."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.chat import strategies as some
from tests.unit.wire.laws import cuts, modest
from tests.unit.wire.streams import decoded
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.stream_aggregator import (
    BLOCK_BYTES,
    MAX_SKIPPED,
    FrameAggregator,
    ResponseAggregator,
    StreamAggregator,
    read_whole_response,
)

words = some.words
states = st.builds(pb.ReasoningState, data=words, format=st.sampled_from(["native", "messages", "responses"]))
citations = st.builds(
    lambda start, url: pb.Citation(start_index=start, end_index=start + 1, web=pb.WebSource(url=url)),
    st.integers(0, 9),
    words,
)
kinds: dict[str, st.SearchStrategy[object]] = {
    "text": st.builds(
        lambda text, cited: pb.TextPart(text=text, citations=cited), some.texts, st.lists(citations, max_size=2)
    ),
    "refusal": st.builds(pb.RefusalPart, text=some.texts),
    "reasoning": st.builds(
        lambda texts, summaries, hidden, item: pb.ReasoningPart(
            texts=texts, summaries=summaries, redacted=hidden, item_id=item
        ),
        st.lists(words, max_size=3),
        st.lists(words, max_size=3),
        st.booleans(),
        some.texts,
    ),
    "tool_call": st.builds(
        lambda content, call_id: pb.ToolCall(call_id=call_id, name="f", **content),
        st.builds(lambda text: {"arguments_json": text}, some.texts)
        | st.builds(lambda text: {"text": text}, some.texts),
        some.texts,
    ),
    "media": st.builds(
        lambda data, content: pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=data, transcript=content, media_id="m"),
        st.binary(min_size=1),
        some.texts,
    ),
    "server_tool_call": st.builds(pb.ServerToolCall, name=words, queries=st.lists(words, max_size=2)),
    "server_tool_result": st.builds(pb.ServerToolResult, name=words, error_code=some.texts),
    "opaque": st.builds(pb.OpaquePart, format=words, json=words),
}
parts = st.one_of(
    st.builds(
        lambda value, kind, state, item: pb.Part(state=state, message_id=item, **{kind: value}),
        value,
        st.just(kind),
        st.none() | states,
        some.texts,
    )
    for kind, value in kinds.items()
)
finishes = some.set_fields(
    stop_sequence=words,
    finish_message=words,
    grounding_json=words,
    provider_reason=words,
    refusal_category=words,
    container_json=words,
    safety_ratings=st.lists(st.builds(pb.SafetyRating, category=words, blocked=st.booleans()), max_size=2),
)


@st.composite
def answers(draw: st.DrawFn) -> pb.GenerateResponse:
    response = pb.GenerateResponse(response_id=draw(words), model=draw(words), usage=pb.Usage(input_tokens=3))
    response.create_time.seconds = draw(st.integers(1, 2**33))
    for index in range(draw(st.integers(0, 3))):
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=draw(st.lists(parts, max_size=5)))
        response.candidates.add(index=index, message=message, finish_reason=draw(st.integers(0, 12)), **draw(finishes))
    if draw(st.booleans()):
        response.block_reason = "SAFETY"
        response.prompt_safety_ratings.add(category="c")
    return response


def aggregated(aggregator: ResponseAggregator, messages: list[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    for message in messages:
        aggregator.feed(message)
    return aggregator.response()


def one_by_one(message: pb.StreamGenerateResponse) -> list[pb.StreamGenerateResponse]:
    return [pb.StreamGenerateResponse(events=[event]) for event in message.events]


@modest
@given(answers())
def test_an_answer_encoded_as_a_stream_aggregates_to_the_answer(response: pb.GenerateResponse) -> None:
    assert aggregated(StreamAggregator(), [response_to_events(response)]) == response
    assert aggregated(StreamAggregator(), one_by_one(response_to_events(response))) == response


@modest
@given(some.responses(), st.data())
def test_the_aggregate_of_a_provider_stream_equals_the_reference(
    response: pb.GenerateResponse, data: st.DataObject
) -> None:
    encoder = CHAT_FORMAT.stream_encoder(some.ANSWERED)
    stream = encoder.feed(response_to_events(response)) + encoder.close()
    for passing in (False, True):
        streamed = decoded(CHAT_FORMAT, data.draw(cuts(stream)), some.ANSWERED, pass_=passing)
        if passing:
            assert aggregated(FrameAggregator(CHAT_FORMAT, some.ANSWERED), streamed) == response
        else:
            assert aggregated(StreamAggregator(), streamed) == accumulate(streamed) == response


@modest
@given(some.responses())
def test_a_passed_through_answer_is_decoded_completely(response: pb.GenerateResponse) -> None:
    body = CHAT_FORMAT.encode_response(response, some.ANSWERED)
    passed = CHAT_FORMAT.decode_response(body, some.ANSWERED, True)
    passed.response_id = "resp_ours"
    read = read_whole_response(CHAT_FORMAT, some.ANSWERED, passed)
    assert read.candidates == response.candidates
    assert (read.response_id, read.source.body, read.usage) == ("resp_ours", passed.source.body, response.usage)
    assert read_whole_response(CHAT_FORMAT, some.ANSWERED, response) is response


def test_events_of_the_gateway_take_precedence_over_the_frames() -> None:
    frames = (
        b'data: {"id":"theirs","model":"t","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    )
    started = pb.GenerateEvent(started=pb.GenerationStarted(response_id="ours", model="m"))
    used = pb.GenerateEvent(usage=pb.Usage(input_tokens=9))
    aggregator = FrameAggregator(CHAT_FORMAT, some.ANSWERED)
    aggregator.feed(pb.StreamGenerateResponse(source_frames=frames, events=[started]))
    aggregator.feed(pb.StreamGenerateResponse(source_frames=b"data: [DONE]\n\n", events=[used]))
    response = aggregator.response()
    assert (response.response_id, response.model, response.usage.input_tokens) == ("ours", "m", 9)
    assert response.candidates[0].message.parts[0].text.text == "Hi"
    assert aggregator.retained_bytes == len(frames) + len(b"data: [DONE]\n\n") + started.ByteSize()


def test_a_broken_stream_is_aggregated_up_to_its_break() -> None:
    frames = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    events = [
        pb.GenerateEvent(started=pb.GenerationStarted(response_id="r")),
        pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart())),
        pb.GenerateEvent(text_delta="Hel"),
    ]
    for aggregator, message in (
        (FrameAggregator(CHAT_FORMAT, some.ANSWERED), pb.StreamGenerateResponse(source_frames=frames)),
        (StreamAggregator(), pb.StreamGenerateResponse(events=events)),
    ):
        aggregator.feed(message)
        assert aggregator.response().candidates[0].message.parts[0].text.text == "Hel"
        assert aggregator.response() == aggregator.response(), "it can be read again, and continued"


def test_the_events_of_an_unstreamed_answer_aggregate_to_the_answer() -> None:
    answer = pb.GenerateResponse(response_id="r", candidates=[pb.Candidate(message=pb.Message(role=pb.ROLE_ASSISTANT))])
    assert aggregated(FrameAggregator(CHAT_FORMAT, some.ANSWERED), [response_to_events(answer)]) == answer


def test_a_tool_of_the_provider_is_unchanged() -> None:
    started = pb.Part(server_tool_call=pb.ServerToolCall(call_id="s", name="web_search", status="in_progress"))
    updated = pb.Part(server_tool_call=pb.ServerToolCall(call_id="s", name="web_search", queries=["q"]))
    events = [
        pb.GenerateEvent(part_started=started),
        pb.GenerateEvent(state=pb.ReasoningState(data="d")),
        pb.GenerateEvent(part_updated=updated),
    ]
    updated.state.data = "d"
    response = aggregated(StreamAggregator(), [pb.StreamGenerateResponse(events=events)])
    assert list(response.candidates[0].message.parts) == [updated]


def test_media_keep_their_bytes_after_an_update() -> None:
    events = [
        pb.GenerateEvent(part_started=pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=b""))),
        pb.GenerateEvent(media_delta=pb.MediaDelta(data=b"a", transcript="A")),
        pb.GenerateEvent(part_updated=pb.Part(media=pb.MediaPart(media_id="m", data=b""))),
        pb.GenerateEvent(media_delta=pb.MediaDelta(data=b"b", transcript="B")),
    ]
    (part,) = aggregated(StreamAggregator(), [pb.StreamGenerateResponse(events=events)]).candidates[0].message.parts
    assert part.media == pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=b"ab", transcript="AB", media_id="m")


def test_an_index_that_a_provider_makes_up_costs_little_memory() -> None:
    events = [
        pb.GenerateEvent(part_started=pb.Part(reasoning=pb.ReasoningPart())),
        pb.GenerateEvent(reasoning_delta="a", text_index=1),
        pb.GenerateEvent(summary_delta=pb.SummaryDelta(summary_index=2**31 - 1, text="b")),
    ]
    (part,) = aggregated(StreamAggregator(), [pb.StreamGenerateResponse(events=events)]).candidates[0].message.parts
    assert list(part.reasoning.texts) == ["", "a"]
    assert len(part.reasoning.summaries) == MAX_SKIPPED + 1
    assert part.reasoning.summaries[-1] == "b"


def test_every_kind_of_event_is_known() -> None:
    for field in pb.GenerateEvent.DESCRIPTOR.oneofs_by_name["kind"].fields:
        event = pb.GenerateEvent()
        if field.message_type is None:
            setattr(event, field.name, "a")
        else:
            getattr(event, field.name).SetInParent()
        aggregated(StreamAggregator(), [pb.StreamGenerateResponse(events=[event])])  # AssertionError for an unknown one


def test_only_the_needed_beginning_of_a_long_stream_is_kept() -> None:
    aggregator = FrameAggregator(CHAT_FORMAT, some.ANSWERED, 1000)
    frame = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    for _ in range(1000):
        aggregator.feed(pb.StreamGenerateResponse(source_frames=frame))
    assert aggregator.retained_bytes < 1000 + len(frame)
    [part] = aggregator.response().candidates[0].message.parts
    words = part.text.text.count("word ")
    assert round(words * aggregator.share) == 1000


def test_the_last_usage_counts_also_if_the_texts_before_it_exceed_the_limit() -> None:
    aggregator, text = StreamAggregator(BLOCK_BYTES), pb.GenerateEvent(text_delta="a" * 1000)
    for tokens in range(1, 60):
        usage = pb.GenerateEvent(usage=pb.Usage(output_tokens=tokens))
        aggregator.feed(pb.StreamGenerateResponse(events=[text, usage]))
    assert aggregator.response().usage.output_tokens == 59
    assert aggregator.share > 3


def test_a_response_of_several_blocks_is_whole_each_time_it_is_requested() -> None:
    aggregator, texts = StreamAggregator(), [f"{number:9} " for number in range(3 * BLOCK_BYTES // 10)]
    start = pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart()))
    aggregator.feed(pb.StreamGenerateResponse(events=[start]))
    for done, text in enumerate(texts, start=1):
        aggregator.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta=text)]))
        if done in (1, len(texts) // 2, len(texts)):
            (part,) = aggregator.response().candidates[0].message.parts
            assert part.text.text == "".join(texts[:done])

"""Answers and streams as the anthropic package reads them, and requests checked by its types."""

import warnings
from typing import cast

import msgspec
from anthropic._models import construct_type_unchecked
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, MessageCreateParams, RawMessageStreamEvent
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.unit.wire.chat import strategies as chat
from tests.unit.wire.messages import strategies as some
from tests.unit.wire.messages.streams import ANSWERED, encoded
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.messages import MESSAGES_FORMAT

modest = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
EVENTS = TypeAdapter(RawMessageStreamEvent)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    PARAMS = TypeAdapter(MessageCreateParams)


def accumulated(stream: bytes) -> Message:
    """Aggregate a stream by the client's own accumulator; every event must fit the client's types."""
    snapshot, buffers = None, {}
    for frame in stream.split(b"\n\n")[:-1]:
        name, data = frame.removeprefix(b"event: ").split(b"\ndata: ")
        event = EVENTS.validate_json(data)
        assert event.type == name.decode()
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return cast("Message", snapshot)


foreign_states = st.builds(pb.ReasoningState, format=st.sampled_from(["native", "responses", "chat"]), data=some.words)
foreign_thoughts = st.builds(
    lambda texts, summaries, state: pb.Part(reasoning=pb.ReasoningPart(texts=texts, summaries=summaries), state=state),
    st.lists(some.texts, max_size=2), st.lists(some.texts, max_size=2), st.none() | foreign_states,
)  # fmt: skip
foreign_searches = st.builds(
    lambda call_id, queries: pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", call_id=call_id, queries=queries, input_json="{}", format="responses")),
    some.names, st.lists(some.texts, max_size=2),
)  # fmt: skip
foreign_calls = st.builds(
    lambda call_id, name, arguments, state: pb.Part(
        tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments), state=state
    ),
    st.just("") | some.names, some.names, some.objects | st.just(""), st.none() | foreign_states,
)  # fmt: skip
known = some.responses().map(
    lambda response: [part for part in response.candidates[0].message.parts if not _unknown(part)]
)
parts = (
    foreign_thoughts.map(lambda part: [part])
    | foreign_searches.map(lambda part: [part])
    | foreign_calls.map(lambda part: [part])
    | some.text_parts.map(lambda part: [part])
    | chat.generated_images.map(lambda part: [part])
    | chat.refusal_parts.map(lambda part: [part])
    | known
)
answers = st.builds(
    lambda groups, reason: pb.GenerateResponse(
        response_id="r", model="m", candidates=[pb.Candidate(message=pb.Message(parts=[part for group in groups for part in group]), finish_reason=reason)]
    ),
    st.lists(parts, max_size=3), st.sampled_from([pb.FINISH_REASON_STOP, pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTENT_FILTER]),
)  # fmt: skip


def _unknown(part: pb.Part) -> bool:
    return (
        part.HasField("opaque")
        or part.server_tool_result.name == "code_execution"
        or any(citation.HasField("opaque") for citation in part.text.citations)
    )


@modest
@given(answers)
def test_the_official_client_reads_the_same_from_a_stream_and_the_unstreamed_answer(
    answer: pb.GenerateResponse,
) -> None:
    whole = Message.model_validate_json(MESSAGES_FORMAT.encode_response(answer, ANSWERED))
    streamed = accumulated(encoded([response_to_events(answer)]))
    assert streamed.model_dump(exclude={"usage", "parsed_output"}) == whole.model_dump(exclude={"usage"})


@modest
@given(some.requests())
def test_a_request_is_one_that_the_official_client_could_send(request: pb.GenerateRequest) -> None:
    del request.tools[:]  # their union ends in "any object"
    for message in request.messages:
        kept = [part for part in message.parts if not _unknown(part) and part.server_tool_call.name != "code_execution"]
        del message.parts[:]
        message.parts.extend(kept or [_text("a")])
    body = msgspec.json.decode(MESSAGES_FORMAT.encode_request(request, "m", True).body)
    for sampling in ("temperature", "top_p", "top_k"):
        body.pop(sampling, None)  # the client's newest types leave it out
    PARAMS.validate_python(body, strict=False)


def _text(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text))


def test_an_event_of_any_type_can_be_constructed_by_the_official_client() -> None:
    response = pb.GenerateResponse(candidates=[pb.Candidate(message=pb.Message(parts=[_opaque()]))])
    frames = encoded([response_to_events(response)]).split(b"\n\n")
    started = msgspec.json.decode(frames[1].split(b"data: ")[1])
    event = construct_type_unchecked(value=started, type_=cast("type[RawMessageStreamEvent]", RawMessageStreamEvent))
    assert event.content_block.type == "new"


def _opaque() -> pb.Part:
    return pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"type":\n"new","n":1.0}'))

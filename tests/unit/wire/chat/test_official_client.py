"""Chunks, as the openai package's accumulator reads them."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from tests.unit.wire.chat import strategies as some
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core.response_to_events import response_to_events

Message = dict[str, object]

UNKNOWN = '{"type": "new",\r\n "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}'
foreign_citation = pb.Citation(opaque=pb.OpaquePart(format="chat", type="new", json=UNKNOWN))
cited_parts = st.builds(
    lambda text, sources: pb.Part(text=pb.TextPart(text=text, citations=sources)),
    some.words,
    st.lists(some.citations | st.just(foreign_citation), max_size=2),
)
thoughts = st.builds(
    lambda texts, summaries, state: pb.Part(
        reasoning=pb.ReasoningPart(texts=texts, summaries=summaries), state=state
    ),
    st.lists(some.texts, max_size=2), st.lists(some.texts, max_size=2), some.optional(some.states),
)  # fmt: skip
searches = st.just(pb.Part(server_tool_call=pb.ServerToolCall(name="web_search")))
empty_refusals = st.just(pb.Part(refusal=pb.RefusalPart()))
parts = (
    cited_parts
    | thoughts
    | searches
    | some.function_calls
    | some.generated_images
    | some.refusal_parts
    | empty_refusals
)
answers = st.builds(
    lambda candidates: pb.GenerateResponse(
        response_id="r",
        model="m",
        candidates=[
            pb.Candidate(index=index, message=pb.Message(parts=candidate_parts), finish_reason=pb.FINISH_REASON_STOP)
            for index, candidate_parts in enumerate(candidates)
        ],
    ),
    st.lists(st.lists(parts, max_size=5), min_size=1, max_size=2),
)


def without_unknown(message: Message) -> Message:
    """Return the message without empty values, and without the indexes that only chunks have."""
    message = {name: value for name, value in message.items() if value not in (None, "", [])}
    for name in ("images", "tool_calls"):
        for entry in message.get(name, ()):
            entry.pop("index", None)
            entry.get("function", {}).pop("parsed_arguments", None)
    return message


def accumulated(stream: bytes) -> list[Message]:
    state = ChatCompletionStreamState()
    for event in stream.split(b"\n\n")[:-2]:
        state.handle_chunk(ChatCompletionChunk.model_validate_json(event.removeprefix(b"data: ")))
    return [choice.message.model_dump() for choice in state.current_completion_snapshot.choices]


@pytest.mark.parametrize("inline", [False, True])
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(answers)
def test_the_official_client_reads_the_same_from_a_stream_and_the_unstreamed_answer(
    inline: bool, answer: pb.GenerateResponse
) -> None:
    request = pb.GenerateRequest(face_hints=pb.FaceHints(thinking_to_content=inline))
    encoder = CHAT_FORMAT.stream_encoder(request)
    streamed = accumulated(encoder.feed(response_to_events(answer)) + encoder.close())
    whole = msgspec.json.decode(CHAT_FORMAT.encode_response(answer, request))["choices"]
    assert [without_unknown(message) for message in streamed] == [
        without_unknown(choice["message"]) for choice in whole
    ]

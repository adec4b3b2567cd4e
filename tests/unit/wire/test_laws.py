"""Laws of every format: requests, answers and streams come back unchanged. Each format has further laws of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.chat import strategies as chat
from tests.unit.wire.laws import cuts, few, members, modest, sprinkled
from tests.unit.wire.messages import strategies as messages
from tests.unit.wire.messages.streams import ANSWERED
from tests.unit.wire.native import strategies as native
from tests.unit.wire.responses import strategies as responses
from tests.unit.wire.streams import decoded, encoded, events_of, frames_of, relayed
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.messages import MESSAGES_FORMAT
from umg_grpc.wire.native import NATIVE_FORMAT
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.text_format_interface import TextFormat


@dataclass(frozen=True)
class Law:
    codec: TextFormat
    requests: SearchStrategy[pb.GenerateRequest]
    responses: SearchStrategy[pb.GenerateResponse]
    answered: pb.GenerateRequest
    """The request of the responses."""


LAWS = [
    Law(CHAT_FORMAT, chat.requests, chat.responses(), chat.ANSWERED),
    Law(MESSAGES_FORMAT, messages.requests(), messages.responses(), ANSWERED),
    Law(NATIVE_FORMAT, native.requests, native.responses(), native.ANSWERED),
    Law(RESPONSES_FORMAT, responses.requests, responses.responses(), responses.ANSWERED),
]
# Events beside the passthrough frames, by the number of candidates; each frame of native may have a usage.
EVENT_KINDS: dict[str, Callable[[int], list[str]]] = {
    "chat": lambda candidates: ["started", *["finished"] * candidates, "usage"],
    "messages": lambda _: ["started", "usage", "finished", "usage"],
    "responses": lambda _: ["started", "usage", "finished"],
}
every_format = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.codec.name)


@every_format
@modest
@given(st.data())
def test_a_request_survives_the_wire_and_back(law: Law, data: st.DataObject) -> None:
    request = data.draw(law.requests)
    upstream = law.codec.encode_request(request, request.model or "m", False)
    came, stream, _ = law.codec.decode_request(upstream.body, {}, request.model or "m")
    came.ClearField("source")
    request.model = request.model or "m"
    assert came == request
    assert not upstream.report.lost
    assert not stream


@every_format
@modest
@given(st.data())
def test_an_answer_survives_the_wire_and_back(law: Law, data: st.DataObject) -> None:
    response = data.draw(law.responses)
    body = law.codec.encode_response(response, law.answered)
    assert law.codec.decode_response(body, law.answered, False) == response


@every_format
@modest
@given(st.data())
def test_a_stream_survives_the_wire_and_back_however_it_is_cut(law: Law, data: st.DataObject) -> None:
    response = data.draw(law.responses)
    stream = encoded(law.codec, [response_to_events(response)], law.answered)
    assert accumulate(decoded(law.codec, data.draw(cuts(stream)), law.answered)) == response


@every_format
@few
@given(st.data(), st.sampled_from([b"\r\n", b"\r"]))
def test_a_stream_is_decoded_with_every_line_ending(law: Law, data: st.DataObject, end: bytes) -> None:
    response = data.draw(law.responses)
    stream = encoded(law.codec, [response_to_events(response)], law.answered).replace(b"\n", end)
    assert accumulate(decoded(law.codec, data.draw(cuts(stream)), law.answered)) == response


@every_format
@few
@given(st.data(), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_passed_stream_is_the_providers_to_the_byte_however_it_is_cut(
    law: Law, data: st.DataObject, end: bytes
) -> None:
    response = data.draw(law.responses)
    stream = encoded(law.codec, [response_to_events(response)], law.answered).replace(b"\n", end)
    reads = data.draw(cuts(stream))
    passed = decoded(law.codec, reads, law.answered, pass_=True)
    assert frames_of(passed) == stream
    assert encoded(law.codec, passed, law.answered) == stream
    without_messages, _ = relayed(law.codec, reads, law.answered)
    assert frames_of(without_messages) == stream
    assert events_of(without_messages) == events_of(passed)


@every_format
@few
@given(st.data())
def test_a_passed_through_stream_has_the_events_that_the_service_needs(law: Law, data: st.DataObject) -> None:
    response = data.draw(law.responses)
    stream = encoded(law.codec, [response_to_events(response)], law.answered)
    events = events_of(decoded(law.codec, data.draw(cuts(stream)), law.answered, pass_=True))
    kinds = [event.WhichOneof("kind") for event in events]
    if law.codec.name in EVENT_KINDS:
        assert kinds == EVENT_KINDS[law.codec.name](len(response.candidates))
    assert [kind for kind in kinds if kind != "usage"] == ["started", *["finished"] * len(response.candidates)]
    assert events[0].started.response_id == response.response_id
    assert [event.usage for event in events if event.HasField("usage")][-1] == response.usage
    if law.codec.name != "chat":  # refusals of chat have an ordinary finish reason
        assert [event.finished.finish_reason for event in events if event.HasField("finished")] == [
            candidate.finish_reason for candidate in response.candidates
        ]


# --- unknown fields, for a provider and a caller of the same format

MAPS = {"metadata", "logit_bias", "parameters", "labels"}
"""Fields where an addition is no unknown field: maps, and the container of the gateway."""
OPENAI = {"openai-beta": "x"}
HEADERS = {
    "chat": OPENAI,
    "responses": OPENAI,
    "messages": {"anthropic-version": "2023-06-01", "anthropic-beta": "new-2026-01-01"},
    "native": {},
}


@every_format
@few
@given(st.data())
def test_unknown_fields_reach_a_provider_of_the_same_format(law: Law, data: st.DataObject) -> None:
    fields = msgspec.json.decode(law.codec.encode_request(data.draw(law.requests), "m", True).body)
    body = msgspec.json.encode(sprinkled({name: fields[name] for name in fields if name not in MAPS}, data))
    canonical, _, notes = law.codec.decode_request(body, HEADERS[law.codec.name])
    upstream = law.codec.encode_request(canonical, "theirs", True, notes=notes)
    named = {} if law.codec.name == "native" else {"model": b'"theirs"'}
    assert members(upstream.body) == members(body) | named
    assert list(members(upstream.body)) == list(members(body))
    assert upstream.headers == HEADERS[law.codec.name]
    assert not upstream.report.header()
    assert sorted(notes.indispensable) == sorted(
        name for name, raw in members(body).items() if name.startswith("x_") and raw != b"null"
    )


def with_model(document: Any, model: str) -> Any:
    """Return the body or event with another name of its model."""
    for name in {"model", "modelVersion"} & document.keys():
        document = document | {name: model}
    for name in {"response", "message"} & document.keys():
        document = document | {name: with_model(document[name], model)}
    return document


@every_format
@few
@given(st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_response_reach_a_caller_of_the_same_format(
    law: Law, data: st.DataObject, theirs: str
) -> None:
    response = data.draw(law.responses)
    fields = sprinkled(msgspec.json.decode(law.codec.encode_response(response, law.answered)), data)
    body = msgspec.json.encode(with_model(fields, theirs))
    passed = law.codec.decode_response(body, law.answered, True)
    answer = law.codec.encode_response(passed, law.answered)
    assert theirs != "m" or answer == body
    assert members(answer) == members(msgspec.json.encode(with_model(fields, "m")))
    assert (passed.usage, passed.response_id) == (response.usage, response.response_id)
    if law.codec.name != "chat":  # refusals of chat have an ordinary finish reason
        reasons = [[each.finish_reason for each in answered.candidates] for answered in (passed, response)]
        assert reasons[0] == reasons[1]


@every_format
@few
@given(st.data(), st.sampled_from(["m", "theirs"]))
def test_unknown_fields_of_a_stream_reach_a_caller_of_the_same_format(
    law: Law, data: st.DataObject, theirs: str
) -> None:
    stream = encoded(law.codec, [response_to_events(data.draw(law.responses))], law.answered)
    heads = [frame.partition(b"data: ")[::2] for frame in stream.split(b"\n\n")[:-1]]
    documents: Any = sprinkled([msgspec.json.decode(payload) for _, payload in heads if payload != b"[DONE]"], data)

    def written(model: str) -> bytes:
        payloads = [msgspec.json.encode(with_model(document, model)) for document in documents] + [b"[DONE]"]
        return b"".join(
            b"%bdata: %b\n\n" % (head, payload) for (head, _), payload in zip(heads, payloads, strict=False)
        )

    messages = decoded(law.codec, data.draw(cuts(written(theirs))), law.answered, pass_=True)
    assert frames_of(messages) == written("m")

"""Reasoning state in the members that providers of chat have added: it is read from answers, shown to callers of every
format, and put back where it came from.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import decoded
from tests.unit.wire.timing import within
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.knowledge.reasoning_state_members import REASONING_CARRIERS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.chat import CHAT_FORMAT, provider_reasoning_members
from umg_grpc.wire.chat.schema import ChatMessage
from umg_grpc.wire.chat.shared_response_fields import ProviderMessage

REQUEST = pb.GenerateRequest(model="m")
SIGNED = {"type": "reasoning.text", "text": "I think", "signature": "U0lH", "format": "anthropic-claude-v1", "index": 0}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "RU5D", "id": "call_77", "format": "google-gemini-v1", "index": 0}
THINKING = {"type": "thinking", "thinking": "I think", "signature": "U0lH"}
CALL = {"id": "call_77", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}


@dataclass(frozen=True)
class Case:
    """Answer of a provider, whole and as the deltas of its stream, and the members of its message that are sent back
    to it.
    """

    id: str
    message: dict[str, Any]
    deltas: list[dict[str, Any]]
    returned: dict[str, Any]
    text: str = "I think"
    quirks: Quirks = field(default_factory=Quirks)


def piece(**members: object) -> dict[str, object]:
    return {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0} | members


CASES = [
    Case(
        id="pieces of one block, its signature last",
        message={"reasoning": "I think", "reasoning_details": [SIGNED]},
        deltas=[
            {"reasoning": "I ", "reasoning_details": [piece(text="I ", signature=None)]},
            {"reasoning": "think", "reasoning_details": [piece(text="think")]},
            {"content": "", "reasoning_details": [piece(signature="U0lH")]},
        ],
        returned={"reasoning": "I think", "reasoning_details": [SIGNED]},
    ),
    Case(
        id="encrypted reasoning of a call",
        message={"reasoning": "I think", "reasoning_details": [ENCRYPTED]},
        deltas=[{"reasoning": "I think"}, {"reasoning_details": [ENCRYPTED], "tool_calls": []}],
        returned={"reasoning": "I think", "reasoning_details": [ENCRYPTED]},
        quirks=Quirks(reasoning_content=False),
    ),
    Case(
        id="encrypted reasoning without a text",
        message={"reasoning_details": [ENCRYPTED]},
        deltas=[{"reasoning_details": [ENCRYPTED]}],
        returned={"reasoning_details": [ENCRYPTED]},
        text="",
    ),
    Case(
        id="text in the items alone",
        message={"reasoning_details": [{"type": "reasoning.text", "text": "I think", "index": 0}]},
        deltas=[{"reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]} for text in ("I ", "think")],
        returned={"reasoning": "I think", "reasoning_details": [{"type": "reasoning.text", "text": "I think", "index": 0}]},
    ),
    Case(
        id="items that repeat all text so far",
        message={"reasoning_details": [{"type": "reasoning.text", "text": "I think about the weather"}]},
        deltas=[
            {"reasoning_details": [{"type": "reasoning.text", "text": text}]}
            for text in ("I think about th", "I think about the weather")
        ],
        returned={
            "reasoning": "I think about the weather",
            "reasoning_details": [{"type": "reasoning.text", "text": "I think about the weather"}],
        },
        text="I think about the weather",
    ),
    Case(
        id="thinking blocks",
        message={"reasoning_content": "I think", "thinking_blocks": [THINKING]},
        deltas=[
            {"reasoning_content": "I ", "thinking_blocks": [{"type": "thinking", "thinking": "I ", "signature": None}]},
            {"reasoning_content": "think", "thinking_blocks": [{"type": "thinking", "thinking": "think"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "U0lH"}]},
        ],
        returned={"reasoning_content": "I think", "thinking_blocks": [THINKING]},
    ),
    Case(
        id="a redacted block between two",
        message={
            "thinking_blocks": [THINKING, {"type": "redacted_thinking", "data": "UkVE"}, {**THINKING, "thinking": "more"}]
        },
        deltas=[
            {"thinking_blocks": [{"type": "thinking", "thinking": "I think"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "U0lH"}]},
            {"thinking_blocks": [{"type": "redacted_thinking", "data": "UkVE"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "more"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "U0lH"}]},
        ],
        returned={
            "reasoning_content": "I think\n\nmore",
            "thinking_blocks": [THINKING, {"type": "redacted_thinking", "data": "UkVE"}, {**THINKING, "thinking": "more"}],
        },
        text="I think\n\nmore",
    ),
    Case(
        id="opaque reasoning beside its text",
        message={"reasoning_text": "I think", "reasoning_opaque": "T1BB"},
        deltas=[{"reasoning_text": "I "}, {"reasoning_text": "think"}, {"reasoning_opaque": "T1BB"}],
        returned={"reasoning_text": "I think", "reasoning_opaque": "T1BB"},
    ),
    Case(
        id="a signature of the message",
        message={"reasoning_content": "I think", "reasoning_signature": "U0lH"},
        deltas=[{"reasoning_content": "I think"}, {"reasoning_signature": "U0lH"}],
        returned={"reasoning_content": "I think", "reasoning_signature": "U0lH"},
    ),
    Case(
        id="items of the responses format",
        message={"reasoning_items": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "RU5D", "summary": []}]},
        deltas=[
            {"reasoning_items": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "RU5D", "summary": []}]}
        ],
        returned={"reasoning_items": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "RU5D", "summary": []}]},
        text="",
    ),
    Case(
        id="signatures of a relay",
        message={"provider_specific_fields": {"thought_signatures": ["U0lH"], "refusal": None}},
        deltas=[{"provider_specific_fields": {"thought_signatures": ["U0lH"]}}],
        returned={"provider_specific_fields": {"thought_signatures": ["U0lH"]}},
        text="",
    ),
]  # fmt: skip


def whole(message: dict[str, Any]) -> pb.GenerateResponse:
    """Return the canonical response of a provider that answered with the message."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return CHAT_FORMAT.decode_response(json.dumps({"id": "c", "choices": [choice]}).encode(), REQUEST, False)


def streamed(deltas: list[dict[str, Any]]) -> pb.GenerateResponse:
    """Return the canonical response of a provider that streamed the deltas."""
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    frames = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return accumulate(decoded(CHAT_FORMAT, [*frames, b"data: [DONE]\n\n"], REQUEST))


def sent_back(candidate: pb.Message, quirks: Quirks, call: bool = True) -> tuple[dict[str, Any], str]:
    """Return the assistant's message of the next request to the provider, and the report for the caller."""
    request = pb.GenerateRequest(model="m", source=pb.SourceDocument(format="messages", body=b"{}"))
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
    request.messages.add(role=pb.ROLE_ASSISTANT, parts=candidate.parts)
    if call:
        result = request.messages.add(role=pb.ROLE_USER).parts.add().tool_result
        result.call_id, result.name = "call_77", "get_weather"
        result.parts.add().text.text = "5 C"
    encoded = CHAT_FORMAT.encode_request(request, "m", False, quirks)
    return json.loads(encoded.body)["messages"][1], encoded.report.header()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_state_of_an_answer_with_a_call_is_put_back(case: Case, stream: bool) -> None:
    called = {"content": None, "tool_calls": [CALL]}
    delta = {"tool_calls": [{"index": 0, **CALL}]}
    response = streamed([*case.deltas, delta]) if stream else whole(case.message | called)
    message = response.candidates[0].message
    assert "".join(text for part in message.parts for text in part.reasoning.texts) == case.text
    assert sent_back(message, case.quirks) == ({"role": "assistant", **called, **case.returned}, "")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_state_of_an_answer_without_a_call_is_put_back(case: Case, stream: bool) -> None:
    response = streamed([*case.deltas, {"content": "Hi"}]) if stream else whole(case.message | {"content": "Hi"})
    message = response.candidates[0].message
    assert sent_back(message, case.quirks, call=False)[0] == {"role": "assistant", "content": "Hi", **case.returned}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_shows_no_reasoning_begins_with_its_text(stream: bool) -> None:
    state, text = {"reasoning_details": [ENCRYPTED]}, {"content": "Hi"}
    response = streamed([state, text]) if stream else whole(state | text)
    shown = json.loads(TEXT_FORMATS["messages"].encode_response(response, REQUEST))
    assert shown["content"] == [{"type": "text", "text": "Hi"}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_state_that_comes_after_the_call_is_put_back(case: Case) -> None:
    response = streamed([{"tool_calls": [{"index": 0, **CALL}]}, *case.deltas])
    message, _ = sent_back(response.candidates[0].message, case.quirks)
    assert {name: value for name, value in message.items() if name in case.returned} == case.returned


def test_the_signature_of_a_call_of_a_relay_is_put_back_on_the_call() -> None:
    call = CALL | {"provider_specific_fields": {"thought_signature": "U0lH"}}
    for response in (whole({"tool_calls": [call]}), streamed([{"tool_calls": [{"index": 0, **call}]}])):
        message, report = sent_back(response.candidates[0].message, Quirks())
        assert (message["tool_calls"], report) == ([call], "")


def test_a_call_with_a_state_of_its_own_keeps_both_states() -> None:
    call = CALL | {"extra_content": {"google": {"thought_signature": "U0lH"}}}
    deltas = [{"reasoning_details": [ENCRYPTED]}, {"tool_calls": [{"index": 0, **call}]}]
    for response in (whole({"tool_calls": [call], "reasoning_details": [ENCRYPTED]}), streamed(deltas)):
        message, report = sent_back(response.candidates[0].message, Quirks())
        assert (message["tool_calls"], message["reasoning_details"], report) == ([call], [ENCRYPTED], "")


def test_the_state_of_a_whole_answer_is_put_back_byte_for_byte() -> None:
    raw = b'[ {"type": "reasoning.encrypted",  "data":"RU5D", "index": 0.0, "other": 12345678901234567890123} ]'
    body = b'{"choices":[{"message":{"reasoning_details":%b,"content":"Hi"},"finish_reason":"stop"}]}' % raw
    message = CHAT_FORMAT.decode_response(body, REQUEST, False).candidates[0].message
    request = pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_ASSISTANT, parts=message.parts)])
    assert raw in CHAT_FORMAT.encode_request(request, "m", False).body


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_chat_caller_of_a_translated_answer_gets_the_members_and_sends_them_back(case: Case) -> None:
    response = whole(case.message | {"content": None, "tool_calls": [CALL]})
    shown = json.loads(CHAT_FORMAT.encode_response(response, REQUEST))["choices"][0]["message"]
    state = {name: value for name, value in case.returned.items() if not isinstance(value, str) or "opaque" in name}
    assert {name: shown[name] for name in state} == state
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, shown]}
    request = CHAT_FORMAT.decode_request(json.dumps(body).encode(), {}).canonical
    assert [part.state for part in request.messages[1].parts] == [
        part.state for part in response.candidates[0].message.parts
    ]


def test_a_chat_caller_gets_the_state_of_a_stream_in_the_same_members() -> None:
    response = whole({"reasoning": "I think", "reasoning_details": [SIGNED], "content": "Hi"})
    encoder = CHAT_FORMAT.stream_encoder(REQUEST)
    events = [
        pb.GenerateEvent(part_started=pb.Part(reasoning=pb.ReasoningPart())),
        pb.GenerateEvent(reasoning_delta="I think"),
        pb.GenerateEvent(state=response.candidates[0].message.parts[0].state),
    ]
    frames = encoder.feed(pb.StreamGenerateResponse(events=events)) + encoder.close()
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"] for line in frames.split(b"\n") if line.startswith(b"data: {")
    ]
    assert [delta["reasoning_details"] for delta in deltas if "reasoning_details" in delta] == [[SIGNED]]


@pytest.mark.parametrize("upstream", ["messages", "responses", "native"])
def test_a_provider_of_another_format_does_not_get_the_state(upstream: str) -> None:
    assistant = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_details": [ENCRYPTED]}
    answer = {"role": "tool", "tool_call_id": "call_77", "content": "5 C"}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}, assistant, answer]}
    request, _, notes = CHAT_FORMAT.decode_request(json.dumps(body).encode(), {})
    encoded = TEXT_FORMATS[upstream].encode_request(request, "m", False, Quirks(), notes)
    assert "RU5D" not in encoded.body.decode()
    assert "state" in encoded.report.header()


@pytest.mark.parametrize(
    ("channel", "signatures", "sent"),
    [("", None, True), ("", False, False), ("c", False, True)],
    ids=["to any provider", "to a provider that is known to have none", "to the provider that made it"],
)
def test_a_state_is_sent_unless_the_provider_can_not_have_made_it(
    channel: str, signatures: bool | None, sent: bool
) -> None:
    call = CALL | {"provider_specific_fields": {"thought_signature": "U0lH"}}
    parts = whole({"content": "Hi", "reasoning_details": [ENCRYPTED], "tool_calls": [call]}).candidates[0].message.parts
    for part in parts:
        if part.HasField("state"):
            part.state.channel = channel
    message, report = sent_back(pb.Message(parts=parts), Quirks(signatures=signatures))
    assert ("reasoning_details" in message) == sent
    assert ("provider_specific_fields" in message["tool_calls"][0]) == sent
    assert ("state" in report) == (not sent)


def test_a_stream_with_an_endless_state_takes_little_memory() -> None:
    text = "x" * 2**16
    count = 2 * provider_reasoning_members.MAX_STATE_BYTES // len(text)
    with within(4):
        response = streamed([{"reasoning_details": [piece(text=text, index=index)]} for index in range(count)])
    part = response.candidates[0].message.parts[0]
    assert sum(map(len, part.reasoning.texts)) >= count * len(text)
    assert not part.HasField("state")


@pytest.mark.parametrize("data", ["x", "e30", base64.b64encode(b"[1]").decode(), base64.b64encode(b'{"a":1}').decode()])
def test_data_that_no_answer_had_is_left_out(data: str) -> None:
    part = pb.Part(text=pb.TextPart(text="Hi"), state=pb.ReasoningState(data=data, format="chat"))
    message, _ = sent_back(pb.Message(parts=[part]), Quirks(), call=False)
    assert message == {"role": "assistant", "content": "Hi"}


def test_a_state_is_known_again_after_a_client_has_written_it_anew() -> None:
    members = {"reasoning_details": [SIGNED]}
    other = {"reasoning_details": [{"signature": "U0lH", "type": "reasoning.text", "text": "I think"}]}
    sent, returned = (whole(message).candidates[0].message.parts[0].state.data for message in (members, other))
    assert sent != returned
    assert provider_reasoning_members.identity(sent) == provider_reasoning_members.identity(returned)


@pytest.mark.parametrize("struct", [ProviderMessage, ChatMessage])
def test_messages_have_a_field_for_each_carrier(struct: type[ProviderMessage] | type[ChatMessage]) -> None:
    assert set(provider_reasoning_members.MESSAGE_MEMBERS) <= set(struct.__struct_fields__)


def test_each_carrier_has_a_source_and_a_date() -> None:
    assert all(row.source and row.as_of for row in REASONING_CARRIERS)
    assert len({row.member for row in REASONING_CARRIERS}) == len(REASONING_CARRIERS)

"""A provider's stream -> canonical events, also without fields that the format requires."""

from dataclasses import dataclass

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.error_checks import raises_error
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.responses.streams import Payload, decoded, frames
from tests.unit.wire.streams import decoder_of
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT

REQUEST = pb.GenerateRequest(model="m")
CREATED: Payload = {"type": "response.created", "response": {"id": "resp_1", "created_at": 7.0, "model": "theirs", "status": "in_progress", "output": []}}  # fmt: skip


def ended(*output: Payload, **more: object) -> Payload:
    response = {"id": "resp_1", "created_at": 7, "model": "theirs", "status": "completed", "output": list(output)}
    return {
        "type": "response.completed",
        "response": response | {"usage": {"input_tokens": 3, "output_tokens": 2}} | more,
    }


def item(event: str, body: Payload, index: int = 0) -> Payload:
    return {"type": f"response.output_item.{event}", "output_index": index, "item": body}


def at(kind: str, index: int = 0, **more: object) -> Payload:
    return {"type": f"response.{kind}", "output_index": index, "item_id": "x"} | more


def message_item(text: str, *annotations: Payload) -> Payload:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}


MESSAGE: Payload = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
CITED: Payload = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
FUNCTION: Payload = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""}
SEARCH: Payload = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
SEARCHED = SEARCH | {
    "status": "completed",
    "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "u"}]},
}

TEXT = 'parts { text { text: "Hi" } message_id: "msg_1" }'


@dataclass(frozen=True)
class Stream:
    id: str
    events: list[Payload]
    parts: str
    reason: str = "STOP"


STREAMS = [
    Stream("text", [item("added", MESSAGE), at("content_part.added", content_index=0, part={"type": "output_text", "text": ""}), at("output_text.delta", content_index=0, delta="H", logprobs=[]), at("output_text.delta", content_index=0, delta="i"), at("output_text.done", content_index=0, text="Hi"), ended(message_item("Hi"))], TEXT),
    Stream("text without the start of its part", [item("added", MESSAGE), at("output_text.delta", delta="Hi"), ended(message_item("Hi"))], TEXT),
    Stream("text that is only done", [item("added", MESSAGE), at("output_text.done", text="Hi"), ended()], TEXT),
    Stream("a part that is only done", [item("added", MESSAGE), at("content_part.done", part={"type": "output_text", "text": "Hi"}), item("done", message_item("Hi")), ended()], TEXT),
    Stream("an item that is only done", [item("done", message_item("Hi")), ended(message_item("Hi"))], TEXT),
    Stream("a response that only the last event has", [ended(message_item("Hi"))], TEXT),
    Stream("text without its item", [at("output_text.delta", delta="Hi"), ended()], 'parts { text { text: "Hi" } }'),
    Stream("likelihoods", [item("added", MESSAGE), at("output_text.delta", delta="Hi", logprobs=[{"token": "Hi", "logprob": -1, "bytes": [72], "top_logprobs": [{"token": "Ho", "logprob": -2}]}]), ended(message_item("Hi"))],
           r'parts { text { text: "Hi" logprobs { token: "Hi" logprob: -1 raw_bytes: "H" alternatives { token: "Ho" logprob: -2 } } } message_id: "msg_1" }'),
    Stream("a source by an event", [item("added", MESSAGE), at("output_text.delta", delta="Hi"), at("output_text.annotation.added", annotation=CITED), at("content_part.done", part={"type": "output_text", "text": "Hi", "annotations": [CITED]}), ended(message_item("Hi", CITED))],
           'parts { text { text: "Hi" citations { start_index: 0 end_index: 1 title: "t" web { url: "u" } } } message_id: "msg_1" }'),
    Stream("a source at the end of the item", [item("added", MESSAGE), at("output_text.delta", delta="Hi"), item("done", message_item("Hi", CITED)), ended(message_item("Hi", CITED))],
           'parts { text { text: "Hi" citations { start_index: 0 end_index: 1 title: "t" web { url: "u" } } } message_id: "msg_1" }'),
    Stream("a refusal", [item("added", MESSAGE | {"phase": "commentary"}), at("refusal.delta", delta="n"), at("refusal.delta", delta="o"), at("refusal.done", refusal="no"), ended()], 'parts { refusal { text: "no" } message_id: "msg_1" phase: "commentary" }', "REFUSAL"),
    Stream("a refusal that is only done", [item("added", MESSAGE), at("refusal.done", refusal="no"), ended()], 'parts { refusal { text: "no" } message_id: "msg_1" }', "REFUSAL"),
    Stream("a call", [item("added", FUNCTION), at("function_call_arguments.delta", delta="{"), at("function_call_arguments.delta", delta="}"), at("function_call_arguments.done", arguments="{}"), item("done", FUNCTION | {"arguments": "{}"}), ended(FUNCTION | {"arguments": "{}"})],
           'parts { tool_call { call_id: "c" name: "f" arguments_json: "{}" item_id: "fc_1" } }', "TOOL_CALLS"),
    Stream("arguments that are only done", [item("added", FUNCTION), at("function_call_arguments.done", arguments="{}"), ended(FUNCTION | {"arguments": "{}"})], 'parts { tool_call { call_id: "c" name: "f" arguments_json: "{}" item_id: "fc_1" } }', "TOOL_CALLS"),
    Stream("arguments in the item alone", [item("added", FUNCTION), item("done", FUNCTION | {"arguments": "{}"}), ended()], 'parts { tool_call { call_id: "c" name: "f" arguments_json: "{}" item_id: "fc_1" } }', "TOOL_CALLS"),
    Stream("calls that interleave", [item("added", FUNCTION), item("added", FUNCTION | {"id": "fc_2", "call_id": "d"}, 1), at("function_call_arguments.delta", 1, delta="2"), at("function_call_arguments.delta", delta="1"), ended()],
           'parts { tool_call { call_id: "c" name: "f" arguments_json: "1" item_id: "fc_1" } } parts { tool_call { call_id: "d" name: "f" arguments_json: "2" item_id: "fc_2" } }', "TOOL_CALLS"),
    Stream("a custom call", [item("added", {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "f", "input": ""}), at("custom_tool_call_input.delta", delta="x"), at("custom_tool_call_input.done", input="x"), ended()],
           'parts { tool_call { call_id: "c" name: "f" text: "x" item_id: "ctc_1" } }', "TOOL_CALLS"),
    Stream("summaries, thoughts and state", [
        item("added", {"type": "reasoning", "id": "rs_1", "summary": []}), at("reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}), at("reasoning_summary_text.delta", summary_index=0, delta="a"),
        at("reasoning_summary_text.done", summary_index=0, text="a"), at("reasoning_summary_text.done", summary_index=1, text="b"), at("reasoning_text.delta", content_index=0, delta="c"), at("reasoning_text.done", content_index=1, text="d"),
        item("done", {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "content": [{"type": "reasoning_text", "text": "c"}, {"type": "reasoning_text", "text": "d"}], "encrypted_content": "E"}), ended()],
           'parts { reasoning { item_id: "rs_1" summaries: "a" summaries: "b" texts: "c" texts: "d" } state { format: "responses" data: "E" } }'),
    Stream("reasoning in the item alone", [item("done", {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}], "encrypted_content": "E"}), ended()], 'parts { reasoning { item_id: "rs_1" summaries: "a" } state { format: "responses" data: "E" } }'),
    Stream("a search with its sources", [item("added", SEARCH), at("web_search_call.in_progress"), at("web_search_call.searching"), at("web_search_call.completed"), item("done", SEARCHED), ended(SEARCHED)], """
           parts { server_tool_call { call_id: "ws_1" name: "web_search" queries: "q" format: "responses" input_json: "{\\"type\\":\\"search\\",\\"query\\":\\"q\\",\\"sources\\":[{\\"type\\":\\"url\\",\\"url\\":\\"u\\"}]}" } }
           parts { server_tool_result { call_id: "ws_1" name: "web_search" results { url: "u" } } }"""),
    Stream("code", [item("added", {"type": "code_interpreter_call", "id": "ci_1"}), at("code_interpreter_call_code.delta", delta="1"), at("code_interpreter_call.interpreting"), item("done", {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "outputs": [{"type": "logs"}]}), ended()], """
           parts { server_tool_call { call_id: "ci_1" name: "code_execution" format: "responses" input_json: "\\"1\\"" } } parts { server_tool_result { call_id: "ci_1" name: "code_execution" format: "responses" output_json: "[{\\"type\\":\\"logs\\"}]" } }"""),
    Stream("an image", [item("added", {"type": "image_generation_call", "id": "ig_1"}), at("image_generation_call.generating"), item("done", {"type": "image_generation_call", "id": "ig_1", "result": "eA=="}), ended()], 'parts { media { kind: MEDIA_KIND_IMAGE mime_type: "image/png" media_id: "ig_1" data: "x" } }'),
    Stream("sound", [{"type": "response.audio.delta", "delta": "eA=="}, {"type": "response.audio.transcript.delta", "delta": "t"}, {"type": "response.audio.done"}, ended()], 'parts { media { kind: MEDIA_KIND_AUDIO data: "x" transcript: "t" } }'),
    Stream("an unknown item", [item("added", {"type": "mcp_call", "id": "1"}), item("done", {"type": "mcp_call", "id": "1", "output": "o"}), ended()], 'parts { opaque { format: "responses" type: "mcp_call" json: "{\\"type\\":\\"mcp_call\\",\\"id\\":\\"1\\",\\"output\\":\\"o\\"}" } }'),
    Stream("a response that ended for its length", [item("added", MESSAGE), at("output_text.delta", delta="Hi"), ended(message_item("Hi"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}) | {"type": "response.incomplete"}], TEXT, "LENGTH"),
    Stream("deltas after the end of a part are ignored", [item("done", message_item("Hi")), at("output_text.delta", delta="more"), ended()], TEXT),
]  # fmt: skip


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
@pytest.mark.parametrize("step", [1, 10**6])
def test_a_stream_is_decoded_to_its_parts(case: Stream, step: int) -> None:
    stream = frames(CREATED, *case.events)
    response = accumulate(decoded([stream[place : place + step] for place in range(0, len(stream), step)], REQUEST))
    expected = text_format.Parse(
        f"""response_id: "resp_1" model: "m" create_time {{ seconds: 7 }} usage {{ input_tokens: 3 output_tokens: 2 }}
        candidates {{ finish_reason: FINISH_REASON_{case.reason} message {{ role: ROLE_ASSISTANT {case.parts} }} }}""",
        pb.GenerateResponse(),
    )
    expected.usage.web_search_requests = int("web_search" in case.parts)
    assert response == expected


def test_an_unknown_event_is_kept() -> None:
    messages = decoded([frames(CREATED, at("mcp_call.in_progress"), {"type": "keepalive"}, ended())], REQUEST)
    kept = [event.opaque for message in messages for event in message.events if event.HasField("opaque")]
    assert [(opaque.format, opaque.type) for opaque in kept] == [("responses", "response.mcp_call.in_progress")]
    assert msgspec.json.decode(kept[0].json) == at("mcp_call.in_progress")


FAILURES = [
    ({"type": "error", "code": "server_error", "message": "oh", "param": None}, pb.ERROR_REASON_UPSTREAM_FAILED),
    ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "oh"}}, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
    (ended(status="failed", error={"code": "server_error", "message": "oh"}) | {"type": "response.failed"}, pb.ERROR_REASON_UPSTREAM_FAILED),
    (ended(status="failed", error={"code": "rate_limit_exceeded", "message": "oh"}) | {"type": "response.failed"}, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
    (ended(status="failed", error={"code": "invalid_prompt", "message": "oh"}) | {"type": "response.failed"}, pb.ERROR_REASON_CONTENT_BLOCKED),
    (ended(status="failed", error={"code": "image_too_large", "message": "oh"}) | {"type": "response.failed"}, pb.ERROR_REASON_UPSTREAM_REJECTED),
    ({"type": "response.failed", "response": {"id": "resp_1"}}, pb.ERROR_REASON_UPSTREAM_FAILED),
    (item("done", {"type": 1}), pb.ERROR_REASON_UPSTREAM_FAILED),
]  # fmt: skip


@pytest.mark.parametrize("pass_", [False, True])
@pytest.mark.parametrize(("event", "reason"), FAILURES, ids=lambda value: str(value)[:60])
def test_a_failure_follows_the_events_before_it(
    event: Payload, reason: "pb.ErrorReason.ValueType", pass_: bool
) -> None:
    begun = frames(CREATED, item("added", MESSAGE), at("output_text.delta", delta="Hi"))
    decoder = decoder_of(RESPONSES_FORMAT, REQUEST, pass_)
    message = decoder.feed(begun + frames(event))
    assert message is not None
    assert message.events[0].HasField("started")
    with raises_error(reason=reason):
        decoder.close()
    assert not pass_ or message.source_frames == begun.replace(b"theirs", b"m")


@pytest.mark.parametrize("pass_", [False, True])
def test_a_stream_without_its_end_is_no_answer(pass_: bool) -> None:
    decoder = decoder_of(RESPONSES_FORMAT, REQUEST, pass_)
    decoder.feed(
        frames(CREATED, item("added", MESSAGE), at("output_text.delta", delta="Hi"), item("done", message_item("Hi")))
    )
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_CUT):
        decoder.close()


def test_a_summary_of_no_possible_number_is_the_providers_failure() -> None:
    thoughts: Payload = {"type": "reasoning", "id": "rs_1", "summary": []}
    deltas = [at("reasoning_summary_text.delta", summary_index=index, delta="Hm") for index in (0, 2**40)]
    decoder = RESPONSES_FORMAT.translating_decoder(REQUEST)
    decoder.feed(frames(CREATED, item("added", thoughts), deltas[0]))
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_FAILED):
        decoder.feed(frames(deltas[1]))


@pytest.mark.parametrize("pass_", [False, True])
def test_events_after_the_end_are_ignored(pass_: bool) -> None:
    decoder = decoder_of(RESPONSES_FORMAT, REQUEST, pass_)
    decoder.feed(frames(CREATED, ended()) + b"data: [DONE]\n\n")
    assert decoder.done
    assert decoder.feed(frames(at("output_text.delta", delta="Hi"))) is None
    assert decoder.close() is None

"""Whole answers, in both directions."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.responses import RESPONSES_FORMAT

REQUEST = pb.GenerateRequest(model="m")
BODY: dict[str, object] = {"id": "resp_1", "object": "response", "created_at": 7, "completed_at": 9, "status": "completed", "model": "theirs", "output": [], "usage": None}  # fmt: skip


def decode(pass_: bool = False, **changes: object) -> pb.GenerateResponse:
    return RESPONSES_FORMAT.decode_response(msgspec.json.encode(BODY | changes), REQUEST, pass_)


def encoded(response: pb.GenerateResponse, request: pb.GenerateRequest = REQUEST) -> dict[str, object]:
    return msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, request))


@pytest.mark.parametrize("pass_", [False, True])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "oh"}}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "oh"}}, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "oh"}}, pb.ERROR_REASON_CONTENT_BLOCKED),
        ({"status": "failed", "error": {"code": "bio_policy", "message": ""}}, pb.ERROR_REASON_CONTENT_BLOCKED),
        ({"status": "failed", "error": {"code": "invalid_image_url", "message": "oh"}}, pb.ERROR_REASON_UPSTREAM_REJECTED),
        ({"status": "failed", "error": None}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"status": "cancelled"}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"status": "in_progress"}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"status": None, "error": {"message": "oh"}}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"output": None}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"output": [1]}, pb.ERROR_REASON_UPSTREAM_FAILED),
        ({"output": {}}, pb.ERROR_REASON_UPSTREAM_FAILED),
    ],
)  # fmt: skip
def test_a_response_that_failed_is_an_error(changes: dict[str, object], reason: int, pass_: bool) -> None:
    with raises_error(reason=reason):
        decode(pass_, **changes)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"output":' + b"[" * 9999, b"<html>"])
def test_a_body_that_is_no_response_is_unreadable(body: bytes) -> None:
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_FAILED):
        RESPONSES_FORMAT.decode_response(body, REQUEST, True)


def test_a_passed_through_body_has_the_callers_model_and_decoded_usage() -> None:
    output = [{"type": "web_search_call"}, {"type": "function_call"}, {"type": "new", "content": []}]
    response = decode(True, output=output, usage={"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}})  # fmt: skip
    assert msgspec.json.decode(response.source.body)["model"] == "m"
    response.ClearField("source")
    assert response == pb.GenerateResponse(
        response_id="resp_1",
        model="m",
        create_time={"seconds": 7},
        complete_time={"seconds": 9},
        candidates=[pb.Candidate(finish_reason=pb.FINISH_REASON_TOOL_CALLS)],
        usage=pb.Usage(input_tokens=3, output_tokens=2, cache_read_tokens=1, web_search_requests=1),
    )


def test_when_it_was_complete_is_repeated() -> None:
    assert encoded(decode())["completed_at"] == 9
    assert encoded(decode(status="incomplete"))["completed_at"] is None


def test_absent_options_have_the_documents_defaults_in_the_response() -> None:
    body = encoded(pb.GenerateResponse(response_id="r", model="m"))
    defaults = {
        "temperature": 1.0, "top_p": 0.98, "truncation": "disabled", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "text": {"format": {"type": "text"}, "verbosity": "medium"}, "store": True, "background": False, "metadata": {}, "usage": None,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "service_tier": "default",
    }  # fmt: skip
    assert {name: body[name] for name in defaults} == defaults


def test_a_request_is_repeated_flat() -> None:
    request_fields = {
        "model": "m", "input": "Hi", "instructions": "Be", "reasoning": {"effort": "low", "summary": "none"}, "temperature": 0, "top_p": 1, "metadata": {"a": "b"},
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}, {"type": "file_search", "vector_store_ids": ["vs"]}],
        "tool_choice": {"type": "function", "function": {"name": "f"}}, "previous_response_id": "resp_0", "parallel_tool_calls": False, "store": False,
        "prompt_cache_options": {"mode": "explicit"}, "conversation": None, "prompt": {"id": "p"}, "max_output_tokens": 50, "user": "u", "service_tier": "flex",
    }  # fmt: skip
    request = RESPONSES_FORMAT.decode_request(msgspec.json.encode(request_fields), {}).canonical
    body = encoded(pb.GenerateResponse(response_id="r", model="m", service_tier="standard"), request)
    same = ("instructions", "temperature", "top_p", "metadata", "previous_response_id", "parallel_tool_calls", "store", "max_output_tokens", "user")  # fmt: skip
    assert {name: body[name] for name in same} == {name: request_fields[name] for name in same}
    assert body["tools"] == [
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": None},
        {"type": "file_search", "vector_store_ids": ["vs"]},
    ]
    assert body["tool_choice"] == {"type": "function", "name": "f"}
    assert body["reasoning"] == {"effort": "low", "summary": None, "generate_summary": None, "context": None, "mode": None}  # fmt: skip
    assert body["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m"}
    assert body["prompt"] == {"id": "p", "version": None, "variables": None}
    assert body["service_tier"] == "default"  # instead of a value of another format


def test_ids_are_unique_and_those_of_the_provider_if_present() -> None:
    call = pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", item_id="fc_1"))
    plain = pb.Part(tool_call=pb.ToolCall(name="f"))
    response = pb.GenerateResponse(response_id="gen-0f", candidates=[pb.Candidate(message=pb.Message(parts=[call, call, plain]))])  # fmt: skip
    first, second = encoded(response)["output"], encoded(response)["output"]
    assert first == second
    assert isinstance(first, list)
    assert [(item["id"], item["call_id"]) for item in first] == [
        ("fc_1", "c"), ("fc_umg_gen0f_1", "c"), ("fc_umg_gen0f_2", "call_gen0f_2"),
    ]  # fmt: skip


INCLUDED = pb.GenerateRequest(model="m", include=["reasoning.encrypted_content"])
STATEFUL = [
    pb.Part(reasoning=pb.ReasoningPart(texts=["a", "b"]), state=pb.ReasoningState(format="messages", data="S")),
    pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=pb.ReasoningState(format="messages", data="R")),
    pb.Part(reasoning=pb.ReasoningPart(), state=pb.ReasoningState(format="messages", data="O")),
    pb.Part(reasoning=pb.ReasoningPart(summaries=["s"]), state=pb.ReasoningState(format="responses", data="E")),
    pb.Part(reasoning=pb.ReasoningPart(summaries=["s"]), state=pb.ReasoningState(format="responses", data="umg.native.E")),
    pb.Part(text=pb.TextPart(text="Hi"), state=pb.ReasoningState(format="native", data="T")),
    pb.Part(text=pb.TextPart(text="Ho")),
    pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json="{}"), state=pb.ReasoningState(format="native", data="C")),
    pb.Part(tool_call=pb.ToolCall(call_id="d", name="f", arguments_json="{}"), state=pb.ReasoningState(format="native", data="D")),
    pb.Part(tool_call=pb.ToolCall(call_id="e", name="g", text="x")),
]  # fmt: skip


def returned(output: object) -> list[pb.Part]:
    """Return the parts of a response that its caller sends back, without ids."""
    body = msgspec.json.encode({"model": "m", "input": output})
    parts = [part for message in RESPONSES_FORMAT.decode_request(body, {}).canonical.messages for part in message.parts]
    for part in parts:
        for kind in ("reasoning", "tool_call"):
            if part.HasField(kind):
                getattr(part, kind).item_id = ""
    return parts


@pytest.mark.parametrize("streamed", [False, True])
def test_state_of_every_format_is_decoded_for_its_own_format(streamed: bool) -> None:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=STATEFUL)
    response = pb.GenerateResponse(response_id="r", model="m", candidates=[pb.Candidate(message=message)])
    if streamed:
        encoder = RESPONSES_FORMAT.stream_encoder(INCLUDED)
        last = (encoder.feed(response_to_events(response)) + encoder.close()).split(b"data: ")[-1]
        output = msgspec.json.decode(last)["response"]["output"]
    else:
        output = encoded(response, INCLUDED)["output"]
    assert returned(output) == STATEFUL


def test_state_is_shown_only_where_it_is_included() -> None:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=STATEFUL)
    response = pb.GenerateResponse(response_id="r", model="m", candidates=[pb.Candidate(message=message)])
    body = RESPONSES_FORMAT.encode_response(response, REQUEST)
    assert b"encrypted_content" not in body
    assert [item["type"] for item in msgspec.json.decode(body)["output"]] == [
        *["reasoning"] * 5, "message", "function_call", "function_call", "custom_tool_call",
    ]  # fmt: skip


def test_sources_are_shown_only_where_they_are_included() -> None:
    call = pb.Part(server_tool_call=pb.ServerToolCall(call_id="s", name="web_search", queries=["q"]))
    result = pb.ServerToolResult(call_id="s", name="web_search", results=[pb.SearchResult(url="u")])
    message = pb.Message(parts=[call, pb.Part(server_tool_result=result)])
    response = pb.GenerateResponse(candidates=[pb.Candidate(message=message)])
    action = {"type": "search", "query": "q", "queries": ["q"]}
    for include, returned_action in (([], action), (["web_search_call.action.sources"], action | {"sources": [{"type": "url", "url": "u"}]})):  # fmt: skip
        output = encoded(response, pb.GenerateRequest(include=include))["output"]
        assert output == [{"id": "s", "type": "web_search_call", "status": "completed", "action": returned_action}]

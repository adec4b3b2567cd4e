"""Stored responses (reference, 2.7)."""

import msgspec
import pytest
from openai.types.responses import Response, ResponseItemList

from tests.support.error_checks import raises_error
from tests.unit.wire.responses.streams import payloads_of
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT, stored_responses


def kept(**changes: object) -> pb.StoredResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(text=pb.TextPart(text="Ho"))])
    response = pb.GenerateResponse(
        response_id="resp_1", model="m", create_time={"seconds": 7}, complete_time={"seconds": 9}, usage=pb.Usage(input_tokens=1),
        candidates=[pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_STOP)],
    )  # fmt: skip
    response.MergeFrom(pb.GenerateResponse(**changes))
    return pb.StoredResponse(response=response, request=pb.GenerateRequest(model="m", previous_response_id="resp_0"))


@pytest.mark.parametrize(
    ("changes", "status", "event"),
    [
        ({}, "completed", "completed"),
        ({"status": "incomplete", "candidates": []}, "completed", "completed"),
        ({"status": "failed", "failure": pb.GenerationFailure(code="server_error", message="oh")}, "failed", "failed"),
        ({"status": "cancelled"}, "cancelled", "completed"),
    ],
)
def test_a_stored_response_is_the_same_whole_and_streamed(changes: dict[str, object], status: str, event: str) -> None:
    found = msgspec.json.decode(stored_responses.encode_stored(kept(**changes)))
    Response.model_validate(found, strict=True)
    assert (found["status"], found["previous_response_id"]) == (status, "resp_0")
    payloads = payloads_of(stored_responses.encode_events(kept(**changes)))
    assert payloads[-1] == {"type": f"response.{event}", "sequence_number": len(payloads) - 1, "response": found}


def test_stored_events_are_sent_again_after_a_sequence_number() -> None:
    everything = stored_responses.encode_events(kept())
    events = everything.split(b"\n\n")
    assert stored_responses.encode_events(kept(), stored_responses.decode_starting_after({})) == everything
    after = stored_responses.encode_events(kept(), stored_responses.decode_starting_after({"starting_after": "3"}))
    assert after == b"\n\n".join(events[4:])
    assert (
        stored_responses.encode_events(kept(), stored_responses.decode_starting_after({"starting_after": "9" * 40}))
        == b""
    )


def test_a_deleted_response_is_named() -> None:
    expected = {"id": "resp_1", "object": "response", "deleted": True}
    assert msgspec.json.decode(stored_responses.encode_deleted("resp_1")) == expected


def test_the_query_of_the_items() -> None:
    plain = stored_responses.decode_input_items_query("resp_1", {"include": "x"})
    assert plain == pb.ListInputItemsRequest(response_id="resp_1")
    full = stored_responses.decode_input_items_query("resp_1", {"limit": "100", "order": "asc", "after": "msg_1"})
    assert full == pb.ListInputItemsRequest(response_id="resp_1", page_size=100, ascending=True, page_token="msg_1")


@pytest.mark.parametrize("limit", ["0", "101", "x", "²", "000000001" + "9" * 11, "1" * 5000])
def test_a_number_of_items_that_no_page_has_is_refused(limit: str) -> None:
    with raises_error(reason=pb.ERROR_REASON_INVALID_FIELD, metadata={"field": "limit"}):
        stored_responses.decode_input_items_query("resp_1", {"limit": limit})


INPUT: list[dict[str, object]] = [
    {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "https://a.test/i.png"}]},
    {"role": "system", "content": "Be"},
    {"role": "assistant", "content": "Ho"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "r"},
    {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
    {"type": "mcp_list_tools", "id": "x", "server_label": "s", "tools": []},
]  # fmt: skip


def test_items_are_listed_with_ids_and_contents_as_lists() -> None:
    messages = RESPONSES_FORMAT.decode_request(
        msgspec.json.encode({"model": "m", "input": INPUT}), {}
    ).canonical.messages
    for index, message in enumerate(messages):
        message.message_id = f"id_{index}"
    listing = msgspec.json.decode(
        stored_responses.encode_input_items(pb.ListInputItemsResponse(items=messages, next_page_token="msg_3"))
    )
    ResponseItemList.model_validate(listing, strict=True)
    assert [item["id"] for item in listing["data"]] == [f"id_{index}" for index in range(len(INPUT))]
    assert (listing["first_id"], listing["last_id"], listing["has_more"]) == ("id_0", "id_7", True)
    assert listing["data"][1]["content"] == [{"type": "input_text", "text": "Be"}]
    assert listing["data"][2]["content"] == [{"type": "output_text", "text": "Ho", "annotations": [], "logprobs": []}]
    assert listing["data"][5]["output"] == "r"


def test_an_empty_list_is_encoded_as_empty() -> None:
    listing = msgspec.json.decode(stored_responses.encode_input_items(pb.ListInputItemsResponse()))
    assert listing == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


def test_items_of_other_formats_are_listed_too() -> None:
    parts = [
        pb.Part(tool_result=pb.ToolResult(call_id="c", parts=[pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_VIDEO, uri="https://a.test/v"))])),
        pb.Part(opaque=pb.OpaquePart(format="messages", type="x", json='{"type":"x"}')),
        pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO, data=b"x", mime_type="audio/ogg")),
    ]  # fmt: skip
    message = pb.Message(role=pb.ROLE_USER, message_id="id_0", parts=parts)
    listing = msgspec.json.decode(stored_responses.encode_input_items(pb.ListInputItemsResponse(items=[message])))
    ResponseItemList.model_validate(listing, strict=True)
    assert [item["type"] for item in listing["data"]] == ["function_call_output", "message"]
    assert [part["text"] for part in listing["data"][1]["content"]] == ['{"type":"x"}', "audio/ogg"]

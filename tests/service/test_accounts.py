"""A request's objects in a provider's account are found wherever it names them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from umg_grpc.errors import UmgError
from umg_grpc.service.accounts import SHOWN_CHARACTERS, UNKNOWN, AccountObject, account_objects, refuse_unknown
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS


@dataclass(frozen=True)
class Named:
    id: str
    format: str
    body: Mapping[str, Any]
    found: tuple[tuple[str, str], ...] = ()
    """The fields, as the caller wrote them, and the ids."""


def chat(*content: object, role: str = "user", **fields: object) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": role, "content": list(content)}], **fields}


def responses(*items: object, **fields: object) -> dict[str, Any]:
    return {"model": "m", "input": list(items) or "Hi", **fields}


def messages(*blocks: object, role: str = "user", **fields: object) -> dict[str, Any]:
    first = [{"role": "user", "content": "Hi"}] if role == "assistant" else []
    return {"model": "m", "max_tokens": 9, "messages": [*first, {"role": role, "content": list(blocks)}], **fields}


def native(*parts: object, **fields: object) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "Hi"}]}], **fields}


def said(*parts: object) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


FILE = {"type": "file", "file_id": "file_1"}
SCREEN = {
    "type": "computer_call_output",
    "call_id": "c",
    "output": {"type": "computer_screenshot", "file_id": "file_1"},
}
RAN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "t",
    "content": {"type": "x", "content": [{"file_id": "file_1"}]},
}
ITEM = {"type": "item_reference", "id": "msg_1"}
PICTURE = {"type": "image_generation_call", "id": "ig_1"}
URI = "https://generativelanguage.googleapis.com/v1beta/files/abc"

NAMED = [
    Named("chat: nothing", "chat", chat({"type": "text", "text": "file_id: file_1"})),
    Named("chat: sound that the model made", "chat", {"model": "m", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "audio": {"id": "audio_1"}}]}, (("messages[1].content[0]", "audio_1"),)),
    Named("responses: nothing", "responses", responses(said({"type": "input_text", "text": "Hi"}), tools=[{"type": "code_interpreter", "container": {"type": "auto"}}])),
    Named("responses: a continued response", "responses", responses(previous_response_id="resp_1"), (("previous_response_id", "resp_1"),)),
    Named("responses: a conversation", "responses", responses(conversation="conv_1"), (("conversation", "conv_1"),)),
    Named("responses: a prompt", "responses", responses(prompt={"id": "pmpt_1"}), (("prompt.id", "pmpt_1"),)),
    Named("responses: an image", "responses", responses(said({"type": "input_image", "file_id": "file_1"})), (("input[0].content[0]", "file_1"),)),
    Named("responses: a file", "responses", responses(said({"type": "input_file", "file_id": "file_1"})), (("input[0].content[0]", "file_1"),)),
    Named("responses: in a tool's result", "responses", responses({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "file_id": "file_1"}]}), (("input[0].output[0].media.file_id", "file_1"),)),
    Named("responses: an item", "responses", responses(ITEM), (("input[0].content[0]", "msg_1"),)),
    Named("responses: an item without a type", "responses", responses({"id": "msg_1"}), (("input[0].content[0]", "msg_1"),)),
    Named("responses: an image that the model made", "responses", responses(PICTURE), (("input[0].content[0]", "ig_1"),)),
    Named("responses: in an item of its own", "responses", responses(SCREEN), (("input[0].content[0]", "file_1"),)),
    Named("responses: stores", "responses", responses(tools=[{"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"]}]), (("tools[0].vector_store_ids", "vs_1"), ("tools[0].vector_store_ids", "vs_2"))),
    Named("responses: a container", "responses", responses(tools=[{"type": "code_interpreter", "container": "cntr_1"}]), (("tools[0]", "cntr_1"),)),
    Named("responses: files of a container", "responses", responses(tools=[{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file_1"]}}]), (("tools[0]", "file_1"),)),
    Named("messages: nothing", "messages", messages({"type": "text", "text": "Hi"}, container={"skills": []})),
    Named("messages: a file", "messages", messages({"type": "document", "source": FILE}), (("messages[0].content[0].source", "file_1"),)),
    Named("messages: an image", "messages", messages({"type": "image", "source": FILE}), (("messages[0].content[0].source", "file_1"),)),
    Named("messages: in pieces", "messages", messages({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": FILE}]}}), (("messages[0].content[0].source", "file_1"),)),
    Named("messages: in a tool's result", "messages", messages({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": FILE}]}), (("messages[0].content[0].content[0]", "file_1"),)),
    Named("messages: an upload", "messages", messages({"type": "container_upload", "file_id": "file_1"}), (("messages[0].content[0]", "file_1"),)),
    Named("messages: what the model's own tools left", "messages", messages(RAN, role="assistant")),
    Named("messages: a container", "messages", messages({"type": "text", "text": "Hi"}, container="container_1"), (("container", "container_1"),)),
    Named("messages: a container with skills", "messages", messages({"type": "text", "text": "Hi"}, container={"id": "container_1", "skills": []}), (("container", "container_1"),)),
    Named("native: nothing", "native", native({"fileData": {"fileUri": "https://a.example/a.png"}})),
    Named("native: a cache", "native", native(cachedContent="cachedContents/1"), (("cachedContent", "cachedContents/1"),)),
    Named("native: a file", "native", native({"fileData": {"fileUri": URI, "mimeType": "image/png"}}), (("contents[0].parts[0].fileData.fileUri", URI),)),
    Named("native: a file of the system's", "native", native(systemInstruction={"parts": [{"fileData": {"fileUri": URI}}]}), (("systemInstruction.parts[0].media.file_id", URI),)),
    Named("native: stores", "native", native(tools=[{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/1"]}}]), (("tools[0]", "fileSearchStores/1"),)),
]  # fmt: skip


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_what_a_request_names_is_found_under_its_callers_name(case: Named) -> None:
    text_format = FORMATS[case.format]
    request = text_format.decode_request(json.dumps(case.body).encode(), {}).canonical
    found = [(text_format.wire_path(field), name) for field, name in account_objects(request)]
    assert found == list(case.found)


def test_what_cannot_be_read_is_nobodys() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    block = pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json=deep))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert account_objects(request) == [AccountObject("messages[0].parts[0]", UNKNOWN)]


def test_a_field_whose_name_is_escaped_is_found_too() -> None:
    block = pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"file\\u005fid":"file_1"}'))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert account_objects(request) == [AccountObject("messages[0].parts[0]", "file_1")]


@pytest.mark.parametrize("made", [{}, {"file_1": "another"}, {"file_2": "main"}], ids=str)
def test_what_this_channel_did_not_make_for_the_caller_is_refused(made: dict[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        refuse_unknown([AccountObject("cached_content", "file_1")], made, "main")
    assert caught.value.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND
    assert caught.value.metadata == {"id": "file_1", "field": "cached_content"}
    assert "shared_objects: true" in caught.value.message


def test_what_this_channel_made_for_the_caller_is_taken() -> None:
    objects = [AccountObject("messages[0].parts[0]", "a"), AccountObject("messages[1].parts[0]", "b")]
    refuse_unknown(objects, {"a": "main", "b": "main"}, "main")
    with pytest.raises(UmgError):
        refuse_unknown([*objects, AccountObject("container", "c" * 9999)], {"a": "main", "b": "main"}, "main")


def test_a_long_id_is_not_repeated_whole() -> None:
    with pytest.raises(UmgError) as caught:
        refuse_unknown([AccountObject("container", "c" * 9999)], {}, "main")
    assert caught.value.metadata["id"] == "c" * SHOWN_CHARACTERS

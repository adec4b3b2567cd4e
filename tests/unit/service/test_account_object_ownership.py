"""Objects of a provider's account: they are found wherever a request names them."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import anthropic.types.beta.message_create_params as messages_types
import openai.types.chat.completion_create_params as chat_types
import openai.types.responses.response_create_params as responses_types
import pytest
from google.genai import types as genai
from typing_extensions import get_type_hints, is_typeddict

from tests.unit.service.named_objects import HARMLESS, NAMED, Harmless, Named
from umg_grpc.base.errors import UmgError
from umg_grpc.service.conversations.account_object_ownership import (
    SHOWN_CHARACTERS,
    AccountObject,
    account_objects,
    check_ownership,
)
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.account_object_detection import (
    PLAIN_OTHERS,
    PLAIN_TEXTS,
    UNKNOWN_OBJECT,
    RepeatedMembers,
    decode_every,
    is_public,
)
from umg_grpc.wire.facts_beside_request import RequestNotes


def found_in(body: Mapping[str, Any], name: str) -> list[AccountObject]:
    request = TEXT_FORMATS[name].decode_request(json.dumps(body).encode(), {}).canonical
    return account_objects(request, [name])


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_an_object_is_found_where_a_body_names_it(case: Named) -> None:
    assert found_in(case.body, case.format) == [AccountObject(case.path, case.name)]


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case.id)
def test_the_callers_own_names_are_no_objects(case: Harmless) -> None:
    assert found_in(case.body, case.format) == []


@pytest.mark.parametrize("format_name", TEXT_FORMATS)
@pytest.mark.parametrize("member", [member for member, _ in (*PLAIN_TEXTS, *PLAIN_OTHERS)])
def test_a_body_that_passes_the_fast_test_names_no_object_by_the_rules(member: str, format_name: str) -> None:
    rules = TEXT_FORMATS[format_name].objects
    assert rules.is_plain(b'{"model": "m", "messages": [{"role": "user", "content": "file-abc123"}]}')
    message = {"role": "file-abc123", "content": "file-abc123"}
    for value in ("file-abc123", ["file-abc123"], [message], {"file_id": True}, 3, 0.5, True):
        body = json.dumps({member: value}).encode()
        if rules.is_plain(body):
            assert rules.in_body(body) == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"role": "user", "content": "hi", "file_id": "file-abc123"}]}',
        b'{"messages": [{"role": "user", "content": [{"type": "file", "file_id": "file-abc123"}], "content": "hi"}]}',
        b'{"messages": [{"role": "user", "content": [{"type": "file", "file_id": "file-abc123"}]}], "messages": []}',
        b'{"knowledge_id": "k"}',
        b"[]",
        b'{"messages": ' + b"[" * 2000,
        b'{"model": "\xff"}',
        b'{"model": "' + b"m" * 65_536 + b'"}',
    ],
)
def test_the_fast_test_passes_no_other_body(body: bytes) -> None:
    assert not TEXT_FORMATS["chat"].objects.is_plain(body)


@pytest.mark.parametrize("text", ["fileid://file-abc123", "FileID://file-abc123", "\\u0066ileid://file-abc123"])
def test_an_address_in_an_instruction_is_found_in_a_plain_body(text: str) -> None:
    body = f'{{"model": "m", "messages": [{{"role": "system", "content": "{text}"}}]}}'.encode()
    request = TEXT_FORMATS["chat"].decode_request(body, {}).canonical
    assert account_objects(request, ["chat"]) == [AccountObject("messages[0].parts[0]", "file-abc123")]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_an_object_is_found_beside_other_messages_that_are_encoded_again(case: Named) -> None:
    request = TEXT_FORMATS[case.format].decode_request(json.dumps(case.body).encode(), {}).canonical
    objects = account_objects(request, [case.format], RequestNotes(edited=("messages",)))
    if conversation(case.path):
        assert {each.id for each in objects} <= {case.name}
    else:
        assert AccountObject(case.path, case.name) in objects


def conversation(path: str) -> bool:
    return path.startswith(("messages", "input", "contents", "system"))


def test_variables_of_a_prompt_may_hold_files_and_have_any_names() -> None:
    variables = {"customer_id": "file-abc123", "store": {"type": "input_file", "file_id": "file_1"}}
    body = {"model": "m", "input": "Hi", "prompt": {"id": "pmpt_1", "variables": variables}}
    file = AccountObject("prompt.variables.store.file_id", "file_1")
    assert found_in(body, "responses") == [AccountObject("prompt.id", "pmpt_1"), file]


@dataclass(frozen=True)
class Part:
    id: str
    part: pb.Part
    path: str
    name: str


PARTS = [
    Part("a file", pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, file_id="file_1")), ".media.file_id", "file_1"),
    Part("a bucket", pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="gs://b/a")), ".media.uri", "gs://b/a"),
    Part("an image", pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, media_id="ig_1", data=b"")), ".media.media_id", "ig_1"),
    Part("a block", pb.Part(opaque=pb.OpaquePart(format="messages", json='{"type":"x","file_id":"f"}')), "", "f"),
]  # fmt: skip


@pytest.mark.parametrize("case", PARTS, ids=lambda case: case.id)
@pytest.mark.parametrize("role", [pb.ROLE_USER, pb.ROLE_ASSISTANT], ids=pb.Role.Name)
def test_an_object_is_found_in_a_request_without_a_body(case: Part, role: "pb.Role.ValueType") -> None:
    request = pb.GenerateRequest(messages=[pb.Message(role=role, parts=[case.part])])
    assert account_objects(request, TEXT_FORMATS) == [AccountObject(f"messages[0].parts[0]{case.path}", case.name)]


def test_a_block_of_a_format_that_the_channel_does_not_support_is_not_sent() -> None:
    block = pb.Part(opaque=pb.OpaquePart(format="messages", json='{"type":"x","file_id":"f"}'))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert account_objects(request, ["chat"]) == []


ADDRESSES = {
    "https://example.com/files/a.png": True,
    "https://storage.googleapis.com/public/a.png": True,
    "HTTPS://example.com/a": True,
    "data:image/png;base64,AAAA": True,
    "https://www.youtube.com/watch?v=1": True,
    "gs://bucket/a": False,
    " gs://bucket/a": False,
    "s3://bucket/a": False,
    "files/abc": False,
    "https://generativelanguage.googleapis.com/v1beta/files/abc": False,
    "https://generativelanguage.googleapis.com./v1beta/files/abc": False,
    "https://user@generativelanguage.googleapis.com:443/v1beta/files/abc?alt=media": False,
    "https://provider.example/v1beta/files/abc?alt=media": False,
    "https://provider.example/v1beta/%66iles/abc": False,
    "https://provider.example//v1beta//files/abc": False,
    "https://": False,
    "https://[": False,
    "": False,
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_public_unless_it_names_an_object_of_an_account(address: str) -> None:
    assert is_public(address) is ADDRESSES[address]


def names_of(types: Iterable[type], seen: set[type]) -> Iterator[str]:
    """Yield the names of all members of SDK types that look like names of objects."""
    for kind in types:
        yield from _names_in(kind, seen)


def _names_in(kind: object, seen: set[type]) -> Iterator[str]:
    if get_origin(kind) is not None:
        for argument in get_args(kind):
            yield from _names_in(argument, seen)
    elif isinstance(kind, type) and kind not in seen and (is_typeddict(kind) or kind.__module__ == genai.__name__):
        seen.add(kind)
        for name, inner in get_type_hints(kind).items():
            if OBJECT_NAME.search(name):
                yield name
            yield from _names_in(inner, seen)


OBJECT_NAME = re.compile(
    r"(?:^|_)(?:id|ids|uri|uris|uuid|corpus|corpora|store|stores|datastore|container|containers|conversation|prompt"
    r"|engine|skill|knowledge|connector|cached_content|service_account|secret|template_name|store_names)$"
)
SDK_TYPES: dict[str, list[type]] = {
    "chat": [chat_types.CompletionCreateParamsNonStreaming],
    "responses": [responses_types.ResponseCreateParamsNonStreaming],
    "messages": [messages_types.MessageCreateParamsNonStreaming],
    "native": [genai.Content, genai.GenerateContentConfig],
}
NO_OBJECTS: dict[str, set[str]] = {
    "chat": {"file_id", "tool_call_id", "store"},  # files are rejected there
    # a prompt is named by its id; the other is text
    "responses": {
        "prompt",
        "revised_prompt",
        "approval_request_id",
        "call_id",
        "caller_id",
        "continuation_id",
        "domain_secrets",
        "store",
    },
    "messages": {"download_id", "tab_id", "tool_id", "tool_use_id", "user_id", "user_profile_id", "workspace_id"},
    # `download_uri`, `uri`: in a file's description, which no request contains; `store`, `store_context` are booleans
    "native": {"store", "download_uri", "uri"},
}
"""Members of the official SDKs' requests that name no object in an account: they pair, label or switch."""


@pytest.mark.parametrize("name", SDK_TYPES)
def test_every_member_of_the_sdks_that_names_an_object_has_a_case(name: str) -> None:
    tested = {plain(case.path) for case in NAMED if case.format == name}
    members = set(names_of(SDK_TYPES[name], set()))
    assert members - NO_OBJECTS[name] - tested == set()


def plain(path: str) -> str:
    """Return the last name of a path, in snake case."""
    last = re.sub(r"\[\d+\]", "", path).rpartition(".")[2]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).lower()


def test_an_unreadable_object_is_an_unknown_object() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    block = pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json=deep))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert account_objects(request, ["messages"]) == [AccountObject("messages[0].parts[0]", UNKNOWN_OBJECT)]


def test_a_field_whose_name_is_escaped_is_found_too() -> None:
    block = pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"file\\u005fid":"file_1"}'))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert account_objects(request, ["messages"]) == [AccountObject("messages[0].parts[0]", "file_1")]


@dataclass(frozen=True)
class Repeated:
    id: str
    block: str
    """Content block of messages, as JSON text."""
    found: tuple[str, ...] = ("file_1", "file_2")


REPEATED = [
    Repeated("a member", '{"type":"document","source":{"type":"file","file_id":"file_1","file_id":"file_2"}}'),
    Repeated(
        "a member whose last value is empty",
        '{"type":"document","source":{"type":"file","file_id":"file_1","file_id":""}}',
        ("file_1",),
    ),
    Repeated(
        "the object around it",
        '{"type":"document","source":{"type":"file","file_id":"file_1"},"source":{"type":"file","file_id":"file_2"}}',
    ),
    Repeated(
        "a member, one of them escaped",
        '{"type":"document","source":{"type":"file","file_id":"file_1","file\\u005fid":"file_2"}}',
    ),
    Repeated(
        "a member, beside an escaped colon in a text",
        '{"type":"document","title":"a\\u003Ab","source":{"type":"file","file_id":"file_1","file_id":"file_2"}}',
    ),
    Repeated(
        "the kind of a block that would be exempt",
        '{"type":"container_upload","id":"file_1","type":"tool_use","name":"f","input":{}}',
        ("file_1",),
    ),
]


@pytest.mark.parametrize("case", REPEATED, ids=lambda case: case.id)
def test_every_value_of_a_repeated_member_is_judged(case: Repeated) -> None:
    body = f'{{"model":"m","max_tokens":5,"messages":[{{"role":"user","content":[{case.block}]}}]}}'
    source = pb.SourceDocument(format="messages", body=body.encode())
    assert tuple(each.id for each in account_objects(pb.GenerateRequest(source=source), ["messages"])) == case.found
    block = pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json=case.block))
    request = pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, parts=[block])])
    assert tuple(each.id for each in account_objects(request, ["messages"])) == case.found


def test_a_repeated_member_exempts_no_turn_as_the_models() -> None:
    result = '{"type":"bash_code_execution_tool_result","content":{"file_id":"file_1"}}'
    for role, found in (('"role":"assistant"', []), ('"role":"user","role":"assistant"', ["file_1"])):
        body = f'{{"model":"m","messages":[{{{role},"content":[{result}]}}]}}'
        source = pb.SourceDocument(format="messages", body=body.encode())
        named = account_objects(pb.GenerateRequest(source=source), ["messages"])
        assert [each.id for each in named] == found


def test_a_body_that_repeats_no_member_is_decoded_as_it_is() -> None:
    assert not isinstance(decode_every('{"a:b": {"c": "d: e"}, "f": [1, {"g": "\\u003a"}]}'), RepeatedMembers)


@pytest.mark.parametrize("made", [{}, {"file_1": "another"}, {"file_2": "main"}], ids=str)
def test_an_object_that_the_channel_did_not_make_for_the_caller_is_refused(made: dict[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        check_ownership([AccountObject("cached_content", "file_1")], made, "main")
    assert caught.value.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND
    assert caught.value.metadata == {"id": "file_1", "field": "cached_content"}
    assert "shared_objects: true" in caught.value.message


def test_an_object_that_the_channel_made_for_the_caller_is_accepted() -> None:
    objects = [AccountObject("messages[0].parts[0]", "a"), AccountObject("messages[1].parts[0]", "b")]
    check_ownership(objects, {"a": "main", "b": "main"}, "main")
    with pytest.raises(UmgError):
        check_ownership([*objects, AccountObject("container", "c" * 9999)], {"a": "main", "b": "main"}, "main")


def test_a_long_id_is_not_repeated_whole() -> None:
    with pytest.raises(UmgError) as caught:
        check_ownership([AccountObject("container", "c" * 9999)], {}, "main")
    assert caught.value.metadata["id"] == "c" * SHOWN_CHARACTERS


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "RU5D", "id": "rs_68af1c2d3e4f"}]}, []),
        ({"reasoning_items": [{"type": "reasoning", "encrypted_content": "RU5D", "id": "rs_68af1c2d3e4f"}]}, []),
        (
            {"reasoning_items": [{"type": "reasoning", "summary": [], "id": "rs_68af1c2d3e4f"}]},
            ["messages[1].reasoning_items[0].id"],
        ),
    ],
)
def test_the_id_of_a_returned_reasoning_state_is_a_label_only_beside_its_content(
    item: dict[str, object], named: list[str]
) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", **item}]
    request = (
        TEXT_FORMATS["chat"].decode_request(json.dumps({"model": "m", "messages": messages}).encode(), {}).canonical
    )
    assert [found.field for found in account_objects(request, ["chat"])] == named

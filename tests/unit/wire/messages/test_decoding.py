"""A caller's body -> canonical: the canonical form of each block, tool and option."""

import base64

import msgspec
import pytest

from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import MESSAGES_FORMAT

PNG = b"\x89PNG\r\n\x1a\n"
DOCUMENT, IMAGE = pb.MEDIA_KIND_DOCUMENT, pb.MEDIA_KIND_IMAGE


def decoded(**fields: object) -> pb.GenerateRequest:
    return noted(**fields)[0]


def noted(**fields: object) -> tuple[pb.GenerateRequest, RequestNotes]:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]} | fields
    request, _, notes = MESSAGES_FORMAT.decode_request(msgspec.json.encode(body), {})
    return request, notes


def parts(*blocks: object, role: str = "assistant") -> list[pb.Part]:
    return list(decoded(messages=[{"role": role, "content": list(blocks)}]).messages[0].parts)


def text(words: str, **more: object) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words, **more))


def media(kind: "pb.MediaKind.ValueType", **more: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, **more))


def state(data: str, maker: str = "messages") -> pb.ReasoningState:
    return pb.ReasoningState(data=data, format=maker)


def cited(**more: object) -> pb.Part:
    return text("a", citations=[pb.Citation(**more)])


def place(unit: "pb.DocumentUnit.ValueType", **more: object) -> pb.DocumentSource:
    return pb.DocumentSource(document_index=2, unit=unit, start=3, end=7, **more)


CHAR = {
    "type": "char_location",
    "cited_text": "c",
    "document_index": 2,
    "document_title": "T",
    "start_char_index": 3,
    "end_char_index": 7,
}
PAGE = {
    "type": "page_location",
    "document_index": 2,
    "document_title": None,
    "start_page_number": 3,
    "end_page_number": 7,
    "file_id": "f",
}
PIECE = {"type": "content_block_location", "document_index": 2, "start_block_index": 3, "end_block_index": 7}
FOUND = {
    "type": "search_result_location",
    "search_result_index": 2,
    "source": "s",
    "title": "T",
    "start_block_index": 3,
    "end_block_index": 7,
}
WEB = {"type": "web_search_result_location", "url": "u", "title": "T", "cited_text": "c", "encrypted_index": "e"}

BLOCKS = [
    ({"type": "text", "text": ""}, text("")),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/JPG", "data": "aGk="}}, media(IMAGE, data=b"hi", mime_type="image/jpeg")),
    ({"type": "image", "source": {"type": "base64", "data": base64.b64encode(PNG).decode()}}, media(IMAGE, data=PNG, mime_type="image/png")),
    ({"type": "image", "source": {"type": "url", "url": "https://i.test/a"}}, media(IMAGE, uri="https://i.test/a")),
    ({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,aGk="}}, media(IMAGE, data=b"hi", mime_type="image/png")),
    ({"type": "image", "source": {"type": "file", "file_id": "f"}}, media(IMAGE, file_id="f")),
    (
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="}, "title": "T", "context": "C", "citations": {"enabled": True}},
        media(DOCUMENT, data=b"hi", mime_type="application/pdf", title="T", context="C", citable=True),
    ),
    ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}}, media(DOCUMENT, data="é".encode(), mime_type="text/plain")),
    ({"type": "document", "source": {"type": "url", "url": "https://d.test"}}, media(DOCUMENT, uri="https://d.test")),
    ({"type": "document", "source": {"type": "file", "file_id": "f"}}, media(DOCUMENT, file_id="f")),
    ({"type": "document", "source": {"type": "content", "content": "a"}}, media(DOCUMENT, blocks=pb.DocumentBlocks(parts=[text("a")]))),
    (
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "url": "https://i.test"}}]}},
        media(DOCUMENT, blocks=pb.DocumentBlocks(parts=[text("a"), media(IMAGE, uri="https://i.test")])),
    ),
    (
        {"type": "search_result", "source": "s", "title": "T", "content": [{"type": "text", "text": "a"}], "citations": {"enabled": False}},
        media(DOCUMENT, blocks=pb.DocumentBlocks(parts=[text("a")]), origin="s", title="T", citable=False),
    ),
    ({"type": "thinking", "thinking": "t", "signature": "s"}, pb.Part(reasoning=pb.ReasoningPart(texts=["t"]), state=state("s"))),
    ({"type": "thinking", "thinking": "", "signature": "s"}, pb.Part(reasoning=pb.ReasoningPart(), state=state("s"))),
    ({"type": "thinking", "thinking": "t", "signature": ""}, pb.Part(reasoning=pb.ReasoningPart(texts=["t"]))),
    ({"type": "thinking", "thinking": "t", "signature": "umg.unsigned"}, pb.Part(reasoning=pb.ReasoningPart(texts=["t"]))),
    ({"type": "thinking", "thinking": "t", "signature": "umg.responses.s.1"}, pb.Part(reasoning=pb.ReasoningPart(texts=["t"]), state=state("s.1", "responses"))),
    ({"type": "redacted_thinking", "data": "d"}, pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state("d"))),
    ({"type": "redacted_thinking", "data": "umg.native.d"}, pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state("d", "native"))),
    ({"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1.0, "a": 2}, "caller": {"type": "direct"}}, pb.Part(tool_call=pb.ToolCall(call_id="t", name="f", arguments_json='{"b":1.0,"a":2}'))),
    ({"type": "tool_result", "tool_use_id": "t", "content": "r"}, pb.Part(tool_result=pb.ToolResult(call_id="t", parts=[text("r")]))),
    ({"type": "tool_result", "tool_use_id": "t"}, pb.Part(tool_result=pb.ToolResult(call_id="t"))),
    ({"type": "tool_result", "tool_use_id": "t", "content": "", "is_error": True}, pb.Part(tool_result=pb.ToolResult(call_id="t", is_error=True))),
    (
        {"type": "tool_result", "tool_use_id": "t", "is_error": False, "content": [{"type": "text", "text": "r"}, {"type": "image", "source": {"type": "url", "url": "https://i.test"}}, {"type": "new", "n": 1}]},
        pb.Part(tool_result=pb.ToolResult(call_id="t", is_error=False, parts=[text("r"), media(IMAGE, uri="https://i.test"), pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"type":"new","n":1}'))])),
    ),
    (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        pb.Part(server_tool_call=pb.ServerToolCall(call_id="srvtoolu_1", name="web_search", queries=["q"], input_json='{"query":"q"}', format="messages")),
    ),
    (
        {"type": "server_tool_use", "id": "srvtoolu_umg_ws_1", "name": "web_search", "input": {"query": "q"}},
        pb.Part(server_tool_call=pb.ServerToolCall(call_id="ws_1", name="web_search", queries=["q"])),
    ),
    (
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u", "title": "T", "encrypted_content": "e", "page_age": "2 days ago"}]},
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="srvtoolu_1", name="web_search", results=[pb.SearchResult(url="u", title="T", encrypted_content="e", page_age="2 days ago")])),
    ),
    (
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}},
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="srvtoolu_1", name="web_search", error_code="unavailable")),
    ),
    (
        {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {"stdout": "1"}},
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="srvtoolu_1", name="code_execution", output_json='{"stdout":"1"}', format="messages")),
    ),
    ({"type": "mcp_tool_result", "tool_use_id": "t", "content": []}, pb.Part(opaque=pb.OpaquePart(format="messages", type="mcp_tool_result", json='{"type":"mcp_tool_result","tool_use_id":"t","content":[]}'))),
    ({"type": "container_upload", "file_id": "f"}, pb.Part(opaque=pb.OpaquePart(format="messages", type="container_upload", json='{"type":"container_upload","file_id":"f"}'))),
    ({"type": "text", "text": "a", "citations": [CHAR]}, cited(title="T", cited_text="c", document=place(pb.DOCUMENT_UNIT_CHARACTER))),
    ({"type": "text", "text": "a", "citations": [PAGE]}, cited(document=place(pb.DOCUMENT_UNIT_PAGE, file_id="f"))),
    ({"type": "text", "text": "a", "citations": [PIECE]}, cited(document=place(pb.DOCUMENT_UNIT_BLOCK))),
    ({"type": "text", "text": "a", "citations": [FOUND]}, cited(title="T", document=place(pb.DOCUMENT_UNIT_BLOCK, origin="s"))),
    ({"type": "text", "text": "a", "citations": [WEB]}, cited(title="T", cited_text="c", web=pb.WebSource(url="u", encrypted_index="e"))),
    ({"type": "text", "text": "a", "citations": [{"type": "new"}]}, cited(opaque=pb.OpaquePart(format="messages", type="new", json='{"type":"new"}'))),
    ({"type": "text", "text": "a", "citations": [{"type": "page_location"}]}, cited(opaque=pb.OpaquePart(format="messages", type="page_location", json='{"type":"page_location"}'))),
]  # fmt: skip


@pytest.mark.parametrize(("block", "part"), BLOCKS, ids=lambda value: repr(value)[:90])
def test_a_block_has_its_canonical_part(block: dict[str, object], part: pb.Part) -> None:
    assert parts(block) == [part]
    check(pb.Message(role=pb.ROLE_ASSISTANT, parts=[part]))  # the service accepts the part, too
    if not block["type"].endswith("thinking"):
        mark = pb.CacheControl()
        for written, ttl in (("ephemeral", pb.CACHE_TTL_UNSPECIFIED), ("persistent", pb.CACHE_TTL_ONE_HOUR)):
            mark.ttl = ttl
            [marked] = parts(block | {"cache_control": {"type": written}})
            if not marked.HasField("opaque"):
                assert marked.cache_control == mark


def test_the_state_of_a_call_is_put_back_where_it_was_shown_before_the_call() -> None:
    search, call = (
        {"type": "redacted_thinking", "data": "umg.native.d"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    )
    decoded_parts = parts({"type": "text", "text": "a"}, search, call, call, search, {"type": "text", "text": "b"})
    assert [(part.WhichOneof("kind"), part.state.format) for part in decoded_parts] == [
        ("text", ""), ("tool_call", "native"), ("tool_call", ""), ("reasoning", "native"), ("text", ""),
    ]  # fmt: skip


def test_a_budget_of_1025_is_accepted() -> None:
    reasoning = decoded(thinking={"type": "enabled", "budget_tokens": 1025.0}).reasoning
    assert reasoning == pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=1025)


def test_the_older_output_format_is_read() -> None:
    request = decoded(output_format={"type": "json_schema", "schema": {}})
    assert request.response_format.json_schema.schema_json == "{}"


def test_an_empty_list_of_mcp_servers_is_not_indispensable() -> None:
    assert not noted(mcp_servers=[])[1].indispensable


def test_headers_that_change_the_meaning_are_kept_with_the_source() -> None:
    body = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}],"stream":true}'
    request, stream, _ = MESSAGES_FORMAT.decode_request(body, {"anthropic-version": "2023-06-01"})
    assert (stream, request.source.body, dict(request.source.headers)) == (
        True,
        body,
        {"anthropic-version": "2023-06-01"},
    )


def test_a_counting_call_needs_no_limit_and_looks_at_no_output_parameter() -> None:
    body = {
        "model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "system": "s", "tools": [{"name": "f", "input_schema": {}}],
        "max_tokens": -5, "temperature": 7, "thinking": {"type": "enabled", "budget_tokens": 1}, "tool_choice": "x",
    }  # fmt: skip
    assert MESSAGES_FORMAT.decode_count is not None
    request = MESSAGES_FORMAT.decode_count(msgspec.json.encode(body), {"anthropic-beta": "b"}).canonical
    assert (
        request.messages[0].parts[0].text.text,
        request.instructions[0].text.text,
        request.tools[0].function.name,
    ) == ("hi", "s", "f")
    assert not request.HasField("max_output_tokens")
    assert (request.source.format, dict(request.source.headers)) == ("messages", {"anthropic-beta": "b"})


def test_a_counted_prompt_is_answered() -> None:
    assert MESSAGES_FORMAT.encode_count is not None
    assert MESSAGES_FORMAT.encode_count(12, None) == b'{"input_tokens":12}'

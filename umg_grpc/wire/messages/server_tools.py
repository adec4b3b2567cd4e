"""Tools that the provider runs (web search): their calls (`server_tool_use`) and results, in both directions."""

import re

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_object, json_text, parse
from umg_grpc.wire.core.tool_argument_objects import call_arguments
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.cache_control import decode_mark

OUR_CALL = "srvtoolu_umg_"
"""Prefix of the ids of searches that providers of other formats ran. Providers of this format reject these ids."""

RESULT_OF = re.compile(r"(?!mcp_)(\w+)_tool_result")

SEARCH_ERRORS = frozenset(
    {
        *("invalid_tool_input", "unavailable", "max_uses_exceeded"),
        *("too_many_requests", "query_too_long", "request_too_large"),
    }
)


# --- caller or provider -> canonical


def decode_server_call(raw: Raw, owner: pb.Message | pb.ToolResult | pb.DocumentBlocks, at: str) -> None:
    """Append a `server_tool_use` block. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path of the field."""
    block = parse(schema.ServerToolUseBlock, raw, at)
    part = owner.parts.add()
    call, text = part.server_tool_call, json_object(block.input, f"{at}.input")
    call.call_id, call.name = block.id, block.name
    if block.id.startswith(OUR_CALL):
        call.call_id = block.id.removeprefix(OUR_CALL)
    else:
        call.input_json, call.format = text, "messages"
    call.queries.extend(queries_of(text))
    decode_mark(part, block, at)


def decode_search_result(raw: Raw, owner: pb.Message | pb.ToolResult | pb.DocumentBlocks, at: str) -> None:
    """Append a `web_search_tool_result` with its pages or error. Raise UmgError with the path of the field."""
    block = parse(schema.ServerToolResultBlock, raw, at)
    part = owner.parts.add()
    result = part.server_tool_result
    result.call_id, result.name = block.tool_use_id.removeprefix(OUR_CALL), "web_search"
    if bytes(block.content).startswith(b"{"):
        result.error_code = parse(schema.WebSearchError, block.content, f"{at}.content").error_code
    else:
        for found in parse(list[schema.WebSearchResult], block.content, f"{at}.content"):
            result.results.add(
                url=found.url,
                title=found.title or "",
                page_age=found.page_age or "",
                encrypted_content=found.encrypted_content or "",
            )
    decode_mark(part, block, at)


def decode_server_result(raw: Raw, owner: pb.Message | pb.ToolResult | pb.DocumentBlocks, at: str, name: str) -> None:
    """Append the result of a provider's tool other than web search. Raise UmgError with the path of the field."""
    block = parse(schema.ServerToolResultBlock, raw, at)
    part = owner.parts.add()
    result = part.server_tool_result
    result.call_id, result.name = block.tool_use_id, name
    result.output_json, result.format = str(block.content, "utf-8"), "messages"
    decode_mark(part, block, at)


def has_content(raw: Raw) -> bool:
    """Return whether a block has the member `content`, by which the result of a provider's tool is recognised."""
    try:
        return is_present(msgspec.json.decode(raw, type=schema.ServerToolResultBlock).content)
    except msgspec.ValidationError:
        return False


def queries_of(input_json: str) -> list[str]:
    """Return the member `query` in the JSON input of a web search as a list; [] without it, or for invalid JSON."""
    try:
        query = msgspec.json.decode(input_json, type=schema.Query).query
    except (ValueError, RecursionError):
        return []
    return [query] if query else []


def update_search(call: pb.ServerToolCall, arguments: str) -> None:
    """Set the input (JSON) of a provider's tool call. A stream sends it after the start of the call."""
    call.queries[:] = queries_of(arguments)
    if call.format:
        call.input_json = arguments


# --- canonical -> caller or provider


def encode_server_call(call: pb.ServerToolCall, response_id: str) -> JsonObject | None:
    """Return a `server_tool_use` block without its input; None for a tool that this format does not have."""
    if call.format == "messages":
        return {"type": "server_tool_use", "id": call.call_id, "name": call.name}
    if call.name != "web_search":
        return None
    return {"type": "server_tool_use", "id": _our_id(call.call_id, response_id), "name": call.name}


def server_input(call: pb.ServerToolCall) -> object:
    """Return the `input` of a `server_tool_use` block: the provider's own input, or an object with the queries."""
    if call.format == "messages" and call.input_json:
        return call_arguments(pb.ToolCall(arguments_json=call.input_json))
    return {"query": "; ".join(call.queries)}


def encode_server_result(result: pb.ServerToolResult, call_id: str) -> JsonObject | None:
    """Return a result's block; None if this format has none. `call_id`: in this conversation. Raise
    UmgError(INVALID_FIELD) for output that is not one JSON value.
    """
    if result.output_json:
        if result.format != "messages":
            return None
        content: object = json_text(result.output_json, "server_tool_result.output_json")
        return {"type": f"{result.name}_tool_result", "tool_use_id": call_id, "content": content}
    if result.name != "web_search":
        return None
    if result.error_code:
        content = {"type": "web_search_tool_result_error", "error_code": result.error_code}
    else:
        content = [
            {
                "type": "web_search_result",
                "url": found.url,
                "title": found.title,
                "encrypted_content": found.encrypted_content,
                "page_age": found.page_age or None,
            }
            for found in result.results
        ]
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": content}


# --- canonical -> caller


def encode_server_tool_result(result: pb.ServerToolResult, response_id: str) -> JsonObject | None:
    """Return a result as a block of a response; None if this format has none. `response_id`: for ids of searches."""
    from_provider = result.format == "messages" or any(found.encrypted_content for found in result.results)
    from_provider = from_provider or result.call_id.startswith("srvtoolu_")  # a search that failed or found nothing
    encoded = encode_server_result(result, result.call_id if from_provider else _our_id(result.call_id, response_id))
    if encoded is not None and result.error_code and result.error_code not in SEARCH_ERRORS:
        encoded["content"] = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    return encoded


def _our_id(call_id: str, response_id: str) -> str:
    return OUR_CALL + "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in call_id or response_id
    )

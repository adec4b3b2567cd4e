"""Tools that the provider itself runs, for example web search: the items of their calls, in both directions."""

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_text, parse
from umg_grpc.wire.responses import schema

# Canonical name of a tool -> type of its items and prefix of their ids, and the type -> name.
SERVER_ITEMS = {
    "web_search": ("web_search_call", "ws_"),
    "file_search": ("file_search_call", "fs_"),
    "code_execution": ("code_interpreter_call", "ci_"),
}
SERVER_TOOLS = {kind: name for name, (kind, _) in SERVER_ITEMS.items()}


# --- caller or provider -> canonical


def decode_server_tool(raw: Raw, kind: str, message: pb.Message, at: str) -> None:
    """Append the call of a provider's tool, and its results, if any, to `message`. Raise UmgError with the path."""
    item = parse(schema.ToolItem, raw, at)
    call = message.parts.add().server_tool_call
    call.call_id, call.name = item.id or "", SERVER_TOOLS[kind]
    call.status = "" if item.status in (None, "completed") else item.status or ""
    call.container_id = item.container_id or ""
    call.queries.extend(item.queries or ())
    sources: list[schema.SearchSource] = []
    if is_present(item.action):
        action = parse(schema.SearchAction, item.action, f"{at}.action")
        call.input_json, call.format = str(item.action, "utf-8"), "responses"
        call.queries.extend(action.queries or ([action.query] if action.query else ()))
        sources = action.sources or []
    elif item.code is not None:
        call.input_json, call.format = msgspec.json.encode(item.code).decode(), "responses"
    output = item.outputs if is_present(item.outputs) else item.results
    if not sources and not is_present(output):
        return
    result = message.parts.add().server_tool_result
    result.call_id, result.name = call.call_id, call.name
    result.results.extend(pb.SearchResult(url=source.url) for source in sources if source.url)
    if is_present(output):
        result.output_json, result.format = str(output, "utf-8"), "responses"


# --- canonical -> caller


def server_item(
    item_id: str, call: pb.ServerToolCall, result: pb.ServerToolResult | None, *, sources: bool
) -> JsonObject:
    """Return the item for a provider's tool call with its result, if any. `sources`: include a search's sources."""
    failed = result is not None and result.error_code
    kind, _ = SERVER_ITEMS[call.name]
    item: JsonObject = {"id": item_id, "type": kind, "status": "failed" if failed else call.status or "completed"}
    output = result.output_json if result is not None and result.format == "responses" else ""
    match call.name:
        case "web_search":
            item["action"] = action_of(call, result, sources=sources)
        case "file_search":
            item["queries"] = list(call.queries)
            item["results"] = json_text(output, "output_json") if output else None
        case _:  # code_execution
            item |= {"code": code_of(call), "container_id": call.container_id, "outputs": None}
            if output:
                item["outputs"] = json_text(output, "output_json")
            elif result is not None and (logs := _text_of(result.output_json, "output", "stdout")):
                item["outputs"] = [{"type": "logs", "logs": logs}]
    return item


def action_of(call: pb.ServerToolCall, result: pb.ServerToolResult | None, *, sources: bool) -> object:
    """Return the `action` of a search: the provider's own, else the queries. `sources`: with the URLs of pages."""
    if call.format == "responses" and call.input_json:
        return json_text(call.input_json, "input_json")
    queries = list(call.queries)
    action: JsonObject = {"type": "search", "query": queries[0] if queries else "", "queries": queries}
    if sources and result is not None:
        action["sources"] = [{"type": "url", "url": page.url} for page in result.results]
    return action


def code_of(call: pb.ServerToolCall) -> str:
    """Return the code in a code interpreter's call: a string, or an object's member `code`; "" for other input."""
    return _text_of(call.input_json, "code")


def _text_of(json: str, *names: str) -> str:
    """Return the text in a JSON value: a string, or an object's first member among `names` that is one; else ""."""
    try:
        value: object = msgspec.json.decode(json)
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        value = next((value[name] for name in names if isinstance(value.get(name), str)), "")
    return value if isinstance(value, str) else ""

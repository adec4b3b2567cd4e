"""Answers of the strict fake provider of messages, in the forms and orders of reference 3.3 to 3.5."""

from collections.abc import Iterator
from typing import Any

from tests.support.providers.common import compact, letters, sign
from tests.support.providers.scenarios import QUERY, REFUSAL, STOP, Answer, ScenarioRequest, Source, Usage
from tests.support.providers.server import Json

FINISH = {"stop": "end_turn", "stop_sequence": "stop_sequence", "length": "max_tokens"}
FINISH |= {"refusal": "refusal", "filter": "refusal", "blocked": "refusal"}
KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error"}
KINDS |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error"}
KINDS |= {504: "timeout_error", 529: "overloaded_error"}


def error(status: int, message: str) -> Json:
    kind = KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0001"}


def event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {compact(data)}\n\n".encode()


def signature(thinking: str) -> str:
    return sign(f"messages {thinking}")


def _omitted_signature(thinking: str) -> str:
    own = signature(thinking)
    return own + sign(f"messages omitted {own}")


def is_signed(block: Json) -> bool:
    """Return whether a thinking block has a signature of the provider for its text."""
    given = str(block["signature"])
    own = given[: len(given) // 2]
    is_omitted = not block["thinking"] and given == own + sign(f"messages omitted {own}")
    return is_omitted or given == signature(block["thinking"])


def omitted(body: Json) -> bool:
    """Return whether the request hides the reasoning."""
    return (body.get("thinking") or {}).get("display") == "omitted"


def _blocks(request: ScenarioRequest, answer: Answer, hidden: bool) -> list[Json]:
    """Return the content blocks of a response, each text block with its pieces under `words`, which is not sent."""
    blocks: list[Json] = []
    if answer.thoughts:
        shown = () if hidden else answer.thoughts
        text = "".join(shown)
        signed = _omitted_signature(answer.thought) if hidden else signature(text)
        blocks.append({"type": "thinking", "thinking": text, "signature": signed, "words": shown})
    if answer.sources:
        blocks += _search(answer)
    elif answer.words:
        blocks.append({"type": "text", "text": answer.text, "words": answer.words})
    for position, call in enumerate(answer.calls):
        name = f"toolu_{position}{letters(str(request.turns))}"
        blocks.append({"type": "tool_use", "id": name, "name": call.name, "input": dict(call.arguments)})
    return blocks


def _search(answer: Answer) -> list[Json]:
    """Return the blocks of a web search and of the cited answer: one text block for each cited span and each span
    between.
    """
    pages = [
        {
            "type": "web_search_result",
            "url": source.url,
            "title": source.title,
            "encrypted_content": sign(source.url),
            "page_age": "2 days ago",
        }
        for source in answer.sources
    ]
    blocks: list[Json] = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": QUERY}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages},
    ]
    at = 0
    for source in answer.sources:
        if source.start > at:
            blocks.append(_span(answer.text[at : source.start]))
        blocks.append(_span(answer.text[source.start : source.end], source))
        at = source.end
    if at < len(answer.text):
        blocks.append(_span(answer.text[at:]))
    return blocks


def _span(text: str, source: Source | None = None) -> Json:
    block: Json = {"type": "text", "text": text, "words": (text[:5], text[5:]) if len(text) > 5 else (text,)}
    if source:
        block["citations"] = [
            {
                "type": "web_search_result_location",
                "url": source.url,
                "title": source.title,
                "cited_text": f"It is said that {text}",
                "encrypted_index": sign(f"index {source.url}"),
            }
        ]
    return block


def _usage(usage: Usage, answer: Answer) -> Json:
    return {
        "input_tokens": usage.prompt - usage.cached - usage.written - usage.written_long,
        "cache_creation_input_tokens": usage.written + usage.written_long,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.written,
            "ephemeral_1h_input_tokens": usage.written_long,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.thoughts},
        "server_tool_use": {"web_search_requests": 1} if answer.sources else None,
        "service_tier": "standard",
    }


def _finish(answer: Answer) -> Json:
    reason = "tool_use" if answer.calls else FINISH[answer.finish]
    refused = reason == "refusal"
    details = {"type": "refusal", "category": "general_harms", "explanation": answer.refusal or REFUSAL}
    stop = STOP if answer.finish == "stop_sequence" else None
    return {"stop_reason": reason, "stop_sequence": stop, "stop_details": details if refused else None}


def whole(request: ScenarioRequest, answer: Answer, hidden: bool) -> Json:
    content = [_field(block) for block in _blocks(request, answer, hidden)]
    head = {
        "id": f"msg_{letters(request.step)}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
    }
    return head | _finish(answer) | {"usage": _usage(answer.usage, answer)}


def _field(block: Json, **changed: Any) -> Json:
    return {name: value for name, value in block.items() if name != "words"} | changed


def frames(request: ScenarioRequest, answer: Answer, hidden: bool) -> Iterator[bytes]:
    early = _usage(answer.usage, answer) | {"output_tokens": 1, "server_tool_use": None}
    early.pop("output_tokens_details")
    head = {
        "id": f"msg_{letters(request.step)}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
    }
    head |= {"stop_reason": None, "stop_sequence": None, "stop_details": None, "usage": early}
    yield event({"type": "message_start", "message": head})
    for index, block in enumerate(_blocks(request, answer, hidden)):
        yield event({"type": "content_block_start", "index": index, "content_block": _start(block)})
        if index == 0:
            yield event({"type": "ping"})
        for delta in _deltas(block):
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    late = _usage(answer.usage, answer)
    del late["cache_creation"], late["service_tier"]
    yield event({"type": "message_delta", "delta": _finish(answer), "usage": late})
    yield event({"type": "message_stop"})


def _start(block: Json) -> Json:
    match block["type"]:
        case "text":
            return {"type": "text", "text": ""} | ({"citations": []} if "citations" in block else {})
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use" | "server_tool_use":
            return _field(block, input={})
    return _field(block)


def _deltas(block: Json) -> Iterator[Json]:
    match block["type"]:
        case "text":
            for citation in block.get("citations", ()):
                yield {"type": "citations_delta", "citation": citation}
            yield from ({"type": "text_delta", "text": piece} for piece in block["words"])
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in block["words"])
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use" | "server_tool_use":
            arguments = compact(block["input"]) if block["input"] else ""
            yield {"type": "input_json_delta", "partial_json": ""}
            for start in range(0, len(arguments), 9):
                yield {"type": "input_json_delta", "partial_json": arguments[start : start + 9]}

"""Answers of the strict fake provider of responses: the objects and the orders of events of reference 2.4 and 2.5."""

import json
from collections.abc import Iterator

from tests.support.providers.common import compact, letters, sign
from tests.support.providers.scenarios import QUERY, Answer, ScenarioRequest, Source, Usage
from tests.support.providers.server import Json

CREATED = 1760000000
UNFINISHED = ("length", "filter", "blocked")
ECHOED = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "metadata": {},
    "user": None,
}


def whole(request: ScenarioRequest, answer: Answer, body: Json, name: str) -> Json:
    response: Json = {"id": name, "object": "response", "created_at": CREATED, "completed_at": CREATED + 2}
    response |= {"status": "completed", "background": False, "error": None, "incomplete_details": None}
    response |= {"model": request.model, "service_tier": "default"}
    response |= {field: default if body.get(field) is None else body[field] for field, default in ECHOED.items()}
    if answer.finish in UNFINISHED:
        reason = "max_output_tokens" if answer.finish == "length" else "content_filter"
        response |= {"status": "incomplete", "incomplete_details": {"reason": reason}, "completed_at": None}
    return response | {"output": _output(request, answer, body, name), "usage": _usage(answer.usage)}


def _output(request: ScenarioRequest, answer: Answer, body: Json, name: str) -> list[Json]:
    own = name.removeprefix("resp_")
    items: list[Json] = []
    if answer.thoughts:
        shown = (body.get("reasoning") or {}).get("summary") or (body.get("reasoning") or {}).get("generate_summary")
        item: Json = {"id": f"rs_{own}", "type": "reasoning"}
        item["summary"] = [{"type": "summary_text", "text": answer.thought}] if shown else []
        if "reasoning.encrypted_content" in (body.get("include") or ()):
            item["encrypted_content"] = sign(f"state {own} {request.turns}")
        items.append(item)
    if answer.sources:
        action = {"type": "search", "query": QUERY, "queries": [QUERY]}
        if "web_search_call.action.sources" in (body.get("include") or ()):
            action["sources"] = [{"type": "url", "url": source.url} for source in answer.sources]
        items.append({"id": f"ws_{own}", "type": "web_search_call", "status": "completed", "action": action})
    parts: list[Json] = []
    if answer.words:
        notes = [_annotation(source) for source in answer.sources]
        parts.append({"type": "output_text", "text": answer.text, "annotations": notes, "logprobs": []})
    if answer.refusal:
        parts.append({"type": "refusal", "refusal": answer.refusal})
    if parts:
        status = "incomplete" if answer.finish in UNFINISHED else "completed"
        head = {"id": f"msg_{own}", "type": "message", "status": status, "role": "assistant"}
        items.append(head | {"content": parts})
    for position, call in enumerate(answer.calls):
        thought = "t" if answer.signed else ""
        namespace, _, called = call.name.rpartition(".")
        named = {"name": called} | ({"namespace": namespace} if namespace else {})
        named["call_id"] = f"call_{thought}{position}{letters(f'{own} {request.turns}')}"
        if call.free is None:
            item = {"id": f"fc_{thought}{own}_{position}", "type": "function_call", "arguments": call.text}
        else:
            item = {"id": f"ctc_{thought}{own}_{position}", "type": "custom_tool_call", "input": call.free}
        items.append(item | named | {"status": "completed"})
    return items


def thought_before(items: list[Json], position: int) -> bool:
    """Return whether reasoning precedes the group of calls at `position`; the assistant's text may be between them."""
    while position and (
        items[position - 1].get("type") == "function_call" or items[position - 1].get("role") == "assistant"
    ):
        position -= 1
    return position > 0 and items[position - 1].get("type") == "reasoning"


def _annotation(source: Source) -> Json:
    position = {"start_index": source.start, "end_index": source.end}
    return {"type": "url_citation", "url": source.url, "title": source.title, **position}


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.written + usage.written_long,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.prompt + usage.output,
    }


# --- the stream


def frames(response: Json, answer: Answer) -> Iterator[bytes]:
    """Yield the events of a streamed response, numbered."""
    for number, event in enumerate(_events(response, answer)):
        yield _frame(event | {"sequence_number": number})


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {compact(event)}\n\n".encode()


def failed(message: str, sent: list[bytes], *, bare: bool) -> bytes:
    """Return the end of a stream that failed: the response with its error, or the event `error`."""
    number, problem = len(sent), {"code": "server_error", "message": message}
    if bare:
        return _frame({"type": "error", **problem, "param": None, "sequence_number": number})
    response = json.loads(sent[0].partition(b"data: ")[2])["response"] | {"status": "failed", "error": problem}
    return _frame({"type": "response.failed", "response": response, "sequence_number": number})


def _events(response: Json, answer: Answer) -> Iterator[Json]:
    early = response | {"status": "in_progress", "output": [], "usage": None, "completed_at": None}
    early["incomplete_details"] = None
    yield {"type": "response.created", "response": early}
    yield {"type": "response.in_progress", "response": early}
    for index, item in enumerate(response["output"]):
        match item["type"]:
            case "reasoning":
                events = _reasoning(item, answer)
            case "web_search_call":
                events = _search(item)
            case "message":
                events = _message(item, answer)
            case _:
                events = _call(item)
        yield from (event | {"output_index": index} for event in events)
    yield {"type": f"response.{response['status']}", "response": response}


def _reasoning(item: Json, answer: Answer) -> Iterator[Json]:
    started = {"id": item["id"], "type": "reasoning", "summary": []}
    if "encrypted_content" in item:
        started["encrypted_content"] = item["encrypted_content"][:8]  # real streams begin with a shorter state
    yield {"type": "response.output_item.added", "item": started}
    for position, part in enumerate(item["summary"]):
        at = {"item_id": item["id"], "summary_index": position}
        empty = {"type": "summary_text", "text": ""}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": empty}
        for piece in answer.thoughts:
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "item": item}


def _search(item: Json) -> Iterator[Json]:
    started = {"id": item["id"], "type": "web_search_call", "status": "in_progress"}
    yield {"type": "response.output_item.added", "item": started}
    for state in ("in_progress", "searching", "completed"):
        yield {"type": f"response.web_search_call.{state}", "item_id": item["id"]}
    yield {"type": "response.output_item.done", "item": item}


def _message(item: Json, answer: Answer) -> Iterator[Json]:
    yield {"type": "response.output_item.added", "item": item | {"status": "in_progress", "content": []}}
    for position, part in enumerate(item["content"]):
        at = {"item_id": item["id"], "content_index": position}
        name, key = ("output_text", "text") if part["type"] == "output_text" else ("refusal", "refusal")
        empty = part | {key: ""} | ({"annotations": []} if key == "text" else {})
        more: Json = {"logprobs": []} if key == "text" else {}
        yield {"type": "response.content_part.added", **at, "part": empty}
        for piece in answer.words if key == "text" else (part[key][:9], part[key][9:]):
            yield {"type": f"response.{name}.delta", **at, "delta": piece, **more}
        for count, note in enumerate(part.get("annotations", ())):
            kind = "response.output_text.annotation.added"
            yield {"type": kind, **at, "annotation_index": count, "annotation": note}
        yield {"type": f"response.{name}.done", **at, key: part[key], **more}
        yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "item": item}


def _call(item: Json) -> Iterator[Json]:
    free = item["type"] == "custom_tool_call"
    key, kind = ("input", "custom_tool_call_input") if free else ("arguments", "function_call_arguments")
    arguments, at = item[key], {"item_id": item["id"]}
    yield {"type": "response.output_item.added", "item": item | {"status": "in_progress", key: ""}}
    for start in range(0, len(arguments), 9):
        yield {"type": f"response.{kind}.delta", **at, "delta": arguments[start : start + 9]}
    yield {"type": f"response.{kind}.done", **at, key: arguments} | ({} if free else {"name": item["name"]})
    yield {"type": "response.output_item.done", "item": item}

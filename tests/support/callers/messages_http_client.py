"""Plain HTTP client of the messages format: encodes requests and decodes answers."""

import base64
import json
from typing import Any

from tests.support.callers.requests import RESULTS, Json, Request, Turn


def encode_request(request: Request, model: str, previous: Turn | None = None) -> Json:
    messages: list[Any] = [{"role": role, "content": text} for role, text in request.history]
    content: list[Json] = [{"type": "text", "text": request.text}]
    for kind, media_type, data in (
        ("image", "image/png", request.image),
        ("document", "application/pdf", request.file),
    ):
        if data:
            source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
            content.append({"type": kind, "source": source})
    messages.append({"role": "user", "content": content if len(content) > 1 else request.text})
    if previous:
        results = [
            {"type": "tool_result", "tool_use_id": id_, "content": RESULTS[name]} for id_, name in previous.calls
        ]
        messages += [{"role": "assistant", "content": previous.content}, {"role": "user", "content": results}]
    body: Json = {"model": model, "max_tokens": request.limit, "messages": messages}
    if request.system:
        body["system"] = request.system
    tools: list[Json] = [
        {"name": name, "description": name, "input_schema": request.schemas[name]} for name in request.tools
    ]
    if request.tools:
        named = {"type": "tool", "name": request.choice}
        body["tool_choice"] = {"auto": {"type": "auto"}, "required": {"type": "any"}}.get(request.choice, named)
    if request.search:
        tools.append({"type": "web_search_20250305", "name": "web_search"})
    if tools:
        body["tools"] = tools
    if request.reasoning:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1025}
    if request.schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    if request.stop:
        body["stop_sequences"] = [request.stop]
    return body


def aggregate(events: list[Json]) -> Json:
    answer: Json = events[0]["message"]
    blocks: list[Json] = answer["content"]
    inputs: dict[int, str] = {}
    for event in events[1:]:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append(event["content_block"])
            case "content_block_delta":
                _delta(blocks[event["index"]], event["delta"], inputs, event["index"])
            case "message_delta":
                answer |= event["delta"]
                answer["usage"] |= {key: value for key, value in event["usage"].items() if value is not None}
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text or "{}")
    assert events[-1] == {"type": "message_stop"}
    return answer


def _delta(block: Json, delta: Json, inputs: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "compaction_delta":
            block["content"] = delta["content"]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case other:
            raise AssertionError(other)


def turn_of(answer: Json) -> Turn:
    calls = tuple((block["id"], block["name"]) for block in answer["content"] if block["type"] == "tool_use")
    return Turn(answer["content"], calls)

"""Plain HTTP client of Cohere's chat: encodes requests and decodes answers of the format."""

import json
from typing import Any

from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import RESULTS, Json, Request, Turn, data_url

FINISHES = {"COMPLETE": "STOP", "MAX_TOKENS": "LENGTH", "TOOL_CALL": "TOOL_CALLS"}
"""Finish reason -> canonical name, where the two differ."""


def encode_request(request: Request, model: str, previous: Turn | None = None) -> Json:
    messages: list[Any] = [{"role": "system", "content": request.system}] if request.system else []
    messages += [{"role": role, "content": text} for role, text in request.history]
    content: list[Json] = [{"type": "text", "text": request.text}]
    if request.image:
        content.append({"type": "image_url", "image_url": {"url": data_url("image/png", request.image)}})
    messages.append({"role": "user", "content": content if len(content) > 1 else request.text})
    if previous:
        messages.append(previous.content)
        messages += [{"role": "tool", "tool_call_id": id_, "content": RESULTS[name]} for id_, name in previous.calls]
    body: Json = {"model": model, "messages": messages, "max_tokens": request.limit}
    if request.tools:
        declared = [{"name": name, "description": name, "parameters": request.schemas[name]} for name in request.tools]
        body["tools"] = [{"type": "function", "function": function} for function in declared]
        if request.choice == "required":
            body["tool_choice"] = "REQUIRED"
    if request.reasoning:
        body["thinking"] = {"type": "enabled", "token_budget": 1025}
    if request.schema:
        body["response_format"] = {"type": "json_object", "json_schema": request.schema}
    if request.stop:
        body["stop_sequences"] = [request.stop]
    return body


def aggregate(events: list[Json]) -> Json:
    answer, message = {"id": events[0]["id"]}, events[0]["delta"]["message"]
    open_blocks, open_calls = set[int](), set[int]()
    assert events[0]["type"] == "message-start"
    for event in events[1:-1]:
        index = event["index"]
        delta = event["delta"]["message"] if "delta" in event else {}
        match event["type"]:
            case "content-start":
                assert index == len(message["content"])
                assert not open_blocks
                message["content"].append(delta["content"])
                open_blocks.add(index)
            case "content-delta":
                assert index in open_blocks
                for name, text in delta["content"].items():
                    message["content"][index][name] += text
            case "content-end":
                open_blocks.remove(index)
            case "tool-call-start":
                assert index == len(message["tool_calls"])
                assert not open_calls
                message["tool_calls"].append(delta["tool_calls"])
                open_calls.add(index)
            case "tool-call-delta":
                assert index in open_calls
                message["tool_calls"][index]["function"]["arguments"] += delta["tool_calls"]["function"]["arguments"]
            case "tool-call-end":
                open_calls.remove(index)
            case "citation-start":
                assert index == len(message["citations"])
                message["citations"].append(delta["citations"])
            case "citation-end":
                assert index < len(message["citations"])
            case other:
                raise AssertionError(other)
    assert not open_blocks
    assert not open_calls
    assert events[-1]["type"] == "message-end"
    return answer | events[-1]["delta"] | {"message": message}


def turn_of(answer: Json) -> Turn:
    message = {name: value for name, value in answer["message"].items() if value}
    calls = tuple((call["id"], call["function"]["name"]) for call in message.get("tool_calls", ()))
    return Turn(message, calls)


def answer_of(answer: Json) -> Answer:
    """Convert a response of this format to one that is independent of formats."""
    message, usage = answer["message"], answer["usage"]
    content = message.get("content") or []
    sources = [(each["sources"][0]["document"], each["text"]) for each in message.get("citations") or ()]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    tokens = usage["tokens"]
    return Answer(
        text="".join(part["text"] for part in content if part["type"] == "text"),
        reasoning="".join(part["thinking"] for part in content if part["type"] == "thinking"),
        calls=tuple((function["name"], json.loads(function["arguments"])) for function in calls),
        citations=tuple((source.get("url", ""), source["title"], text) for source, text in sources),
        finish=FINISHES.get(answer["finish_reason"], answer["finish_reason"]),
        usage=(tokens["input_tokens"], usage["cached_tokens"], tokens["output_tokens"], 0),
    )

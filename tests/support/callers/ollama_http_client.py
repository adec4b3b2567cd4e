"""Plain HTTP client of Ollama's API: encodes requests and decodes answers of both text paths."""

import base64
import copy
import json
from typing import Any

from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import RESULTS, Json, Request, Turn

FINISHES = {"stop": "STOP", "length": "LENGTH", "content_filter": "CONTENT_FILTER"}
"""Reason of the end -> canonical name."""


def encode_chat(request: Request, model: str, previous: Turn | None = None) -> Json:
    messages: list[Any] = [{"role": "system", "content": request.system}] if request.system else []
    messages += [{"role": role, "content": text} for role, text in request.history]
    question: Json = {"role": "user", "content": request.text}
    if request.image:
        question["images"] = [base64.b64encode(request.image).decode()]
    messages.append(question)
    if previous:
        messages.append(previous.content if not request.strips_unknown else _stripped(previous.content))
        messages += [
            {"role": "tool", "tool_name": name, "content": RESULTS[name]}
            | ({} if request.strips_unknown else {"tool_call_id": id_})
            for id_, name in previous.calls
        ]
    body: Json = {"model": model, "messages": messages, **_options(request)}
    if request.tools:
        declared = [{"name": name, "description": name, "parameters": request.schemas[name]} for name in request.tools]
        body["tools"] = [{"type": "function", "function": function} for function in declared]
    return body


def _stripped(message: Json) -> Json:
    calls = [call["function"] for call in message["tool_calls"]]
    return message | {"tool_calls": [{"function": {key: call[key] for key in ("name", "arguments")}} for call in calls]}


def encode_generate(request: Request, model: str, previous: Turn | None = None) -> Json:
    assert previous is None
    body: Json = {"model": model, "prompt": request.text, **_options(request)}
    if request.system:
        body["system"] = request.system
    if request.image:
        body["images"] = [base64.b64encode(request.image).decode()]
    return body


def _options(request: Request) -> Json:
    options: Json = {"num_predict": request.limit, "num_ctx": 8192}
    if request.stop:
        options["stop"] = [request.stop]
    found: Json = {"options": options, "keep_alive": "5m"}
    if request.reasoning:
        found["think"] = True
    if request.schema:
        found["format"] = request.schema
    return found


def lines(stream: bytes) -> list[Json]:
    """Return the JSON of the lines of a stream, as the client in Python splits them."""
    return [json.loads(line) for line in stream.decode().splitlines()]


def aggregate(lines: list[Json]) -> Json:
    """Aggregate the lines of a stream as callers do: texts and calls of all lines, and the rest of the last."""
    *pieces, answer = copy.deepcopy(lines)
    assert [line["done"] for line in lines] == [False] * len(pieces) + [True]
    target = answer.get("message", answer)
    for line in pieces:
        assert not {"total_duration", "done_reason"} & line.keys()
    parts = [line.get("message", line) for line in lines]
    for name in ("content", "response", "thinking"):
        if any(name in part for part in parts):
            target[name] = "".join(part.get(name, "") for part in parts)
    if calls := [call for part in parts for call in part.get("tool_calls", ())]:
        target["tool_calls"] = calls
    return answer


def turn_of(answer: Json) -> Turn:
    message = answer["message"]
    return Turn(message, tuple((call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())))


def answer_of(answer: Json) -> Answer:
    """Convert a response of either path to one that is independent of formats."""
    message = answer.get("message", answer)
    calls = [call["function"] for call in message.get("tool_calls", ())]
    assert [call["index"] for call in calls] == list(range(len(calls)))
    assert answer["total_duration"] >= answer["eval_duration"] > 0
    return Answer(
        text=message["content"] if "content" in message else message["response"],
        reasoning=message.get("thinking", ""),
        calls=tuple((call["name"], call["arguments"]) for call in calls),
        finish=FINISHES[answer["done_reason"]],
        usage=(answer["prompt_eval_count"], 0, answer["eval_count"], 0),
    )

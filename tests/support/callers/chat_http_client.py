"""Plain HTTP client of chat completions: encodes requests and decodes answers of the format."""

from typing import Any

from tests.support.callers.requests import RESULTS, Json, Request, Turn, data_url


def encode_request(request: Request, model: str, previous: Turn | None = None) -> Json:
    messages: list[Any] = [{"role": "system", "content": request.system}] if request.system else []
    messages += [{"role": role, "content": text} for role, text in request.history]
    content: list[Json] = [{"type": "text", "text": request.text}]
    if request.image:
        content.append({"type": "image_url", "image_url": {"url": data_url("image/png", request.image)}})
    if request.file:
        content.append(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", request.file)}}
        )
    messages.append({"role": "user", "content": content if len(content) > 1 else request.text})
    if previous:
        message = previous.content
        if request.strips_unknown:
            message = {key: message[key] for key in ("role", "content", "tool_calls") if key in message}
            message["tool_calls"] = [
                {key: call[key] for key in ("id", "type", "function")} for call in message["tool_calls"]
            ]
        messages.append(message)
        messages += [{"role": "tool", "tool_call_id": id_, "content": RESULTS[name]} for id_, name in previous.calls]
    body: Json = {"model": model, "messages": messages, "max_completion_tokens": request.limit}
    if request.tools:
        declared = [{"name": name, "description": name, "parameters": request.schemas[name]} for name in request.tools]
        body["tools"] = [{"type": "function", "function": function} for function in declared]
        named = {"type": "function", "function": {"name": request.choice}}
        body["tool_choice"] = request.choice if request.choice in ("auto", "required") else named
    if request.visible_reasoning:
        body["extra_body"] = {"google": {"thinking_config": {"include_thoughts": True, "thinking_budget": 1025}}}
    elif request.reasoning:
        body["reasoning_effort"] = "high"
    if request.schema:
        described = {"name": "city", "schema": request.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    if request.search:
        body["web_search_options"] = {}
    if request.stop:
        body["stop"] = [request.stop]
    return body


def aggregate(chunks: list[Json]) -> Json:
    answer: Json = {**chunks[0], "object": "chat.completion"}
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    choice: Json = {"index": 0, "message": message, "finish_reason": None}
    for chunk in chunks:
        answer["usage"] = chunk.get("usage") or answer.get("usage")
        for piece in chunk["choices"]:
            choice["finish_reason"] = piece["finish_reason"] or choice["finish_reason"]
            for key, value in piece["delta"].items():
                if key == "tool_calls":
                    for call in value:
                        _call(calls.setdefault(call["index"], {}), call)
                elif isinstance(value, str) and key != "role":
                    message[key] = (message.get(key) or "") + value
                elif value is not None:
                    message[key] = value
    if calls:
        message["tool_calls"] = [call for _, call in sorted(calls.items())]
    answer["choices"] = [choice]
    return answer


def _call(call: Json, piece: Json) -> None:
    function = call.setdefault("function", {"arguments": ""})
    for key, value in piece.items():
        if key == "function":
            function["arguments"] += value.get("arguments") or ""
            function.update({name: each for name, each in value.items() if name != "arguments"})
        elif key != "index":
            call[key] = value


def turn_of(answer: Json) -> Turn:
    message = answer["choices"][0]["message"]
    calls = tuple((call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ())
    return Turn({key: value for key, value in message.items() if value is not None or key == "content"}, calls)

"""The four faces as plain HTTP clients meet them: how each writes a wish, and how it takes an answer into its history."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.providers.scenarios import TOOLS

Json = dict[str, Any]
RESULTS = {"get_weather": "21 degrees", "get_time": "noon", "refresh": "done"}


@dataclass(frozen=True)
class Wish:
    """What a caller wants, in the words of no format."""

    text: str
    system: str = ""
    history: tuple[tuple[str, str], ...] = ()  # (user or assistant, text) before it
    tools: tuple[str, ...] = ()  # names in TOOLS
    choice: str = "auto"  # auto, required, or a tool's name
    thinking: bool = False
    schema: Any = None
    search: bool = False
    stop: str = ""
    limit: int = 3000
    image: bytes = b""  # of image/png
    file: bytes = b""  # of application/pdf
    schemas: Mapping[str, Any] = field(default_factory=lambda: TOOLS)  # of the tools' arguments
    keeps: bool = False  # responses: goes on by the id of the response; else by its items
    strips: bool = False  # chat: sends back only the fields that the format's document has
    thoughts_shown: bool = False  # chat: asks for the thoughts too, which `reasoning_effort` does not


@dataclass(frozen=True)
class Turn:
    """An answer that goes into the history, and the calls that it asked for."""

    said: Any  # in the format's own form
    calls: tuple[tuple[str, str], ...]  # (id, name of the tool)


@dataclass(frozen=True)
class Face:
    """A format as its clients speak it."""

    name: str
    path: Callable[[str, bool], str]
    credentials: Callable[[str], dict[str, str]]
    body: Callable[[Wish, str, Turn | None], Json]
    whole: Callable[[list[Json]], Json]  # the answer that a stream's events make, as clients put it together
    turn: Callable[[Json], Turn]


def data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def events(stream: bytes) -> list[Json]:
    """The JSON of a stream's data lines, save its end marker."""
    return [
        json.loads(line[5:])
        for line in stream.decode().split("\n")
        if line.startswith("data:") and line != "data: [DONE]"
    ]


# --- chat completions


def _chat_body(wish: Wish, model: str, before: Turn | None) -> Json:
    messages: list[Any] = [{"role": "system", "content": wish.system}] if wish.system else []
    messages += [{"role": role, "content": text} for role, text in wish.history]
    content: list[Json] = [{"type": "text", "text": wish.text}]
    if wish.image:
        content.append({"type": "image_url", "image_url": {"url": data_url("image/png", wish.image)}})
    if wish.file:
        content.append(
            {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", wish.file)}}
        )
    messages.append({"role": "user", "content": content if len(content) > 1 else wish.text})
    if before:
        said = before.said
        if wish.strips:
            said = {key: said[key] for key in ("role", "content", "tool_calls") if key in said}
            said["tool_calls"] = [{key: call[key] for key in ("id", "type", "function")} for call in said["tool_calls"]]
        messages.append(said)
        messages += [{"role": "tool", "tool_call_id": id_, "content": RESULTS[name]} for id_, name in before.calls]
    body: Json = {"model": model, "messages": messages, "max_completion_tokens": wish.limit}
    if wish.tools:
        declared = [{"name": name, "description": name, "parameters": wish.schemas[name]} for name in wish.tools]
        body["tools"] = [{"type": "function", "function": function} for function in declared]
        named = {"type": "function", "function": {"name": wish.choice}}
        body["tool_choice"] = wish.choice if wish.choice in ("auto", "required") else named
    if wish.thoughts_shown:
        body["extra_body"] = {"google": {"thinking_config": {"include_thoughts": True, "thinking_budget": 1025}}}
    elif wish.thinking:
        body["reasoning_effort"] = "high"
    if wish.schema:
        described = {"name": "city", "schema": wish.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    if wish.search:
        body["web_search_options"] = {}
    if wish.stop:
        body["stop"] = [wish.stop]
    return body


def _chat_whole(chunks: list[Json]) -> Json:
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
                        _chat_call(calls.setdefault(call["index"], {}), call)
                elif isinstance(value, str) and key != "role":
                    message[key] = (message.get(key) or "") + value
                elif value is not None:
                    message[key] = value
    if calls:
        message["tool_calls"] = [call for _, call in sorted(calls.items())]
    answer["choices"] = [choice]
    return answer


def _chat_call(call: Json, piece: Json) -> None:
    function = call.setdefault("function", {"arguments": ""})
    for key, value in piece.items():
        if key == "function":
            function["arguments"] += value.get("arguments") or ""
            function.update({name: each for name, each in value.items() if name != "arguments"})
        elif key != "index":
            call[key] = value


def _chat_turn(answer: Json) -> Turn:
    message = answer["choices"][0]["message"]
    calls = tuple((call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ())
    return Turn({key: value for key, value in message.items() if value is not None or key == "content"}, calls)


# --- responses


def _responses_body(wish: Wish, model: str, before: Turn | None) -> Json:
    items: list[Any] = [{"role": role, "content": text} for role, text in wish.history]
    content: list[Json] = [{"type": "input_text", "text": wish.text}]
    if wish.image:
        content.append({"type": "input_image", "image_url": data_url("image/png", wish.image), "detail": "auto"})
    if wish.file:
        content.append({"type": "input_file", "filename": "a.pdf", "file_data": data_url("application/pdf", wish.file)})
    items.append({"role": "user", "content": content if len(content) > 1 else wish.text})
    body: Json = {"model": model, "max_output_tokens": wish.limit, "store": wish.keeps}
    if before:
        if wish.keeps:
            items, body["previous_response_id"] = [], before.said["id"]
        else:
            items += before.said["output"]
        items += [
            {"type": "function_call_output", "call_id": id_, "output": RESULTS[name]} for id_, name in before.calls
        ]
    body["input"] = items
    if wish.system:
        body["instructions"] = wish.system
    tools: list[Json] = [
        {"type": "function", "name": name, "description": name, "parameters": wish.schemas[name], "strict": False}
        for name in wish.tools
    ]
    if wish.tools:
        named = {"type": "function", "name": wish.choice}
        body["tool_choice"] = wish.choice if wish.choice in ("auto", "required") else named
    if wish.search:
        tools.append({"type": "web_search"})
    if tools:
        body["tools"] = tools
    if wish.thinking:
        body["reasoning"] = {"effort": "high", "summary": "auto"}
        if not wish.keeps:
            body["include"] = ["reasoning.encrypted_content"]
    if wish.schema:
        body["text"] = {"format": {"type": "json_schema", "name": "city", "schema": wish.schema, "strict": True}}
    return body


def _responses_whole(told: list[Json]) -> Json:
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert told[-1]["type"] in ("response.completed", "response.incomplete"), told[-1]
    last: Json = told[-1]["response"]
    items = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert items == last["output"]
    return last


def _responses_turn(answer: Json) -> Turn:
    calls = tuple((item["call_id"], item["name"]) for item in answer["output"] if item["type"] == "function_call")
    return Turn(answer, calls)


# --- messages


def _messages_body(wish: Wish, model: str, before: Turn | None) -> Json:
    messages: list[Any] = [{"role": role, "content": text} for role, text in wish.history]
    content: list[Json] = [{"type": "text", "text": wish.text}]
    for kind, media_type, data in (("image", "image/png", wish.image), ("document", "application/pdf", wish.file)):
        if data:
            source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
            content.append({"type": kind, "source": source})
    messages.append({"role": "user", "content": content if len(content) > 1 else wish.text})
    if before:
        results = [{"type": "tool_result", "tool_use_id": id_, "content": RESULTS[name]} for id_, name in before.calls]
        messages += [{"role": "assistant", "content": before.said}, {"role": "user", "content": results}]
    body: Json = {"model": model, "max_tokens": wish.limit, "messages": messages}
    if wish.system:
        body["system"] = wish.system
    tools: list[Json] = [{"name": name, "description": name, "input_schema": wish.schemas[name]} for name in wish.tools]
    if wish.tools:
        named = {"type": "tool", "name": wish.choice}
        body["tool_choice"] = {"auto": {"type": "auto"}, "required": {"type": "any"}}.get(wish.choice, named)
    if wish.search:
        tools.append({"type": "web_search_20250305", "name": "web_search"})
    if tools:
        body["tools"] = tools
    if wish.thinking:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1025}
    if wish.schema:
        body["output_config"] = {"format": {"type": "json_schema", "schema": wish.schema}}
    if wish.stop:
        body["stop_sequences"] = [wish.stop]
    return body


def _messages_whole(told: list[Json]) -> Json:
    answer: Json = told[0]["message"]
    blocks: list[Json] = answer["content"]
    inputs: dict[int, str] = {}
    for event in told[1:]:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append(event["content_block"])
            case "content_block_delta":
                _messages_delta(blocks[event["index"]], event["delta"], inputs, event["index"])
            case "message_delta":
                answer |= event["delta"]
                answer["usage"] |= {key: value for key, value in event["usage"].items() if value is not None}
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text or "{}")
    assert told[-1] == {"type": "message_stop"}
    return answer


def _messages_delta(block: Json, delta: Json, inputs: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case other:
            raise AssertionError(other)


def _messages_turn(answer: Json) -> Turn:
    calls = tuple((block["id"], block["name"]) for block in answer["content"] if block["type"] == "tool_use")
    return Turn(answer["content"], calls)


# --- native generate


def _native_body(wish: Wish, model: str, before: Turn | None) -> Json:
    roles = {"user": "user", "assistant": "model"}
    contents: list[Any] = [{"role": roles[role], "parts": [{"text": text}]} for role, text in wish.history]
    parts: list[Json] = [{"text": wish.text}]
    for media_type, data in (("image/png", wish.image), ("application/pdf", wish.file)):
        if data:
            parts.append({"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}})
    contents.append({"role": "user", "parts": parts})
    if before:
        results = [
            {"functionResponse": {"name": name, "response": {"output": RESULTS[name]}} | ({"id": id_} if id_ else {})}
            for id_, name in before.calls
        ]
        contents += [{"role": "model", "parts": before.said}, {"role": "user", "parts": results}]
    config: Json = {"maxOutputTokens": wish.limit}
    body: Json = {"contents": contents, "generationConfig": config}
    if wish.system:
        body["systemInstruction"] = {"parts": [{"text": wish.system}]}
    tools: list[Json] = []
    if wish.tools:
        declared = [
            {"name": name, "description": name, "parametersJsonSchema": wish.schemas[name]} for name in wish.tools
        ]
        tools.append({"functionDeclarations": declared})
        calling: Json = {"mode": "AUTO" if wish.choice == "auto" else "ANY"}
        if wish.choice not in ("auto", "required"):
            calling["allowedFunctionNames"] = [wish.choice]
        body["toolConfig"] = {"functionCallingConfig": calling}
    if wish.search:
        tools.append({"googleSearch": {}})
    if tools:
        body["tools"] = tools
    if wish.thinking:
        config["thinkingConfig"] = {"includeThoughts": True, "thinkingBudget": 1024}
    if wish.schema:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": wish.schema}
    if wish.stop:
        config["stopSequences"] = [wish.stop]
    return body


def _native_whole(chunks: list[Json]) -> Json:
    """As users of the SDK put a history together: the parts of all chunks, and the rest of the last."""
    parts = [part for chunk in chunks for part in _native_parts(chunk)]
    answer = chunks[-1]
    if answer.get("candidates"):
        grounding = [found for chunk in chunks if (found := chunk["candidates"][0].get("groundingMetadata"))]
        answer["candidates"][0]["content"] = {"role": "model", "parts": parts}
        answer["candidates"][0] |= {"groundingMetadata": grounding[-1]} if grounding else {}
    return answer


def _native_parts(answer: Json) -> Iterator[Json]:
    for candidate in answer.get("candidates") or ():
        yield from candidate["content"].get("parts") or ()


def _native_turn(answer: Json) -> Turn:
    parts = list(_native_parts(answer))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return Turn(parts, tuple((call.get("id", ""), call["name"]) for call in calls))


def _bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def _native_path(model: str, stream: bool) -> str:
    return f"/v1beta/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"


FACES = {
    face.name: face
    for face in (
        Face("chat", lambda *_: "/v1/chat/completions", _bearer, _chat_body, _chat_whole, _chat_turn),
        Face("responses", lambda *_: "/v1/responses", _bearer, _responses_body, _responses_whole, _responses_turn),
        Face(
            "messages",
            lambda *_: "/v1/messages",
            lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
            _messages_body,
            _messages_whole,
            _messages_turn,
        ),
        Face("native", _native_path, lambda key: {"x-goog-api-key": key}, _native_body, _native_whole, _native_turn),
    )
}


def asked_for_a_stream(face: Face, body: Json) -> Json:
    """The body that asks for its answer as a stream, as the format's clients do."""
    match face.name:
        case "native":
            return body
        case "chat":
            return body | {"stream": True, "stream_options": {"include_usage": True}}
        case _:
            return body | {"stream": True}


# (members of the body, members of its error) that every error of the format has
SHAPES = {
    "chat": ({"error"}, {"message", "type", "param", "code"}),
    "responses": ({"error"}, {"message", "type", "param", "code"}),
    "messages": ({"type", "error", "request_id"}, {"type", "message"}),
    "native": ({"error"}, {"code", "message", "status"}),
}


def is_the_faces_own(face: str, body: bytes) -> bool:
    """Whether an error is written as the format has it."""
    value, (outer, inner) = json.loads(body), SHAPES[face]
    return set(value) == outer and inner <= set(value["error"]) <= inner | {"details"}

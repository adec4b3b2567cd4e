"""Strict fake provider of chat completions (reference, section 1).

Accepts the fields of `openai.types.chat.completion_create_params`, and beyond them only EXTENSIONS.
"""

import re
from collections.abc import Iterator
from typing import Any

from aiohttp import web

from tests.support.providers.common import IMAGES, arguments, bracketed, compact, letters, media_at, media_of
from tests.support.providers.scenarios import Answer, Media, Result, ScenarioRequest, Source, Usage, turns
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.typed_dict_validation import Leniency, check

EXTENSIONS = {
    "ChatCompletionAssistantMessageParam": {
        # The reasoning before the calls comes back here: providers that send reasoning in chat refuse a tool turn
        # without it (reference, 7.23).
        "reasoning_content": str,
        # Some coding agents send the reasoning under this name too, as providers of open models name it.
        "reasoning": str,
        # Callers append the message that they received, which has annotations; no request type of the SDK does.
        "annotations": list[object] | None,
    }
}
# `name` of a tool message is in the text document and in no type of the SDK; providers do not take it.
LENIENCY = Leniency(optional={}, extra=EXTENSIONS)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RANGES = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
    "n": (1, 128),
    "max_tokens": (1, 1 << 20),
    "max_completion_tokens": (1, 1 << 20),
}
CREATED = 1760000000
FINISH = {"stop": "stop", "stop_sequence": "stop", "length": "length", "refusal": "stop"}
FINISH |= {"filter": "content_filter", "blocked": "content_filter"}


class Chat:
    """Strict fake provider of chat completions (see the module)."""

    name = "chat"
    base_path = "/v1"
    heartbeat = b": ping\n\n"

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError("Incorrect API key provided.", code="invalid_api_key", status=401)

    def generates(self, received: ReceivedRequest) -> bool:
        return (received.method, received.path) == ("POST", "/v1/chat/completions")

    def other(self, received: ReceivedRequest) -> Json | None:
        return None

    def content_type(self, request: web.Request) -> str:
        return "text/event-stream; charset=utf-8"

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        kinds = {401: "invalid_request_error", 429: "rate_limit_error"}
        kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
        known = {404: "model_not_found", 429: "rate_limit_exceeded"}
        return {"error": {"message": message, "type": kind, "param": at, "code": code or known.get(status)}}

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return frame(self.error(500, message, None, None))

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        # here: the faulty provider imports this module in each of its processes, and does not check requests
        from openai.types.chat.completion_create_params import (
            CompletionCreateParamsNonStreaming,
            CompletionCreateParamsStreaming,
        )

        body = received.json
        streamed = body.get("stream") is True
        of = CompletionCreateParamsStreaming if streamed else CompletionCreateParamsNonStreaming
        if problem := check(body, of, LENIENCY):
            at = bracketed(problem.path)
            if problem.kind == "unknown":
                raise RefusedError(f"Unrecognized request argument supplied: {at}", at, "unknown_parameter")
            raise RefusedError(f"{at}: {problem.message}", at, "invalid_value")
        _judge(body, streamed)
        return _scenario_request(body, streamed)

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        message: Json = {"role": "assistant", "content": answer.text or None, "refusal": answer.refusal or None}
        message["annotations"] = [_annotation(source) for source in answer.sources]
        if answer.thoughts:
            message["reasoning_content"] = answer.thought
        if answer.calls:
            message["tool_calls"] = _calls(request, answer)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return _head(request, "chat.completion") | {"choices": [choice], "usage": _usage(answer.usage)}

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        with_usage = (received.json.get("stream_options") or {}).get("include_usage")
        head = _head(request, "chat.completion.chunk")

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return frame(head | {"choices": [choice]} | ({"usage": None} if with_usage else {}))

        yield chunk({"role": "assistant", "content": None if answer.calls else "", "refusal": None})
        yield from (chunk({"reasoning_content": piece}) for piece in answer.thoughts)
        yield from (chunk({"content": piece}) for piece in answer.words)
        if answer.sources:
            yield chunk({"annotations": [_annotation(source) for source in answer.sources]})
        if answer.refusal:
            yield from (chunk({"refusal": piece}) for piece in (answer.refusal[:9], answer.refusal[9:]))
        for index, call in enumerate(_calls(request, answer)):
            arguments, call["function"]["arguments"] = call["function"]["arguments"], ""
            yield chunk({"tool_calls": [{"index": index, **call}]})
            for start in range(0, len(arguments), 9):
                piece = {"index": index, "function": {"arguments": arguments[start : start + 9]}}
                yield chunk({"tool_calls": [piece]})
        yield chunk({}, _finish(answer))
        if with_usage:
            yield frame(head | {"choices": [], "usage": _usage(answer.usage)})
        yield b"data: [DONE]\n\n"


def frame(event: Json) -> bytes:
    return f"data: {compact(event)}\n\n".encode()


# --- rules beyond the types


def _judge(body: Json, streamed: bool) -> None:
    """Check a request by the rules of the API that the types do not express. Raise RefusedError."""
    for name, (low, high) in RANGES.items():
        if (value := body.get(name)) is not None and not low <= value <= high:
            raise RefusedError(f"Invalid '{name}': {value} is not between {low} and {high}.", name, "invalid_value")
    if body.get("stream_options") is not None and not streamed:
        raise RefusedError(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            "invalid_value",
        )
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise RefusedError(
            "'max_tokens' and 'max_completion_tokens' cannot both be set.", "max_tokens", "invalid_value"
        )
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise RefusedError("'top_logprobs' needs 'logprobs'.", "top_logprobs", "invalid_value")
    if isinstance(body.get("stop"), list) and not 1 <= len(body["stop"]) <= 4:
        raise RefusedError("Invalid 'stop': expected 1 to 4 of them.", "stop", "invalid_value")
    _judge_tools(body)
    _judge_format(body)
    if not body["messages"]:
        raise RefusedError("Invalid 'messages': empty array.", "messages", "empty_array")
    _judge_messages(body["messages"])


def _judge_tools(body: Json) -> None:
    tools = body.get("tools")
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in body and not tools:
            raise RefusedError(f"'{name}' is only allowed when 'tools' are specified.", name, "invalid_value")
    if tools == []:
        raise RefusedError("Invalid 'tools': empty array.", "tools", "empty_array")
    for index, tool in enumerate(tools or ()):
        at, described = f"tools[{index}].{tool['type']}", tool[tool["type"]]
        if not NAME.fullmatch(described["name"]):
            raise RefusedError(f"Invalid '{at}.name': {described['name']!r}.", f"{at}.name", "invalid_value")
        schema = described.get("parameters")
        if schema and schema.get("type") != "object":
            message = f"Invalid schema for function '{described['name']}': schema must be of type \"object\"."
            raise RefusedError(message, f"{at}.parameters", "invalid_function_parameters")
        if described.get("strict"):
            judge_strict(schema, f"{at}.parameters")
    names = {tool[tool["type"]]["name"] for tool in tools or ()}
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] in ("function", "custom"):
        wanted = choice[choice["type"]]["name"]
        if wanted not in names:
            raise RefusedError(f"Tool choice '{wanted}' not found in 'tools'.", "tool_choice", "invalid_value")


def judge_strict(schema: Any, at: str) -> None:
    """Check the schema of a strict tool: every object is closed and all its properties are required. Raise
    RefusedError.
    """
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            raise RefusedError(f"Invalid schema: {at}: 'additionalProperties' is required to be false.", at)
        if set(schema.get("required", [])) != set(schema.get("properties", {})):
            raise RefusedError(f"Invalid schema: {at}: 'required' must name every key of properties.", at)
    for key, each in schema.get("properties", {}).items():
        judge_strict(each, f"{at}.{key}")
    judge_strict(schema.get("items"), f"{at}.items")


def _judge_format(body: Json) -> None:
    wanted = body.get("response_format") or {"type": "text"}
    if wanted["type"] == "json_object" and "json" not in compact(body["messages"]).lower():
        message = (
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
        )
        raise RefusedError(message, "messages")
    if wanted["type"] == "json_schema":
        described = wanted["json_schema"]
        if not NAME.fullmatch(described["name"]):
            raise RefusedError("Invalid 'response_format.json_schema.name'.", "response_format.json_schema.name")
        if described.get("strict"):
            judge_strict(described.get("schema"), "response_format.json_schema.schema")


def _judge_messages(messages: list[Json]) -> None:
    """Check that calls are answered directly after them, each once. Raise RefusedError."""
    waiting: dict[str, int] = {}
    for index, message in enumerate(messages):
        at = f"messages[{index}]"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                raise RefusedError(f"Invalid parameter: {text}", f"{at}.role")
            del waiting[message["tool_call_id"]]
            continue
        _all_answered(waiting, at)
        if message["role"] == "assistant":
            if message.get("content") in (None, "", []) and not any(
                message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio")
            ):
                raise RefusedError(
                    f"Invalid value for 'content' of {at}: expected a string, got null.", f"{at}.content"
                )
            if message.get("tool_calls") == []:
                raise RefusedError(f"Invalid '{at}.tool_calls': empty array.", f"{at}.tool_calls", "empty_array")
            for call in message.get("tool_calls") or ():
                if not 0 < len(call["id"]) <= 64:  # 64 and no more: the API's own bound
                    raise RefusedError(
                        f"Invalid '{at}.tool_calls[].id': 1 to 64 characters.", at, "string_above_max_length"
                    )
                if call["type"] == "function":
                    arguments(call["function"]["arguments"], at)
                waiting[call["id"]] = index
    _all_answered(waiting, "messages")


def _all_answered(waiting: dict[str, int], at: str) -> None:
    if waiting:
        message = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
        )
        raise RefusedError(message, f"{at}.role")


# --- the request for the scenarios


def _scenario_request(body: Json, streamed: bool) -> ScenarioRequest:
    systems, conversation, media = [], [], []
    for index, message in enumerate(body["messages"]):
        text = _text(message.get("content"))
        if message["role"] in ("system", "developer"):
            systems.append(text)
        elif message["role"] in ("user", "assistant"):
            conversation.append((message["role"], text))
            media += _media(message.get("content"), f"messages[{index}].content")
    choice, wanted = body.get("tool_choice", "auto"), body.get("response_format") or {"type": "text"}
    stop = body.get("stop") or ()
    return ScenarioRequest(
        model=body["model"],
        stream=streamed,
        system="\n\n".join(systems),
        turns=turns(conversation),
        media=tuple(media),
        tools={
            tool["function"]["name"]: tool["function"].get("parameters") or {}
            for tool in body.get("tools") or ()
            if tool["type"] == "function"
        },
        choice=choice if isinstance(choice, str) else choice.get(choice["type"], {}).get("name", "auto"),
        results=_results(body["messages"]),
        thinking=body.get("reasoning_effort") != "none",
        thought_back=_thought_back(body["messages"]),
        json=wanted["type"] != "text",
        schema=wanted.get("json_schema", {}).get("schema"),
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        limit=body.get("max_completion_tokens") or body.get("max_tokens"),
        search="web_search_options" in body,
    )


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "\n".join(
        part.get("text") or part.get("refusal") or "" for part in content if "text" in part or "refusal" in part
    )


def _media(content: Any, at: str) -> Iterator[Media]:
    for index, part in enumerate(content if isinstance(content, list) else ()):
        where = f"{at}[{index}]"
        if part["type"] == "image_url":
            yield media_at(part["image_url"]["url"], IMAGES, f"{where}.image_url.url")
        elif part["type"] == "input_audio":
            sound = part["input_audio"]
            yield media_at(f"data:audio/{sound['format']};base64,{sound['data']}", ("audio/wav", "audio/mp3"), where)
        elif part["type"] == "file":
            if "file_data" in part["file"]:
                if not part["file"].get("filename"):
                    raise RefusedError(f"Missing required parameter: '{where}.file.filename'.", where)
                found = media_at(part["file"]["file_data"], ("application/pdf",), f"{where}.file.file_data")
                yield media_of(found.type, found.data, ("application/pdf",), where)
            elif not part["file"].get("file_id"):
                raise RefusedError(f"Missing required parameter: '{where}.file.file_id'.", where)


def _last_calls(messages: list[Json]) -> Json:
    for message in reversed(messages):
        if message["role"] not in ("tool", "system", "developer"):
            return message
    return {"role": ""}


def _results(messages: list[Json]) -> tuple[Result, ...]:
    calls = _last_calls(messages).get("tool_calls") or ()
    texts = {message["tool_call_id"]: _text(message["content"]) for message in messages if message["role"] == "tool"}
    return tuple(Result(call[call["type"]]["name"], texts[call["id"]]) for call in calls)


def _thought_back(messages: list[Json]) -> bool:
    """Return whether the client sent back the reasoning before the tool calls."""
    last = _last_calls(messages)
    signed = [call["id"] for call in last.get("tool_calls") or () if call["id"].startswith("call_t")]
    if not signed:
        return False
    thought = last.get("reasoning_content")
    if thought is None or any(_thought_id(thought, position) != name for position, name in enumerate(signed)):
        at = f"messages[{messages.index(last)}].reasoning_content"
        raise RefusedError(f"Missing or changed `reasoning_content` of an assistant message with tool calls: {at}", at)
    return True


# --- the response


def _thought_id(thought: str, position: int) -> str:
    return f"call_t{position}{letters(''.join(thought.split()))}"


def _calls(request: ScenarioRequest, answer: Answer) -> list[Json]:
    return [
        {
            "id": _thought_id(answer.thought, position)
            if answer.signed
            else f"call_{position}{letters(str(request.turns))}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.text},
        }
        for position, call in enumerate(answer.calls)
    ]


def _head(request: ScenarioRequest, kind: str) -> Json:
    head = {"id": f"chatcmpl-{letters(request.step)}", "object": kind, "created": CREATED, "model": request.model}
    return head | {"service_tier": "default", "system_fingerprint": "fp_1"}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else FINISH[answer.finish]


def _annotation(source: Source) -> Json:
    position = {"start_index": source.start, "end_index": source.end}
    return {"type": "url_citation", "url_citation": {"url": source.url, "title": source.title, **position}}


def _usage(usage: Usage) -> Json:
    written, misses = usage.written + usage.written_long, usage.prompt - usage.cached
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        **({"prompt_cache_hit_tokens": usage.cached, "prompt_cache_miss_tokens": misses} if usage.has_misses else {}),
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0}
        | ({"cache_write_tokens": written} if written else {}),
        "completion_tokens_details": {
            "reasoning_tokens": usage.thoughts,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }

"""Strict fake provider of messages (reference, section 3): the rules for requests. `messages_wire` has the responses.

Accepts the fields of `anthropic.types.message_create_params`, or of its beta where the header `anthropic-beta` is
there, and beyond them only EXTENSIONS.
"""

import re
from collections.abc import Iterator
from typing import Any

from aiohttp import web
from anthropic.types import message_create_params as plain
from anthropic.types.beta import message_create_params as beta

from tests.support.providers import messages_wire as wire
from tests.support.providers.common import IMAGES, decoded, dotted, media_of
from tests.support.providers.scenarios import Answer, Media, Result, ScenarioRequest, turns
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.typed_dict_validation import Leniency, check

SAMPLING = {"temperature": float, "top_p": float, "top_k": int}
# The newest types do not list the three sampling fields; the API takes them (reference, 3.1).
EXTENSIONS = dict.fromkeys(("MessageCreateParamsNonStreaming", "MessageCreateParamsStreaming"), SAMPLING)
LENIENCY = Leniency(optional={}, extra=EXTENSIONS)

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
CACHE_MARKS = 4
LEAST_BUDGET = 1024


class Messages:
    """Strict fake provider of messages (see the module)."""

    name = "messages"
    base_path = "/v1"
    heartbeat = b": ping\n\n" + wire.event({"type": "ping"})

    def admit(self, received: ReceivedRequest) -> None:
        if KEY not in (
            received.headers.get("x-api-key"),
            received.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            raise RefusedError("invalid x-api-key", status=401)
        if "anthropic-version" not in received.headers:
            raise RefusedError("anthropic-version: header is required")

    def generates(self, received: ReceivedRequest) -> bool:
        return (received.method, received.path) == ("POST", "/v1/messages")

    def other(self, received: ReceivedRequest) -> Json | None:
        return None

    def content_type(self, request: web.Request) -> str:
        return "text/event-stream; charset=utf-8"

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        return wire.error(status, message)

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return wire.event(wire.error(529, message))

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body = received.json
        streamed = body.get("stream") is True
        types = beta if "anthropic-beta" in received.headers else plain
        of = types.MessageCreateParamsStreaming if streamed else types.MessageCreateParamsNonStreaming
        if problem := check(body, of, LENIENCY):
            at = dotted(problem.path)
            descriptions = {"unknown": "Extra inputs are not permitted", "missing": "Field required"}
            raise RefusedError(f"{at}: {descriptions.get(problem.kind, problem.message)}", at)
        _judge_options(body)
        _judge_tools(body)
        merged = _merged(body["messages"])
        _judge_messages(merged)
        _judge_thinking(body, merged)
        if (marks := _marks(body)) > CACHE_MARKS:
            raise RefusedError(f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
        return _scenario_request(body, merged, streamed)

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        return wire.whole(request, answer, wire.omitted(received.json))

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        return wire.frames(request, answer, wire.omitted(received.json))


# --- rules beyond the types


def _judge_options(body: Json) -> None:
    if body["max_tokens"] < 1:
        raise RefusedError("max_tokens: must be greater than or equal to 1", "max_tokens")
    for name in ("temperature", "top_p"):
        if not 0 <= body.get(name, 0) <= 1:
            raise RefusedError(f"{name}: range: 0..1", name)
    for name in body:
        if body[name] is None and name in SAMPLING:
            raise RefusedError(f"{name}: Input should be a valid number", name)
    for stop in body.get("stop_sequences", ()):
        if not stop.strip():
            raise RefusedError("stop_sequences: each stop sequence must contain non-whitespace", "stop_sequences")
    if isinstance(body.get("system"), list):
        for index, block in enumerate(body["system"]):
            _judge_text(block, f"system.{index}")
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    if schema is not None:
        _closed(schema, "output_config.format.schema")


def _closed(schema: Any, at: str) -> None:
    """Check that every object of a format's schema is closed: `additionalProperties: false` is required."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            raise RefusedError(f"{at}: For 'object' type, 'additionalProperties' must be explicitly set to false", at)
        for key, each in schema.get("properties", {}).items():
            _closed(each, f"{at}.properties.{key}")
        _closed(schema.get("items"), f"{at}.items")


def _judge_tools(body: Json) -> None:
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    names = [tool["name"] for tool in tools if "name" in tool]
    if len(set(names)) != len(names):
        raise RefusedError("tools: Tool names must be unique.", "tools")
    for index, tool in enumerate(tools):
        if tool.get("type") not in (None, "custom"):
            continue
        if not TOOL_NAME.fullmatch(tool["name"]):
            raise RefusedError(f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["input_schema"].get("type") != "object":
            raise RefusedError(f"tools.{index}.custom.input_schema.type: Input should be 'object'")
        if any(name in tool["input_schema"] for name in ("oneOf", "allOf", "anyOf")):
            raise RefusedError(
                f"tools.{index}.custom.input_schema: does not support oneOf, allOf, or anyOf at the top level"
            )
    if choice and not tools:
        raise RefusedError("tool_choice: may only be specified while providing tools.", "tool_choice")
    if choice and choice["type"] == "tool" and choice["name"] not in names:
        raise RefusedError(f"Tool '{choice['name']}' not found in provided tools", "tool_choice")


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _merged(messages: list[Json]) -> list[tuple[str, list[Json]]]:
    """Return the turns of a conversation: adjacent messages of one role are one turn."""
    merged: list[tuple[str, list[Json]]] = []
    for message in messages:
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(_blocks(message["content"]))
        else:
            merged.append((message["role"], list(_blocks(message["content"]))))
    return merged


def _judge_messages(merged: list[tuple[str, list[Json]]]) -> None:
    if not merged:
        raise RefusedError("messages: at least one message is required", "messages")
    for index, (role, blocks) in enumerate(merged):
        at, last = f"messages.{index}", index == len(merged) - 1
        if not blocks and not (last and role == "assistant"):
            raise RefusedError(
                f"{at}: all messages must have non-empty content except for the optional final assistant message"
            )
        for position, block in enumerate(blocks):
            _judge_block(block, f"{at}.content.{position}")
        called = [block["id"] for block in merged[index - 1][1] if block["type"] == "tool_use"] if index else []
        given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if role == "user" and (foreign := [name for name in given if name not in called]):
            raise RefusedError(
                f"{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(foreign)}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if missing := [name for name in called if name not in given]:
            raise RefusedError(
                f"messages.{index - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        if len(set(given)) != len(given):
            raise RefusedError(f"{at}: each tool_use must have a single result. Found multiple `tool_result` blocks")
        if any(block["type"] == "tool_result" for block in blocks[len(given) :]):
            raise RefusedError(f"{at}.content: `tool_result` blocks must come before all other content of the message")
    role, blocks = merged[-1]
    if any(block["type"] == "tool_use" for block in blocks):
        raise RefusedError(
            f"messages.{len(merged) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"
        )
    if (
        role == "assistant"
        and blocks
        and blocks[-1]["type"] == "text"
        and blocks[-1]["text"] != blocks[-1]["text"].rstrip()
    ):
        raise RefusedError("messages: final assistant content cannot end with trailing whitespace")


def _judge_text(block: Json, at: str) -> None:
    if not block["text"]:
        raise RefusedError(f"{at}: text content blocks must be non-empty")
    if not block["text"].strip():
        raise RefusedError(f"{at}: text content blocks must contain non-whitespace text")


def _judge_block(block: Json, at: str) -> None:
    match block["type"]:
        case "text":
            _judge_text(block, at)
        case "tool_use" | "server_tool_use":
            if not TOOL_ID.fullmatch(block["id"]):
                raise RefusedError(f"{at}.{block['type']}.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        case "tool_result":
            content = block.get("content")
            for position, inner in enumerate(content if isinstance(content, list) else ()):
                _judge_block(inner, f"{at}.content.{position}")
        case "image" | "document":
            media(block, at)
        case "thinking":
            if not wire.is_signed(block):
                raise RefusedError(f"{at}: Invalid `signature` in `thinking` block")


def _judge_thinking(body: Json, merged: list[tuple[str, list[Json]]]) -> None:
    thinking, limit = body.get("thinking") or {"type": "disabled"}, body["max_tokens"]
    if thinking["type"] == "disabled":
        return
    if thinking["type"] == "enabled":
        if thinking["budget_tokens"] < LEAST_BUDGET:
            raise RefusedError("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if thinking["budget_tokens"] >= limit:
            raise RefusedError("`max_tokens` must be greater than `thinking.budget_tokens`")
    if body.get("temperature", 1) != 1:
        raise RefusedError("`temperature` may only be set to 1 when thinking is enabled")
    if "top_k" in body:
        raise RefusedError("`top_k` must be unset when thinking is enabled")
    if body.get("top_p", 1) < 0.95:
        raise RefusedError("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled")
    if (body.get("tool_choice") or {"type": "auto"})["type"] in ("any", "tool"):
        raise RefusedError("Thinking may not be enabled when tool_choice forces tool use.")
    last = _turn_of_calls(merged) if thinking["type"] == "enabled" else []  # adaptive thinking requires none
    if last and last[0]["type"] not in ("thinking", "redacted_thinking"):
        raise RefusedError(
            f"messages.{len(merged) - 2}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{last[0]['type']}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block."
        )
    if merged[-1][0] == "assistant":
        raise RefusedError("messages: the final message cannot be the assistant's when thinking is enabled")


def _turn_of_calls(merged: list[tuple[str, list[Json]]]) -> list[Json]:
    if len(merged) > 1 and any(block["type"] == "tool_result" for block in merged[-1][1]):
        return merged[-2][1]
    return []


def _marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(_marks(each) for each in value)
    if not isinstance(value, dict):
        return 0
    inner = sum(_marks(value.get(name)) for name in ("messages", "system", "tools", "content"))
    return inner + (value.get("cache_control") is not None)


# --- the request for the scenarios


def media(block: Json, at: str) -> Media:
    """Return the content of an image or a document. Raise RefusedError."""
    source, allowed = block["source"], IMAGES if block["type"] == "image" else ("application/pdf",)
    match source["type"]:
        case "base64":
            return media_of(source["media_type"], decoded(source["data"], f"{at}.source.data"), allowed, f"{at}.source")
        case "text":
            return Media("text/plain", source["data"].encode())
        case "url":
            if not source["url"].startswith("https://"):
                raise RefusedError(f"{at}.source.url: Only HTTPS URLs are supported.")
            return Media(address=source["url"])
        case "content":
            return Media("text/plain", _text(_blocks(source["content"])).encode())
    return Media(address=source["file_id"])


def _text(blocks: list[Json]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _result(call: Json, blocks: list[Json]) -> Result:
    found = next(block for block in blocks if block.get("tool_use_id") == call["id"])
    content = _blocks(found.get("content") or "")
    attached = tuple(media(block, "") for block in content if block["type"] in ("image", "document"))
    return Result(call["name"], _text(content), found.get("is_error") is True, attached)


def _scenario_request(body: Json, merged: list[tuple[str, list[Json]]], streamed: bool) -> ScenarioRequest:
    spoken = [turn for turn in merged if turn[0] != "system"]
    calls = _turn_of_calls(spoken)
    tools = body.get("tools") or ()
    choice = body.get("tool_choice") or {"type": "auto"}
    names = {"auto": "auto", "none": "none", "any": "required", "tool": choice.get("name", "")}
    wanted = (body.get("output_config") or {}).get("format") or {}
    blocks = [block for role, blocks in merged for block in blocks if role == "user"]
    return ScenarioRequest(
        model=body["model"],
        stream=streamed,
        system=body["system"] if isinstance(body.get("system"), str) else _joined_system(body),
        turns=turns([(role, _text(blocks)) for role, blocks in spoken]),
        media=tuple(media(block, "") for block in blocks if block["type"] in ("image", "document")),
        tools={tool["name"]: tool["input_schema"] for tool in tools if "input_schema" in tool},
        choice=names[choice["type"]],
        results=tuple(_result(call, spoken[-1][1]) for call in calls if call["type"] == "tool_use"),
        thinking=(body.get("thinking") or {"type": "disabled"})["type"] in ("enabled", "adaptive"),
        thought_back=bool(calls) and calls[0]["type"] in ("thinking", "redacted_thinking"),
        json=bool(wanted),
        schema=wanted.get("schema"),
        stops=tuple(body.get("stop_sequences", ())),
        limit=body["max_tokens"],
        search=any(str(tool.get("type", "")).startswith("web_search") for tool in tools),
    )


def _joined_system(body: Json) -> str:
    later = [_text(_blocks(message["content"])) for message in body["messages"] if message["role"] == "system"]
    return "\n\n".join([*(block["text"] for block in body.get("system") or ()), *later])

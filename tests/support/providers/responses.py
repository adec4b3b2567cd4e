"""Strict fake provider of responses (reference, section 2): the rules for requests. `responses_wire` has the responses.

Accepts the fields of `openai.types.responses.response_create_params`, and beyond them only LENIENCY.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from tests.support.providers import responses_wire as wire
from tests.support.providers.chat import judge_strict
from tests.support.providers.common import IMAGES, arguments, bracketed, compact, media_at
from tests.support.providers.scenarios import CUSTOM, Answer, Media, Result, ScenarioRequest, turns
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.typed_dict_validation import Leniency, check

LENIENCY = Leniency(
    optional={
        # The vendor's own examples leave it out.
        "FunctionToolParam": frozenset({"strict"}),
        # Its callers leave it out, too; it means `auto`.
        "ResponseInputImageParam": frozenset({"detail"}),
        "ResponseInputImageContentParam": frozenset({"detail"}),
        # History that the caller wrote itself has no ids (reference, 2.3).
        "ResponseOutputMessageParam": frozenset({"id", "status", "type"}),
        "ResponseOutputTextParam": frozenset({"annotations"}),
        # Clients that store nothing at the provider send only the encrypted state.
        "ResponseReasoningItemParam": frozenset({"id"}),
    },
    extra={
        # The vendor's own coding agent sends them; the types of the SDK do not have them, or not as null.
        "EasyInputMessageParam": {"id": str},
        "Message": {"id": str},
        "ResponseCustomToolCallParam": {"status": str},
        "ResponseReasoningItemParam": {"content": Iterable[object] | None},
        "WebSearchToolParam": {"external_web_access": bool, "search_content_types": list[str]},
        "ResponseCreateParamsStreaming": {"client_metadata": dict[str, str]},
        "ResponseCreateParamsNonStreaming": {"client_metadata": dict[str, str]},
    },
)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RANGES = {"temperature": (0, 2), "top_p": (0, 1), "top_logprobs": (0, 20), "max_output_tokens": (16, 1 << 20)}
PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs", "web_search_call": "ws"}
FOLLOWERS = ("function_call", "custom_tool_call", "web_search_call", "message", "reasoning")
PAIRS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
DOCUMENTS = ("application/pdf",)


@dataclass
class Responses:
    """Strict fake provider of responses (see the module). It stores its responses, unless the request disables that."""

    name = "responses"
    base_path = "/v1"
    heartbeat = b": ping\n\n"
    stored: dict[str, Json] = field(default_factory=dict)  # by the id of the response
    contexts: dict[str, list[Json]] = field(default_factory=dict)  # id of a response -> all items up to it
    states: set[str] = field(default_factory=set)  # encrypted states that the provider has issued
    made: int = 0

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError("Incorrect API key provided.", code="invalid_api_key", status=401)

    def generates(self, received: ReceivedRequest) -> bool:
        return (received.method, received.path) == ("POST", "/v1/responses")

    def other(self, received: ReceivedRequest) -> Json | None:
        found = re.fullmatch(r"/v1/responses/([^/]+)", received.path)
        if found is None or received.method not in ("GET", "DELETE"):
            return None
        if found[1] not in self.stored:
            raise RefusedError(f"Response with id '{found[1]}' not found.", status=404)
        if received.method == "GET":
            return self.stored[found[1]]
        del self.stored[found[1]], self.contexts[found[1]]
        return {"id": found[1], "object": "response", "deleted": True}

    def content_type(self, request: web.Request) -> str:
        return "text/event-stream; charset=utf-8"

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        kind = {429: "rate_limit_error"}.get(status, "invalid_request_error" if status < 500 else "server_error")
        known = {404: "model_not_found", 429: "rate_limit_exceeded"}
        return {"error": {"message": message, "type": kind, "param": at, "code": code or known.get(status)}}

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return wire.failed(message, sent, bare=bare)

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body = received.json
        streamed = body.get("stream") is True
        of = ResponseCreateParamsStreaming if streamed else ResponseCreateParamsNonStreaming
        if problem := check(body, of, LENIENCY):
            at = bracketed(problem.path)
            if problem.kind == "unknown":
                raise RefusedError(f"Unknown parameter: '{at}'.", at, "unknown_parameter")
            code = "missing_required_parameter" if problem.kind == "missing" else "invalid_value"
            raise RefusedError(f"{at}: {problem.message}", at, code)
        _judge_options(body, streamed)
        items = self._items(body)
        _judge_items(items)
        self._judge_reasoning(items)
        return _scenario_request(body, items, streamed)

    def _items(self, body: Json) -> list[Json]:
        """Return all items of a conversation: those of the previous response, and the input. Raise RefusedError."""
        before: list[Json] = []
        if previous := body.get("previous_response_id"):
            if previous not in self.contexts:
                message = f"Previous response with id '{previous}' not found."
                raise RefusedError(message, "previous_response_id", "previous_response_not_found")
            before = self.contexts[previous]
        given = body.get("input") or []
        if isinstance(given, str):
            given = [{"role": "user", "content": given}]
        if not before and not given and not body.get("prompt"):
            raise RefusedError("One of 'input' or 'previous_response_id' or 'prompt' must be provided.", "input")
        kept = {item["id"]: item for items in self.contexts.values() for item in items if "id" in item}
        found = []
        for item in given:
            if item.get("type", "message" if "role" in item else None) in (None, "item_reference"):
                if item["id"] not in kept:
                    raise _not_found(item["id"])
                found.append(kept[item["id"]])
            else:
                found.append(item)
        return before + found

    def _judge_reasoning(self, items: list[Json]) -> None:
        """Check that reasoning is followed by its result, is the provider's own, and precedes items that require it."""
        kept = {item["id"] for items in self.contexts.values() for item in items if item.get("type") == "reasoning"}
        for position, item in enumerate(items):
            if item.get("type") != "reasoning":
                continue
            name = item.get("id", "")
            follower = items[position + 1] if position + 1 < len(items) else {}
            ours = follower.get("type", "message" if follower else "") in FOLLOWERS and follower.get("role") in (
                None,
                "assistant",
            )
            if not ours:
                message = f"Item '{name}' of type 'reasoning' was provided without its required following item."
                raise RefusedError(message, "input")
            state = item.get("encrypted_content")
            if state is not None and state not in self.states:
                message = f"The encrypted content for item {name} could not be verified."
                raise RefusedError(message, "input", "invalid_encrypted_content")
            if state is None and name not in kept:
                raise _not_found(name)
        for position, item in enumerate(items):
            if (
                item.get("type") == "function_call"
                and item.get("id", "").startswith("fc_t")
                and not wire.thought_before(items, position)
            ):
                message = (
                    f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' item."
                )
                raise RefusedError(message, "input")

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        response = wire.whole(request, answer, received.json, self._name())
        self._keep(response, received.json)
        return response

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        response = wire.whole(request, answer, received.json, self._name())
        self._keep(response, received.json)
        return wire.frames(response, answer)

    def _name(self) -> str:
        self.made += 1
        return f"resp_{self.made}"

    def _keep(self, response: Json, body: Json) -> None:
        self.states |= {item["encrypted_content"] for item in response["output"] if item.get("encrypted_content")}
        if body.get("store") is not False:
            self.stored[response["id"]] = response
            self.contexts[response["id"]] = self._items(body) + response["output"]


def _not_found(name: str) -> RefusedError:
    message = f"Item with id '{name}' not found. Items are not persisted when `store` is set to false."
    return RefusedError(message, "input", status=404)


# --- rules beyond the types


def _judge_options(body: Json, streamed: bool) -> None:
    for name, (low, high) in RANGES.items():
        if (value := body.get(name)) is not None and not low <= value <= high:
            raise RefusedError(f"Invalid '{name}': {value} is not between {low} and {high}.", name, "invalid_value")
    if body.get("stream_options") is not None and not streamed:
        raise RefusedError("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
    if body.get("previous_response_id") and body.get("conversation"):
        raise RefusedError("Mutually exclusive parameters: 'previous_response_id' and 'conversation'.", "conversation")
    tools = body.get("tools") or []
    for index, tool in enumerate(tools):
        if tool["type"] not in ("function", "custom"):
            continue
        if not NAME.fullmatch(tool["name"]):
            raise RefusedError(
                f"Invalid 'tools[{index}].name': {tool['name']!r}.", f"tools[{index}].name", "invalid_value"
            )
        schema = tool.get("parameters")
        if schema and schema.get("type") != "object":
            message = f"Invalid schema for function '{tool['name']}': schema must be of type \"object\"."
            raise RefusedError(message, f"tools[{index}].parameters", "invalid_function_parameters")
        if tool.get("strict"):
            judge_strict(schema, f"tools[{index}].parameters")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["type"] in ("function", "custom"):
        if choice["name"] not in [tool.get("name") for tool in tools]:
            raise RefusedError(f"Tool choice '{choice['name']}' not found in 'tools' parameter.", "tool_choice")
    elif choice == "required" and not tools:
        raise RefusedError("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")
    wanted = (body.get("text") or {}).get("format") or {"type": "text"}
    if wanted["type"] == "json_schema":
        if not NAME.fullmatch(wanted["name"]):
            raise RefusedError("Invalid 'text.format.name'.", "text.format.name")
        if wanted.get("strict"):
            judge_strict(wanted["schema"], "text.format.schema")
    if wanted["type"] == "json_object" and "json" not in compact(body.get("input")).lower():
        raise RefusedError(
            "Response input messages must contain the word 'json' to use 'text.format' of type 'json_object'."
        )


def _judge_items(items: list[Json]) -> None:
    calls: dict[str, str] = {}
    answered: set[str] = set()
    for index, item in enumerate(items):
        kind, at = item.get("type", "message"), f"input[{index}]"
        if (prefix := PREFIXES.get(kind)) and not item.get("id", prefix).startswith(prefix):
            message = f"Invalid '{at}.id': '{item['id']}'. Expected an ID that begins with '{prefix}'."
            raise RefusedError(message, f"{at}.id", "invalid_value")
        if kind == "message":
            _judge_message(item, at)
        elif kind in PAIRS.values():
            if not 0 < len(item["call_id"]) <= 64:
                raise RefusedError(f"Invalid '{at}.call_id': 1 to 64 characters.", f"{at}.call_id")
            if kind == "function_call":
                arguments(item["arguments"], f"{at}.arguments")
            calls[item["call_id"]] = kind
        elif kind in PAIRS:
            if calls.get(item["call_id"]) != PAIRS[kind]:
                raise RefusedError(
                    f"No tool call found for {kind.replace('_', ' ')} with call_id {item['call_id']}.", "input"
                )
            answered.add(item["call_id"])
            if isinstance(item["output"], list):
                list(_media(item["output"], f"{at}.output"))
    if missing := [name for name in calls if name not in answered]:
        raise RefusedError(f"No tool output found for function call {missing[0]}.", "input")


def _judge_message(item: Json, at: str) -> None:
    if isinstance(item["content"], str):
        return
    own = (
        ("output_text", "refusal")
        if item["role"] == "assistant"
        else ("input_text", "input_image", "input_file", "input_audio")
    )
    for position, part in enumerate(item["content"]):
        if part["type"] not in own:
            path = f"{at}.content[{position}]"
            supported = ", ".join(f"'{name}'" for name in own)
            raise RefusedError(
                f"Invalid value: '{part['type']}'. Supported values are: {supported}.", path, "invalid_value"
            )
    list(_media(item["content"], f"{at}.content"))


# --- the request for the scenarios


def _media(content: Any, at: str) -> Iterator[Media]:
    for index, part in enumerate(content if isinstance(content, list) else ()):
        where = f"{at}[{index}]"
        if part["type"] == "input_image":
            if not part.get("image_url") and not part.get("file_id"):
                raise RefusedError(f"{where}: one of 'image_url' or 'file_id' is required", where)
            yield (
                media_at(part["image_url"], IMAGES, where) if part.get("image_url") else Media(address=part["file_id"])
            )
        elif part["type"] == "input_file":
            if part.get("file_data"):
                if not part.get("filename"):
                    raise RefusedError(f"Missing required parameter: '{where}.filename'.", where)
                yield media_at(part["file_data"], DOCUMENTS, where)
            elif not (address := part.get("file_url") or part.get("file_id")):
                raise RefusedError(f"{where}: one of 'file_data', 'file_id' or 'file_url' is required", where)
            else:
                yield Media(address=address)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        part.get("text") or part.get("refusal") or "" for part in content if "text" in part or "refusal" in part
    )


def _scenario_request(body: Json, items: list[Json], streamed: bool) -> ScenarioRequest:
    messages = [item for item in items if item.get("type", "message") == "message"]
    systems = [_text(item["content"]) for item in messages if item["role"] in ("system", "developer")]
    conversation = [
        (item["role"], _text(item["content"])) for item in messages if item["role"] in ("user", "assistant")
    ]
    tools, choice = body.get("tools") or (), body.get("tool_choice") or "auto"
    wanted = (body.get("text") or {}).get("format") or {"type": "text"}
    calls, start = _last_calls(items)
    return ScenarioRequest(
        model=body["model"],
        stream=streamed,
        system="\n\n".join([*([body["instructions"]] if body.get("instructions") else []), *systems]),
        turns=turns(conversation),
        media=tuple(media for item in messages if item["role"] == "user" for media in _media(item["content"], "")),
        tools=_tools([*tools, *(tool for item in items for tool in item.get("tools") or ())]),
        choice=choice if isinstance(choice, str) else choice.get("name", "auto"),
        results=tuple(_result(call, items) for call in calls),
        thinking=(body.get("reasoning") or {}).get("effort") != "none",
        thought_back=bool(calls) and wire.thought_before(items, start),
        json=wanted["type"] != "text",
        schema=wanted.get("schema"),
        limit=body.get("max_output_tokens"),
        search=any(tool["type"].startswith("web_search") for tool in tools),
    )


def _tools(tools: Iterable[Json], namespace: str = "") -> Json:
    """Return the tools that the caller runs; the key of a tool in a namespace is `namespace.name`."""
    found: Json = {}
    for tool in tools:
        match tool["type"]:
            case "function":
                found[namespace + tool["name"]] = tool["parameters"] or {}
            case "custom":
                found[namespace + tool["name"]] = CUSTOM
            case "namespace":
                found |= _tools(tool["tools"], f"{tool['name']}.")
    return found


def _last_calls(items: list[Json]) -> tuple[list[Json], int]:
    """Return the calls that the end of the input answers, and the index of the first of them."""
    end = len(items)
    while end and (items[end - 1].get("type") in PAIRS or items[end - 1].get("role") in ("system", "developer")):
        end -= 1
    answered = {item["call_id"] for item in items[end:] if "call_id" in item}
    positions = [
        position
        for position, item in enumerate(items)
        if item.get("call_id") in answered and item["type"] in PAIRS.values()
    ]
    return [items[position] for position in positions], positions[0] if positions else 0


def _result(call: Json, items: list[Json]) -> Result:
    output = next(item["output"] for item in items if item.get("type") in PAIRS and item["call_id"] == call["call_id"])
    return Result(call["name"], _text(output), media=tuple(_media(output, "")))

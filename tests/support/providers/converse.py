"""Strict fake provider of Converse, which refuses the requests that botocore's service model does not allow, and further
ones that the service is known to refuse. `converse_wire` has the responses.

Sources of the refusals: docs.aws.amazon.com, API reference of Converse (Message, DocumentBlock, ToolChoice); messages of
the service in reports (BerriAI/litellm, strands-agents/harness-sdk#3019, patriceckhart/zot#18, vercel/ai#20366; a cache
point first in a turn: strands-agents/harness-sdk#3677, behind reasoning: anomalyco/opencode#36517; names of documents:
maximhq/bifrost#7003, their number: aws-samples/generative-ai-use-cases#1685).
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import unquote

from aiohttp import web

from tests.support.providers import converse_wire as wire
from tests.support.providers.aws_event_stream import event
from tests.support.providers.common import IMAGES, media_of
from tests.support.providers.converse_shapes import parameters
from tests.support.providers.scenarios import Answer, Media, Result, ScenarioRequest, turns
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError

PATH = re.compile(r"/model/([^/]+)/converse(-stream)?")
NAME = re.compile(r"[0-9A-Za-z_()\[\]-]+(?: [0-9A-Za-z_()\[\]-]+)*")
LEAST_BUDGET = 1024
MAX_CACHE_POINTS, MAX_IMAGES, MAX_DOCUMENTS = 4, 20, 5
MIMES = {"jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp", "pdf": "application/pdf"}


@dataclass
class Converse:
    """Strict fake provider of Converse (see the module)."""

    name = "converse"
    base_path = ""
    heartbeat = event("initial-response", {})

    def admit(self, received: ReceivedRequest) -> None:
        if received.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusedError("The security token included in the request is invalid.", status=403)

    def generates(self, received: ReceivedRequest) -> bool:
        return received.method == "POST" and PATH.fullmatch(received.path) is not None

    def other(self, received: ReceivedRequest) -> Json | None:
        return None

    def content_type(self, request: web.Request) -> str:
        return "application/vnd.amazon.eventstream"

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        return wire.error(status, message)

    def error_headers(self, status: int) -> dict[str, str]:
        return {"x-amzn-ErrorType": wire.error_type(status)}

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return wire.error_frame(message)

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        found = PATH.fullmatch(received.path)
        assert found is not None
        model, streamed = unquote(found[1]), found[2] is not None
        body = received.json
        judge(parameters(body, model, "ConverseStream" if streamed else "Converse"))
        return _scenario_request(body, model, streamed)

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        return wire.whole(request, answer, received.json)

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        return wire.frames(request, answer, received.json)


# --- refusals


def judge(body: Json) -> None:
    """Raise RefusedError for parameters that the service refuses although its shapes allow them."""
    _judge_blocks(body)
    _judge_turns(body["messages"])
    _judge_tools(body)
    _judge_thinking(body)


def _judge_turns(messages: list[Json]) -> None:
    if not messages or messages[0]["role"] != "user":
        raise RefusedError(
            "A conversation must start with a user message. Try again with a conversation that starts so."
        )
    for index, message in enumerate(messages):
        if index and message["role"] == messages[index - 1]["role"]:
            raise RefusedError("A conversation must alternate between user and assistant roles.")
        if not message["content"]:
            raise RefusedError(f"The content field in the Message object at messages.{index} is empty.")
        called = _ids(messages[index - 1], "toolUse") if index else []
        given = _ids(message, "toolResult")
        if message["role"] == "user" and len(given) > len(called):
            raise RefusedError(
                f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse blocks of "
                "previous turn."
            )
        if set(called) != set(given) or len(set(given)) != len(given):
            raise RefusedError(
                f"Expected toolResult blocks at messages.{index}.content for the following Ids: {called}"
            )
        if any("toolResult" in block for block in message["content"][len(_without_points(message, given)) :]):
            raise RefusedError(f"messages.{index}.content: toolResult blocks must come first")
    last = messages[-1]
    if last["role"] == "assistant" and _ids(last, "toolUse"):
        raise RefusedError("Expected toolResult blocks after the last message.")


def _without_points(message: Json, given: list[str]) -> list[Json]:
    """Return the blocks of a message up to its last tool result."""
    ends = [place for place, block in enumerate(message["content"]) if "toolResult" in block]
    others = (
        [block for block in message["content"][: ends[-1]] if not {"toolResult", "cachePoint"} & block.keys()]
        if ends
        else []
    )
    return [] if others else message["content"][: ends[-1] + 1] if ends else []


def _ids(message: Json, member: str) -> list[str]:
    return [block[member]["toolUseId"] for block in message["content"] if member in block]


def _judge_blocks(body: Json) -> None:
    names, points = list[str](), 0
    for index, message in enumerate(body["messages"]):
        at = f"messages.{index}"
        kinds = [next(iter(block)) for block in message["content"]]
        points += kinds.count("cachePoint")
        if kinds[:1] == ["cachePoint"]:
            raise RefusedError("There is nothing available to cache.")
        if ("reasoningContent", "cachePoint") in pairwise(kinds):
            raise RefusedError("Cache point cannot be inserted after reasoning block.")
        if "document" in kinds and "text" not in kinds:
            raise RefusedError(f"{at}: a text block is required in a message with a document.")
        if kinds.count("image") > MAX_IMAGES:
            raise RefusedError(f"{at}: too many images.")
        if message["role"] == "assistant" and {"image", "document", "video", "audio"} & set(kinds):
            raise RefusedError(f"{at}: images and documents are allowed for the user role only.")
        for position, block in enumerate(message["content"]):
            _judge_block(block, f"{at}.content.{position}", names)
    for block in body.get("system", ()):
        points += "cachePoint" in block
        if "text" in block:
            _judge_text(block["text"], "system")
    points += sum("cachePoint" in tool for tool in body.get("toolConfig", {}).get("tools", ()))
    if points > MAX_CACHE_POINTS:
        raise RefusedError(f"A maximum of {MAX_CACHE_POINTS} blocks with cache points may be provided. Found {points}.")
    if len(names) > MAX_DOCUMENTS:
        raise RefusedError(f"You can't include more than {MAX_DOCUMENTS} documents in a request.")
    if len(set(names)) != len(names):
        raise RefusedError("Messages can't contain duplicate document names. Rename the document and retry.")


def _judge_text(text: str, at: str) -> None:
    if not text.strip():
        raise RefusedError(f"The text field in the ContentBlock object at {at} is blank. Add text to the text field.")


def _judge_block(block: Json, at: str, names: list[str]) -> None:
    match block:
        case {"text": text}:
            _judge_text(text, at)
        case {"document": document}:
            names.append(document["name"])
            if not NAME.fullmatch(document["name"]):
                raise RefusedError(
                    "The document file name can only contain alphanumeric characters, whitespace characters, hyphens, "
                    "parentheses, and square brackets. The name can't contain more than one consecutive whitespace "
                    f"character: {document['name']!r}"
                )
        case {"toolResult": result}:
            for position, inner in enumerate(result["content"]):
                _judge_block(inner, f"{at}.content.{position}", names)
        case {"reasoningContent": {"reasoningText": reasoning}}:
            if reasoning.get("signature") != wire.signature(reasoning["text"]):
                raise RefusedError(f"{at}: Invalid `signature` in `thinking` block")


def _judge_tools(body: Json) -> None:
    used = any(_ids(message, kind) for message in body["messages"] for kind in ("toolUse", "toolResult"))
    if "toolConfig" not in body:
        if used:
            raise RefusedError("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
        return
    specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"] if "toolSpec" in tool]
    declared = [spec["name"] for spec in specs]
    if len(set(declared)) != len(declared):
        raise RefusedError("toolConfig.tools: tool names must be unique.")
    for spec in specs:
        if spec["inputSchema"]["json"].get("type") != "object":
            raise RefusedError(f"The value at toolConfig.tools.{spec['name']}.inputSchema.json.type must be object.")
    named = body["toolConfig"].get("toolChoice", {}).get("tool", {}).get("name")
    if named is not None and named not in declared:
        raise RefusedError(f"toolConfig.toolChoice.tool.name: {named} is not a tool.")


def _judge_thinking(body: Json) -> None:
    thinking = (body.get("additionalModelRequestFields") or {}).get("thinking") or {"type": "disabled"}
    if thinking["type"] == "disabled":
        return
    inference, choice = body.get("inferenceConfig", {}), body.get("toolConfig", {}).get("toolChoice", {})
    if thinking["type"] == "enabled":
        if thinking["budget_tokens"] < LEAST_BUDGET:
            raise RefusedError("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
        if thinking["budget_tokens"] >= inference.get("maxTokens", 1 << 30):
            raise RefusedError("`max_tokens` must be greater than `thinking.budget_tokens`")
    if inference.get("temperature", 1) != 1 or inference.get("topP", 1) < 0.95:
        raise RefusedError("`temperature` may only be set to 1 when thinking is enabled")
    if {"any", "tool"} & choice.keys():
        raise RefusedError("Thinking may not be enabled when tool_choice forces tool use.")
    last = _turn_of_calls(body["messages"]) if thinking["type"] == "enabled" else []
    if last and "reasoningContent" not in last[0]:
        raise RefusedError("Expected `thinking` or `redacted_thinking`, but found `tool_use`.")


def _turn_of_calls(messages: list[Json]) -> list[Json]:
    answers = len(messages) > 1 and _ids(messages[-1], "toolResult")
    return list(messages[-2]["content"]) if answers else []


# --- the request for the scenarios


def _text(blocks: list[Json]) -> str:
    return "\n".join(block["text"] for block in blocks if "text" in block)


def _media(blocks: list[Json]) -> tuple[Media, ...]:
    return tuple(_medium(kind, block[kind]) for block in blocks for kind in ("image", "document") if kind in block)


def _medium(kind: str, block: Json) -> Media:
    source = block["source"]
    if "content" in source:
        return Media("text/plain", _text(source["content"]).encode())
    data = parameters_bytes(source["bytes"])
    if block["format"] == "txt":
        return Media("text/plain", data)
    return media_of(MIMES[block["format"]], data, (*IMAGES, "application/pdf"), kind)


def parameters_bytes(value: object) -> bytes:
    """Return the bytes of a source in a body as it was sent."""
    return base64.b64decode(str(value), validate=True)


def _result(call: Json, blocks: list[Json]) -> Result:
    found = next(
        block["toolResult"] for block in blocks if block.get("toolResult", {}).get("toolUseId") == call["toolUseId"]
    )
    texts = [
        block.get("text", "") or json.dumps(block["json"])
        for block in found["content"]
        if {"text", "json"} & block.keys()
    ]
    return Result(call["name"], "\n".join(texts), found.get("status") == "error", _media(found["content"]))


def _choice(config: Json) -> str:
    choice = config.get("toolChoice", {})
    if "tool" in choice:
        return str(choice["tool"]["name"])
    return "required" if "any" in choice else "auto" if config else "none"


def _scenario_request(body: Json, model: str, streamed: bool) -> ScenarioRequest:
    messages, config = body["messages"], body.get("toolConfig", {})
    calls = _turn_of_calls(messages)
    additional, inference = body.get("additionalModelRequestFields", {}), body.get("inferenceConfig", {})
    wanted = body.get("outputConfig", {}).get("textFormat")
    system = _text(body.get("system", []))
    return ScenarioRequest(
        model=model,
        stream=streamed,
        system="\n\n".join(block["text"] for block in body.get("system", ()) if "text" in block),
        turns=turns([(message["role"], _text(message["content"])) for message in messages]),
        media=tuple(
            medium for message in messages if message["role"] == "user" for medium in _media(message["content"])
        ),
        tools={
            tool["toolSpec"]["name"]: tool["toolSpec"]["inputSchema"]["json"]
            for tool in config.get("tools", ())
            if "toolSpec" in tool
        },
        choice=_choice(config),
        results=tuple(_result(block["toolUse"], messages[-1]["content"]) for block in calls if "toolUse" in block),
        thinking=(additional.get("thinking") or {"type": "disabled"})["type"] in ("enabled", "adaptive"),
        thought_back=bool(calls) and "reasoningContent" in calls[0],
        json=wanted is not None or "JSON" in system,
        schema=json.loads(wanted["structure"]["jsonSchema"]["schema"]) if wanted else None,
        stops=tuple(inference.get("stopSequences", ())),
        limit=inference.get("maxTokens"),
    )

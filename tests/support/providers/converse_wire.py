"""Answers of the strict fake provider of Converse: bodies and frames of its event stream, by the shapes of botocore."""

import base64
from collections.abc import Iterator
from typing import Any

from tests.support.providers.aws_event_stream import event, exception
from tests.support.providers.common import letters, sign
from tests.support.providers.scenarios import REFUSAL, STOP, Answer, ScenarioRequest, Usage
from tests.support.providers.server import Json

FINISH = {"stop": "end_turn", "stop_sequence": "stop_sequence", "length": "max_tokens"}
FINISH |= {"refusal": "content_filtered", "filter": "content_filtered", "blocked": "guardrail_intervened"}
TYPES = {400: "ValidationException", 401: "UnrecognizedClientException", 403: "AccessDeniedException"}
TYPES |= {404: "ResourceNotFoundException", 408: "ModelTimeoutException", 413: "RequestEntityTooLargeException"}
TYPES |= {424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException"}
TYPES |= {503: "ServiceUnavailableException"}
"""Status -> exception of the service."""


def error_type(status: int) -> str:
    """Return the value of `x-amzn-ErrorType`, with the URL that the service puts behind it."""
    name = TYPES.get(status, "InternalServerException" if status >= 500 else "ValidationException")
    return f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"


def error(status: int, message: str) -> Json:
    return {"message": message}


def error_frame(message: str) -> bytes:
    return exception("modelStreamErrorException", message)


def signature(thinking: str) -> str:
    return sign(f"converse {thinking}")


def redacted(thinking: str) -> str:
    """Return reasoning of a model that shows none, as base64."""
    return base64.b64encode(f"sealed {thinking}".encode()).decode()


def _blocks(request: ScenarioRequest, answer: Answer) -> list[Json]:
    blocks: list[Json] = []
    if answer.thoughts:
        reasoning = {"text": answer.thought, "signature": signature(answer.thought)}
        blocks.append({"reasoningContent": {"reasoningText": reasoning}})
    words = answer.text or (REFUSAL if answer.finish in ("refusal", "blocked") else "")
    if words:
        blocks.append({"text": words})
    for position, call in enumerate(answer.calls):
        call_id = f"tooluse_{position}{letters(str(request.turns))}"
        blocks.append({"toolUse": {"toolUseId": call_id, "name": call.name, "input": dict(call.arguments)}})
    return blocks


def _usage(usage: Usage) -> Json:
    written = usage.written + usage.written_long
    details = [{"ttl": "1h", "inputTokens": usage.written_long}, {"ttl": "5m", "inputTokens": usage.written}]
    return {
        "inputTokens": usage.prompt - usage.cached - written,
        "outputTokens": usage.output,
        "totalTokens": usage.prompt + usage.output,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": written,
        "cacheDetails": [detail for detail in details if detail["inputTokens"]],
    }


def _ending(answer: Answer, body: Json) -> Json:
    ending: Json = {"stopReason": "tool_use" if answer.calls else FINISH[answer.finish]}
    if "/stop_sequence" in body.get("additionalModelResponseFieldPaths", ()):
        found = STOP if answer.finish == "stop_sequence" else None
        ending["additionalModelResponseFields"] = {"stop_sequence": found}
    return ending


def _rest(answer: Answer) -> Json:
    rest: Json = {"usage": _usage(answer.usage), "metrics": {"latencyMs": 12}, "serviceTier": {"type": "default"}}
    if answer.finish == "blocked":
        rest["trace"] = {"guardrail": {"actionReason": "Guardrail blocked."}}
    return rest


def whole(request: ScenarioRequest, answer: Answer, body: Json) -> Json:
    message = {"role": "assistant", "content": _blocks(request, answer)}
    return {"output": {"message": message}, **_ending(answer, body), **_rest(answer)}


def frames(request: ScenarioRequest, answer: Answer, body: Json) -> Iterator[bytes]:
    yield event("messageStart", {"role": "assistant"})
    for index, block in enumerate(_blocks(request, answer)):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            head = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            yield event("contentBlockStart", {"start": {"toolUse": head}, **at})
        for delta in _deltas(block, answer):
            yield event("contentBlockDelta", {"delta": delta, **at})
        yield event("contentBlockStop", at)
    yield event("messageStop", _ending(answer, body))
    yield event("metadata", _rest(answer))


def _deltas(block: Json, answer: Answer) -> Iterator[Json]:
    match block:
        case {"text": text}:
            yield from ({"text": piece} for piece in (answer.words or (text[:5], text[5:])))
        case {"reasoningContent": {"reasoningText": reasoning}}:
            yield from ({"reasoningContent": {"text": piece}} for piece in answer.thoughts)
            yield {"reasoningContent": {"signature": reasoning["signature"]}}
        case {"toolUse": call}:
            text = _text(call["input"], answer)
            yield from ({"toolUse": {"input": text[start : start + 9]}} for start in range(0, len(text), 9))


def _text(arguments: Any, answer: Answer) -> str:
    return next((call.text for call in answer.calls if dict(call.arguments) == arguments), "") if arguments else ""

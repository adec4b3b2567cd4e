"""Providers that refuse fields as the vendors of their models do, with the vendors' messages, and otherwise follow
their formats.
"""

from collections.abc import Mapping
from typing import Any

from tests.support.providers.chat import Chat
from tests.support.providers.messages import Messages
from tests.support.providers.native import Native
from tests.support.providers.responses import Responses
from tests.support.providers.scenarios import ScenarioRequest
from tests.support.providers.server import ReceivedRequest, RefusedError
from tests.support.providers.strict_text_server import TextFormat

Json = dict[str, Any]
LONGEST_USER = 64
LONGEST_ANSWERS = {
    "gpt-4o": 16_384,
    "claude-3-5-haiku-latest": 8192,
    "claude-sonnet-4-5": 64_000,
    "claude-sonnet-5": 128_000,
    "gemini-2.0-flash": 8192,
    "gemini-2.5-pro": 65_535,
}
NO_REASONING = ("gpt-4o", "claude-3-5", "gemini-2.0")
MAX_MARKS = 4


def _judge_user(body: Json) -> None:
    if len(body.get("user") or "") > LONGEST_USER:
        problem = f"Invalid 'user': string too long. Expected a string with maximum length {LONGEST_USER}."
        raise RefusedError(problem, "user", "string_above_max_length")


def _judge_limit(model: str, limit: int | None, at: str) -> None:
    most = LONGEST_ANSWERS.get(model)
    if most is not None and limit is not None and limit > most:
        raise RefusedError(f"{at} is too large: {limit}. This model supports at most {most} tokens.", at)


class StrictChat(Chat):
    """Chat provider with the refusals of the vendors (see the module)."""

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body = received.json
        model = body["model"]
        _judge_user(body)
        _judge_limit(model, body.get("max_tokens") or body.get("max_completion_tokens"), "max_tokens")
        if "web_search_options" in body and "-search-" not in model:
            raise RefusedError("Unknown parameter: 'web_search_options'.", "web_search_options", "unknown_parameter")
        if "reasoning_effort" in body and model.startswith(NO_REASONING):
            raise RefusedError("Unrecognized request argument supplied: reasoning_effort", "reasoning_effort")
        for index, message in enumerate(body["messages"]):
            if "reasoning_content" in message and not model.startswith("deepseek"):
                at = f"messages.{index}"
                raise RefusedError(f"'{at}' : property 'reasoning_content' is unsupported", at)
        return super().read(received)


class StrictResponses(Responses):
    """Responses provider with the refusals of the vendors (see the module)."""

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body = received.json
        model = body["model"]
        _judge_user(body)
        _judge_limit(model, body.get("max_output_tokens"), "max_output_tokens")
        if model.startswith(NO_REASONING):
            if "effort" in body.get("reasoning", {}):
                problem = "Unsupported parameter: 'reasoning.effort' is not supported with this model."
                raise RefusedError(problem, "reasoning.effort", "unsupported_parameter")
            if "reasoning.encrypted_content" in body.get("include", ()):
                raise RefusedError("Encrypted content is not supported with this model.", "include")
        return super().read(received)


class StrictMessages(Messages):
    """Messages provider with the refusals of the vendors (see the module)."""

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body = received.json
        model = body["model"]
        most = LONGEST_ANSWERS[model]
        if body["max_tokens"] > most:
            limit = body["max_tokens"]
            raise RefusedError(f"max_tokens: {limit} > {most}, which is the maximum allowed number for {model}")
        thinking = body.get("thinking", {}).get("type", "disabled")
        if thinking != "disabled" and model.startswith(NO_REASONING):
            raise RefusedError(f"'{model}' does not support thinking.")
        if model == "claude-sonnet-5":
            if thinking == "enabled":
                raise RefusedError('"thinking.type.enabled" is not supported for this model.')
            if body.keys() & {"temperature", "top_p", "top_k"}:
                raise RefusedError("`temperature` is deprecated for this model.")
        if marks(body) > MAX_MARKS:
            raise RefusedError("A maximum of 4 blocks with cache_control may be provided.")
        return super().read(received)


def marks(body: Json) -> int:
    """Return the number of prompt cache marks in a body of messages."""
    system = body.get("system", "")
    contents = [message["content"] for message in body["messages"]]
    blocks = [block for content in (system, *contents) if isinstance(content, list) for block in content]
    return sum("cache_control" in block for block in (*blocks, *body.get("tools", ()), body))


class StrictNative(Native):
    """Native provider with the refusals of the vendors (see the module)."""

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body, model = received.json, received.path.rpartition("/")[2].partition(":")[0]
        kinds = {kind for tool in body.get("tools", ()) for kind in tool}
        declared = body.get("toolConfig", {}).get("includeServerSideToolInvocations")
        if {"functionDeclarations", "googleSearch"} <= kinds:
            if not model.startswith("gemini-3"):
                raise RefusedError("Tool use with function calling is unsupported")
            if not declared:
                raise RefusedError(
                    "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with "
                    "Function calling."
                )
            if body["toolConfig"].get("functionCallingConfig", {}).get("mode") == "AUTO":
                raise RefusedError("Function calling mode AUTO is not supported with server side tool invocations.")
        config = body.get("generationConfig", {})
        if "thinkingConfig" in config and model.startswith(NO_REASONING):
            raise RefusedError("Unable to submit request because thinking is not supported by this model.")
        _judge_limit(model, config.get("maxOutputTokens"), "maxOutputTokens")
        return super().read(received)


STRICT: Mapping[str, type[TextFormat]] = {
    "chat": StrictChat,
    "responses": StrictResponses,
    "messages": StrictMessages,
    "native": StrictNative,
}

"""Token usage in messages responses: encoded for a caller, and decoded from a provider's response."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, decode_or_none
from umg_grpc.wire.core.lenient_number_reading import Count, completed, count
from umg_grpc.wire.core.request_usage_sums import add_usage

SERVICE_TIERS = ("standard", "priority", "batch")
CHARACTERS_PER_TOKEN = 4  # estimate for the usage at the start of a stream
UNSTATED_REGIONS = ("global", "not_available")  # `inference_geo` of a call without a stated region


class CacheCreation(Struct):
    """Member `cache_creation` of the usage."""

    ephemeral_5m_input_tokens: Count = None
    ephemeral_1h_input_tokens: Count = None


class OutputDetails(Struct):
    """Member `output_tokens_details` of the usage."""

    thinking_tokens: Count = None


class ServerToolUse(Struct):
    """Member `server_tool_use` of the usage."""

    web_search_requests: Count = None


class ProviderUsage(Struct):
    """Member `usage` of a response, of `message_start` and of `message_delta`."""

    input_tokens: Count = None
    output_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_read_input_tokens: Count = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: str | None = None
    speed: str | None = None  # `fast` or `standard`
    inference_geo: str | None = None  # region of the processing; `global` for any
    prompt_tokens: Count = None  # relays that write the names of chat
    completion_tokens: Count = None
    total_tokens: Count = None
    iterations: Raw = ABSENT_MEMBER  # each request to the model; other counts do not include compactions

    @property
    def has_totals(self) -> bool:
        """Whether the numbers of both input and output tokens are present."""
        return self.input_tokens is not None and self.output_tokens is not None

    @property
    def is_stated(self) -> bool:
        """Whether the number of input or output tokens is present. Otherwise the gateway counts the tokens itself."""
        return (
            self.input_tokens is not None
            or self.output_tokens is not None
            or self.prompt_tokens is not None
            or self.completion_tokens is not None
        )

    def updated(self, newer: "ProviderUsage") -> "ProviderUsage":
        """Return the usage, with counts replaced by those of a later event, since these are totals, not differences."""
        values = ((name, getattr(newer, name)) for name in self.__struct_fields__)
        stated = {name: value for name, value in values if value is not None and value is not ABSENT_MEMBER}
        kept = {name: getattr(self, name) for name in self.__struct_fields__}
        if "cache_creation_input_tokens" in stated and "cache_creation" not in stated:
            kept["cache_creation"] = self.cache_creation
        return ProviderUsage(**(kept | stated))


class Iteration(ProviderUsage):
    """Entry of `iterations`."""

    type: str = ""


_ITERATIONS = msgspec.json.Decoder(list[Iteration])


# --- canonical -> caller


def encode_usage(usage: pb.Usage, service_tier: str) -> JsonObject:
    """Return `usage`. `input_tokens` excludes tokens read from or written to the prompt cache, and those of a summary
    before the response, which `iterations` lists. `service_tier`: the call's, "" if unknown.
    """
    encoded = _encode_tokens(usage)
    if usage.HasField("compaction"):
        iterations = [{"type": "compaction", **_encode_tokens(usage.compaction)}]
        if usage.input_tokens or usage.output_tokens:  # else the call paused after the summary
            iterations.append({"type": "message", **encoded})
        encoded["iterations"] = iterations
    if usage.reasoning_tokens:
        encoded["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    if usage.web_search_requests:
        encoded["server_tool_use"] = {"web_search_requests": usage.web_search_requests, "web_fetch_requests": 0}
    if service_tier in SERVICE_TIERS:
        encoded["service_tier"] = service_tier
    return encoded


def _encode_tokens(usage: pb.Usage) -> JsonObject:
    written = usage.cache_write_tokens + usage.long_cache_write_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cache_read_tokens - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens,
            "ephemeral_1h_input_tokens": usage.long_cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
    }


# --- provider -> canonical


def decode_usage(usage: ProviderUsage, target: pb.Usage) -> None:
    """Set the token counts of `target`; absent details are 0. Canonical input tokens include cached tokens. A usage
    without input or output tokens is marked as estimated, so that the gateway counts the missing ones.
    """
    parts = usage.cache_creation or CacheCreation()
    hour, minutes = count(parts.ephemeral_1h_input_tokens), count(parts.ephemeral_5m_input_tokens)
    written = count(max(count(usage.cache_creation_input_tokens), hour + minutes))
    target.long_cache_write_tokens, target.cache_write_tokens = hour, written - hour
    target.cache_read_tokens = count(usage.cache_read_input_tokens)
    target.input_tokens = count(count(usage.input_tokens) + target.cache_read_tokens + written)
    target.output_tokens = count(usage.output_tokens)
    if not usage.has_totals:
        _complete(usage, target)
    if usage.output_tokens_details is not None:
        target.reasoning_tokens = count(usage.output_tokens_details.thinking_tokens)
    if usage.server_tool_use is not None:
        target.web_search_requests = count(usage.server_tool_use.web_search_requests)
    if tier := charged_tier(usage.speed) or charged_tier(usage.service_tier):
        target.service_tier = tier
    if usage.inference_geo and usage.inference_geo not in UNSTATED_REGIONS:
        target.region = usage.inference_geo
    if usage.iterations is not ABSENT_MEMBER:
        _decode_iterations(usage.iterations, target)


def _decode_iterations(raw: Raw, target: pb.Usage) -> None:
    """Set the usage of the provider's compactions. Their service tier and region are those of the call."""
    for iteration in decode_or_none(_ITERATIONS, raw) or ():
        if iteration.type == "compaction":
            summary = pb.Usage()
            decode_usage(iteration, summary)
            add_usage(target.compaction, summary)
            target.compaction.service_tier, target.compaction.region = target.service_tier, target.region


def _complete(usage: ProviderUsage, target: pb.Usage) -> None:
    given = usage.prompt_tokens if usage.input_tokens is None else target.input_tokens
    generated = usage.completion_tokens if usage.output_tokens is None else usage.output_tokens
    given, generated = completed(given, generated, usage.total_tokens)
    target.input_tokens, target.output_tokens = count(given), count(generated)
    target.estimated = given is None or generated is None


def estimated_usage(request: pb.GenerateRequest) -> pb.Usage:
    """Return the usage at the start of a stream, estimated from the length of the request without its media."""
    return pb.Usage(input_tokens=_characters(request) // CHARACTERS_PER_TOKEN, output_tokens=1)


def _characters(request: pb.GenerateRequest) -> int:
    body = request.source.body
    if body and b"base64" not in body:
        return len(body)
    length = sum(len(part.text.text) for part in request.instructions)
    for message in request.messages:
        for part in message.parts:
            length += len(part.text.text) + len(part.tool_call.arguments_json)
            length += sum(len(inner.text.text) for inner in part.tool_result.parts)
    length += sum(len(tool.function.parameters_json) + len(tool.function.description) for tool in request.tools)
    return length

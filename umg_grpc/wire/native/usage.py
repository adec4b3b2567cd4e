"""Token usage in native responses: encoded for a caller, and decoded from a provider's response."""

from msgspec import Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count, as_number, completed, count

# Kind of token -> its canonical field, in the prompt and in the response.
PROMPT_KINDS = {
    "AUDIO": "audio_input_tokens",
    "IMAGE": "image_input_tokens",
    "VIDEO": "video_input_tokens",
    "DOCUMENT": "document_input_tokens",
}
RESPONSE_KINDS = {"AUDIO": "audio_output_tokens", "IMAGE": "image_output_tokens"}


TRAFFIC_TIERS = {"ON_DEMAND_PRIORITY": "priority", "ON_DEMAND_FLEX": "flex"}
"""Service classes with separate prices: value of `trafficType` -> service tier."""


class ModalityCount(Struct, rename="camel"):
    """Element of `promptTokensDetails` and of `candidatesTokensDetails`."""

    modality: str | None = None
    token_count: Count = None


class UsageMetadata(Struct, rename="camel"):
    """Member `usageMetadata` of a response; counts of 0 are left out."""

    prompt_token_count: Count = None
    candidates_token_count: Count = None
    thoughts_token_count: Count = None
    cached_content_token_count: Count = None
    tool_use_prompt_token_count: Count = None
    total_token_count: Count = None
    prompt_tokens_details: list[ModalityCount] | None = None
    candidates_tokens_details: list[ModalityCount] | None = None
    service_tier: str | None = None  # in the Gemini API
    traffic_type: str | None = None  # in Vertex AI, a key of `TRAFFIC_TIERS`

    @property
    def is_stated(self) -> bool:
        """Whether a number of prompt or candidate tokens is present. Otherwise the gateway counts the tokens itself."""
        return self.prompt_token_count is not None or self.candidates_token_count is not None


# --- canonical -> caller


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return `usageMetadata`, always with its five counters. The prompt count excludes tokens that tools added, the
    candidates count reasoning tokens.
    """
    prompt = max(0, usage.input_tokens - usage.tool_input_tokens)
    candidates = max(0, usage.output_tokens - usage.reasoning_tokens)
    fields: JsonObject = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates + usage.reasoning_tokens + usage.tool_input_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "cachedContentTokenCount": usage.cache_read_tokens,
    }
    if usage.tool_input_tokens:
        fields["toolUsePromptTokenCount"] = usage.tool_input_tokens
    if details := _details(usage, PROMPT_KINDS, prompt):
        fields["promptTokensDetails"] = details
    if details := _details(usage, RESPONSE_KINDS, candidates):
        fields["candidatesTokensDetails"] = details
    return fields


def _details(usage: pb.Usage, kinds: dict[str, str], total: int) -> list[JsonObject]:
    others = {kind: tokens for kind, name in kinds.items() if (tokens := getattr(usage, name))}
    if not others:
        return []
    text = max(0, total - sum(others.values()))
    return [{"modality": kind, "tokenCount": tokens} for kind, tokens in ({"TEXT": text} | others).items() if tokens]


# --- provider -> canonical


def decode_usage(usage: UsageMetadata, target: pb.Usage) -> None:
    """Set the token counts of `target`. If one of the two is missing, it is the total less the other. Without a total,
    a missing prompt count is marked as estimated; a missing candidates count is 0, since the format omits zeros.
    """
    tools, thoughts = usage.tool_use_prompt_token_count, usage.thoughts_token_count
    prompt, candidates = usage.prompt_token_count, usage.candidates_token_count
    if prompt is None or candidates is None:
        total = as_number(usage.total_token_count)
        rest = None if total is None else total - count(tools) - count(thoughts)
        prompt, candidates = completed(prompt, candidates, rest)
        target.estimated = prompt is None
    target.input_tokens, target.output_tokens = count(prompt), count(candidates)
    if usage.cached_content_token_count:
        target.cache_read_tokens = count(usage.cached_content_token_count)
    if tools:
        target.tool_input_tokens = count(tools)
        target.input_tokens = count(target.input_tokens + target.tool_input_tokens)
    if thoughts:
        target.reasoning_tokens = count(thoughts)
        target.output_tokens = count(target.output_tokens + target.reasoning_tokens)
    for detail in usage.prompt_tokens_details or ():
        _decode_kind(detail, PROMPT_KINDS, target)
    for detail in usage.candidates_tokens_details or ():
        _decode_kind(detail, RESPONSE_KINDS, target)
    if tier := charged_tier(usage.service_tier or TRAFFIC_TIERS.get(usage.traffic_type or "")):
        target.service_tier = tier


def _decode_kind(detail: ModalityCount, kinds: dict[str, str], target: pb.Usage) -> None:
    if (name := kinds.get(detail.modality or "")) is not None:
        setattr(target, name, count(detail.token_count))

"""What stands in a whole answer and in the chunks of a streamed one alike, both directions.

The structs are what providers send, who differ: whatever is not needed may be absent or null.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Meta, Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import free_text
from umg_grpc.wire.json import ABSENT, JsonObject, given
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.grounding import SEARCH, Cited, encode_grounding
from umg_grpc.wire.native.parts import (
    decode_part,
    encode_call,
    encode_media,
    encode_server_tool,
    encode_thoughts,
    kind_of,
)
from umg_grpc.wire.native.usage import UsageMetadata
from umg_grpc.wire.provider_errors import unreadable
from umg_grpc.wire.state import show

FINISH_REASONS = {
    "STOP": pb.FINISH_REASON_STOP,
    "MAX_TOKENS": pb.FINISH_REASON_LENGTH,
    "SAFETY": pb.FINISH_REASON_CONTENT_FILTER,
    "LANGUAGE": pb.FINISH_REASON_CONTENT_FILTER,
    "BLOCKLIST": pb.FINISH_REASON_CONTENT_FILTER,
    "PROHIBITED_CONTENT": pb.FINISH_REASON_CONTENT_FILTER,
    "SPII": pb.FINISH_REASON_CONTENT_FILTER,
    "IMAGE_SAFETY": pb.FINISH_REASON_CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": pb.FINISH_REASON_CONTENT_FILTER,
    "MODEL_ARMOR": pb.FINISH_REASON_CONTENT_FILTER,
    "RECITATION": pb.FINISH_REASON_RECITATION,
    "IMAGE_RECITATION": pb.FINISH_REASON_RECITATION,
    "MALFORMED_FUNCTION_CALL": pb.FINISH_REASON_MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": pb.FINISH_REASON_MALFORMED_CALL,
    "OTHER": pb.FINISH_REASON_OTHER,
    "IMAGE_OTHER": pb.FINISH_REASON_OTHER,
    "NO_IMAGE": pb.FINISH_REASON_OTHER,
    "TOO_MANY_TOOL_CALLS": pb.FINISH_REASON_OTHER,
    "MISSING_THOUGHT_SIGNATURE": pb.FINISH_REASON_OTHER,
    "MALFORMED_RESPONSE": pb.FINISH_REASON_OTHER,
    "ESCALATION": pb.FINISH_REASON_OTHER,
    "CONTINUATION": pb.FINISH_REASON_OTHER,
}
UNSAID = ("", "FINISH_REASON_UNSPECIFIED")
# The first word of each, which stands for it; calls finish with STOP.
FINISH_NAMES = {reason: word for word, reason in reversed(FINISH_REASONS.items())} | {
    pb.FINISH_REASON_STOP_SEQUENCE: "STOP",
    pb.FINISH_REASON_CONTEXT_FULL: "MAX_TOKENS",
    pb.FINISH_REASON_TOOL_CALLS: "STOP",
    pb.FINISH_REASON_REFUSAL: "SAFETY",
    pb.FINISH_REASON_PAUSE: "STOP",
    pb.FINISH_REASON_COMPACTION: "STOP",
}
# Why a prompt was blocked, where an answer that is not there stops for the same.
BLOCKED = ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR")
# What an upstream may say although it called a tool.
OVERRIDDEN = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)

Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of a candidate


# --- provider's structs


class ProviderRating(Struct):
    """An element of `safetyRatings`."""

    category: str | None = None
    probability: str | None = None
    blocked: bool | None = None


class ProviderContent(Struct):
    """`content`; it may be empty or lack its parts."""

    parts: list[schema.ProviderPart] | None = None


class RawContent(Struct):
    """`content` with its parts as they came, for those of an unknown kind."""

    parts: list[Raw] | None = None


class TokenCandidate(Struct, rename="camel"):
    """An element of `chosenCandidates`."""

    token: str | None = None
    log_probability: float | None = None


class TopCandidates(Struct):
    """An element of `topCandidates`."""

    candidates: list[TokenCandidate] | None = None


class LogprobsResult(Struct, rename="camel"):
    """`logprobsResult`."""

    chosen_candidates: list[TokenCandidate] | None = None
    top_candidates: list[TopCandidates] | None = None


class Ending(Struct, rename="camel"):
    """What a candidate that is passed on is looked at for."""

    index: Index | None = None
    finish_reason: str | None = None
    content: Raw = ABSENT

    @property
    def calls(self) -> bool:
        """Whether it calls a tool. Inside a text the quotes would be escaped; in arguments nobody looks for it."""
        return b'"functionCall"' in bytes(self.content)


class ProviderCandidate(Struct, rename="camel"):
    """An element of `candidates`."""

    index: Index | None = None
    finish_reason: str | None = None
    content: ProviderContent | None = None
    finish_message: str | None = None
    safety_ratings: list[ProviderRating] | None = None
    grounding_metadata: Raw = ABSENT
    logprobs_result: LogprobsResult | None = None


class RawCandidate(Struct):
    """A candidate whose parts are looked at again."""

    content: RawContent | None = None


class PromptFeedback(Struct, rename="camel"):
    """`promptFeedback`."""

    block_reason: str | None = None
    safety_ratings: list[ProviderRating] | None = None


class Head(Struct, rename="camel", kw_only=True):
    """What every body and every chunk has beside its candidates."""

    response_id: str | None = None
    model_version: str | None = None
    create_time: str | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: Raw = ABSENT


class ProviderAnswer(Head, kw_only=True, rename="camel"):
    """A body, or a chunk of a stream."""

    candidates: list[ProviderCandidate] | None = None


class PassedAnswer(Head, kw_only=True, rename="camel"):
    """A body or chunk that is passed on."""

    candidates: list[Ending] | None = None


class RawAnswer(Struct):
    """A body or chunk whose parts are looked at again."""

    candidates: list[RawCandidate] | None = None


# --- provider -> canonical


def decode_head(head: Head, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Id and time."""
    target.response_id = head.response_id or ""
    if head.create_time:
        try:
            target.create_time.FromJsonString(head.create_time)
        except ValueError:
            target.ClearField("create_time")  # the gateway's own clock will do


def decode_finish(reason: str | None, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Fills in the reason, and the provider's own word where it shares its meaning with others or is unknown."""
    if reason is None or reason in UNSAID:
        return
    target.finish_reason = FINISH_REASONS.get(reason, pb.FINISH_REASON_OTHER)
    if FINISH_NAMES.get(target.finish_reason) != reason:
        target.provider_reason = reason


def settle(target: pb.Candidate | pb.CandidateFinished, *, called: bool) -> None:
    """Corrects the reason where what was said tells better: calls finish with STOP."""
    if called and target.finish_reason in OVERRIDDEN:
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif not target.finish_reason:
        target.finish_reason = pb.FINISH_REASON_STOP


def decode_ratings(ratings: Sequence[ProviderRating] | None) -> list[pb.SafetyRating]:
    """What the safety filters found."""
    return [
        pb.SafetyRating(
            category=rating.category or "", probability=rating.probability or "", blocked=rating.blocked or False
        )
        for rating in ratings or ()
    ]


def decode_answer_part(part: schema.ProviderPart, raw: Raw | None, names: ToolNames) -> pb.Part:
    """A part of an answer; `raw` is there for one of an unknown kind. Raises UmgError(UPSTREAM_FAILED) for what cannot
    be read.
    """
    target = pb.Part()
    if raw is not None:
        part = schema.ProviderPart(opaque=raw)
    try:
        decode_part(part, target, "")
    except UmgError:
        raise unreadable() from None  # the provider's field, not the caller's
    if target.HasField("tool_call"):
        call = target.tool_call
        if names.resolve(call):
            call.text = free_text(call.arguments_json)
        elif not call.arguments_json:
            call.arguments_json = "{}"
    return target


def is_known(part: schema.ProviderPart) -> bool:
    """Whether a part says what it is in a word that is known here."""
    return (
        part.text is not None
        or part.function_call is not None
        or part.inline_data is not None
        or any(_is_there(getattr(part, name)) for name in schema.KINDS)
    )


def _is_there(value: object) -> bool:
    return given(value) if isinstance(value, Raw) else value is not None


def unknown_parts(parts: Sequence[schema.ProviderPart], body: bytes, place: int) -> Sequence[Raw | None]:
    """For each part of a body's candidate how it came, where its kind is not known; None for all others."""
    if all(map(is_known, parts)):
        return [None] * len(parts)
    candidates = msgspec.json.decode(body, type=RawAnswer).candidates or []
    content = candidates[place].content
    raws = (content and content.parts) or []
    return [raw if not is_known(part) and kind_of(raw) else None for part, raw in zip(parts, raws, strict=True)]


def decode_logprobs(result: LogprobsResult | None) -> list[pb.TokenLogprob]:
    """Likelihoods of the tokens, each with its alternatives."""
    tops = (result and result.top_candidates) or []
    decoded = list[pb.TokenLogprob]()
    for place, chosen in enumerate((result and result.chosen_candidates) or []):
        entry = _logprob(chosen)
        others = tops[place].candidates if place < len(tops) else None
        entry.alternatives.extend(map(_logprob, others or ()))
        decoded.append(entry)
    return decoded


def _logprob(candidate: TokenCandidate) -> pb.TokenLogprob:
    return pb.TokenLogprob(
        token=candidate.token or "", logprob=0 if candidate.log_probability is None else candidate.log_probability
    )


# --- canonical -> caller


def finish_name(reason: "pb.FinishReason.ValueType", provider_reason: str) -> str:
    """The reason in native's vocabulary: the provider's own word where it is one of native's for this."""
    if provider_reason and FINISH_REASONS.get(provider_reason) == reason:
        return provider_reason
    unknown = reason == pb.FINISH_REASON_OTHER and provider_reason not in FINISH_REASONS
    if unknown and provider_reason.isupper() and provider_reason.replace("_", "").isalnum():
        return provider_reason  # newer than this build
    return FINISH_NAMES.get(reason, "STOP")


def blocked_name(block_reason: str) -> str:
    """Why a candidate that stands for a blocked prompt stopped."""
    return block_reason if block_reason in BLOCKED else "OTHER"


def encode_ratings(ratings: Sequence[pb.SafetyRating]) -> list[JsonObject]:
    """`safetyRatings`."""
    return [
        {"category": rating.category, "probability": rating.probability} | ({"blocked": True} if rating.blocked else {})
        for rating in ratings
    ]


def encode_feedback(block_reason: str, ratings: Sequence[pb.SafetyRating]) -> JsonObject:
    """`promptFeedback`."""
    return {"blockReason": block_reason, "safetyRatings": encode_ratings(ratings)}


def encode_time(time: Timestamp) -> str:
    """ISO 8601."""
    return time.ToJsonString()


def encode_answer_part(part: pb.Part) -> JsonObject | Raw | None:
    """A part of an answer; None for what native has no words for, or that says nothing."""
    encoded: JsonObject | None = None
    match part.WhichOneof("kind"):
        case "text":
            encoded = {"text": part.text.text}
        case "reasoning":
            encoded = encode_thoughts(part)
        case "tool_call":
            encoded = encode_call(part.tool_call, part.tool_call.name)
        case "media":
            encoded = encode_media(part.media)
        case "refusal":
            encoded = {"text": part.refusal.text}
        case "server_tool_call" | "server_tool_result":
            encoded = _server_tool(part)
        case "opaque" if part.opaque.format == "native":
            return _raw(part.opaque.json)
    if encoded is None:
        return None
    if part.thought:
        encoded["thought"] = True
    if part.HasField("state"):
        encoded["thoughtSignature"] = show(part.state, "native")
    elif not encoded.get("text", "?") or encoded.keys() == {"thought"}:
        return None
    return encoded


def _server_tool(part: pb.Part) -> JsonObject | None:
    try:
        return encode_server_tool(part, "")
    except UmgError:
        return None  # no JSON: a gRPC upstream's mistake costs the part, not the answer


def _raw(text: str) -> Raw | None:
    """Return the JSON as it stands, None for a text that is not JSON."""
    try:
        return msgspec.json.decode(text, type=Raw)
    except ValueError:
        return None


def queries_of(part: pb.Part) -> Sequence[str]:
    """What a search of the provider's looked for, which stands beside the answer."""
    call = part.server_tool_call
    return call.queries if part.HasField("server_tool_call") and call.name == SEARCH else ()


def encode_sources(cited: Sequence[Cited], queries: Sequence[str], rest: str) -> JsonObject:
    """`groundingMetadata` of a candidate, as the member that it is; {} for none."""
    grounding = encode_grounding(cited, queries, rest)
    return {} if grounding == {} else {"groundingMetadata": grounding}


def encode_logprobs(entries: Sequence[pb.TokenLogprob]) -> JsonObject:
    """`logprobsResult`, as the member that it is; {} for none."""
    if not entries:
        return {}
    result: JsonObject = {"chosenCandidates": [_chosen(entry) for entry in entries]}
    if any(entry.alternatives for entry in entries):
        result["topCandidates"] = [{"candidates": list(map(_chosen, entry.alternatives))} for entry in entries]
    return {"logprobsResult": result}


def _chosen(entry: pb.TokenLogprob) -> JsonObject:
    return {"token": entry.token, "logProbability": entry.logprob}

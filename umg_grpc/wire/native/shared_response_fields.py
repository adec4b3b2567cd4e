"""Fields and parts that native responses and chunks share, in both directions. Members may be absent or null."""

from collections.abc import Sequence
from typing import Annotated, assert_never

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Meta, Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.finish_reason_words import meaning_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.finish_reason_conversion import Ended, finish_reason_of, own_reasons
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present
from umg_grpc.wire.core.reasoning_state_conversion import show
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import unreadable
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.content_parts import decode_part, encode_media, encode_reasoning, kind_of
from umg_grpc.wire.native.grounding_citations import SEARCH_TOOL, Cited, encode_grounding
from umg_grpc.wire.native.server_tools import encode_server_tool
from umg_grpc.wire.native.tool_calls import encode_call, rename_call
from umg_grpc.wire.native.usage import UsageMetadata

FINISH_REASONS = own_reasons("native")
NO_REASON = ("", "FINISH_REASON_UNSPECIFIED")
# The first name of each reason is used for it; answers with calls finish with STOP.
FINISH_NAMES = {reason: word for word, reason in reversed(FINISH_REASONS.items())} | {
    pb.FINISH_REASON_STOP_SEQUENCE: "STOP",
    pb.FINISH_REASON_CONTEXT_FULL: "MAX_TOKENS",
    pb.FINISH_REASON_TOOL_CALLS: "STOP",
    pb.FINISH_REASON_REFUSAL: "SAFETY",
    pb.FINISH_REASON_PAUSE: "MAX_TOKENS",  # the turn continues in another call
    pb.FINISH_REASON_COMPACTION: "MAX_TOKENS",
}
# Reasons of a blocked prompt that are also the finish reason of its empty candidate.
BLOCK_REASONS = ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR")
# Reasons that an upstream may send although the model called a tool.
OVERRIDDEN_REASONS = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)

Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of a candidate


# --- provider's structs


class ProviderRating(Struct):
    """Element of `safetyRatings`: the rating of a response by one safety filter."""

    category: str | None = None
    probability: str | None = None
    blocked: bool | None = None


class ProviderContent(Struct):
    """Member `content` of a candidate, which may be empty or lack its parts."""

    parts: list[schema.ProviderPart] | None = None


class RawContent(Struct):
    """Member `content` of a candidate with its parts as raw JSON, for parts of an unknown kind."""

    parts: list[Raw] | None = None


class TokenCandidate(Struct, rename="camel"):
    """Element of `chosenCandidates`: one token with its log probability."""

    token: str | None = None
    log_probability: float | None = None


class TopCandidates(Struct):
    """Element of `topCandidates`: the alternatives of one token."""

    candidates: list[TokenCandidate] | None = None


class LogprobsResult(Struct, rename="camel"):
    """Member `logprobsResult`."""

    chosen_candidates: list[TokenCandidate] | None = None
    top_candidates: list[TopCandidates] | None = None


class Ending(Struct, rename="camel"):
    """Members of a passed-through candidate that are decoded: index, finish reason, and the content as raw JSON."""

    index: Index | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    content: Raw = ABSENT_MEMBER

    @property
    def calls(self) -> bool:
        """Whether the raw JSON has a call. Inside a text the quotes of the member would be escaped, and inside the
        arguments of a call there is a call anyway.
        """
        return b'"functionCall"' in bytes(self.content)


class ProviderCandidate(Struct, rename="camel"):
    """Element of `candidates` in a provider's response."""

    index: Index | None = None
    finish_reason: str | None = None
    content: ProviderContent | None = None
    finish_message: str | None = None
    safety_ratings: list[ProviderRating] | None = None
    grounding_metadata: Raw = ABSENT_MEMBER
    logprobs_result: LogprobsResult | None = None


class RawCandidate(Struct):
    """Candidate whose parts are decoded again as raw JSON."""

    content: RawContent | None = None


class PromptFeedback(Struct, rename="camel"):
    """Member `promptFeedback` of a response."""

    block_reason: str | None = None
    safety_ratings: list[ProviderRating] | None = None


class Head(Struct, rename="camel", kw_only=True):
    """Members of a body or chunk other than its candidates."""

    response_id: str | None = None
    model_version: str | None = None
    create_time: str | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: Raw = ABSENT_MEMBER


class ProviderResponse(Head, kw_only=True, rename="camel"):
    """Body of a provider's response, or one chunk of a streamed response."""

    candidates: list[ProviderCandidate] | None = None


class PassedResponse(Head, kw_only=True, rename="camel"):
    """Body or chunk that is passed through, with the fields that are decoded."""

    candidates: list[Ending] | None = None


class RawResponse(Struct):
    """Body or chunk of which only the parts are decoded, as raw JSON."""

    candidates: list[RawCandidate] | None = None


# --- provider -> canonical


def decode_head(head: Head, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Copy a response's id and creation time to `target`; the gateway's clock replaces an invalid time."""
    target.response_id = head.response_id or ""
    if head.create_time:
        try:
            target.create_time.FromJsonString(head.create_time)
        except ValueError:
            target.ClearField("create_time")  # the gateway's own clock replaces it


_CONTENT = msgspec.json.Decoder(ProviderContent)


def has_content(raw: Raw) -> bool:
    """Return whether the member `content` of a candidate has output, that is a part other than an empty text."""
    parts = (_CONTENT.decode(raw).parts if is_present(raw) else None) or ()
    return any(part.text != "" for part in parts)


def end_of(candidate: Ending | ProviderCandidate, has_content: bool) -> Ended:
    """Return the finish reason and message of a candidate, in the provider's words."""
    return Ended(candidate.finish_reason, candidate.finish_message or "", has_content)


def decode_finish(reason: str | None, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Set the finish reason from the provider's `reason`, if any. An unknown or ambiguous name is also stored."""
    if reason is None or reason in NO_REASON:
        return
    target.finish_reason = finish_reason_of(reason)
    if FINISH_NAMES.get(target.finish_reason) != reason:
        target.provider_reason = reason


def correct_finish(target: pb.Candidate | pb.CandidateFinished, *, called: bool) -> None:
    """Set TOOL_CALLS as finish reason if a tool was `called` (providers send STOP then), and STOP if none is set."""
    if called and target.finish_reason in OVERRIDDEN_REASONS:
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif not target.finish_reason:
        target.finish_reason = pb.FINISH_REASON_STOP


def decode_ratings(ratings: Sequence[ProviderRating] | None) -> list[pb.SafetyRating]:
    """Return the ratings of a response by the provider's safety filters; [] for None."""
    return [
        pb.SafetyRating(
            category=rating.category or "", probability=rating.probability or "", blocked=rating.blocked or False
        )
        for rating in ratings or ()
    ]


def decode_response_part(part: schema.ProviderPart, raw: Raw | None, names: ToolNames) -> pb.Part:
    """Return a part of a response. `raw`: JSON of an unknown part. Raise UmgError(UPSTREAM_FAILED) for a broken one."""
    target = pb.Part()
    if raw is not None:
        part = schema.ProviderPart(opaque=raw)
    try:
        decode_part(part, target, "")
    except UmgError:
        raise unreadable() from None  # the field is the provider's, not the caller's
    if target.HasField("tool_call"):
        rename_call(target.tool_call, names)
    return target


def is_known(part: schema.ProviderPart) -> bool:
    """Return whether a part is of a kind that the structs of this format declare; False for an empty part."""
    return (
        part.text is not None
        or part.function_call is not None
        or part.inline_data is not None
        or any(_is_given(getattr(part, name)) for name in schema.PART_KINDS)
    )


def _is_given(value: object) -> bool:
    return is_present(value) if isinstance(value, Raw) else value is not None


class UnknownParts:
    """Raw JSON of a body's parts of unknown kinds. The body is decoded again, once, at the first access."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._candidates: list[RawCandidate] | None = None

    def of(self, parts: Sequence[schema.ProviderPart], position: int) -> Sequence[Raw | None]:
        """Return the raw JSON of each part in the candidate at `position`; None for a part of a known kind."""
        if all(map(is_known, parts)):
            return [None] * len(parts)
        if self._candidates is None:
            self._candidates = msgspec.json.decode(self._body, type=RawResponse).candidates or []
        content = self._candidates[position].content
        raws = (content and content.parts) or []
        return [raw if not is_known(part) and kind_of(raw) else None for part, raw in zip(parts, raws, strict=True)]


def decode_logprobs(result: LogprobsResult | None) -> list[pb.TokenLogprob]:
    """Return the log probabilities of the tokens of a candidate, each with its alternatives; [] for None."""
    alternatives = (result and result.top_candidates) or []
    decoded = list[pb.TokenLogprob]()
    for position, chosen in enumerate((result and result.chosen_candidates) or []):
        entry = _logprob(chosen)
        others = alternatives[position].candidates if position < len(alternatives) else None
        entry.alternatives.extend(map(_logprob, others or ()))
        decoded.append(entry)
    return decoded


def _logprob(candidate: TokenCandidate) -> pb.TokenLogprob:
    return pb.TokenLogprob(
        token=candidate.token or "", logprob=0 if candidate.log_probability is None else candidate.log_probability
    )


# --- canonical -> caller


def finish_name(reason: "pb.FinishReason.ValueType", provider_reason: str) -> str:
    """Return the `finishReason`: the provider's own name if it means the same, or may be newer than this build."""
    if provider_reason and FINISH_REASONS.get(provider_reason) == reason:
        return provider_reason
    unknown = reason == pb.FINISH_REASON_STOP and meaning_of(provider_reason) is None
    if unknown and provider_reason.isupper() and provider_reason.replace("_", "").isalnum():
        return provider_reason  # newer than this build
    return FINISH_NAMES.get(reason, "STOP")


def blocked_name(block_reason: str) -> str:
    """Return the `finishReason` for a blocked prompt: `block_reason` if it is also a finish reason, else `OTHER`."""
    return block_reason if block_reason in BLOCK_REASONS else "OTHER"


def encode_ratings(ratings: Sequence[pb.SafetyRating]) -> list[JsonObject]:
    """Encode ratings of safety filters as the member `safetyRatings`."""
    return [
        {"category": rating.category, "probability": rating.probability} | ({"blocked": True} if rating.blocked else {})
        for rating in ratings
    ]


def encode_feedback(block_reason: str, ratings: Sequence[pb.SafetyRating]) -> JsonObject:
    """Return `promptFeedback`, with the reason why a prompt was blocked and the ratings of safety filters."""
    return {"blockReason": block_reason, "safetyRatings": encode_ratings(ratings)}


def encode_time(time: Timestamp) -> str:
    """Return a time as text in RFC 3339 (`2025-01-31T12:00:00Z`)."""
    return time.ToJsonString()


def encode_response_part(part: pb.Part) -> JsonObject | Raw | None:  # noqa: PLR0912 - one case a kind
    """Return a part of a response; None for an empty part, and for a part that native cannot express."""
    encoded: JsonObject | None = None
    match part.WhichOneof("kind"):
        case "text":
            encoded = {"text": part.text.text}
        case "reasoning":
            encoded = encode_reasoning(part)
        case "tool_call":
            encoded = encode_call(part.tool_call, part.tool_call.call_id, part.tool_call.name)
        case "media":
            encoded = encode_media(part.media)
        case "refusal":
            encoded = {"text": part.refusal.text}
        case "server_tool_call" | "server_tool_result":
            encoded = _server_tool(part)
        case "opaque" if part.opaque.format == "native":
            return _raw(part.opaque.json)
        case "opaque" | "tool_result" | "compaction" | None:
            pass  # content that only another format has, or a kind newer than this build
        case unhandled:
            assert_never(unhandled)
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
        return None  # no JSON: the mistake of a gRPC upstream costs the part, not the response


def _raw(text: str) -> Raw | None:
    try:
        return msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        return None


def queries_of(part: pb.Part) -> Sequence[str]:
    """Return the queries of a provider's web search, which this format puts beside the parts; () for other parts."""
    call = part.server_tool_call
    return call.queries if part.HasField("server_tool_call") and call.name == SEARCH_TOOL else ()


def encode_sources(cited: Sequence[Cited], queries: Sequence[str], rest: str) -> JsonObject:
    """Return {"groundingMetadata": ...}; {} without citations and queries. `rest`: provider's own JSON, or ""."""
    grounding = encode_grounding(cited, queries, rest)
    return {} if grounding == {} else {"groundingMetadata": grounding}


def encode_logprobs(entries: Sequence[pb.TokenLogprob]) -> JsonObject:
    """Encode log probabilities as the member `logprobsResult` of a candidate; return {} without any."""
    if not entries:
        return {}
    result: JsonObject = {"chosenCandidates": [_chosen(entry) for entry in entries]}
    if any(entry.alternatives for entry in entries):
        result["topCandidates"] = [{"candidates": list(map(_chosen, entry.alternatives))} for entry in entries]
    return {"logprobsResult": result}


def _chosen(entry: pb.TokenLogprob) -> JsonObject:
    return {"token": entry.token, "logProbability": entry.logprob}

"""Fields and content blocks that complete and streamed messages responses have in common, in both directions."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.finish_reason_conversion import finish_reason_of, own_reasons
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present, json_text
from umg_grpc.wire.core.reasoning_state_conversion import show
from umg_grpc.wire.core.split_character_repair import replace_halves
from umg_grpc.wire.core.tool_argument_objects import call_arguments
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.decode_messages import UNSIGNED_SIGNATURE
from umg_grpc.wire.messages.server_tools import encode_server_call, encode_server_tool_result, server_input
from umg_grpc.wire.messages.tool_calls import call_id, call_state, encode_call
from umg_grpc.wire.messages.usage import ProviderUsage

FINISH_REASONS = own_reasons("messages")
FINISH_NAMES = {value: name for name, value in FINISH_REASONS.items()} | {
    pb.FINISH_REASON_CONTENT_FILTER: "refusal",
    pb.FINISH_REASON_RECITATION: "refusal",
    # reasons without a name in this format: the response must not look complete
    pb.FINISH_REASON_OTHER: "max_tokens",
    pb.FINISH_REASON_MALFORMED_CALL: "max_tokens",
}  # any other reason becomes `end_turn`
# Reasons that an upstream may send although the model called a tool.
OVERRIDDEN_REASONS = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)

REASONING_SEPARATOR = "\n\n"
# --- provider's structs


class StopDetails(Struct):
    """Member `stop_details` of a response."""

    category: str | None = None
    explanation: str | None = None


class Ending(Struct, kw_only=True):
    """Reason why a response stopped: members of a response, and of the `delta` of a `message_delta`."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None
    container: Raw = ABSENT_MEMBER


class Head(Ending, kw_only=True):
    """Members of a response other than its content."""

    type: str | None = None
    id: str | None = None
    model: str | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT_MEMBER


# --- canonical -> caller


def encode_finish(finished: pb.Candidate | pb.CandidateFinished, calls: bool, block_reason: str) -> JsonObject:
    """Return `stop_reason`, `stop_sequence`, `stop_details` and any `container`. `calls`: tools were called: `tool_use`
    unless the reason is another cause. `block_reason`: why the prompt was blocked, or "".
    """
    reason = pb.FINISH_REASON_CONTENT_FILTER if block_reason else finished.finish_reason
    if calls and reason in OVERRIDDEN_REASONS:
        reason = pb.FINISH_REASON_TOOL_CALLS
    name = FINISH_NAMES.get(reason, "end_turn")
    details: JsonObject | None = None
    if name == "refusal":
        explanation = finished.finish_message or (block_reason and f"the prompt was blocked: {block_reason}")
        details = {"type": "refusal", "category": finished.refusal_category or None, "explanation": explanation or None}
    fields: JsonObject = {"stop_reason": name, "stop_sequence": finished.stop_sequence or None, "stop_details": details}
    if finished.container_json:
        fields["container"] = Raw(finished.container_json.encode())
    return fields


def signature(part: pb.Part) -> str:
    """Return a reasoning block's `signature`: the part's state, wrapped for other formats, or `UNSIGNED_SIGNATURE`."""
    return show(part.state, "messages") if part.HasField("state") else UNSIGNED_SIGNATURE


def reasoning_text(reasoning: pb.ReasoningPart) -> str:
    """Return all reasoning of a part as one text: its reasoning texts, or its summaries if it has no texts."""
    return REASONING_SEPARATOR.join(
        text for text in (reasoning.texts if any(reasoning.texts) else reasoning.summaries) if text
    )


def encode_blocks(part: pb.Part, response_id: str, index: int) -> Iterator[object]:  # noqa: PLR0912 - one case a kind
    """Yield a part of a response as blocks: several for a text with citations, none if it is empty or inexpressible.
    `response_id` and `index` form missing ids of calls.
    """
    match part.WhichOneof("kind"):
        case "text":
            for text, citations in split_text(part.text):
                encoded: JsonObject = {"type": "text", "text": text}
                yield encoded | {"citations": citations} if citations else encoded
        case "refusal" if part.refusal.text:
            yield {"type": "text", "text": part.refusal.text}
        case "reasoning" if part.reasoning.redacted and part.state.format == "messages":
            yield {"type": "redacted_thinking", "data": show(part.state, "messages")}
        case "reasoning":
            if (thoughts := reasoning_text(part.reasoning)) or part.HasField("state"):
                yield {"type": "thinking", "thinking": thoughts, "signature": signature(part)}
        case "tool_call":
            if (state := call_state(part.state)) is not None:
                yield state
            call = part.tool_call
            yield encode_call(call_id(call, response_id, index), call.name, call_arguments(call))
        case "server_tool_call":
            if (block := encode_server_call(part.server_tool_call, response_id)) is not None:
                yield block | {"input": server_input(part.server_tool_call)}
        case "server_tool_result":
            if (result := encode_server_tool_result(part.server_tool_result, response_id)) is not None:
                yield result
        case "media" if note := media_note(part.media, len(part.media.data)):
            yield {"type": "text", "text": note}
        case "opaque" if part.opaque.format == "messages":
            yield json_text(part.opaque.json, "opaque")
        case "refusal" | "media" | "opaque" | "tool_result" | "compaction" | None:
            pass  # empty, content that only another format has, or a kind newer than this build
        case unhandled:
            assert_never(unhandled)


def split_text(text: pb.TextPart) -> Iterator[tuple[str, list[object]]]:
    """Yield the non-empty pieces of a text with their citations: each cited span is a block. If spans overlap, which
    the specifications do not cover, the first one has the common characters.
    """
    whole, length, offset = text.text, len(text.text), 0
    spans = list[tuple[int, int, object]]()
    for citation in text.citations:
        start = citation.start_index if citation.HasField("start_index") else 0
        end = min(citation.end_index, length) if citation.HasField("end_index") else length
        if (encoded := encode_citation(citation)) is not None:
            spans.append((start, end, encoded) if start < end else (0, length, encoded))
    pieces = list[tuple[str, list[object]]]()
    for start, end, encoded in sorted(spans, key=lambda span: span[:2]):
        if end <= offset and pieces:
            pieces[-1][1].append(encoded)
            continue
        if start > offset:
            pieces.append((whole[offset:start], []))
        pieces.append((whole[max(start, offset) : end], [encoded]))
        offset = end
    pieces.append((whole[offset:], []))
    return ((piece, citations) for piece, citations in pieces if piece)


def media_note(media: pb.MediaPart, size: int) -> str:
    """Return the text that replaces media in this format: the transcript, else a note. `size`: number of bytes."""
    if media.transcript:
        return media.transcript
    kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
    where = media.uri or f"{size} bytes of {media.mime_type or 'an unnamed type'}"
    return f"[{kind}: {where}; this format cannot show it]"


# --- provider -> canonical


def decode_finish(ending: Ending, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Decode the end of a response into `target`. An unknown reason becomes OTHER, with the provider's name for it."""
    reason = ending.stop_reason
    if reason:
        target.finish_reason = finish_reason_of(reason)
        if reason not in FINISH_REASONS:
            target.provider_reason = reason
    target.stop_sequence = ending.stop_sequence or ""
    if ending.stop_details is not None:
        target.finish_message = ending.stop_details.explanation or ""
        target.refusal_category = ending.stop_details.category or ""
    if is_present(ending.container):
        target.container_json = replace_halves(bytes(ending.container)).decode()


def correct_finish(target: pb.Candidate | pb.CandidateFinished, calls: bool) -> None:
    """Correct the finish reason: TOOL_CALLS with `calls`, unless there is another cause; STOP without a reason, or for
    calls that do not exist, since no caller can respond to that.
    """
    if calls and target.finish_reason in (*OVERRIDDEN_REASONS, pb.FINISH_REASON_OTHER):
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif not target.finish_reason or (not calls and target.finish_reason == pb.FINISH_REASON_TOOL_CALLS):
        target.finish_reason = pb.FINISH_REASON_STOP

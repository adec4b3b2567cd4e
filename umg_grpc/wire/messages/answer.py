"""What stands in a whole answer and in the events of a streamed one alike, both directions."""

from collections.abc import Iterator

from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import call_arguments, free_text
from umg_grpc.wire.json import ABSENT, JsonObject, json_text
from umg_grpc.wire.messages.blocks import encode_server_result
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.content import OUR_CALL, UNSIGNED, queries_of
from umg_grpc.wire.messages.usage import ProviderUsage
from umg_grpc.wire.names import ToolNames
from umg_grpc.wire.state import show

FINISH_REASONS = {
    "end_turn": pb.FINISH_REASON_STOP,
    "max_tokens": pb.FINISH_REASON_LENGTH,
    "stop_sequence": pb.FINISH_REASON_STOP_SEQUENCE,
    "tool_use": pb.FINISH_REASON_TOOL_CALLS,
    "pause_turn": pb.FINISH_REASON_PAUSE,
    "refusal": pb.FINISH_REASON_REFUSAL,
    "model_context_window_exceeded": pb.FINISH_REASON_CONTEXT_FULL,
    "compaction": pb.FINISH_REASON_COMPACTION,
}
FINISH_NAMES = {value: name for name, value in FINISH_REASONS.items()} | {
    pb.FINISH_REASON_CONTENT_FILTER: "refusal",
    pb.FINISH_REASON_RECITATION: "refusal",
    pb.FINISH_REASON_OTHER: "max_tokens",  # a reason without a word here: the answer may not look whole
}  # any other ends the turn
# What an upstream may say although it called a tool.
OVERRIDDEN = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)

BETWEEN_THOUGHTS = "\n\n"
SEARCH_ERRORS = frozenset(
    {
        "invalid_tool_input",
        "unavailable",
        "max_uses_exceeded",
        "too_many_requests",
        "query_too_long",
        "request_too_large",
    }
)


# --- provider's structs


class StopDetails(Struct):
    """`stop_details`."""

    category: str | None = None
    explanation: str | None = None


class Ending(Struct, kw_only=True):
    """Why an answer stopped: members of an answer, and of the `delta` of a `message_delta`."""

    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None


class Head(Ending, kw_only=True):
    """What every answer has beside its content."""

    type: str | None = None
    id: str | None = None
    model: str | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT


# --- canonical -> caller


def encode_finish(said: pb.Candidate | pb.CandidateFinished, calls: bool, block_reason: str = "") -> JsonObject:
    """`stop_reason`, `stop_sequence` and `stop_details`. An answer with calls ends for them."""
    reason = pb.FINISH_REASON_CONTENT_FILTER if block_reason else said.finish_reason
    if calls and reason in OVERRIDDEN:
        reason = pb.FINISH_REASON_TOOL_CALLS
    name = FINISH_NAMES.get(reason, "end_turn")
    details: JsonObject | None = None
    if name == "refusal":
        explanation = said.finish_message or (block_reason and f"the prompt was blocked: {block_reason}")
        details = {"type": "refusal", "category": said.refusal_category or None, "explanation": explanation or None}
    return {"stop_reason": name, "stop_sequence": said.stop_sequence or None, "stop_details": details}


def signature(part: pb.Part) -> str:
    """`signature` of thoughts."""
    return show(part.state, "messages") if part.HasField("state") else UNSIGNED


def call_state(state: pb.ReasoningState) -> JsonObject | None:
    """The block that stands before a call which has state: this format has none there. None for no state."""
    if not state.data or state.format == "messages":
        return None
    return {"type": "redacted_thinking", "data": show(state, "messages")}


def call_id(call: pb.ToolCall, response_id: str, index: int) -> str:
    """The call's id, or one that is unique in a conversation for providers that give none."""
    return call.call_id or f"toolu_{''.join(filter(str.isalnum, response_id))[-24:]}_{index}"


def thoughts_of(reasoning: pb.ReasoningPart) -> str:
    """All thoughts as one text: the thoughts themselves, or their summaries where those are all there is."""
    return BETWEEN_THOUGHTS.join(
        text for text in (reasoning.texts if any(reasoning.texts) else reasoning.summaries) if text
    )


def encode_blocks(part: pb.Part, response_id: str, index: int) -> Iterator[object]:  # noqa: PLR0912 - one case a kind
    """The content blocks that say a part: several for a text with sources, none for what this format cannot say."""
    match part.WhichOneof("kind"):
        case "text":
            for text, citations in split_text(part.text):
                block: JsonObject = {"type": "text", "text": text}
                yield block | {"citations": citations} if citations else block
        case "refusal" if part.refusal.text:
            yield {"type": "text", "text": part.refusal.text}
        case "reasoning" if part.reasoning.redacted and part.state.format == "messages":
            yield {"type": "redacted_thinking", "data": show(part.state, "messages")}
        case "reasoning":
            if (thoughts := thoughts_of(part.reasoning)) or part.HasField("state"):
                yield {"type": "thinking", "thinking": thoughts, "signature": signature(part)}
        case "tool_call":
            if (state := call_state(part.state)) is not None:
                yield state
            named = {"id": call_id(part.tool_call, response_id, index), "name": part.tool_call.name}
            yield {"type": "tool_use", **named, "input": call_arguments(part.tool_call)}
        case "server_tool_call":
            if (call := encode_server_call(part.server_tool_call, response_id)) is not None:
                yield call | {"input": server_input(part.server_tool_call)}
        case "server_tool_result":
            if (result := encode_found(part.server_tool_result, response_id)) is not None:
                yield result
        case "media" if note := media_note(part.media, len(part.media.data)):
            yield {"type": "text", "text": note}
        case "opaque" if part.opaque.format == "messages":
            yield json_text(part.opaque.json, "opaque")
        case _:
            pass  # another format's own


def split_text(text: pb.TextPart) -> Iterator[tuple[str, list[object]]]:
    """The text in pieces with the sources of each: a cited answer has a block for every cited span. No empty ones.

    Not shown: spans that overlap. What a later one shares with an earlier one stays with the earlier.
    """
    whole, length, place = text.text, len(text.text), 0
    spans = list[tuple[int, int, object]]()
    for citation in text.citations:
        start = citation.start_index if citation.HasField("start_index") else 0
        end = min(citation.end_index, length) if citation.HasField("end_index") else length
        if (encoded := encode_citation(citation)) is not None:
            spans.append((start, end, encoded) if start < end else (0, length, encoded))
    pieces = list[tuple[str, list[object]]]()
    for start, end, encoded in sorted(spans, key=lambda span: span[:2]):
        if end <= place and pieces:
            pieces[-1][1].append(encoded)
            continue
        if start > place:
            pieces.append((whole[place:start], []))
        pieces.append((whole[max(start, place) : end], [encoded]))
        place = end
    pieces.append((whole[place:], []))
    return ((piece, citations) for piece, citations in pieces if piece)


def encode_server_call(call: pb.ServerToolCall, response_id: str) -> JsonObject | None:
    """A `server_tool_use` without its input; None for a tool that only another format has."""
    if call.format == "messages":
        return {"type": "server_tool_use", "id": call.call_id, "name": call.name}
    if call.name != "web_search":
        return None
    return {"type": "server_tool_use", "id": _our_id(call.call_id, response_id), "name": call.name}


def server_input(call: pb.ServerToolCall) -> object:
    """`input` of a `server_tool_use`."""
    if call.format == "messages" and call.input_json:
        return json_text(call.input_json, "server_tool_call.input_json")
    return {"query": "; ".join(call.queries)}


def encode_found(result: pb.ServerToolResult, response_id: str) -> JsonObject | None:
    """A `web_search_tool_result` and its like; None for a tool that only another format has."""
    theirs = result.format == "messages" or any(found.encrypted_content for found in result.results)
    theirs = theirs or result.call_id.startswith("srvtoolu_")  # a search that failed or found nothing
    encoded = encode_server_result(result, result.call_id if theirs else _our_id(result.call_id, response_id))
    if encoded is not None and result.error_code and result.error_code not in SEARCH_ERRORS:
        encoded["content"] = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    return encoded


def _our_id(call_id: str, response_id: str) -> str:
    return OUR_CALL + "".join(
        letter if letter.isascii() and letter.isalnum() else "_" for letter in call_id or response_id
    )


def media_note(media: pb.MediaPart, size: int) -> str:
    """What stands for a medium that the model made: this format's answers are text."""
    if media.transcript:
        return media.transcript
    kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
    where = media.uri or f"{size} bytes of {media.mime_type or 'an unnamed type'}"
    return f"[{kind}: {where}; this format cannot show it]"


# --- provider -> canonical


def decode_finish(ending: Ending, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Fills in the reason, and the provider's own word where the format has none for it."""
    reason = ending.stop_reason
    if reason:
        target.finish_reason = FINISH_REASONS.get(reason, pb.FINISH_REASON_OTHER)
        if reason not in FINISH_REASONS:
            target.provider_reason = reason
    target.stop_sequence = ending.stop_sequence or ""
    if ending.stop_details is not None:
        target.finish_message = ending.stop_details.explanation or ""
        target.refusal_category = ending.stop_details.category or ""


def settle(target: pb.Candidate | pb.CandidateFinished, calls: bool) -> None:
    """Corrects the reason where what was said tells better: a call, an answer that ends without one."""
    if calls and target.finish_reason in (*OVERRIDDEN, pb.FINISH_REASON_OTHER):
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif not target.finish_reason:
        target.finish_reason = pb.FINISH_REASON_STOP


def rename_call(call: pb.ToolCall, names: ToolNames) -> None:
    """Give a call the caller's names of its tool, and that of a custom tool its text."""
    if names.resolve(call):
        call.text = free_text(call.arguments_json)


def update_search(call: pb.ServerToolCall, arguments: str) -> None:
    """Fills in the input that a provider's own call was streamed with."""
    call.queries[:] = queries_of(arguments)
    if call.format:
        call.input_json = arguments

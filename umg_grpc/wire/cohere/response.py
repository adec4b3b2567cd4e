"""Complete responses of Cohere's `POST /v2/chat` for callers, and encoders of parts that streams use, too."""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.tool_calls import call_id
from umg_grpc.wire.cohere.documents import documents_of, encode_source
from umg_grpc.wire.core.json_decoding import JsonObject

FINISH_NAMES: "dict[pb.FinishReason.ValueType, str]" = {
    pb.FINISH_REASON_STOP: "COMPLETE",
    pb.FINISH_REASON_STOP_SEQUENCE: "STOP_SEQUENCE",
    pb.FINISH_REASON_LENGTH: "MAX_TOKENS",
    pb.FINISH_REASON_CONTEXT_FULL: "MAX_TOKENS",
    pb.FINISH_REASON_TOOL_CALLS: "TOOL_CALL",
    pb.FINISH_REASON_PAUSE: "COMPLETE",
    pb.FINISH_REASON_COMPACTION: "COMPLETE",
    pb.FINISH_REASON_CONTENT_FILTER: "ERROR",
    pb.FINISH_REASON_REFUSAL: "ERROR",
    pb.FINISH_REASON_RECITATION: "ERROR",
    pb.FINISH_REASON_MALFORMED_CALL: "ERROR",
    pb.FINISH_REASON_OTHER: "ERROR",
}
"""Canonical reason -> finish reason (cohere 7.3.1, ChatFinishReason). There is none for refusals and filters."""
COMPLETED_REASONS = frozenset({pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP, pb.FINISH_REASON_TOOL_CALLS})
REASONING_SEPARATOR = "\n\n"
TEXT_BLOCK, THINKING_BLOCK = "text", "thinking"
CITATION_TYPES = {TEXT_BLOCK: "TEXT_CONTENT", THINKING_BLOCK: "THINKING_CONTENT"}
"""Type of a content block -> type of the citations in it."""


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the JSON body for a caller. `request`: the caller's, whose documents are the sources of citations."""
    blocked = pb.Candidate(finish_reason=pb.FINISH_REASON_CONTENT_FILTER)
    candidate = response.candidates[0] if response.candidates else blocked
    encoder = _Message(response.response_id, documents_of(request))
    for part in candidate.message.parts:
        encoder.add(part)
    message, has_refusal = encoder.encode(), any(part.HasField("refusal") for part in candidate.message.parts)
    body: JsonObject = {
        "id": response.response_id,
        "finish_reason": finish_name(candidate.finish_reason, calls=bool(encoder.calls), refused=has_refusal),
        "message": message,
        "usage": encode_usage(response.usage),  # also if it is not known: clients require it
    }
    if encoder.logprobs:
        body["logprobs"] = encoder.logprobs
    return msgspec.json.encode(body)


def can_express(part: pb.Part) -> bool:
    """Return whether a response can contain a part. True for a provider's web search: its sources become citations."""
    match part.WhichOneof("kind"):
        case "server_tool_call":
            return part.server_tool_call.name == "web_search"
        case "server_tool_result":
            return part.server_tool_result.name == "web_search"
        case "text" | "refusal" | "reasoning" | "tool_call" | "tool_result" | None:
            return True
        case "media" | "opaque" | "compaction":
            return False
        case unhandled:
            assert_never(unhandled)


class _Message:
    """Message of a response. Its parts form as few content blocks as possible: clients read only the first text."""

    def __init__(self, response_id: str, documents: Sequence[pb.MediaPart]) -> None:
        self.calls = list[JsonObject]()
        self.logprobs = list[JsonObject]()
        self._response_id = response_id
        self._documents = documents
        self._blocks = list[tuple[str, str]]()  # type, text
        self._citations = list[JsonObject]()

    def add(self, part: pb.Part) -> None:
        match part.WhichOneof("kind"):
            case "text":
                block, start = self._append(TEXT_BLOCK, part.text.text)
                for citation in part.text.citations:
                    cited = encode_citation(citation, self._documents, block, part.text.text, start)
                    self._citations += [] if cited is None else [cited]
                self.logprobs += map(encode_logprob, part.text.logprobs)
            case "refusal":
                self._append(TEXT_BLOCK, part.refusal.text)
                self.logprobs += map(encode_logprob, part.refusal.logprobs)
            case "reasoning":
                texts = part.reasoning.texts if any(part.reasoning.texts) else part.reasoning.summaries
                for text in filter(None, texts):
                    is_more = bool(self._blocks) and self._blocks[-1][0] == THINKING_BLOCK
                    self._append(THINKING_BLOCK, REASONING_SEPARATOR + text if is_more else text)
            case "tool_call":
                called = encode_call(part.tool_call, self._response_id, len(self.calls))
                function = {"name": part.tool_call.name, "arguments": arguments_of(part.tool_call) or "{}"}
                self.calls.append(called | {"function": function})
            case "media" | "tool_result" | "server_tool_call" | "server_tool_result" | "opaque" | "compaction" | None:
                pass  # content that `can_express` rejects, and searches of the provider
            case unhandled:
                assert_never(unhandled)

    def encode(self) -> JsonObject:
        """Return the member `message`. Without content and calls, it has an empty text, since clients read a text."""
        blocks = [(kind, text) for kind, text in self._blocks if text]
        message: JsonObject = {"role": "assistant"}
        if blocks or not self.calls:
            message["content"] = [{"type": kind, kind: text} for kind, text in blocks or [(TEXT_BLOCK, "")]]
        if self.calls:
            message["tool_calls"] = self.calls
        if self._citations:
            message["citations"] = self._citations
        return message

    def _append(self, kind: str, text: str) -> tuple[int, int]:
        """Append a text to the last block, or to a new one if types differ. Return (block's index, text's offset)."""
        if not self._blocks or self._blocks[-1][0] != kind:
            if not text:
                return max(0, len(self._blocks) - 1), 0
            self._blocks.append((kind, ""))
        before = self._blocks[-1][1]
        self._blocks[-1] = kind, before + text
        return len(self._blocks) - 1, len(before)


def finish_name(reason: "pb.FinishReason.ValueType", *, calls: bool, refused: bool) -> str:
    """Return the finish reason of a response. `calls`: it has tool calls. `refused`: it has a refusal text."""
    if calls and reason in COMPLETED_REASONS:
        return FINISH_NAMES[pb.FINISH_REASON_TOOL_CALLS]
    if refused and reason == pb.FINISH_REASON_REFUSAL:
        return FINISH_NAMES[pb.FINISH_REASON_STOP]
    return FINISH_NAMES.get(reason, FINISH_NAMES[pb.FINISH_REASON_STOP])


def encode_usage(usage: pb.Usage) -> JsonObject:
    """Return the member `usage`."""
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return {"billed_units": tokens, "tokens": tokens, "cached_tokens": usage.cache_read_tokens}


def encode_call(call: pb.ToolCall, response_id: str, index: int) -> JsonObject:
    """Return a tool call with empty arguments, as a stream begins it. `index`: source of an id if it has none."""
    function = {"name": call.name, "arguments": ""}
    return {"id": call_id(call, response_id, index), "type": "function", "function": function}


def arguments_of(call: pb.ToolCall) -> str:
    """Return the arguments of a call."""
    return call.arguments_json or call.text  # the text of a tool that callers of this format cannot declare


def encode_citation(
    citation: pb.Citation, documents: Sequence[pb.MediaPart], block: int, text: str, start: int
) -> JsonObject | None:
    """Return a citation; None if its source has no form here. `text`: the part, at `start` of the content `block`."""
    if (source := encode_source(citation, documents)) is None:
        return None
    begin = citation.start_index if citation.HasField("start_index") else 0
    end = citation.end_index if citation.HasField("end_index") else len(text)
    return {
        "start": start + begin,
        "end": start + end,
        "text": text[begin:end],
        "sources": [source],
        "content_index": block,
        "type": CITATION_TYPES[TEXT_BLOCK],
    }


def encode_logprob(entry: pb.TokenLogprob) -> JsonObject:
    """Return the log probability of a token. The token's number in the provider's vocabulary is unknown."""
    return {"text": entry.token, "token_ids": [], "logprobs": [entry.logprob]}

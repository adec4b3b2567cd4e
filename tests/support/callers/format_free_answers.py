"""Answers as test callers receive them, in one form for all formats."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.callers.requests import Turn
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Answer:
    """Parts of a response that every format can express."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()  # name, arguments
    citations: tuple[tuple[str, str, str], ...] = ()  # URL, title, the text that it supports
    refusal: str = ""
    notice: str = ""  # the provider's message on why it stopped
    finish: str = ""  # canonical: FinishReason without its prefix; of an SDK: the format's own word
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)  # prompt with the cached, cached, output with reasoning, reasoning
    media: tuple[tuple[str, bytes], ...] = ()  # media type, content
    turn: Turn | None = field(default=None, compare=False)  # entry that callers append to the conversation


def canonical_answer(response: pb.GenerateResponse) -> Answer:
    """Convert a canonical response to a response. A blocked prompt, which has no candidates, gets the message that
    callers of other formats get.
    """
    blocked = pb.Candidate(
        finish_reason=pb.FINISH_REASON_CONTENT_FILTER,
        finish_message=f"the prompt was blocked: {response.block_reason}",
    )
    candidate = response.candidates[0] if response.candidates else blocked
    parts, usage = candidate.message.parts, response.usage
    reasoning = [part.reasoning for part in parts if part.HasField("reasoning")]
    calls = [part.tool_call for part in parts if part.HasField("tool_call")]
    citations = []
    for part in parts:
        for citation in part.text.citations:
            end = citation.end_index if citation.HasField("end_index") else None
            citations.append((citation.web.url, citation.title, part.text.text[citation.start_index : end]))
    return Answer(
        text="".join(part.text.text for part in parts),
        reasoning="".join("".join([*each.texts, *each.summaries]) for each in reasoning),
        calls=tuple((call.name, json.loads(call.arguments_json)) for call in calls),
        citations=tuple(citations),
        refusal="".join(part.refusal.text for part in parts),
        notice=candidate.finish_message,
        finish=pb.FinishReason.Name(candidate.finish_reason).removeprefix("FINISH_REASON_"),
        usage=(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.reasoning_tokens),
        media=tuple((part.media.mime_type, part.media.data) for part in parts if part.HasField("media")),
    )

"""Canonical finish reasons for vendors' finish words, and the error for a response that failed."""

from collections.abc import Mapping
from typing import NamedTuple

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import MAX_MESSAGE_CHARACTERS, FailureKind, ProviderFailure
from umg_grpc.knowledge.finish_reason_words import FINISH_REASONS, Meaning, meaning_of
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_message_redaction import clean

MEANING_REASONS: "Mapping[Meaning, pb.FinishReason.ValueType]" = {
    "stop": pb.FINISH_REASON_STOP,
    "stop_sequence": pb.FINISH_REASON_STOP_SEQUENCE,
    "limit": pb.FINISH_REASON_LENGTH,
    "context": pb.FINISH_REASON_CONTEXT_FULL,
    "tool": pb.FINISH_REASON_TOOL_CALLS,
    "filter": pb.FINISH_REASON_CONTENT_FILTER,
    "refusal": pb.FINISH_REASON_REFUSAL,
    "recitation": pb.FINISH_REASON_RECITATION,
    "pause": pb.FINISH_REASON_PAUSE,
    "compaction": pb.FINISH_REASON_COMPACTION,
    "malformed": pb.FINISH_REASON_MALFORMED_CALL,
    "unfinished": pb.FINISH_REASON_STOP,
    "other": pb.FINISH_REASON_OTHER,
    "failed": pb.FINISH_REASON_OTHER,
    "outage": pb.FINISH_REASON_OTHER,
    "overloaded": pb.FINISH_REASON_OTHER,
}
MEANING_FAILURES: Mapping[Meaning, Failure] = {
    "malformed": Failure.MODEL,
    "failed": Failure.MODEL,
    "outage": Failure.TRANSIENT,
    "overloaded": Failure.OVERLOADED,
}
"""Meanings of failed responses -> consequence for further attempts."""
MAX_WORD_CHARACTERS = 80


def own_reasons(wire_format: str) -> "dict[str, pb.FinishReason.ValueType]":
    """Return finish word -> reason, for the words that a format's documents define. A reason's usual word is first."""
    return {
        row.word: MEANING_REASONS[row.meaning]
        for row in FINISH_REASONS
        if row.own == wire_format and row.meaning != "unfinished"
    }


def finish_reason_of(word: str) -> "pb.FinishReason.ValueType":
    """Return the canonical reason for a vendor's word. Unknown words are STOP: new ones mostly mean a regular end."""
    return MEANING_REASONS[meaning_of(word) or "stop"]


def unknown_word(word: str) -> str:
    """Return a provider's word, cleaned for the log, if no row of the table has it; "" for a known word."""
    return clean(word, MAX_WORD_CHARACTERS) if word and meaning_of(word) is None else ""


class Ended(NamedTuple):
    """End of one candidate of a response, as the provider states it."""

    word: str | None
    message: str = ""
    has_content: bool = True

    @property
    def failure(self) -> Failure | None:
        """Consequence for further attempts if the candidate failed; None if it did not fail."""
        meaning = meaning_of(self.word) if self.word else None
        if meaning == "unfinished":
            return None if self.has_content and not self.message else Failure.MODEL
        return None if meaning is None else MEANING_FAILURES.get(meaning)


def failed_response(*ends: Ended) -> UmgError | None:
    """Return the error of a response in which all candidates failed; None for any other response.

    A failed response is an error even with output: agents take partial output without an error for a complete turn.
    """
    failures = [end.failure for end in ends]
    if not failures or None in failures:
        return None
    end, failure = ends[0], failures[0] or Failure.MODEL
    word = clean(end.word or "", MAX_WORD_CHARACTERS)
    explanation = f": {clean(end.message)}" if end.message else ""
    message = f"the model's response failed ({word}){explanation}; try again"
    facts = ProviderFailure(FailureKind.SERVER_ERROR, 200, word, clean(end.message, MAX_MESSAGE_CHARACTERS))
    error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status="200")
    return error.with_failure(failure).with_facts(facts)

"""Finish reasons: vendors' words for why a response ended, with their meanings, as rows in `data/finish_reasons.json`.
Relays pass on another vendor's words in any letter case, so one table serves all formats.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Meaning = Literal[
    "stop",
    "stop_sequence",
    "limit",
    "context",
    "tool",
    "filter",
    "refusal",
    "recitation",
    "pause",
    "compaction",
    "other",
    "unfinished",
    "malformed",
    "failed",
    "outage",
    "overloaded",
]
"""Meaning of a word. `unfinished`: no reason was set; without content the response is then a failure. Failures are the
model's (`malformed`: unreadable output, `failed`) or the provider's (`outage`, `overloaded`).
"""


class FinishReasonRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a word and its meaning."""

    word: str
    meaning: Meaning
    source: str
    as_of: str
    own: str = ""
    """Wire format whose documents define the word; "" for a word that only vendors use."""


MAX_WORDS = 256  # words of providers that are kept with their meanings
FINISH_REASONS = tuple(read_rows("finish_reasons", FinishReasonRow))
REASON_MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {row.word.lower(): row.meaning for row in reversed(FINISH_REASONS)}
)


@lru_cache(MAX_WORDS)
def meaning_of(word: str) -> Meaning | None:
    """Return the meaning of a finish reason, regardless of letter case; None for an unknown word."""
    return REASON_MEANINGS.get(word) or REASON_MEANINGS.get(word.lower())

"""Finish reasons: the words by which vendors state why a response ended, with their meanings, as rows in
`data/finish_reasons.json`. Relays pass on the words of the vendor behind them, in any case, so that one table serves
all formats.
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
"""Meaning of a word. `unfinished`: no reason was set, which is a failure of a response without content. Of the
failures, `malformed` (output that cannot be read) and `failed` are the model's, `outage` and `overloaded` the
provider's.
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
"""Word in lower case -> meaning."""


@lru_cache(MAX_WORDS)
def meaning_of(word: str) -> Meaning | None:
    """Return the meaning of a finish reason in any case; None for an unknown word."""
    return REASON_MEANINGS.get(word) or REASON_MEANINGS.get(word.lower())

"""Words by which makers of video and image models name the state of a task. A relay responds in the form of one maker's
API, but may contain another maker's words, in any letter case. The rows are in `data/task_words.json`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Meaning = Literal["queued", "running", "done", "failed", "cancelled", "expired", "lost"]
"""`expired`: the provider abandoned the task; `lost`: the provider does not have the task."""
ALL_PROTOCOLS = "*"


class TaskWord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of words."""

    word: str
    """In lower case, with `_` for spaces and hyphens."""
    meaning: Meaning
    protocols: tuple[str, ...]
    """Protocols to whose makers the word belongs; `*` for a word that relays pass on in every protocol."""
    source: str
    as_of: str


def _by_protocol() -> Mapping[str, Mapping[str, Meaning]]:
    words = dict[str, dict[str, Meaning]]()
    for row in read_rows("task_words", TaskWord):
        for protocol in row.protocols:
            words.setdefault(protocol, {})[row.word] = row.meaning
    return MappingProxyType(words)


TASK_WORDS = _by_protocol()


def own_meaning(word: str, protocol: str) -> Meaning | None:
    """Return the meaning of a word that the maker of `protocol` uses, in any letter case; None for any other word."""
    words = TASK_WORDS.get(protocol, {})
    return words.get(word) or words.get(word.strip().lower().replace(" ", "_").replace("-", "_"))


def meaning_of(word: str, protocol: str) -> Meaning | None:
    """Return the meaning of a word that the maker of `protocol` or another maker uses, in any case; None if unknown."""
    return own_meaning(word, protocol) or own_meaning(word, ALL_PROTOCOLS)

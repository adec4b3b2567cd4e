"""Words by which makers of videos and images name the state of a task, and relays that pass these words on. A relay
answers in the shape of one maker's API and may leave the words of another maker in it, in any case. The rows are in
`data/task_words.json`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Meaning = Literal["queued", "running", "done", "failed", "cancelled", "expired", "lost"]
"""`expired`: the provider gave the task up; `lost`: it does not have the task."""
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
"""Protocol, or `*` -> word -> meaning."""


def own_meaning(word: str, protocol: str) -> Meaning | None:
    """Return the meaning of a word of the maker of `protocol`, in any case; None for any other word."""
    words = TASK_WORDS.get(protocol, {})
    return words.get(word) or words.get(_normal(word))


def meaning_of(word: str, protocol: str) -> Meaning | None:
    """Return the meaning of a word of the maker of `protocol` or any other, in any case; None for an unknown word."""
    return own_meaning(word, protocol) or own_meaning(word, ALL_PROTOCOLS)


def _normal(word: str) -> str:
    return word.strip().lower().replace(" ", "_").replace("-", "_")

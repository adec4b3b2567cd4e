"""Model ids: how providers spell them, and the series to which models belong. Pure: no I/O and no clock."""

import re
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

DEFAULT_TAG = ":latest"
"""Tag of a model id that means the same as no tag; clients of model servers append it."""
LITERAL_START = re.compile(r"(?:[a-z0-9-](?![?*{]))*")


class IdPattern:
    """Regular expression for whole ids, compiled only when an id begins like the pattern. A config needs few of the
    hundreds of patterns, and compiling all would delay the start.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._starts = tuple(_literal_starts(pattern))

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern)

    def match(self, model: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(model) if model.startswith(self._starts) else None


def _literal_starts(pattern: str) -> Iterator[str]:
    """Yield for each alternative of a pattern the literal text with which its ids begin."""
    depth, start = 0, 0
    for at, character in enumerate((*pattern, "|")):
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            yield LITERAL_START.match(pattern, start, at)[0]  # type: ignore[index]  # it matches any text
            start = at + 1


class Spelling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Rule that rewrites a provider's spelling of a model id into the spelling of the model's vendor."""

    pattern: str
    becomes: str = ""
    optional: bool = False
    """Whether the id is looked up in both spellings, since for some models this part (a date) matters."""
    source: str
    as_of: str

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def apply(self, model: str) -> str:
        """Return the rewritten id, or the id unchanged if the rule does not apply."""
        return self._compiled.sub(self.becomes, model)


class ModelVersion(NamedTuple):
    """Version of a model within its series."""

    major: int
    minor: int = 0


class Series(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Series of a vendor's models. A newer model of the series is treated like the newest known ones."""

    name: str
    pattern: str
    """Ids of the series, with the groups `major` and `minor`, which may be absent."""
    vendors: tuple[str, ...]
    """Vendors whose APIs apply the maker's rules for the models; the maker is first."""
    generation: Literal["major", "minor"] = "major"
    """Part of the version that all models of one generation share."""
    also: tuple[str, ...] = ()
    """Models of the series that are missing in the generated rows."""
    like: tuple[str, ...] = ()
    """Models of other series. Models of this series have their common facts, since the ids here have no version."""
    source: str
    as_of: str

    @cached_property
    def _ids(self) -> IdPattern:
        return IdPattern(self.pattern)

    def version(self, model: str) -> ModelVersion | None:
        """Return the version of a model; None if it is not of the series."""
        found = self._ids.match(model)
        if found is None:
            return None
        parts = found.groupdict()
        return ModelVersion(int(parts.get("major") or 0), int(parts.get("minor") or 0))


@lru_cache(1024)
def spellings(model: str) -> tuple[str, ...]:
    """Return the ids by which rows may refer to a model, most specific first: in lower case, without providers'
    prefixes and suffixes, with and without its date.
    """
    found = [model.lower()]
    for rule in _rules():
        other = rule.apply(found[-1])
        if not other or other == found[-1]:
            continue
        if rule.optional:
            found.append(other)
        else:
            found[-1] = other
    return tuple(found)


def series_of(model: str) -> Series | None:
    """Return the series of a model (id as its vendor spells it); None if it belongs to no series."""
    return next((series for series in all_series() if series.version(model) is not None), None)


@cache
def all_series() -> tuple[Series, ...]:
    """Return all known series."""
    return tuple(read_rows("series", Series))


@cache
def _rules() -> tuple[Spelling, ...]:
    return tuple(read_rows("model_spellings", Spelling))

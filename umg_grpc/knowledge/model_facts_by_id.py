"""Facts about models by id: hand-kept rows have precedence over generated ones. An id newer than all rows gets the
facts that the newest models of its series have in common. Pure: no I/O and no clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Literal

from msgspec import structs

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_fact_types import NO_FACTS, Facts, ModelFacts, in_common, known_facts
from umg_grpc.knowledge.model_id_spellings import IdPattern, ModelVersion, Series, all_series, series_of, spellings
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.vendor_addresses import CLOSED_MAKERS, is_closed

Origin = Literal["hand", "generated", "inherited"]
NO_NAMES: frozenset[str] = frozenset()
FOUND_MODELS = 2048
"""Number of models with cached facts. It exceeds a config's models, since a pattern matches any id of a caller."""


class HandRow(Facts, frozen=True, kw_only=True, dict=True):
    """Hand-kept row: facts about all models whose id matches. If several rows have a fact, the first one decides."""

    models: str
    """Pattern of the whole id, as the maker writes it (`model_id_spellings.spellings`)."""
    vendors: tuple[str, ...] = ()
    """Vendors at which the facts hold; empty for all."""
    sure: bool = False
    """Whether the facts are certain: from the vendor's SDK, page or error message, or from two independent sources."""
    source: str
    as_of: str

    @cached_property
    def _ids(self) -> IdPattern:
        return IdPattern(self.models)

    def holds(self, ids: Sequence[str], vendor: str) -> bool:
        """Return whether the row is about a model with these ids at the vendor."""
        if self.vendors and vendor not in self.vendors:
            return False
        return any(map(self._ids.match, ids))  # no generator: each row is compared with each model


class GeneratedRow(Facts, frozen=True, kw_only=True):
    """Row about one model of one vendor, which `make knowledge` generates from public data."""

    model: str
    vendor: str


@dataclass(frozen=True)
class Applied:
    """Row that contributed facts about a model."""

    origin: Origin
    source: str
    as_of: str
    facts: Mapping[str, object]
    sure: frozenset[str]


@dataclass(frozen=True)
class FoundModel:
    """Facts about one model at one vendor, with the rows that contributed them."""

    facts: ModelFacts
    applied: tuple[Applied, ...]
    ids: tuple[str, ...]
    like: tuple[str, ...] = ()
    """Models of the same series whose common facts are used for an unknown id."""


@lru_cache(FOUND_MODELS)
def find(model: str, vendor: str) -> FoundModel:
    """Return the facts about a provider's model. `vendor`: vendor of the channel (`vendor_of`), "" if unknown."""
    ids = spellings(model)
    series = series_of(ids[-1])
    rows = _rows(ids, vendor, series)
    found = _merged(rows, ids)
    describes = found.facts.efforts is not None or found.facts.thinking is not None
    if series is None or (describes and _is_known(series, ids, vendor)):
        return found
    like = _alike(series, ids[-1])
    return _merged([*rows, _inherited(like, vendor)], ids, like) if like else found


def _rows(ids: tuple[str, ...], vendor: str, series: Series | None) -> list[Applied]:
    """Return the rows about a model, hand-kept ones first."""
    speaks = series is not None and vendor in series.vendors
    package = DATA_PACKAGES["generated_models"]
    return [
        *(_applied(row, speaks) for row in _hand_rows() if row.holds(ids, vendor)),
        *(
            Applied("generated", f"{package}, {row.vendor}/{row.model}", package.as_of, known_facts(row), NO_NAMES)
            for row in _generated(ids, vendor)
        ),
    ]


def _applied(row: HandRow, speaks: bool) -> Applied:
    facts = known_facts(row)
    sure = frozenset(facts) if row.sure and (speaks or row.vendors) else NO_NAMES
    return Applied("hand", row.source, row.as_of, facts, sure)


def _merged(rows: Sequence[Applied], ids: tuple[str, ...], like: tuple[str, ...] = ()) -> FoundModel:
    """Return the merged facts of the rows; the first row with a fact decides."""
    found: dict[str, object] = {}
    sure: set[str] = set()
    applied = []
    for row in rows:
        new = {name: value for name, value in row.facts.items() if name not in found}
        if not new:
            continue
        found |= new
        certain = row.sure.intersection(new)
        sure |= certain
        applied.append(replace(row, facts=new, sure=certain))
    facts = structs.replace(NO_FACTS, **found, sure=frozenset(sure)) if found else NO_FACTS
    return FoundModel(facts, tuple(applied), ids, like)


def _is_known(series: Series, ids: Sequence[str], vendor: str) -> bool:
    rows = _generated_rows()
    return ids[-1] in series.also or any((each, model) in rows for each in (vendor, series.vendors[0]) for model in ids)


def _generated(ids: Sequence[str], vendor: str) -> Iterable[GeneratedRow]:
    rows = _generated_rows()
    makers = (maker for maker in CLOSED_MAKERS if maker != vendor and is_closed(ids[-1], maker))
    for each in (vendor, *makers):
        yield from (row for model in ids if (row := rows.get((each, model))) is not None)


def _alike(series: Series, model: str) -> tuple[str, ...]:
    """Return the models of a series whose common facts a model without rows gets. They are of the newest generation if
    the model is newer than all, else of its generation or the nearest older version.
    """
    version = series.version(model)
    known = {each: other for each, other in known_models(series.name).items() if each != model}
    if version is None or series.like:
        return series.like
    newest = max(known.values(), default=ModelVersion(0))
    if version > newest and series.generation == "major":
        return tuple(each for each, other in known.items() if other.major == newest.major)
    nearest = max((other for other in known.values() if other <= version), default=None)
    return tuple(each for each, other in known.items() if other == nearest)


def _inherited(like: Sequence[str], vendor: str) -> Applied:
    described = [(ids := spellings(model), _rows(ids, vendor, series_of(ids[-1]))) for model in like]
    common = in_common([_merged(rows, ids).facts for ids, rows in described])
    return Applied("inherited", f"as {', '.join(like)}", "", known_facts(common), common.sure)


@cache
def known_models(series: str) -> Mapping[str, ModelVersion]:
    """Return the known models of a series with their versions; ids have no dates."""
    row = next(each for each in all_series() if each.name == series)
    models = (spellings(model)[-1] for vendor, model in _generated_rows() if vendor == row.vendors[0])
    versions = ((model, row.version(model)) for model in (*row.also, *models) if series_of(model) is row)
    return {model: version for model, version in versions if version is not None}


def models_of(vendor: str) -> frozenset[str]:
    """Return the models of a vendor in the generated rows, as their makers write the ids."""
    return frozenset(model for each, model in _generated_rows() if each == vendor)


@cache
def _hand_rows() -> tuple[HandRow, ...]:
    return tuple(read_rows("models", HandRow))


@cache
def _generated_rows() -> Mapping[tuple[str, str], GeneratedRow]:
    return {(row.vendor, row.model): row for row in read_rows("generated_models", GeneratedRow)}

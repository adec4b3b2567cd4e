"""Sources of a model's quirks, for operators: rows of `provider_quirks` and facts about models that set them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from umg_grpc.knowledge.model_fact_types import NO_FACTS
from umg_grpc.knowledge.model_facts_by_id import find
from umg_grpc.knowledge.model_quirk_definitions import QUIRK_NAMES, Quirks
from umg_grpc.knowledge.provider_quirks import quirks_of, rows_of
from umg_grpc.knowledge.vendor_addresses import vendor_of


@dataclass(frozen=True)
class QuirkSource:
    """Source of quirks: a row that sets them."""

    quirks: Quirks
    origin: str
    """`provider` for a row about providers; else the origin of a fact about the model."""
    source: str
    as_of: str
    general: bool = False
    """Whether the row applies to all providers and models of a format."""


def quirk_sources(model: str, family: str, base_url: str, protocol: str) -> Iterator[QuirkSource]:
    """Yield the sources of the quirks that `provider_quirks.known` returns, in the order in which they decide."""
    for row in rows_of(model, family, base_url, protocol):
        yield QuirkSource(row.quirks, "provider", row.source, row.as_of, row.is_general)
    for applied in find(model, vendor_of(base_url)).applied:
        quirks = quirks_of(structs.replace(NO_FACTS, **applied.facts), protocol)
        yield QuirkSource(quirks, applied.origin, applied.source, applied.as_of)


def set_names(quirks: Quirks) -> frozenset[str]:
    """Return the names of the quirks that are set."""
    return frozenset(name for name in QUIRK_NAMES if getattr(quirks, name) is not None)

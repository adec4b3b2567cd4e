"""Retirements of models at vendors. Past retirements are rows of `shut_down_models`; announced dates are facts of
`model_facts_by_id` or of price lists. Pure: no I/O and no clock.
"""

import re
from datetime import date
from functools import lru_cache

from msgspec import Struct

from umg_grpc.knowledge.model_facts_by_id import FOUND_MODELS, find
from umg_grpc.knowledge.model_id_spellings import spellings
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.shipped_prices import shipped_rows
from umg_grpc.knowledge.shut_down_models import RETIRED_MODELS, RetiredModels, retirement

WARNING_DAYS = 90
"""Days before an announced retirement from which it is reported."""


class Retirement(Struct, frozen=True, kw_only=True):
    """Retirement of a model at a vendor."""

    day: date
    """First day without the model."""
    instead: str = ""
    is_certain: bool = False
    """Whether the vendor has shut the model down, not only announced it."""
    refused: bool = False
    """Whether calls certainly fail from `day` on."""

    def refuses(self, today: date) -> bool:
        """Return whether calls of the model certainly fail on the day `today`."""
        return self.refused and today >= self.day

    def text(self, *, with_successor: bool = True) -> str:
        """Return a predicate for a sentence about the model, like `was shut down by its vendor on 2026-01-31`."""
        ends = "was shut down by its vendor" if self.is_certain else "has its end announced by its vendor for"
        use = f"; use {self.instead}" if self.instead and with_successor else ""
        return f"{ends}{' on' if self.is_certain else ''} {self.day}{use}"


@lru_cache(FOUND_MODELS)
def retirement_of(model: str, vendor: str) -> Retirement | None:
    """Return the retirement of a provider's model; None if none is known. `model`: the provider's id, or a pattern of
    ids; `vendor`: result of `vendor_of` for the channel, "" if unknown.
    """
    if not vendor:
        return None  # a relay may serve the model for longer
    provider = PROVIDER_PRESETS.get(vendor)
    if provider is not None and provider.retired:
        return Retirement(day=date.fromisoformat(provider.retired), instead=provider.instead, is_certain=True)
    ids = spellings(model)
    row = next((found for each in (model, *ids) if (found := retirement(each, vendor)) is not None), None)
    if row is not None:
        return _shut_down(row)
    if "*" in model or (provider is not None and provider.kind == "host"):
        return None  # the dates below are those of one model at its maker
    facts, prices = find(model, vendor).facts, shipped_rows()
    priced = next((prices[vendor, each].retired for each in ids if (vendor, each) in prices), "")
    announced = facts.retired or priced
    return Retirement(day=date.fromisoformat(announced), instead=facts.successor or "") if announced else None


def _shut_down(row: RetiredModels) -> Retirement:
    day = date.fromisoformat(row.retired)
    return Retirement(day=day, instead=row.instead, is_certain=True, refused=row.refused)


MODEL_ENDS = tuple((re.compile(rf"(?:.*/)?(?:{row.models})"), _shut_down(row).text()) for row in RETIRED_MODELS)
"""(pattern of ids at any address, with or without a provider's prefix; predicate of a sentence) of retired models."""

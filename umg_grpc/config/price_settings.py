"""Prices in the config: of a model (`price`), of models without one (`unpriced`), and of a region (`price_region`)."""

import re
from collections.abc import Iterator, Mapping

from umg_grpc.config.typed_sections_from_yaml import any_of
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.price_calculation import MEDIA_UNITS, REQUEST_UNIT, Item, Unit, Variant, variant_of
from umg_grpc.knowledge.price_texts import (
    ALL_UNITS,
    ANY_VARIANT,
    TOKEN_KINDS,
    UNIT_SUFFIX,
    expected_credits,
    micro_credits_of,
    micro_credits_of_one,
)
from umg_grpc.knowledge.shipped_prices import price_regions
from umg_grpc.v1 import pb

PRICE_FORM = re.compile(r"[0-9]{1,15}")
UNPRICED_FREE, UNPRICED_REFUSED = "free", "refuse"
FREE_PRICE = pb.Price(unit=REQUEST_UNIT)
"""Price 0 of a call. It counts as a price for every operation."""


def unpriced(
    document: YamlDocument, path: Path, written: str | Mapping[str, object] | None
) -> tuple[pb.Price, ...] | None:
    """Return the prices that `unpriced` in the config means: `free`, `refuse` (no prices), or prices by unit; None if
    it is unset. Report a malformed value.
    """
    if written is None:
        return None
    if isinstance(written, str):
        if written not in (UNPRICED_FREE, UNPRICED_REFUSED):
            document.problem(
                path, f"expected `{UNPRICED_FREE}`, `{UNPRICED_REFUSED}`, or prices such as {{input: 1.25, output: 10}}"
            )
        return (FREE_PRICE,) if written == UNPRICED_FREE else ()
    if not written:
        document.problem(path, f"expected a price, `{UNPRICED_FREE}` or `{UNPRICED_REFUSED}`")
    return tuple(prices(document, path, written))


def price_region(document: YamlDocument, path: Path, written: str | None) -> str:
    """Return the price region that a channel states; "" if there is none. Report a region that no public price has."""
    if written is not None and written not in price_regions():
        document.problem(path, f"expected {any_of(price_regions())}, which public prices name")
    return written or ""


def prices(document: YamlDocument, path: Path, written: Mapping[str, object]) -> Iterator[pb.Price]:
    """Yield the prices of a mapping from units to prices, in the order of the file. Report each invalid price."""
    priced = set[int]()
    for name, price in written.items():
        at = (*path, name)
        unit = TOKEN_KINDS.get(name) or ALL_UNITS.get(name)
        if unit is None:
            document.problem(at, f"expected {any_of((*TOKEN_KINDS, *ALL_UNITS))}")
            continue
        if unit in priced:
            document.problem(at, "expected one price for a unit; this one has another above")
            continue
        priced.add(unit)
        if unit in MEDIA_UNITS:
            yield from _prices_of_variants(document, at, unit, price)
        elif (amount := _amount(document, at, name, price)) is not None:
            yield pb.Price(unit=unit, micro_credits_per_million=amount)


def _amount(document: YamlDocument, at: Path, name: str, price: object) -> int | None:
    """Convert a price in the config to micro-credits for a million units; report a malformed price and return None."""
    if name.endswith(UNIT_SUFFIX):
        if (amount := _whole(price)) is None:
            document.problem(at, "expected a whole number, the micro-credits that a million of them cost")
        return amount
    amount = micro_credits_of(price) if name in TOKEN_KINDS else micro_credits_of_one(price)
    if amount is None:
        document.problem(at, expected_credits(is_token=name in TOKEN_KINDS))
    return amount


def _prices_of_variants(document: YamlDocument, path: Path, unit: Unit, price: object) -> Iterator[pb.Price]:
    """Yield the prices of images or videos from one price, or from prices by size, or by size and quality."""
    priced = set[Item]()
    for size, of_size, at in _by_word(path, price):
        for quality, credits_, place in _by_word(at, of_size):
            amount = _amount(document, place, "", credits_)
            variant = variant_of(unit, size, quality)
            if variant in priced:
                document.problem(place, "expected one price for a size and quality; these have another above")
            elif amount is not None:
                priced.add(variant)
                named = variant if isinstance(variant, Variant) else Variant(unit, "", "")
                yield pb.Price(**named._asdict(), micro_credits_per_million=amount)


def _by_word(path: Path, price: object) -> Iterator[tuple[str, object, Path]]:
    if not isinstance(price, dict) or not price:
        yield "", price, path
        return
    for word, value in price.items():
        yield "" if word == ANY_VARIANT else word, value, (*path, word)


def _whole(price: object) -> int | None:
    return int(price) if isinstance(price, str) and PRICE_FORM.fullmatch(price) else None

"""Prices as texts: their names in the config, on the command line and in forms, and their amounts in credits."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from umg_grpc.base.micro_credits import MICRO_CREDITS, without_thousands
from umg_grpc.knowledge.conditional_price_rates import FULL_PERCENT, describe
from umg_grpc.knowledge.price_calculation import MEDIA_UNITS, PRICED_UNITS, TOKEN_UNITS, Rate, Unit, Variant
from umg_grpc.v1 import pb

UNIT_SUFFIX = "_token"  # of the names of kinds of tokens
ALL_UNITS: Mapping[str, Unit] = {
    name.removeprefix("BILLABLE_UNIT_").lower(): unit for name, unit in pb.BillableUnit.items() if unit
}
"""Unit by its name in JSON."""
TOKEN_KINDS: Mapping[str, Unit] = {
    name.removesuffix(UNIT_SUFFIX): unit for name, unit in ALL_UNITS.items() if name.endswith(UNIT_SUFFIX)
}
"""Kind of tokens by its name in the config, under which prices are in credits for a million tokens."""
PRICE_NAMES: Mapping[str, Unit] = {
    **TOKEN_KINDS,
    **{name: unit for name, unit in ALL_UNITS.items() if not name.endswith(UNIT_SUFFIX)},
}
"""Unit by the name of its price in credits."""
UNIT_PRICE_NAMES: Mapping[int, str] = {unit: name for name, unit in PRICE_NAMES.items()}
MAX_CREDITS = 1_000_000  # of one image, so that the price of a million is within 64 bits
MAX_MICRO_CREDITS = MAX_CREDITS * MICRO_CREDITS * PRICED_UNITS
"""Highest price of a million units that are no tokens."""
MAX_MICRO_CREDITS_OF_TOKENS = 10**15 - 1
ANY_VARIANT = "any"
"""Key in a price for every size or quality that has no key of its own."""
CREDITS_FORM = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?")
MICRO_DIGITS = 6  # a micro-credit is the sixth decimal of a credit


class PriceTextError(ValueError):
    """Error for a text that is no price. Its text states the expected value."""


def micro_credits_of(credits_: object) -> int | None:
    """Convert a decimal number of credits to micro-credits, exactly; None for other text or more than 6 decimals."""
    match = CREDITS_FORM.fullmatch(credits_) if isinstance(credits_, str) else None
    return int(match[1] + (match[2] or "").ljust(MICRO_DIGITS, "0")) if match else None


def micro_credits_of_one(credits_: object) -> int | None:
    """Convert the price of one unit to micro-credits for a million; None for other text or too many credits."""
    amount = micro_credits_of(credits_)
    return None if amount is None or amount > MAX_CREDITS * MICRO_CREDITS else amount * PRICED_UNITS


def expected_credits(*, is_token: bool) -> str:
    """Return the description of a valid price, for error messages."""
    each = "a million of them cost" if is_token else f"one costs, at most {MAX_CREDITS}"
    return f"expected a number such as 1.25, the credits that {each}, with at most 6 decimals"


def read_price(name: str, credits_: str) -> pb.Price:
    """Return the price with a name, `input` or `image.1024x1024.hd`. Raise PriceTextError."""
    kind, *variant = name.strip().split(".")
    unit = PRICE_NAMES.get(kind)
    if unit is None:
        raise PriceTextError(f"`{name[:50]}` is no unit; choose from {', '.join(PRICE_NAMES)}")
    if variant and (unit not in MEDIA_UNITS or len(variant) > 2):
        media = ", ".join(name for name, each in PRICE_NAMES.items() if each in MEDIA_UNITS)
        raise PriceTextError(f"`{name[:50]}`: only {media} have a size and a quality, as in image.1024x1024.hd")
    text = without_thousands(credits_.strip())
    amount = micro_credits_of(text) if unit in TOKEN_UNITS else micro_credits_of_one(text)
    if amount is None:
        raise PriceTextError(f"`{name[:50]}`: {expected_credits(is_token=unit in TOKEN_UNITS)}, not `{credits_[:50]}`")
    size, quality = ("" if word == ANY_VARIANT else word.lower() for word in (*variant, "", "")[:2])
    return pb.Price(unit=unit, size=size, quality=quality, micro_credits_per_million=amount)


def price_name(price: pb.Price) -> str:
    """Return the name of a price, by which `read_price` reads it again."""
    parts = [UNIT_PRICE_NAMES.get(price.unit, "unknown")]
    if price.size or price.quality:
        parts.append(price.size or ANY_VARIANT)
    return ".".join([*parts, price.quality] if price.quality else parts)


def price_credits(price: pb.Price) -> str:
    """Return a price in credits as text: for a million tokens, or for one of any other unit."""
    units = 1 if price.unit in TOKEN_UNITS else PRICED_UNITS
    return f"{(Decimal(price.micro_credits_per_million) / MICRO_CREDITS / units).normalize():f}"


def price_text(price: pb.Price) -> str:
    """Return a price as text: `input 2.5` for a million tokens, `image 1024x1024 hd 0.04` for one of any other unit."""
    name = UNIT_PRICE_NAMES.get(price.unit, "unknown unit").replace("_", " ")
    return " ".join(part for part in (name, price.size, price.quality, price_credits(price)) if part)


def prices_text(prices: Iterable[pb.Price]) -> str:
    """Return prices as one text."""
    return ", ".join(map(price_text, prices))


def rate_text(rate: Rate, region: str) -> str:
    """Return the prices of a rate after its conditions. `region`: of a rate that applies to each call there."""
    factor = [f"all tokens x {rate.percent / FULL_PERCENT:g}"] if rate.percent != FULL_PERCENT else []
    prices = (
        price_text(pb.Price(unit=unit, micro_credits_per_million=price))
        for unit, price in rate.micro_credits.items()
        if not isinstance(unit, Variant)
    )
    return f"{describe(rate) or f'region {region}'}: {', '.join([*factor, *prices]) or 'the prices above'}"

"""Prices as the commands print them."""

from decimal import Decimal

from umg_grpc.base.micro_credits import MICRO_CREDITS
from umg_grpc.knowledge.price_calculation import PRICED_UNITS, TOKEN_UNITS
from umg_grpc.knowledge.public_price_rows import UnitPrices, messages_of
from umg_grpc.v1 import pb

UNIT_NAMES = {
    unit: name.removeprefix("BILLABLE_UNIT_").lower().replace("_", " ") for name, unit in pb.BillableUnit.items()
}


def price_text(price: pb.Price) -> str:
    """Return a price as text: `input token 2.5` for a million tokens, `image 0.04` for one of any other unit."""
    is_token = price.unit in TOKEN_UNITS
    credits_ = Decimal(price.micro_credits_per_million) / MICRO_CREDITS / (1 if is_token else PRICED_UNITS)
    variant = " ".join(part for part in (price.size, price.quality) if part)
    name = UNIT_NAMES.get(price.unit, "unknown unit").removesuffix(" token")
    return f"{name} {variant + ' ' if variant else ''}{credits_.normalize():f}"


def row_text(row: UnitPrices) -> str:
    """Return the prices of a row as text, without its rates."""
    return ", ".join(map(price_text, messages_of(row)))

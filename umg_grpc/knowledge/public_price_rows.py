"""Rows of public prices: credits of each unit as text, and the rates (conditions) under which other prices apply."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from types import MappingProxyType

from msgspec import Struct

from umg_grpc.knowledge.price_calculation import PRICED_UNITS, Hours, Rate, Unit, Variant, variant_of
from umg_grpc.v1 import pb

NO_SIZES: Mapping[str, str] = MappingProxyType({})
STATE_REGION = frozenset({"anthropic"})
"""Vendors whose responses state the region of a call. At all others only the channel determines it."""
REGIONAL_TIER = "regional"
"""Region of a rate that applies to all regions for which the model has no rate."""
DAY_MINUTES = 24 * 60


class TokenPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Prices of units, in credits for a million tokens or as the field states; "" for a unit without a price."""

    input: str = ""
    output: str = ""
    reasoning: str = ""
    cache_read: str = ""
    cache_write: str = ""
    long_cache_write: str = ""
    audio_input: str = ""
    audio_output: str = ""
    image_input: str = ""
    image_output: str = ""
    search: str = ""
    """Credits of one unit of search."""
    character: str = ""
    """Credits of one character that is spoken."""
    audio_second: str = ""
    """Credits of one second of audio that is written down."""


class MediaPrices(TokenPrices, frozen=True, kw_only=True):
    """Prices of tokens, and of images and videos."""

    image: Mapping[str, str] = NO_SIZES
    """Credits of one image by `size`, `size/quality` or `/quality`; "" for any other."""
    video: Mapping[str, str] = NO_SIZES
    """Credits of one video by the same keys; the quality is a mode, or `audio` for a video with sound."""
    video_second: Mapping[str, str] = NO_SIZES
    """Credits of one second of video by the same keys."""


class RateRow(MediaPrices, frozen=True, kw_only=True):
    """Prices of a model that apply if all stated conditions hold, as `umg_grpc.knowledge.price_calculation.Rate`."""

    above: int = 0
    """Number of input tokens above which the whole call has these prices."""
    tier: str = ""
    region: str = ""
    hours: tuple[str, ...] = ()
    """Times of day in UTC, as `00:00-01:00`."""
    weekdays: tuple[int, ...] = ()
    """ISO weekdays in UTC, 1 to 7."""
    start: str = ""
    """First day, in UTC."""
    times: str = "1"
    """Factor of the prices without the rate."""

    def rate(self) -> Rate:
        return Rate(
            {
                variant_of(price.unit, price.size, price.quality): price.micro_credits_per_million
                for price in messages_of(self)
            },
            percent=ceil(Decimal(self.times) * 100),
            above_tokens=self.above,
            tier=self.tier,
            region=self.region,
            hours=tuple(map(_hours, self.hours)),
            weekdays=frozenset(self.weekdays),
            from_seconds=datetime.fromisoformat(self.start).replace(tzinfo=UTC).timestamp() if self.start else 0,
        )


class UnitPrices(MediaPrices, frozen=True, kw_only=True):
    """Prices of one model."""

    model: str
    vendor: str = ""
    """Vendor that sells the model at these prices; "" for all vendors without a row for the model."""
    rates: tuple[RateRow, ...] = ()
    """Prices under conditions, in the order in which they are applied."""
    retired: str = ""
    """Date from which the vendor no longer serves the model; "" if none is known."""
    package: str = ""
    """Package that alone has the prices of a generated row; "" if two have the same ones, or for a hand-kept row."""


class FilePrice(UnitPrices, frozen=True, kw_only=True):
    """Row of a file of the operator."""

    note: str = ""
    source: str = ""
    as_of: str = ""


class ShippedPrice(UnitPrices, frozen=True, kw_only=True):
    """Hand-kept row, which has precedence over generated ones."""

    note: str
    """Reason for the row: difference from the generated ones, or their lack."""
    source: str
    as_of: str
    """Date of the report, or its month."""


MEDIA_UNITS = {name: pb.BillableUnit.Value(f"BILLABLE_UNIT_{name.upper()}") for name in MediaPrices.__annotations__}
OTHER_UNITS = {
    name: pb.BillableUnit.Value(f"BILLABLE_UNIT_{name.upper()}") for name in ("search", "character", "audio_second")
}
TOKEN_UNITS = {
    name: pb.BillableUnit.Value(f"BILLABLE_UNIT_{name.upper()}_TOKEN")
    for name in TokenPrices.__annotations__
    if name not in OTHER_UNITS
}
"""Member of a row with the price of a million tokens -> its unit."""


def rates_of(row: UnitPrices, region: str = "") -> list[Rate]:
    """Return the rates of a row. `region`: of the channel, its rates always apply; "" for the rates of all regions."""
    if region and all(rate.region != region for rate in row.rates):
        region = REGIONAL_TIER
    rates = (rate.rate() for rate in row.rates)
    return [
        replace(rate, region="") if rate.region == region else rate
        for rate in rates
        if rate.region in ("", region) or row.vendor in STATE_REGION
    ]


def messages_of(row: MediaPrices) -> Iterator[pb.Price]:
    """Yield the price messages of a row or a rate; the rates of a row are left out."""
    yield from unit_prices(row)
    for name, unit in MEDIA_UNITS.items():
        for variant, credits_ in getattr(row, name).items():
            yield _price_of_one(unit, credits_, *variant.split("/"))


def unit_prices(row: TokenPrices) -> Iterator[pb.Price]:
    """Yield the price messages of the units without sizes."""
    for name, unit in TOKEN_UNITS.items():
        if credits_ := getattr(row, name):
            yield pb.Price(unit=unit, micro_credits_per_million=int(Decimal(credits_).scaleb(6)))
    for name, unit in OTHER_UNITS.items():
        if credits_ := getattr(row, name):
            yield _price_of_one(unit, credits_)


def _price_of_one(unit: Unit, credits_: str, size: str = "", quality: str = "") -> pb.Price:
    micro_credits = int(Decimal(credits_).scaleb(6) * PRICED_UNITS)
    return pb.Price(**Variant(unit, size, quality)._asdict(), micro_credits_per_million=micro_credits)


def _hours(text: str) -> Hours:
    start, end = (int(hour) * 60 + int(minute) for hour, _, minute in (part.partition(":") for part in text.split("-")))
    return Hours(start, end or DAY_MINUTES)

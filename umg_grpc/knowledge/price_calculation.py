"""Prices of a model, and the cost of a call. Amounts are integer micro-credits; only the total is rounded, upwards."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

NO_TOKENS = -1
PRICED_UNITS = 1_000_000
"""Number of units for which a price is stated."""

Unit: TypeAlias = pb.BillableUnit.ValueType


class Variant(NamedTuple):
    """Unit (image, video or second of video) with a size, a quality and its own price; made by `variant_of`."""

    unit: Unit
    size: str
    """`1024x1024`, `2k`, `720p`; "" for any size."""
    quality: str
    """`low`, `hd`, `pro`; "" for any quality."""


Item: TypeAlias = Unit | Variant
Quantities: TypeAlias = Mapping[Item, int]
"""Unit or variant -> number of these units in a call, without zeros. Each token counts as exactly one unit."""

INPUT_TOKEN, OUTPUT_TOKEN = pb.BILLABLE_UNIT_INPUT_TOKEN, pb.BILLABLE_UNIT_OUTPUT_TOKEN
CACHE_READ, CACHE_WRITE = pb.BILLABLE_UNIT_CACHE_READ_TOKEN, pb.BILLABLE_UNIT_CACHE_WRITE_TOKEN
LONG_CACHE_WRITE, REASONING_TOKEN = pb.BILLABLE_UNIT_LONG_CACHE_WRITE_TOKEN, pb.BILLABLE_UNIT_REASONING_TOKEN
AUDIO_INPUT, AUDIO_OUTPUT = pb.BILLABLE_UNIT_AUDIO_INPUT_TOKEN, pb.BILLABLE_UNIT_AUDIO_OUTPUT_TOKEN
IMAGE_INPUT, IMAGE_OUTPUT = pb.BILLABLE_UNIT_IMAGE_INPUT_TOKEN, pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN
REQUEST_UNIT, SEARCH_UNIT = pb.BILLABLE_UNIT_REQUEST, pb.BILLABLE_UNIT_SEARCH
IMAGE_UNIT, VIDEO_UNIT, VIDEO_SECOND = pb.BILLABLE_UNIT_IMAGE, pb.BILLABLE_UNIT_VIDEO, pb.BILLABLE_UNIT_VIDEO_SECOND
CHARACTER_UNIT, AUDIO_SECOND = pb.BILLABLE_UNIT_CHARACTER, pb.BILLABLE_UNIT_AUDIO_SECOND
MEDIA_UNITS = frozenset({IMAGE_UNIT, VIDEO_UNIT, VIDEO_SECOND})
"""Units that may have prices by size and quality."""

FALLBACK_UNITS: Mapping[Unit, Unit] = MappingProxyType(
    {
        CACHE_READ: INPUT_TOKEN,
        CACHE_WRITE: INPUT_TOKEN,
        LONG_CACHE_WRITE: CACHE_WRITE,
        AUDIO_INPUT: INPUT_TOKEN,
        IMAGE_INPUT: INPUT_TOKEN,
        REASONING_TOKEN: OUTPUT_TOKEN,
        AUDIO_OUTPUT: OUTPUT_TOKEN,
        IMAGE_OUTPUT: OUTPUT_TOKEN,
    }
)
"""Unit -> unit whose price applies if it has none, in an order in which fallbacks are complete; others are free."""


class Hours(NamedTuple):
    """Time of day in UTC, in minutes from midnight: from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class Rate:
    """Prices that replace others of a model if all conditions hold. A condition that is not stated always holds."""

    micro_credits: Mapping[Item, int] = field(default_factory=dict)
    """Prices of units, in place of the ones without the rate."""
    percent: int = 100
    """Percentage of the price without the rate, for units that `micro_credits` does not have."""
    above_tokens: int = 0
    """Number of input tokens above which a whole call has these prices."""
    tier: str = ""
    """Class of service that the provider states: `batch`, `flex`, `priority`, `fast`."""
    region: str = ""
    """Region in which the provider states to have processed the call: `us`, `eu`."""
    hours: tuple[Hours, ...] = ()
    weekdays: frozenset[int] = frozenset()
    """ISO weekdays in UTC, 1 to 7."""
    from_seconds: float = 0
    """Unix time from which it applies."""

    @property
    def is_timed(self) -> bool:
        return bool(self.hours or self.weekdays or self.from_seconds)

    @property
    def is_conditional(self) -> bool:
        """Whether it does not apply to each call."""
        return bool(self.above_tokens or self.tier or self.region or self.is_timed)


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Rates of a model, which are applied to its stated prices in their order."""

    stated: Mapping[Item, int]
    """Prices without rates; units that only have the price of a fallback unit are left out."""
    rates: tuple[Rate, ...]
    usual_tokens: int
    """Maximum input tokens at which no rate applies, except rates that depend on tier, region or time."""
    is_timed: bool
    found: dict[tuple[Rate, ...], "Prices"] = field(default_factory=dict, repr=False)
    """Prices by the rates that apply, computed once for each combination."""


VIDEO_UNITS = frozenset({VIDEO_UNIT, VIDEO_SECOND})
TIER_PIXELS = {
    "480p": 832 * 480,
    "720p": 1280 * 720,
    "768p": 1366 * 768,
    "1080p": 1920 * 1080,
    "2k": 2560 * 1440,
    "4k": 3840 * 2160,
}
"""Resolution on which video prices depend -> pixels of its widescreen size; its other sizes have about as many."""
SAME_TIER = math.log(1.3)
"""Maximum distance, in logarithms of pixels, at which a size has the price of a resolution."""
TOKEN_UNITS = frozenset({*FALLBACK_UNITS, INPUT_TOKEN, OUTPUT_TOKEN})
"""Units of which prices are stated for a million, and to which the percentage of a rate applies."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Price list of one model, in micro-credits for a million units (tokens, images, seconds and others)."""

    micro_credits: Mapping[Item, int] = field(default_factory=lambda: MappingProxyType({}))
    """Micro-credits per million units; others are free. A unit with priced variants has a price for all others, too."""
    rates: Rates | None = None
    """Prices under conditions, applied by `umg_grpc.knowledge.conditional_price_rates`; None if the prices are always
    the same.
    """

    def cost(self, quantities: Quantities) -> int:
        """Return the cost of the quantities in micro-credits, rounded up to a whole one."""
        prices = self.micro_credits
        if not prices:
            return 0
        total = 0
        for item, count in quantities.items():
            price = prices.get(item)
            total += count * (self.price_of(item) if price is None else price)
        return -(-total // PRICED_UNITS)

    def price_of(self, item: Item) -> int:
        """Return the micro-credits for a million of a unit or variant; 0 if it is free. A variant without a price has
        the price of its size, else of its quality, else of its unit. A mode with sound (`pro+audio`) without a price
        has the price of the mode, else of sound.
        """
        prices = self.micro_credits
        if isinstance(item, Variant) and item not in prices:
            return next((prices[each] for each in _fallbacks(item) if each in prices), 0)
        return prices.get(item, 0)

    def highest(self, *units: Unit) -> int:
        """Return the highest price, in micro-credits for a million, among these units and all their variants."""
        prices = self.micro_credits
        found = [prices.get(unit, 0) for unit in units]
        if not MEDIA_UNITS.isdisjoint(units):
            found += [price for item, price in prices.items() if isinstance(item, Variant) and item.unit in units]
        return max(found)


def _fallbacks(item: Variant) -> Iterator[Item]:
    """Yield the items whose price a variant without a price may have; the first item with a price decides."""
    parts = item.quality.split("+")
    tiers = _tiers_of(item.size) if item.unit in VIDEO_UNITS else ()
    for size in dict.fromkeys((item.size, *tiers, "")):
        for quality in (item.quality, *parts):
            yield Variant(item.unit, size, quality)
        yield Variant(item.unit, size, "")
    yield item.unit


def _tiers_of(size: str) -> Iterator[str]:
    """Yield resolutions with about as many pixels as a size (`1280x720`), the nearest first; none for another text."""
    width, _, height = size.partition("x")
    if not (width.isdecimal() and height.isdecimal()) or len(size) > 11 or not (pixels := int(width) * int(height)):
        return
    distances = {tier: abs(math.log(pixels / known)) for tier, known in TIER_PIXELS.items()}
    for tier in sorted(distances, key=distances.__getitem__):
        if distances[tier] < SAME_TIER:
            yield tier


FREE_PRICES = Prices()


def variant_of(unit: Unit, size: str = "", quality: str = "") -> Item:
    """Return the unit with a size and a quality, or alone if both are "" (unknown). `1024*1024` becomes `1024x1024`."""
    if not size and not quality:
        return unit
    return Variant(unit, size.lower().replace("*", "x"), quality.lower())


def unit_of(item: Item) -> Unit:
    """Return the unit of a variant; a unit is returned unchanged."""
    return item.unit if isinstance(item, Variant) else item


def price_list(prices: Iterable[pb.Price], rates: Sequence[Rate] = ()) -> Prices:
    """Return a model's price list; units without a price get their fallback's. `rates`: its prices under conditions."""
    stated: dict[Item, int] = {
        variant_of(price.unit, price.size, price.quality): price.micro_credits_per_million for price in prices
    }
    found = completed(stated)
    if not rates:
        return Prices(found) if found else FREE_PRICES
    above = [rate.above_tokens for rate in rates if rate.above_tokens]
    usual_tokens = min(above, default=MAX_COUNT) if all(rate.is_conditional for rate in rates) else NO_TOKENS
    return Prices(found, Rates(stated, tuple(rates), usual_tokens, any(rate.is_timed for rate in rates)))


def completed(stated: Mapping[Item, int]) -> Mapping[Item, int]:
    """Return stated prices, completed by prices of units that fall back to other units."""
    found = dict(stated)
    for item in stated:
        if isinstance(item, Variant) and item.unit not in found:
            found[item.unit] = max(other for each, other in found.items() if unit_of(each) == item.unit)
    for unit, general in FALLBACK_UNITS.items():
        if unit not in found and general in found:
            found[unit] = found[general]
    return found


def quantities_of(usage: pb.Usage) -> Quantities:
    """Return the billed quantities of one call: one request, its tokens by kind, and its other units. If a provider
    reports more tokens of one kind than tokens in total, the total is billed.
    """
    found: dict[Item, int] = {REQUEST_UNIT: 1}
    left = usage.input_tokens
    if count := usage.cache_read_tokens:
        left = _take(found, CACHE_READ, count, left)
    if count := usage.cache_write_tokens:
        left = _take(found, CACHE_WRITE, count, left)
    if count := usage.long_cache_write_tokens:
        left = _take(found, LONG_CACHE_WRITE, count, left)
    if count := usage.audio_input_tokens:
        left = _take(found, AUDIO_INPUT, count, left)
    if count := usage.image_input_tokens:
        left = _take(found, IMAGE_INPUT, count, left)
    if left > 0:
        found[INPUT_TOKEN] = left
    left = usage.output_tokens
    if count := usage.reasoning_tokens:
        left = _take(found, REASONING_TOKEN, count, left)
    if count := usage.audio_output_tokens:
        left = _take(found, AUDIO_OUTPUT, count, left)
    if count := usage.image_output_tokens:
        left = _take(found, IMAGE_OUTPUT, count, left)
    if left > 0:
        found[OUTPUT_TOKEN] = left
    if (count := usage.web_search_requests) > 0:
        found[SEARCH_UNIT] = count
    if usage.characters or usage.audio_seconds:
        others = {CHARACTER_UNIT: usage.characters, AUDIO_SECOND: usage.audio_seconds}
        found |= {unit: count for unit, count in others.items() if count > 0}
    return found


def image_quantities(usage: pb.ImageUsage, size: str = "", quality: str = "") -> Quantities:
    """Return the billed quantities of an image call: one request, its images ("" for an unknown size or quality), and
    its tokens if reported. Images and tokens are both counted, since a model has a price for only one of them.
    """
    found: dict[Item, int] = {REQUEST_UNIT: 1}
    if usage.image_count > 0:
        found[variant_of(IMAGE_UNIT, size, quality)] = usage.image_count
    left = _take(found, IMAGE_INPUT, usage.input_image_tokens, usage.input_tokens)
    if left > 0:
        found[INPUT_TOKEN] = left
    if usage.output_tokens > 0:
        found[IMAGE_OUTPUT] = usage.output_tokens
    return found


def video_quantities(videos: int, seconds: int, resolution: str = "", quality: str = "") -> Quantities:
    """Return the billed quantities of a video task: one request, its videos ("" for an unknown resolution or quality),
    and their seconds. Videos and seconds are both counted, since a model has a price for only one of them.
    """
    found: dict[Item, int] = {REQUEST_UNIT: 1}
    for unit, count in ((VIDEO_UNIT, videos), (VIDEO_SECOND, seconds)):
        if count > 0:
            found[variant_of(unit, resolution, quality)] = count
    return found


def _take(found: dict[Item, int], unit: Unit, count: int, left: int) -> int:
    if (taken := min(count, left)) > 0:
        found[unit] = taken
        return left - taken
    return left

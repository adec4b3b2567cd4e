"""Public prices of well-known models by providers' model ids; one credit is one US dollar. The config's `price`
overrides them. A row has the prices of the standard tier, short prompts and the most expensive hours; its rates have
the others. Hand-kept rows take precedence over generated ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_id_spellings import spellings
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices, price_list
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.public_price_rows import (
    REGIONAL_TIER,
    FilePrice,
    ShippedPrice,
    UnitPrices,
    messages_of,
    rates_of,
)
from umg_grpc.knowledge.vendor_addresses import CLOSED_MAKERS, OPEN_MAKERS, is_closed
from umg_grpc.v1 import pb

FINE_TUNED = "ft:"
"""Beginning of the id of a fine-tuned model, which has other prices than its base."""
FOUND_PRICES = 2048
PRODUCT_PREFIXES = (
    *("embed-", "rerank-v", "rerank-english-", "rerank-multilingual-"),
    *("qwen-flash", "qwen-max", "qwen-plus", "qwen-turbo", "qwen-image-", "wan2.5", "wan2.6", "wan2.7", "wan3"),
    *("codestral-", "mistral-embed", "mistral-large-latest", "mistral-medium-", "kling-", "doubao-"),
)
"""Prefixes of ids of models without open weights, from makers that also have models with open weights."""


SHIPPED_PRICES: Sequence[ShippedPrice] = (*read_rows("prices", ShippedPrice), *read_rows("media_prices", ShippedPrice))


@dataclass(frozen=True, slots=True)
class PriceFile:
    """Rows of a file of the operator, which have precedence over shipped ones."""

    digest: str = ""
    """Digest of the file, by which two files are compared; "" without a file."""
    rows: Mapping[tuple[str, str], FilePrice] = field(default_factory=dict, compare=False, repr=False)
    """Row by vendor and id in lower case."""


NO_FILE = PriceFile()


@cache
def price_regions() -> Sequence[str]:
    """Return the regions with prices in shipped rows, sorted."""
    found = {rate.region for row in shipped_rows().values() for rate in row.rates}
    return tuple(sorted(found - {"", REGIONAL_TIER}))


@lru_cache(FOUND_PRICES)
def shipped_prices(model: str, vendor: str = "", file: PriceFile = NO_FILE) -> Sequence[pb.Price]:
    """Return the public prices of a provider's model; empty for an unknown model. The id may have any spelling of
    `spellings`. `vendor`: vendor of the channel (`vendor_of`). If it is "", an operator may run the server: models with
    open weights then have no price. `file`: price file of the operator.
    """
    row = price_row(model, vendor, file)
    return tuple(messages_of(row)) if row is not None else ()


@lru_cache(FOUND_PRICES)
def shipped_price_list(model: str, vendor: str = "", region: str = "", file: PriceFile = NO_FILE) -> Prices:
    """Return the public prices of a provider's model with its rates; `FREE_PRICES` for an unknown one. `region`: region
    of the channel (`region_of`), whose rates always apply.
    """
    row = price_row(model, vendor, file)
    return price_list(messages_of(row), rates_of(row, region)) if row is not None else FREE_PRICES


def price_row(model: str, vendor: str = "", file: PriceFile = NO_FILE) -> UnitPrices | None:
    """Return the row with the prices of a provider's model; None for an unknown model. `file`: file of the operator."""
    ids = price_ids(model)
    keys = [(seller, each) for seller in _sellers(ids[-1], vendor) for each in ids]
    shipped = shipped_rows()
    tables: Sequence[Mapping[tuple[str, str], UnitPrices]] = (file.rows, shipped) if file.rows else (shipped,)
    return next((row for table in tables for key in keys if (row := table.get(key)) is not None), None)


def price_source(row: UnitPrices) -> tuple[str, str]:
    """Return the source of a row of prices, and its date."""
    if isinstance(row, ShippedPrice | FilePrice):
        return row.source, row.as_of
    packages = [package for package in DATA_PACKAGES.values() if row.package in ("", package.name)]
    return f"{' and '.join(map(str, packages))}, {row.vendor}/{row.model}", max(each.as_of for each in packages)


def price_ids(model: str) -> tuple[str, ...]:
    """Return the ids under which rows may have the prices of a model, the most specific first."""
    found = spellings(model)
    return tuple(FINE_TUNED + each for each in found) if model.lower().startswith(FINE_TUNED) else found


def _sellers(model: str, vendor: str) -> Iterator[str]:
    """Yield the vendors whose rows apply to a vendor's model, in order; "" stands for the hand-kept rows of makers."""
    if vendor and vendor not in (*CLOSED_MAKERS, *OPEN_MAKERS):
        yield vendor
    yield ""
    makers = (*CLOSED_MAKERS, *OPEN_MAKERS)
    is_product = model.startswith(PRODUCT_PREFIXES)
    yield from (vendor, *makers) if vendor else (maker for maker in makers if is_product or is_closed(model, maker))


@cache
def shipped_rows() -> Mapping[tuple[str, str], UnitPrices]:
    """Return all rows by vendor and model."""
    generated = read_rows("generated_prices", UnitPrices)
    return {(row.vendor, row.model.lower()): row for row in (*generated, *SHIPPED_PRICES)}

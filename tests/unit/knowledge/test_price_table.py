"""Prices of the models that vendors have, and their agreement with the public packages."""

import json
from decimal import Decimal
from pathlib import Path

import msgspec

from scripts.knowledge import packages
from scripts.knowledge.data_files import public_prices
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_facts_by_id import GeneratedRow
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.public_price_rows import UnitPrices
from umg_grpc.knowledge.public_prices.price_row_merging import is_equal, merged
from umg_grpc.knowledge.public_prices.shortest_rate_rows import Term, rate_rows
from umg_grpc.knowledge.shipped_prices import SHIPPED_PRICES, price_row

VENDOR_MODELS = Path(__file__).with_name("vendor_models.json")
UNPRICED = {
    "openai": {"gpt-6.2-sol"},
    "gemini": {
        *("gemini-4-carbon", "gemini-exp-1114", "learnlm-1.5-pro-experimental", "lyria-3-clip-preview"),
        *("lyria-3-pro-preview", "lyria-3.5", "lyria-3.5-clip-preview", "lyria-3.5-pro-preview", "lyria-realtime-exp"),
    },
    "vertex": {"medlm-large", "medlm-medium"},
    "mistral": {"labs-leanstral-1-5", "labs-leanstral-1-5-1"},
    "dashscope": {"qwen3.6-max-preview", "qwen3.7-flash", "qvq-max", "qwen3-30b-a3b"},
    "dashscope-media": {"wan2.7-image"},
    "ark": {"deepseek-v3-2-251201", "glm-4-7-251222"},
    "cohere": {"command-a-plus-05-2026"},
    "together": {"ternary-bonsai-27b"},
    "fireworks": {"auto", "auto-instant", "firerouter"},
}
"""Known models without a known price, by vendor: of them `umg check` and the metrics warn."""


class VendorModels(msgspec.Struct):
    vendor: str
    models: list[str]


def test_each_known_model_of_a_vendor_has_a_price_or_is_known_to_have_none() -> None:
    listed = msgspec.json.decode(VENDOR_MODELS.read_bytes(), type=list[VendorModels])
    known = {(each.vendor, model) for each in listed for model in each.models}
    known |= {(row.vendor, row.model) for row in read_rows("generated_models", GeneratedRow)}
    assert {vendor for vendor, _ in known} <= set(PROVIDER_PRESETS)
    unpriced = {(vendor, model) for vendor, model in known if price_row(model, vendor) is None}
    assert unpriced == {(vendor, model) for vendor, models in UNPRICED.items() for model in models}


def test_no_hand_kept_price_is_one_of_both_packages() -> None:
    installed_or_skipped(packages.installed)
    rows = {(row["vendor"], row["model"]): row for row in merged(*public_prices())}
    for row in SHIPPED_PRICES:
        members = json.loads(msgspec.json.encode(row))
        for vendor in (row.vendor,) if row.vendor else PROVIDER_PRESETS:
            if (public := rows.get((vendor, row.model.lower()))) is not None and "package" not in public:
                assert not is_equal(public, members) or row.video_second, row


def test_a_generated_price_is_that_of_one_package_at_least() -> None:
    installed_or_skipped(packages.installed)
    prices, cost_map = public_prices()
    for row in read_rows("generated_prices", UnitPrices):
        found = prices.get((row.vendor, row.model)), cost_map.get((row.vendor, row.model))
        members = json.loads(msgspec.json.encode(row))
        assert any(each is not None and is_equal(each, members) for each in found), row


def test_the_rates_of_tiers_are_factors_where_one_gives_the_prices() -> None:
    def units(*prices: str) -> dict[str, Decimal]:
        return dict(zip(("input", "output", "cache_read"), map(Decimal, prices), strict=True))

    stated = {
        Term(): units("2", "10", "0.25"),
        Term(272_000): units("4", "15", "0.5"),
        Term(0, "priority"): units("4", "20", "0.5"),
        Term(272_000, "priority"): units("8", "30", "1"),
        Term(0, "flex"): units("1", "5", "0.13"),
        Term(272_000, "flex"): units("2", "7.5", "0.25"),
    }
    assert [*rate_rows(stated)] == [
        {"above": 272_000, "input": "4", "output": "15", "cache_read": "0.5"},
        {"tier": "flex", "cache_read": "0.13", "times": "0.5"},
        {"tier": "flex", "above": 272_000, "cache_read": "0.25"},
        {"tier": "priority", "times": "2"},
    ]


def test_rows_of_two_packages_complete_each_other_where_they_agree() -> None:
    prices = {
        ("openai", "a"): {"input": "2", "output": "10", "rates": [{"start": "2027-01-01", "times": "2"}]},
        ("openai", "b"): {"input": "1"},
        ("azure", "a"): {"input": "2", "output": "10", "rates": [{"start": "2027-01-01", "times": "2"}]},
    }
    cost_map = {
        ("openai", "a"): {
            "input": "2.0",
            "output": "10",
            "cache_read": "1",
            "rates": [{"tier": "flex", "times": "0.5"}],
        },
        ("openai", "b"): {"input": "3", "retired": "2026-10-23"},
        ("openai", "c"): {"retired": "2026-10-23"},
    }
    rates = [{"tier": "flex", "times": "0.5"}, {"start": "2027-01-01", "times": "2"}]
    assert merged(prices, cost_map) == [
        {"model": "a", "vendor": "azure", **prices["azure", "a"], "package": "genai-prices"},
        {"model": "a", "vendor": "openai", "input": "2", "output": "10", "cache_read": "1", "rates": rates},
        {"model": "b", "vendor": "openai", "input": "1", "retired": "2026-10-23", "package": "genai-prices"},
    ]

"""Rows that are made from the cost map and from the package of prices."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from scripts.knowledge.cost_map import model_rows
from scripts.knowledge.public_prices import providers
from umg_grpc.knowledge.public_prices import litellm_cost_map
from umg_grpc.knowledge.public_prices.genai_prices import price_rows
from umg_grpc.knowledge.public_prices.price_row_merging import merged


@dataclass(frozen=True)
class Entry:
    id: str
    entry: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)


ENTRIES = [
    Entry("an absent flag is unknown", {"supports_reasoning": True}),
    Entry("declared levels", {"reasoning_effort_levels": ["high", "none"]}, {"efforts": ["none", "high"]}),
    Entry(
        "flags of levels",
        {"supports_reasoning": True, "supports_none_reasoning_effort": True, "supports_low_reasoning_effort": False},
        {"efforts": ["none", "medium", "high"], "abilities": ["reasoning"]},
    ),
    Entry("flags that are all false", {"supports_reasoning": True, "supports_minimal_reasoning_effort": False}),
    Entry("always on", {"thinking_always_on": True, "thinking_on_by_default": True}, {"thinking": "always"}),
    Entry("not always on", {"thinking_always_on": False, "thinking_on_by_default": True}, {"thinking": "on"}),
    Entry("no sampling", {"supports_sampling_params": False}, {"sampling": "never"}),
    Entry("no forced tools", {"supports_forced_tool_use": False}, {"forced_tools": "none"}),
    Entry("forced tools", {"supports_forced_tool_use": True}),
    Entry("limits", {"max_input_tokens": 9, "max_output_tokens": 3}, {"input_tokens": 9, "output_tokens": 3}),
    Entry("a limit in words", {"max_output_tokens": None}),
    Entry("both endpoints", {"supported_endpoints": ["/v1/responses", "/v1/chat/completions"]}, {"endpoints": ["chat", "responses"]}),
    Entry("a model of responses", {"mode": "responses"}, {"endpoints": ["responses"]}),
    Entry("pictures, and documents without a flag", {"supported_modalities": ["text", "image"]}, {"inputs": ["file", "image"]}),
    Entry("pictures alone", {"supported_modalities": ["image"], "supports_pdf_input": False}, {"inputs": ["image"]}),
    Entry("texts alone", {"supported_modalities": ["text"]}, {"inputs": []}),
    Entry("a kind without its list", {"supports_vision": True}),
    Entry("abilities", {"max_output_tokens": 3, "supports_function_calling": True, "supports_vision": True, "supports_web_search": False}, {"output_tokens": 3, "abilities": ["image", "tools"]}),
    Entry("abilities alone", {"supports_function_calling": True}),
]  # fmt: skip


@pytest.mark.parametrize("case", ENTRIES, ids=lambda case: case.id)
def test_an_entry_of_the_cost_map_gives_facts(case: Entry) -> None:
    rows = model_rows({"m-1": {"litellm_provider": "openai", "mode": "chat", **case.entry}})
    assert rows == ([{"model": "m-1", "vendor": "openai"} | case.facts] if case.facts else [])


def test_only_text_models_of_known_vendors_have_rows() -> None:
    limit = {"max_output_tokens": 1}
    entries = {
        "a": {"litellm_provider": "nobody", "mode": "chat"} | limit,
        "b": {"litellm_provider": "openai", "mode": "embedding"} | limit,
        "c": {"litellm_provider": "openai"} | limit,
    }
    assert model_rows(entries) == []


def test_the_shortest_of_several_keys_decides_and_a_date_without_own_facts_has_no_row() -> None:
    claude = {"litellm_provider": "bedrock_converse", "mode": "chat"}
    entries = {
        "us.anthropic.claude-x-20250101-v1:0": claude | {"max_output_tokens": 7},
        "anthropic.claude-x": claude | {"max_output_tokens": 7},
        "eu.anthropic.claude-x": claude | {"max_output_tokens": 5},
        "claude-x-20250202": claude | {"max_output_tokens": 3},
    }
    assert model_rows(entries) == [
        {"model": "claude-x", "vendor": "bedrock-anthropic", "output_tokens": 7},
        {"model": "claude-x-20250202", "vendor": "bedrock-anthropic", "output_tokens": 3},
    ]


MODULE = """\
providers: list[Provider] = [
    Provider(id='openai', name='OpenAI', models=[
        ModelInfo(
            id='gpt-x',
            match=ClauseOr(or_=[ClauseEquals(equals='GPT-X-latest'), ClauseStartsWith(starts_with='gpt-x-')]),
            prices=[
                ConditionalPrice(prices=ModelPrice(input_mtok=Decimal('1'), output_mtok=Decimal('2.50'))),
                ConditionalPrice(
                    constraint=StartDateConstraint(start_date=datetime.date(2026, 6, 1)),
                    prices=ModelPrice(input_mtok=TieredPrices(base=Decimal('3'), tiers=[Tier(start=9, price=Decimal('6'))])),
                ),
                ConditionalPrice(
                    constraint=TimeOfDateConstraint(start_time=datetime.time(1, tzinfo=datetime.UTC), end_time=datetime.time(2)),
                    prices=ModelPrice(input_mtok=Decimal('4'), web_searches_kcount=Decimal('10')),
                ),
                ConditionalPrice(
                    constraint=StartDateConstraint(start_date=datetime.date(2027, 1, 1)),
                    prices=ModelPrice(input_mtok=Decimal('8')),
                ),
            ],
        ),
        ModelInfo(id='ft:gpt-x', match=ClauseEquals(equals='ft:gpt-x'), prices=ModelPrice(input_mtok=Decimal('9'))),
        ModelInfo(id='gpt-x:free', match=ClauseEquals(equals='gpt-x:free'), prices=ModelPrice(input_mtok=Decimal('7'))),
        ModelInfo(id='gpt-x-pro:batch', match=ClauseEquals(equals='gpt-x-pro:batch'), prices=ModelPrice(input_mtok=Decimal('1'))),
        ModelInfo(id='free', match=ClauseEquals(equals='free'), prices=ModelPrice(input_mtok=Decimal('0'))),
    ]),
    Provider(id='aws', models=[
        ModelInfo(id='global.openai.gpt-x', match=ClauseEquals(equals='openai.gpt-x'), prices=ModelPrice(input_mtok=Decimal('5'))),
        ModelInfo(id='regional.openai.gpt-x', match=ClauseEquals(equals='x'), prices=ModelPrice(input_mtok=Decimal('6'))),
        ModelInfo(id='openai.ft', match=ClauseEquals(equals='openai.ft'), prices=ModelPrice(input_mtok=Decimal('1'))),
    ]),
    Provider(id='nobody', models=[ModelInfo(id='m', match=ClauseEquals(equals='m'), prices=ModelPrice(input_mtok=Decimal('1')))]),
]
"""


def test_prices_are_those_of_the_day_at_the_dearest_hour() -> None:
    found = {"input": "4", "search": "0.01", "rates": [{"start": "2027-01-01", "times": "2"}]}
    assert price_rows(providers(MODULE), "2026-11-28") == {
        ("bedrock", "ft"): {"input": "1"},
        ("bedrock", "gpt-x"): {"input": "5"},
        ("openai", "free"): {"input": "0"},
        ("openai", "ft:gpt-x"): {"input": "9"},
        ("openai", "gpt-x"): found,
        ("openai", "gpt-x-latest"): found,
    }


def test_the_prices_of_a_later_start_are_rates() -> None:
    rates = price_rows(providers(MODULE), "2026-05-31")["openai", "gpt-x"]["rates"]
    assert rates == [
        {"start": "2026-06-01", "times": "0.75"},
        {"start": "2027-01-01", "times": "2"},
    ]


def test_a_vendor_that_sells_at_the_price_of_the_maker_has_no_row() -> None:
    rows = {
        ("bedrock", "gpt-x"): {"input": "4"},
        ("openai", "gpt-x"): {"input": "4"},
        ("azure", "gpt-x"): {"input": "5"},
    }
    assert [row["vendor"] for row in merged(rows, {})] == ["azure", "openai"]


@dataclass(frozen=True)
class Priced:
    id: str
    entry: dict[str, Any]
    row: dict[str, Any]


OFF_PEAK = {
    "input_cost_per_token": 1e-06,
    "windows": [
        {"hours_utc": ["04:00-06:00", "10:00-00:00"], "weekdays": [1]},
        {"hours_utc": "00:00-00:00", "weekdays": [6, 7]},
    ],
}
PRICED = [
    Priced("tokens", {"input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05}, {"input": "2", "output": "10"}),
    Priced("an hour in a cache", {"cache_creation_input_token_cost_above_1hr": 4e-06}, {"long_cache_write": "4"}),
    Priced("a price of 0 is unknown", {"input_cost_per_token": 0.0, "input_cost_per_query": 0.002}, {"search": "0.002"}),
    Priced(
        "long prompts",
        {"input_cost_per_token": 2e-06, "input_cost_per_token_above_200k_tokens": 4e-06},
        {"input": "2", "rates": [{"above": 200_000, "input": "4"}]},
    ),
    Priced(
        "a class of service",
        {"input_cost_per_token": 2e-06, "input_cost_per_token_batches": 1e-06},
        {"input": "2", "rates": [{"tier": "batch", "times": "0.5"}]},
    ),
    Priced(
        "ranges of tokens",
        {"tiered_pricing": [{"range": [0, 9.0], "input_cost_per_token": 1e-06}, {"range": [9.0, 99.0], "input_cost_per_token": 2e-06}]},
        {"input": "1", "rates": [{"above": 9, "input": "2"}]},
    ),
    Priced(
        "hours and weekdays",
        {"input_cost_per_token": 2e-06, "off_peak_pricing": OFF_PEAK},
        {
            "input": "2",
            "rates": [
                {"hours": ["04:00-06:00", "10:00-00:00"], "weekdays": [1], "times": "0.5"},
                {"weekdays": [6, 7], "times": "0.5"},
            ],
        },
    ),
    Priced(
        "regions",
        {"input_cost_per_token": 2e-06, "regional_processing_uplift_multiplier_eu": 1.1},
        {"input": "2", "rates": [{"region": "eu", "times": "1.1"}]},
    ),
    Priced(
        "a fast mode",
        {"input_cost_per_token": 2e-06, "provider_specific_entry": {"us": 1.1, "fast": 2}},
        {"input": "2", "rates": [{"region": "us", "times": "1.1"}, {"tier": "fast", "times": "2"}]},
    ),
    Priced(
        "seconds of video",
        {"mode": "video_generation", "output_cost_per_second": 0.4, "output_cost_per_second_4k": 0.6},
        {"video_second": {"4k": "0.6", "": "0.4"}},
    ),
    Priced("images", {"mode": "image_generation", "output_cost_per_image_2K": 0.06}, {"image": {"2k": "0.06"}}),
    Priced("images by the request", {"mode": "image_generation", "input_cost_per_image": 0.02}, {"image": {"": "0.02"}}),
    Priced("a retired model", {"input_cost_per_token": 1e-06, "deprecation_date": "2026-10-23"}, {"input": "1", "retired": "2026-10-23"}),
]  # fmt: skip


@pytest.mark.parametrize("case", PRICED, ids=lambda case: case.id)
def test_an_entry_of_the_cost_map_gives_prices(case: Priced) -> None:
    rows = litellm_cost_map.price_rows({"m-1": {"litellm_provider": "openai", "mode": "chat", **case.entry}})
    assert rows == {("openai", "m-1"): case.row}


def test_a_surcharge_of_a_region_is_a_rate_of_the_worldwide_price() -> None:
    claude = {"litellm_provider": "bedrock_converse", "mode": "chat"}
    entries = {
        "us.anthropic.claude-x": claude | {"input_cost_per_token": 5.5e-06},
        "global.anthropic.claude-x": claude | {"input_cost_per_token": 5e-06},
    }
    rates = [{"region": "regional", "times": "1.1"}]
    assert litellm_cost_map.price_rows(entries) == {("bedrock-anthropic", "claude-x"): {"input": "5", "rates": rates}}


def test_a_surcharge_of_all_addresses_but_the_global_one_is_a_rate() -> None:
    gemini = {"mode": "chat", "input_cost_per_token": 2e-06}
    entries = {  # of two keys for one model, the shorter one decides about the prices
        "gemini-x": gemini | {"litellm_provider": "vertex_ai-language-models"},
        "vertex_ai/gemini-x": gemini | {"litellm_provider": "vertex_ai", "regional_endpoint_uplift_multiplier": 1.1},
    }
    rates = [{"region": "regional", "times": "1.1"}]
    assert litellm_cost_map.price_rows(entries) == {("vertex", "gemini-x"): {"input": "2", "rates": rates}}


def test_a_region_with_other_factors_has_its_own_prices() -> None:
    nova = {"litellm_provider": "bedrock_converse", "mode": "chat"}
    base = {"input_cost_per_token": 3e-06, "output_cost_per_token": 4e-06, "cache_read_input_token_cost": 1e-06}
    entries = {
        "amazon.x": nova | base | {"input_cost_per_token_priority": 6e-06},
        "eu.amazon.x": nova | {"input_cost_per_token": 3.3e-06, "output_cost_per_token": 6e-06},
        "bedrock/us-gov-west-1/amazon.x": nova | {"input_cost_per_token": 3.6e-06, "output_cost_per_token": 4.8e-06},
    }
    (row,) = litellm_cost_map.price_rows(entries).values()
    assert row["rates"][1:] == [
        {"region": "regional", "times": "1.2"},
        {"region": "eu", "input": "3.3", "output": "6", "cache_read": "1.5"},
        {"region": "eu", "tier": "priority", "times": "2"},
    ]


def test_rates_of_regions_have_prices_where_the_packages_differ() -> None:
    rates = [{"above": 9, "input": "8"}, {"region": "eu", "times": "1.1"}]
    (row,) = merged({("azure", "m"): {"input": "3"}}, {("azure", "m"): {"input": "4", "rates": rates}})
    assert row["rates"] == [
        {"region": "regional", "input": "4"},
        {"region": "regional", "above": 9, "input": "8"},
        {"region": "eu", "input": "4.4"},
        {"region": "eu", "above": 9, "input": "8.8"},
    ]


def test_the_module_is_parsed_and_not_executed() -> None:
    with pytest.raises(ValueError, match="no value in the data"):
        providers("providers: list[Provider] = [exit() or 1]")
    with pytest.raises(ValueError, match="no list of providers"):
        providers("raise SystemExit")

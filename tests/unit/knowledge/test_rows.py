"""Rows of the hand-kept data, and laws that hold for all series."""

import re

import pytest

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_fact_types import (
    CHAT_TOOLS_ORDER,
    EFFORT_ORDER,
    FACT_NAMES,
    SAMPLING_ORDER,
    THINKING_ORDER,
    TOOL_CHOICE_ORDER,
    in_common,
    known_facts,
)
from umg_grpc.knowledge.model_facts_by_id import HandRow, find, known_models
from umg_grpc.knowledge.model_id_spellings import Series, Spelling, all_series
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.knowledge.quirk_sources import quirk_sources
from umg_grpc.knowledge.vendor_addresses import OtherHost
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS

ROWS = read_rows("models", HandRow)
DATE = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]")
STRICTEST_FIRST = {
    "thinking": THINKING_ORDER,
    "sampling": SAMPLING_ORDER,
    "forced_tools": TOOL_CHOICE_ORDER,
    "chat_tools": CHAT_TOOLS_ORDER,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.models} {' '.join(sorted(known_facts(row)))}")
def test_a_row_has_facts_a_source_a_date_and_known_vendors(row: HandRow) -> None:
    assert known_facts(row)
    assert row.source
    assert DATE.fullmatch(row.as_of)
    assert row.retired is None or DATE.fullmatch(row.retired)
    assert set(row.vendors) <= set(PROVIDER_PRESETS)
    assert [effort for effort in EFFORT_ORDER if effort in (row.efforts or ())] == [
        effort for effort in row.efforts or () if effort != "default"
    ]


def test_a_later_row_does_not_repeat_the_pattern_and_a_fact_of_an_earlier_one() -> None:
    seen = set()
    for row in ROWS:
        for name in known_facts(row):
            key = (row.models, row.vendors, name)
            assert key not in seen, key
            seen.add(key)


def test_rows_of_spellings_series_and_hosts_have_sources_and_known_vendors() -> None:
    for row in (*read_rows("model_spellings", Spelling), *all_series(), *read_rows("vendor_hosts", OtherHost)):
        assert row.source
        assert DATE.fullmatch(row.as_of)
    for series in all_series():
        assert set(series.vendors) <= set(PROVIDER_PRESETS), series.name
    assert {row.vendor for row in read_rows("vendor_hosts", OtherHost)} <= set(PROVIDER_PRESETS)


@pytest.mark.parametrize("series", all_series(), ids=lambda series: series.name)
def test_facts_in_common_are_accepted_by_each_model_of_the_series(series: Series) -> None:
    models = [find(model, series.vendors[0]).facts for model in (*known_models(series.name), *series.like)]
    common = in_common(models)
    for facts in models:
        for name in FACT_NAMES:
            value, shared = getattr(facts, name), getattr(common, name)
            if value is None or shared is None:
                continue
            match name:
                case "efforts" | "endpoints" | "inputs" | "abilities":
                    assert set(shared) <= set(value)
                case "rejects" | "rejects_beside_reasoning":
                    assert shared >= value
                case "input_tokens" | "output_tokens":
                    assert shared <= value
                case "cache_min_tokens":
                    assert shared >= value
                case "budgets" | "adaptive" | "prefill" | "system_anywhere" | "json_schema":
                    assert not shared or value
                case _ if name in STRICTEST_FIRST:
                    order = STRICTEST_FIRST[name]
                    assert order.index(shared) <= order.index(value)
    assert all(getattr(facts, name) == getattr(common, name) for name in common.sure for facts in models)


@pytest.mark.parametrize("protocol", TEXT_PROTOCOLS)
@pytest.mark.parametrize("provider", PROVIDER_PRESETS.values(), ids=lambda provider: provider.name)
def test_the_explained_sources_are_those_of_the_quirks(provider: object, protocol: str) -> None:
    base_url = next(row.base_url for row in PROVIDER_PRESETS.values() if row is provider)
    for model in (
        "gpt-6-astra",
        "claude-opus-5-7",
        "gemini-3.6-flash",
        "mistral-large-4",
        "kimi-k3",
        "glm-5.3",
        "mine",
    ):
        found = NO_QUIRKS
        for source in quirk_sources(model, "", base_url, protocol):
            found = found.over(source.quirks)
        assert found == known(model, "", base_url, protocol)

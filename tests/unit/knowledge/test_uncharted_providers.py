"""Providers whose restrictions no table has: the rules of unknown hosts apply to them."""

import re

import pytest

from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider
from umg_grpc.knowledge.provider_quirks import known

ROWS = [row for row in PROVIDER_PRESETS.values() if not row.restrictions_known]
UNKNOWN = "https://unknown.example/v1"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("model", ["meta-llama/llama-4", "deepseek-v4-pro", "qwen3.8-max", "openai/gpt-5.4"])
def test_a_provider_without_known_restrictions_has_those_of_unknown_hosts(row: Provider, model: str) -> None:
    address = re.sub("<[^>]*>", "my", row.base_url)
    found, expected = (known(model, "", each, "chat") for each in (address, UNKNOWN))
    assert (found.rejects, found.schema_dialect, found.system_place, found.developer) == (
        *(expected.rejects, expected.schema_dialect, expected.system_place, expected.developer),
    )


def test_only_providers_without_rows_of_their_own_have_no_known_restrictions() -> None:
    names = {row.name for row in PROVIDER_PRESETS.values() if row.restrictions_known}
    assert {"openai", "deepseek", "groq", "openrouter", "bedrock", "byteplus"} <= names
    assert "nvidia" not in names

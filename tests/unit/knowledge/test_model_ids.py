"""Spellings of ids, patterns of ids, and series."""

import pytest

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.model_facts_by_id import HandRow
from umg_grpc.knowledge.model_id_spellings import IdPattern, ModelVersion, all_series, series_of, spellings

SPELLINGS = [
    ("gpt-5.5", ("gpt-5.5",)),
    ("gpt-5.5-2026-04-23", ("gpt-5.5-2026-04-23", "gpt-5.5")),
    ("openai/GPT-5.6-Sol", ("gpt-5.6-sol",)),
    ("azure/eu/gpt-4o-2024-08-06", ("gpt-4o-2024-08-06", "gpt-4o")),
    ("ft:gpt-4o-2024-08-06:acme::abc", ("gpt-4o-2024-08-06", "gpt-4o")),
    ("claude-sonnet-4-5@20250929", ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5")),
    ("claude-opus-5@default", ("claude-opus-5",)),
    ("anthropic/claude-opus-4.7", ("claude-opus-4-7",)),
    ("anthropic.claude-opus-5-5-v1:0", ("claude-opus-5-5",)),
    ("us.anthropic.claude-opus-4-6-v1", ("claude-opus-4-6",)),
    ("us-gov.anthropic.claude-haiku-4-5-20251001-v1:0", ("claude-haiku-4-5-20251001", "claude-haiku-4-5")),
    ("in.moonshotai.kimi-k3", ("kimi-k3",)),
    ("openai.gpt-oss-120b-1:0", ("gpt-oss-120b",)),
    ("models/gemini-3.6-flash", ("gemini-3.6-flash",)),
    ("publishers/google/models/gemini-2.5-pro", ("gemini-2.5-pro",)),
    ("accounts/fireworks/models/glm-5p2", ("glm-5.2",)),
    ("deepseek/deepseek-v4-flash:free", ("deepseek-v4-flash",)),
    ("deepseek-v4-flash-0731", ("deepseek-v4-flash-0731", "deepseek-v4-flash")),
    ("deepseek-v3", ("deepseek-v3",)),
    ("mistral-small-2603", ("mistral-small-2603", "mistral-small")),
    ("mistral-large-latest", ("mistral-large-latest", "mistral-large")),
    ("doubao-seed-2-1-pro-260915", ("doubao-seed-2-1-pro-260915", "doubao-seed-2-1-pro")),
    ("command-r-08-2024", ("command-r-08-2024", "command-r")),
    ("qwen3.8:27b", ("qwen3.8:27b",)),
    ("", ("",)),
]


@pytest.mark.parametrize(("model", "expected"), SPELLINGS, ids=[model or "no id" for model, _ in SPELLINGS])
def test_an_id_is_looked_up_in_the_spelling_of_its_maker(model: str, expected: tuple[str, ...]) -> None:
    assert spellings(model) == expected


SERIES = [
    ("gpt-6.3-x", "gpt", ModelVersion(6, 3)),
    ("gpt-4o-mini", "gpt", ModelVersion(4)),
    ("gpt-5.5-pro", "gpt-pro", ModelVersion(5, 5)),
    ("gpt-5.3-codex-spark", "gpt-codex", ModelVersion(5, 3)),
    ("gpt-daybreak-blue", "gpt-unversioned", ModelVersion(0)),
    ("o3-mini", "openai-o", ModelVersion(3)),
    ("claude-opus-5-7", "claude-opus", ModelVersion(5, 7)),
    ("claude-opus-4-7-thinking", "claude-opus", ModelVersion(4, 7)),
    ("claude-fable-6", "claude-fable", ModelVersion(6)),
    ("claude-saga-1", "claude-other", ModelVersion(1)),
    ("gemini-3.9-flash", "gemini-flash", ModelVersion(3, 9)),
    ("gemini-3.9-flash-lite", "gemini-flash-lite", ModelVersion(3, 9)),
    ("gemini-4-argon", "gemini", ModelVersion(4)),
    ("grok-4.8", "grok", ModelVersion(4, 8)),
    ("kimi-k3.1-pro", "kimi", ModelVersion(3, 1)),
    ("glm-5.4-flash", "glm", ModelVersion(5, 4)),
    ("minimax-m3", "minimax-m", ModelVersion(3)),
    ("qwen3.9-max", "qwen", ModelVersion(3, 9)),
    ("doubao-seed-2-2-pro", "doubao-seed", ModelVersion(2, 2)),
]


@pytest.mark.parametrize(("model", "series", "version"), SERIES, ids=[model for model, _, _ in SERIES])
def test_an_id_has_its_series_and_version(model: str, series: str, version: ModelVersion) -> None:
    found = series_of(model)
    assert found is not None
    assert (found.name, found.version(model)) == (series, version)


@pytest.mark.parametrize(
    "model", ["gpt-35-turbo", "gpt-realtime", "grok-4.20-0309-reasoning", "mistral-large-2512", "x"]
)
def test_other_ids_have_no_series(model: str) -> None:
    assert series_of(model) is None


def test_a_pattern_is_not_compiled_for_an_id_that_begins_otherwise() -> None:
    pattern = IdPattern(r"gpt-5\.2|gpt-5\.4(?:-mini)?|o[13](?:a|b)")
    assert pattern.match("claude-opus-5") is None
    assert "_compiled" not in vars(pattern)
    assert [bool(pattern.match(model)) for model in ("gpt-5.4-mini", "o1b", "gpt-5.4-nano", "o1")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_beginning_of_a_pattern_excludes_no_id_that_the_pattern_matches() -> None:
    examples = {model for model, _, _ in SERIES} | {model for _, expected in SPELLINGS for model in expected}
    for row in read_rows("models", HandRow):
        pattern = IdPattern(row.models)
        matching = {model for model in examples if pattern._compiled.fullmatch(model)}
        assert matching == {model for model in examples if pattern.match(model)}


def test_models_whose_facts_others_inherit_are_of_a_series() -> None:
    for series in all_series():
        assert all(series.version(model) is not None for model in series.also), series.name
        assert all(series_of(model) is not None for model in series.like), series.name

"""Commands `umg prices`: the list, the explanation of one model, and the update by a file."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from umg_grpc.cli.commands import app

CONFIG = """
channels:
- {name: openai, protocols: [chat], base_url: https://api.openai.com/v1, models: [gpt-6-sol, {id: best, upstream: gpt-6-sol-2026-09-22}, new]}
- {name: own, protocols: [chat], base_url: http://a, models: [mine]}
- {name: several, protocols: [chat, embeddings, images], base_url: http://a, models: [painter]}
models:
  painter: {price: {image: 0.04}}
  mine: {price: {input: 1.5}}
"""
COST_MAP = {
    "sample_spec": {"mode": "chat"},
    "gpt-6-sol": {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1e-05,
        "input_cost_per_token_flex": 1.5e-06,
        "output_cost_per_token_flex": 5e-06,
    },
    "gpt-7": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 4e-06},
    "gpt-5-mini": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-07},
}
GENAI_PRICES = [
    {
        "id": "openai",
        "models": [
            {"id": "gpt-7", "match": {"or": [{"equals": "gpt-7"}, {"starts_with": "gpt-7-"}]}, "prices": {"input_mtok": 4}},
            {"id": "gpt-8", "match": {"equals": "gpt-8"}, "prices": [{"prices": {"input_mtok": {"base": 1, "tiers": [{"start": 9, "price": 2}]}}}]},
        ],
    }
]  # fmt: skip
OWN = [{"model": "gpt-7", "vendor": "openai", "input": "4", "rates": [{"tier": "flex", "times": "0.5"}]}]


def umg(*arguments: str) -> Result:
    return CliRunner().invoke(app, ("prices", *arguments))


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, str, str, str]:
    (tmp_path / "umg.yaml").write_text(CONFIG)
    return "--config", str(tmp_path / "umg.yaml"), "--data", str(tmp_path / "data")


def update(tmp_path: Path, content: object, *flags: str) -> Result:
    source = tmp_path / "source.json"
    source.write_text(content if isinstance(content, str) else json.dumps(content))
    return umg("update", str(source), *flags)


def test_prices_of_a_pattern_and_a_vendor_are_listed(data: tuple[str, ...]) -> None:
    lines = umg("list", "GPT-6-s*", "--vendor", "openai", *data).stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [["gpt-6-sol", "openai", "input", "2,"]]


def test_a_pattern_without_models_is_an_error(data: tuple[str, ...]) -> None:
    result = umg("list", "nothing", *data)
    assert (result.exit_code, result.stderr) == (1, "umg: no model with a public price fits nothing\n")


@dataclass(frozen=True)
class Explained:
    id: str
    arguments: tuple[str, ...]
    lines: tuple[str, ...]


EXPLAINED = [
    Explained(
        "a model of the config",
        ("best",),
        (
            "gpt-6-sol-2026-09-22 at openai (openai):",
            "  row: openai/gpt-6-sol (generated; looked up: gpt-6-sol-2026-09-22, gpt-6-sol)",
            "  prices: input 2, output 10, cache read 0.2, cache write 2.5, long cache write 5, search 0.01",
            "  above 272000 input tokens: input 4, output 15, cache read 0.4, cache write 5, long cache write 10",
            "  flex tier: all tokens x 0.5",
            "  source: genai-prices 0.2.3 and litellm 1.110.2, openai/gpt-6-sol; as of 2026-11-28",
        ),
    ),
    Explained("a price of the config", ("mine",), ("mine at own (unknown vendor):", "  prices: input 1.5")),
    Explained("a price for some operations", ("painter",), ("  prices: image 0.04", "  no price for generate, embed: these calls of keys with a budget are refused")),
    Explained("a model without a price", ("new",), ("new at openai (openai):", "  no price; calls of keys with a budget are refused, unless `unpriced` or `price` is set")),
    Explained(
        "a provider's id",
        ("deepseek-v4-pro", "--vendor", "deepseek"),
        ("  on ISO weekdays 67: all tokens x 0.5", "  prices: input 1.32, output 3.96, cache read 0.044"),
    ),
    Explained("a hand-kept row", ("kling-v1", "--vendor", "kling"), ("  prices: video second 720p 0.028, video second std 0.028, video second 1080p 0.098, video second pro 0.098, video second 0.028",)),
]  # fmt: skip


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda case: case.id)
def test_the_prices_of_a_model_are_explained(case: Explained, data: tuple[str, ...]) -> None:
    result = umg("explain", *case.arguments, *data)
    assert set(case.lines) <= set(result.stdout.splitlines()), result.stdout


def test_an_unknown_model_is_named_with_the_ids_that_were_looked_up(data: tuple[str, ...]) -> None:
    result = umg("explain", "openai/nothing-20260101", *data)
    assert result.exit_code == 1
    assert result.stderr == ("umg: openai/nothing-20260101 has no public price; looked up: nothing-20260101, nothing\n")


@pytest.mark.parametrize("content", [COST_MAP, GENAI_PRICES, OWN], ids=["cost map", "genai-prices", "own rows"])
def test_an_update_by_a_file_of_each_shape_adds_a_new_model(
    content: object, data: tuple[str, ...], tmp_path: Path
) -> None:
    assert umg("explain", "gpt-7", "--vendor", "openai", *data).exit_code == 1
    assert "openai/gpt-7: none -> input 4" in update(tmp_path, content, *data).stdout
    assert "  prices: input 4" in umg("explain", "gpt-7", "--vendor", "openai", *data).stdout


def test_an_update_writes_the_rows_that_differ_alone(data: tuple[str, ...], tmp_path: Path) -> None:
    result = update(tmp_path, COST_MAP, *data)
    assert result.stdout.splitlines()[-2].startswith("2 prices changed; 2 rows in ")
    rows = json.loads((tmp_path / "data" / "prices.json").read_text())
    assert [row["model"] for row in rows] == ["gpt-6-sol", "gpt-7"]
    assert "  flex tier: all tokens x 0.5" in umg("explain", "gpt-6-sol", *data).stdout
    again = update(tmp_path, COST_MAP, *data)
    assert again.stdout.splitlines()[0].startswith("0 prices changed; 2 rows")


def test_a_dry_run_writes_nothing(data: tuple[str, ...], tmp_path: Path) -> None:
    assert "2 prices would change" in update(tmp_path, COST_MAP, "--dry-run", *data).stdout
    assert not (tmp_path / "data").exists()


def test_one_price_is_no_plural_and_a_row_without_a_vendor_is_that_of_the_maker(
    data: tuple[str, ...], tmp_path: Path
) -> None:
    lines = update(tmp_path, [{"model": "new", "input": "4"}], *data).stdout.splitlines()
    assert (lines[0], lines[1].partition(" in ")[0]) == ("maker/new: none -> input 4", "1 price changed; 1 row")


def test_a_row_of_an_unknown_vendor_which_no_model_would_have_changes_nothing(
    data: tuple[str, ...], tmp_path: Path
) -> None:
    result = update(tmp_path, [{"model": "gpt-7", "vendor": "opnai", "input": "4"}], *data)
    assert (result.exit_code, "opnai/gpt-7: unknown vendor; expected one of ai21, anthropic, " in result.stderr) == (
        1,
        True,
    )
    assert not (tmp_path / "data").exists()


def test_a_model_that_is_gone_has_the_shipped_price_again(data: tuple[str, ...], tmp_path: Path) -> None:
    update(tmp_path, COST_MAP, *data)
    assert "openai/gpt-6-sol: back to the shipped price" in update(tmp_path, OWN, *data).stdout
    gone = update(tmp_path, [{"model": "gpt-5", "vendor": "openai", "input": "1"}], *data).stdout
    assert "openai/gpt-7: no price any more" in gone


@dataclass(frozen=True)
class Unusable:
    id: str
    content: object
    reason: str


UNUSABLE = [
    Unusable("no JSON", "prices", "JSON is malformed"),
    Unusable("another shape", {"prices": 1}, "expected rows of prices, the cost map of LiteLLM, or the JSON file of genai-prices"),
    Unusable("unknown vendors", {"m": {"litellm_provider": "nobody", "mode": "chat"}}, "no prices of known vendors are in it"),
    Unusable("an unknown member", [{"model": "m", "inputs": "1"}], "unknown field `inputs`"),
    Unusable("no number", [{"model": "m", "input": "one"}], "/m: a price is no number"),
    Unusable("a price below 0", [{"model": "m", "input": "-1"}], "/m: a price is below 0"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE, ids=lambda case: case.id)
def test_an_unusable_update_changes_nothing(case: Unusable, data: tuple[str, ...], tmp_path: Path) -> None:
    update(tmp_path, OWN, *data)
    before = (tmp_path / "data" / "prices.json").read_bytes()
    result = update(tmp_path, case.content, *data)
    assert result.exit_code == 1
    assert case.reason in result.stderr
    assert (tmp_path / "data" / "prices.json").read_bytes() == before


def test_an_unusable_file_of_prices_is_a_mistake_of_the_config(data: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "prices.json").write_text("{}")
    result = umg("list", *data)
    assert result.exit_code == 2
    assert "prices.json:1" in result.stderr
    assert "umg prices update" in result.stderr


def test_a_configured_file_is_written(data: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "umg.yaml").write_text(f"{CONFIG}price_file: {tmp_path / 'own.json'}\n")
    update(tmp_path, OWN, *data)
    assert json.loads((tmp_path / "own.json").read_text())[0]["model"] == "gpt-7"
    assert umg("explain", "gpt-7", "--vendor", "openai", *data).exit_code == 0

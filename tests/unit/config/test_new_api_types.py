"""Types of channels of new-api, by its own table: each becomes channels that can serve their models, or a true reason."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.service_accounts import key_file
from umg_grpc.cli.commands import app
from umg_grpc.config import parse
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import Variables
from umg_grpc.config.importers.from_new_api import from_new_api
from umg_grpc.config.importers.new_api.channel_types import (
    bedrock_id,
    channel_types,
    model_rows,
    operations_of,
)
from umg_grpc.config.importers.new_api.listed_new_api_channels import JSON_COLUMNS
from umg_grpc.config.importers.unconverted_settings import SettingRow, reason_of, setting_rows
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.operations import OPERATIONS_BY_VALUE
from umg_grpc.v1 import pb

SOURCE = json.loads((Path(__file__).parent / "new_api_types.json").read_text())
"""Types, models and columns, read from new-api's source, whose commit is in the file."""
TYPES: list[dict[str, Any]] = SOURCE["types"]
MODELS = ["gpt-4o", "text-embedding-3-small", "bge-reranker-v2-m3", "whisper-1", "gpt-image-1", "sora-2"]
"""Models of types whose table has none."""
KEYS = {
    33: "AKIA|secret|us-east-1",
    41: '{"type": "service_account", "project_id": "p"}',
    46: "key|app",
    50: "ak|sk",
    51: "ak|sk",
}
ADDRESSES = {3: "https://r.openai.azure.com", 8: "https://relay.example/v1/chat/completions"}
OTHERS = {3: "2024-10-21", 39: "account", 41: '{"default": "us-central1", "gemini-2.5-pro": "global"}'}
GPT = {"type": 1, "name": "beside", "key": "k", "models": "gpt-5"}


def export(kind: dict[str, Any]) -> dict[str, Any]:
    """Return a channel of a type, with all models of its table, as new-api lists it."""
    number = kind["type"]
    own = kind["base_url"] or number in {33, 41}
    return {
        "id": number,
        "type": number,
        "name": kind["name"],
        "status": 1,
        "key": KEYS.get(number, "sk-key"),
        "base_url": ADDRESSES.get(number, None if own else "https://own.example"),
        "other": OTHERS.get(number, ""),
        "models": ",".join(kind["models"] or MODELS),
        "group": "default",
        "auto_ban": 1,
    }


def of_type(kind: dict[str, Any]) -> str:
    return f"{kind['type']} {kind['name']}"


def test_each_type_of_new_api_has_a_row_with_its_address() -> None:
    assert {kind["type"]: kind["base_url"] for kind in TYPES} == {
        number: row.base_url for number, row in channel_types().items()
    }


@pytest.mark.parametrize("kind", TYPES, ids=of_type)
def test_a_channel_of_each_type_becomes_a_file_that_check_accepts(kind: dict[str, Any], tmp_path: Path) -> None:
    reason = channel_types()[kind["type"]].reason
    if reason:
        with pytest.raises(ValueError, match="expected a model that can be converted") as caught:
            from_new_api(json.dumps([export(kind)]))
        assert f"channel `{kind['name']}` of type {kind['type']}" in str(caught.value)
        assert reason in str(caught.value)
        made = from_new_api(json.dumps([GPT, export(kind)]))
        assert [channel.name for channel in made.channels] == ["beside"]
    else:
        made = from_new_api(json.dumps([export(kind)]))
        assert len(made.channels) > 0
    (tmp_path / "umg.yaml").write_text(made.text())
    (tmp_path / "account.json").write_text(key_file("https://token.example"))
    environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "account.json")}
    result = CliRunner().invoke(app, ["check", str(tmp_path / "umg.yaml")], env=environment)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("kind", [each for each in TYPES if not channel_types()[each["type"]].reason], ids=of_type)
def test_each_model_is_in_a_channel_that_can_serve_it_or_in_the_list(kind: dict[str, Any]) -> None:
    made = from_new_api(json.dumps([export(kind)]))
    served: list[str] = []
    for channel in parse(made.text(), "umg.yaml", Variables(made)).channels:
        for model in channel.models:
            operations = operations_of(kind["type"], model.upstream)
            assert not isinstance(operations, str)
            protocols = {name for value in operations for name in OPERATIONS_BY_VALUE[value].protocols}
            assert protocols & set(channel.protocols), f"{model.id} in {channel.name}"
            served.append(model.id)
    listed = [model for note in made.lost for model in kind["models"] or MODELS if f"`{model}`" in note]
    assert sorted(served + listed) == sorted(kind["models"] or MODELS)


def test_rows_name_presets_and_protocols_of_this_gateway() -> None:
    protocols = {name for row in OPERATIONS_BY_VALUE.values() for name in row.protocols}
    for row in channel_types().values():
        names = {*row.presets, *(name for names in row.platforms.values() for name in names)}
        assert names <= PROVIDER_PRESETS.keys(), row.name
        assert {*row.paths, *(name for plan in row.plans.values() for name in plan)} <= protocols, row.name
        assert bool(row.reason) != bool(row.presets or row.paths), row.name


def test_models_at_bedrock_are_those_of_its_presets() -> None:
    models = [model for kind in TYPES if kind["type"] == 33 for model in kind["models"]]
    ids = {model: bedrock_id(model, "us") for model in models}
    served = {model for model, named in ids.items() if PROVIDER_PRESETS["bedrock-anthropic"].has_model(named)}
    assert served == {model for model in models if model.startswith("claude-")}
    assert all(named == f"amazon.{model}" for model, named in ids.items() if model not in served)


def test_rows_of_models_have_operations_of_the_schema_or_a_reason() -> None:
    for row in model_rows():
        assert not (row.reason and row.operations)
        assert all(pb.ModelOperation.Value(f"MODEL_OPERATION_{name.upper()}") for name in row.operations)


def test_each_property_of_a_channel_is_converted_or_has_a_row_of_its_own() -> None:
    converted = {"type", "name", "status", "models", *JSON_COLUMNS}
    for place, keys in (("", SOURCE["columns"]), *((column, SOURCE[column]) for column in JSON_COLUMNS)):
        for key in keys:
            assert key in converted or any(
                row.place == place and not _is_general(row) for row in setting_rows("new_api") if _names(row, key)
            ), f"{place}.{key}"
            assert isinstance(reason_of("new_api", place, key), str)


def _is_general(row: SettingRow) -> bool:
    return row.keys == ("*",)


def _names(row: SettingRow, key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in row.keys)


@pytest.mark.parametrize("place", ["", *JSON_COLUMNS])
def test_each_set_property_has_an_effect_or_a_line_in_the_list(place: str) -> None:
    """Properties without an effect on calls, for example balances, have a row without a reason."""
    whole = {"id": 1, "type": 1, "name": "c", "models": "gpt-5", "key": "k", "status": 2}
    for key in SOURCE[place or "columns"]:
        if not place and key in JSON_COLUMNS:
            continue
        value = VALUES.get(key, "7")
        row = {**whole, **({key: value} if not place else {place: {key: value}})}
        bodies = [body(from_new_api(json.dumps([GPT, each]))) for each in (whole, row)]
        setting = f"{place}.{key}" if place else key
        is_listed = any(
            note.startswith((f"{setting} of", f"{setting} (")) for note in from_new_api(json.dumps([GPT, row])).lost
        )
        is_whole = not place and whole.get(key) == value
        has_no_effect = reason_of("new_api", place, key) == ""
        assert is_listed or is_whole or has_no_effect or bodies[0] != bodies[1], setting


VALUES = {
    "type": 14,
    "models": "gpt-5,gpt-5-mini",
    "status": 1,
    "model_mapping": '{"gpt-5": "x"}',
    "base_url": "https://own.example",
    "header_override": '{"x-a": "b"}',
    "proxy": "http://proxy:1",
    "auto_ban": 0,
    "group": "vip",
    "multi_key_status_list": {"0": 2},
}
"""Values other than `7` of properties that need a certain form."""


def body(made: ImportedConfig) -> str:
    """Return the text of all channels of a converted config, of which disabled ones are in comments."""
    return made.text().partition("channels:")[2]

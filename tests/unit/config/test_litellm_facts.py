"""Rows about LiteLLM: they have all of its providers and parameters, as its package lists them."""

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from scripts.knowledge import packages
from scripts.knowledge.litellm_models import source_model_rows
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.config.channel_section import served_protocols
from umg_grpc.config.importers.config_text_builder import written
from umg_grpc.config.importers.from_litellm import from_litellm
from umg_grpc.config.importers.litellm.litellm_facts import source_providers
from umg_grpc.config.importers.litellm.model_providers import source_model
from umg_grpc.config.importers.unconverted_settings import reason_of, setting_rows
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

PATHS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/embeddings": "embeddings",
}
"""Path of LiteLLM's table of compatible providers -> protocol of the gateway."""
PARAMETERS = ("GenericLiteLLMParams", "CredentialLiteLLMParams", "LiteLLMParamsTypedDict")


@pytest.fixture(scope="module")
def litellm() -> Path:
    """Directory of LiteLLM's sources in the pinned wheel."""
    installed_or_skipped(packages.installed)
    return packages.installed() / "sources" / "litellm"


def class_body(path: Path, name: str) -> Iterator[ast.stmt]:
    """Yield the statements of a class in a module, which is not imported."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from node.body


def test_each_provider_of_litellm_has_a_row(litellm: Path) -> None:
    statements = class_body(litellm / "types" / "utils.py", "LlmProviders")
    values = [each.value for each in statements if isinstance(each, ast.Assign)]
    names = {str(value.value) for value in values if isinstance(value, ast.Constant)}
    assert len(names) > 150
    assert names <= source_providers().keys()


def test_compatible_providers_have_the_address_and_protocols_of_litellms_table(litellm: Path) -> None:
    table = json.loads((litellm / "llms" / "openai_like" / "providers.json").read_text())
    for name, entry in table.items():
        row, protocols = source_providers()[name], [PATHS[path] for path in paths(entry) if path in PATHS]
        (address,) = {row.base_url} if row.base_url else {preset.base_url for preset in row.known_presets}
        assert (row.keys, address) == ((entry["api_key_env"],), entry["base_url"].rstrip("/")), name
        assert set(protocols) <= {*row.protocols, *(each for preset in row.known_presets for each in preset.protocols)}


def paths(entry: Mapping[str, Any]) -> list[str]:
    found: list[str] = entry.get("supported_endpoints", ["/v1/chat/completions"])
    return found


def test_each_id_of_the_cost_map_is_of_the_provider_that_litellm_finds(litellm: Path) -> None:
    (path,) = (packages.installed() / "litellm").glob("*.json")
    cost_map = json.loads(path.read_text())
    for row in source_model_rows(cost_map):
        ids = (*row["models"], *(f"{row['provider']}/{model}" for model in row.get("aliases", ())))
        for model in ids:
            found = source_model(model, "", "", "")
            reason = source_providers()[row["provider"]].reason if row["provider"] in source_providers() else ""
            assert isinstance(found, str) or found.provider.name == row["provider"] or reason, model


def test_each_row_has_an_address_or_a_reason() -> None:
    for row in source_providers().values():
        has_address = bool(row.known_presets or row.cloud or row.base_url or row.base_variables or row.compatible)
        assert has_address != bool(row.reason), row.name
        assert set(row.presets) <= PROVIDER_PRESETS.keys(), row.name
        assert {*row.protocols, *row.compatible} <= {*served_protocols()}, row.name


def test_each_parameter_of_litellm_itself_is_converted_or_has_a_reason_of_its_own(litellm: Path) -> None:
    default = reason_of("litellm", "litellm_params", "temperature")
    router = litellm / "types" / "router.py"
    fields = [each for name in PARAMETERS for each in class_body(router, name) if isinstance(each, ast.AnnAssign)]
    names = {each.target.id for each in fields if isinstance(each.target, ast.Name)} - {"model"}
    assert len(names) > 100
    for name in sorted(names):
        params = written({"model": "openai/gpt-5", name: "x"})
        others = "{model_name: n, litellm_params: {model: openai/gpt-5}}"
        made = from_litellm(f"model_list: [{{model_name: m, litellm_params: {params}}}, {others}]")
        assert not [note for note in made.lost if note.endswith(default)], name


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("default_internal_user_params", "budgets and limits are those of keys"),
        ("max_end_user_budget_id", "budgets and limits are those of keys"),
        ("prometheus_metrics_config", "telemetry is exported"),
        ("s3_callback_params", "telemetry is exported"),
        ("pre_call_rules", "serve the rules as a webhook"),
    ],
)
def test_a_setting_of_users_or_telemetry_has_the_reason_of_its_subject(setting: str, reason: str) -> None:
    assert reason_of("litellm", "litellm_settings", setting).startswith(reason)


def test_the_last_row_of_a_place_is_for_all_other_settings() -> None:
    places = {row.place: row for row in setting_rows("litellm")}
    assert all(row.keys == ("*",) for row in places.values())

"""Example configs in the package of LiteLLM: each becomes a file that loads, and each of their keys is converted or
listed.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pytest
import yaml

from scripts.knowledge import packages
from tests.world.sdk.runner import installed_or_skipped
from umg_grpc.config import parse
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.importers.converted_config_check import Variables
from umg_grpc.config.importers.from_litellm import from_litellm
from umg_grpc.config.importers.litellm.gateway_settings import SETTINGS_SECTIONS

Path = tuple[str | int, ...]
Change = Literal["removed", "replaced"]
CHANGES: tuple[Change, ...] = ("removed", "replaced")
PROPERTIES = {"output_cost_per_token": "price.output"}
WITHOUT_MODELS = "ibm_guardrails"
"""Example of guardrails alone, which is no config of models."""

OF_OUR_OWN = """
model_list:
  - model_name: m
    litellm_params:
      model: azure/x
      api_base: https://east.openai.azure.com
      litellm_credential_name: east
      weight: 0.25
      order: 2
      max_parallel_requests: 7
      timeout: 30
      stream_timeout: 10
      extra_headers: {x-team: a}
      input_cost_per_token: 1.0e-06
      cost_per_query: 1
    model_info: {mode: chat, output_cost_per_token: 2.0e-06, max_tokens: 9, supports_vision: true, supports_pdf: true}
    rpm: 4
    team: sales
  - model_name: m
    litellm_params: {model: openai/gpt-5, api_key: os.environ/K, weight: 0.75, rpm: 6, tpm: 7, organization: o}
    model_info: {output_cost_per_token: 3.0e-06}
  - model_name: "a/*"
    litellm_params: {model: bedrock/*, aws_region_name: eu-west-1, aws_access_key_id: a, aws_secret_access_key: b, rpm: 3, headers: {x-a: b}}
  - model_name: v
    litellm_params: {model: vertex_ai/gemini-3-pro, vertex_project: p, vertex_location: eu, vertex_credentials: '{"a": 1}'}
  - model_name: lost
    litellm_params: {model: replicate/a/b, api_key: k}
credential_list:
  - {credential_name: east, credential_values: {azure_ad_token: t, api_version: v}, credential_info: {note: a}}
  - {credential_name: west, credential_values: {api_key: t}}
litellm_settings:
  fallbacks: [{m: [v, gone]}, {v: m}]
  request_timeout: 60
  num_retries: 3
  cache_params: {type: redis, host: h, port: 1, password: p, ttl: 9}
router_settings:
  model_group_alias: {a: m, b: {model: v, hidden: true}}
  num_retries: 2
  allowed_fails: 4
  cooldown_time: 20
  retry_policy: {TimeoutErrorRetries: 1}
general_settings: {coordination_redis: {host: i, db: 2}, master_key: k}
environment_variables: {A: b}
include: [other.yaml]
"""
"""Config with the settings that the examples do not have."""


@pytest.fixture(scope="module")
def examples() -> Mapping[str, str]:
    """Texts of the example configs in the pinned wheel, by the end of their path."""
    installed_or_skipped(packages.installed)
    proxy = packages.installed() / "sources" / "litellm" / "proxy"
    found = {str(path.relative_to(proxy)): path.read_text() for path in sorted(proxy.rglob("*.yaml"))}
    assert len(found) > 25
    return {**found, "of our own": OF_OUR_OWN}


def test_each_example_becomes_a_file_that_loads(examples: Mapping[str, str]) -> None:
    for name, text in examples.items():
        if WITHOUT_MODELS in name:
            with pytest.raises(ValueError, match="expected a config of LiteLLM, with a list under `model_list`"):
                from_litellm(text)
            continue
        made = from_litellm(text)
        config = parse(made.text(), name, Variables(made))
        assert [channel.name for channel in config.channels] == [channel.name for channel in made.channels]


def test_each_key_of_each_example_is_converted_or_listed(examples: Mapping[str, str]) -> None:
    for name, text in examples.items():
        if WITHOUT_MODELS in name:
            continue
        config, made = yaml.safe_load(text), from_litellm(text)
        own = body(made)
        for path in leaves(config):
            if not is_listed(path, config, made):
                has_effect = any(changed_body(path, config, change) != own for change in CHANGES)
                assert has_effect, f"{name}: {path} has no effect and is not listed"


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all values that are neither mappings nor lists, nor null."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from leaves(each, (*path, position))
    elif value is not None:
        yield path


def is_listed(path: Path, config: Mapping[str, Any], made: ImportedConfig) -> bool:
    """Return whether the list names a setting, a setting that contains it, or the model that it belongs to."""
    match path:
        case ("model_list", int(position), *inner):
            public = config["model_list"][position]["model_name"]
            if any(note.startswith((f"model `{public}`", f"litellm_params of `{public}`")) for note in made.lost):
                return True
            setting = ".".join(map(str, inner[:2] if len(inner) > 1 else ["model_list", *inner]))
            of_setting = (f"{setting} of ", f"{PROPERTIES.get(str(inner[-1]), setting)} of an earlier deployment of ")
            return any(note.startswith(of_setting) and f"`{public}`" in note for note in made.lost)
        case ("credential_list", int(position), str(key), *inner):
            name = config["credential_list"][position]["credential_name"]
            notes = (f"credential_list: `{name}`", f"credential_list.{key}:", f"litellm_params.{(*inner, key)[0]} of ")
            return any(note.startswith(notes) for note in made.lost)
        case (str(section), "fallbacks", int(), str(name), *_) if section in SETTINGS_SECTIONS:
            return any(note.startswith(f"fallback of `{name}`") for note in made.lost)
        case (str(section), str(key), *_) if section in (*SETTINGS_SECTIONS, "environment_variables"):
            return any(note.startswith((f"{section}.{key}:", f"{section}.{key}.")) for note in made.lost)
        case (str(section), *_):
            return any(note.startswith(f"{section}:") for note in made.lost)
    raise AssertionError(path)


def body(made: ImportedConfig) -> list[str]:
    return [line for line in made.text().splitlines() if not line.lstrip().startswith("#")]


def changed_body(path: Path, config: Mapping[str, Any], change: Change) -> list[str]:
    """Return the lines of the converted config with another or no value at a path; none if it cannot be converted."""
    changed: Any = copy.deepcopy(config)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    value = inner[path[-1]]
    if change == "removed":
        del inner[path[-1]]
    else:
        inner[path[-1]] = f"{value}1" if isinstance(value, str) else not value if isinstance(value, bool) else value + 1
    try:
        return body(from_litellm(yaml.safe_dump(changed)))
    except ValueError:
        return []

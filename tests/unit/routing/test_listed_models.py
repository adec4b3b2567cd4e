"""Descriptions in the list of models: of the config, and of public data where it states nothing."""

from umg_grpc.config import parse
from umg_grpc.routing import Router, under_name
from umg_grpc.v1 import pb

CONFIG = """
channels:
  - {provider: openai, api_key: k, models: [gpt-4o, {id: mine, upstream: gpt-4o}, private]}
  - {name: sandbox, protocols: [sandbox], models: [gpt-5.1]}
models:
  mine: {capabilities: {input_tokens: 5000, tools: false}}
"""


def listed(model: str) -> pb.Model:
    return under_name(Router(parse(CONFIG, "test.yaml", {})).resolve(model).model, model)


def test_a_known_model_has_the_limits_and_capabilities_of_public_data() -> None:
    found = listed("gpt-4o")
    assert (found.input_token_limit, found.output_token_limit) == (128_000, 16_384)
    assert found.capabilities.tools
    assert "image" in found.capabilities.input_modalities


def test_the_config_replaces_them() -> None:
    found = listed("mine")
    assert (found.input_token_limit, found.output_token_limit) == (5000, 16_384)
    assert not found.capabilities.tools
    assert not found.capabilities.input_modalities


def test_the_limits_of_public_data_bound_no_costs() -> None:
    described = Router(parse(CONFIG, "test.yaml", {})).resolve("gpt-4o").model.described
    assert not described.HasField("input_token_limit")
    assert not described.HasField("output_token_limit")


def test_nothing_is_listed_of_an_unknown_model() -> None:
    found = listed("private")
    assert (found.HasField("input_token_limit"), found.HasField("capabilities")) == (False, False)


def test_a_simulated_model_is_not_the_one_that_its_id_names() -> None:
    assert not listed("gpt-5.1").HasField("input_token_limit")

"""Conversion of a LiteLLM proxy config into one of this gateway (https://docs.litellm.ai/docs/proxy/configs). Pure."""

from collections.abc import Mapping

import yaml

from umg_grpc.config.importers.config_text_builder import ImportedConfig, mapping, number
from umg_grpc.config.importers.converted_config_check import checked
from umg_grpc.config.importers.litellm.channel_names import name_channels
from umg_grpc.config.importers.litellm.deployments import Models
from umg_grpc.config.importers.litellm.gateway_settings import SETTINGS_SECTIONS, add_settings, call_timeout
from umg_grpc.config.importers.litellm.unconverted_litellm_settings import UnconvertedSettings
from umg_grpc.config.importers.tracked_source_config import SourceMapping, check_values
from umg_grpc.config.yaml_document import YAML_LOADER

FRACTION_SCALE = 100
"""Factor by which all weights are multiplied if one of them is a fraction."""


def from_litellm(text: str) -> ImportedConfig:
    """Convert a LiteLLM config. Raise ValueError if it is no YAML, or no model of its `model_list` can be converted."""
    config = SourceMapping(_decoded(text))
    if not isinstance(config.peek("model_list"), list):
        raise ValueError("expected a config of LiteLLM, with a list under `model_list`")
    made, unconverted = ImportedConfig("LiteLLM"), UnconvertedSettings()
    sections = {name: config.child(name) for name in SETTINGS_SECTIONS}
    timeout, place, key = call_timeout(sections["litellm_settings"], sections["router_settings"])
    named = config.children("credential_list")
    credentials = {each.text("credential_name"): mapping(each.take("credential_values")) for each in named}
    models = Models(made, unconverted, credentials, timeout)
    entries = config.children("model_list")
    if any(_has_fractional_weight(entry) for entry in entries):
        models.weight_scale = FRACTION_SCALE
    for entry in entries:
        models.add(entry)
    name_channels(made, models.labels)
    if models.timeout_used:
        place.take(key)
    add_settings(made, sections, unconverted)
    models.finish()
    for name in credentials:
        if name not in models.used_credentials:
            made.lose(f"credential_list: `{name}`", "no deployment names it")
    for each in named:
        unconverted.add("credential_list", each.rest())
    for section in config.rest():
        if isinstance(variables := config.peek(section), dict) and section == "environment_variables":
            unconverted.add(section, map(str, variables))
        else:
            unconverted.add("", [section])
    unconverted.list_in(made)
    return checked(made)


def _decoded(text: str) -> Mapping[str, object]:
    """Return the mapping that a config's text contains. Raise ValueError for any other text."""
    try:
        decoded = yaml.load(text, Loader=YAML_LOADER)  # noqa: S506  a safe loader
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML: {' '.join(str(error).split())}") from None
    except (RecursionError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"expected YAML of plain values: {' '.join(str(error).split())}") from None
    check_values(decoded)
    return mapping(decoded)


def _has_fractional_weight(entry: SourceMapping) -> bool:
    weight = number(mapping(entry.peek("litellm_params")).get("weight"))
    return weight is not None and weight != int(weight)

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
from umg_grpc.config.importers.checked_config import Variables
from umg_grpc.config.importers.from_litellm import from_litellm
from umg_grpc.config.importers.imported_config import ImportedConfig
from umg_grpc.config.importers.litellm.gateway_settings import SECTIONS

Path = tuple[str | int, ...]
WITHOUT_MODELS = "ibm_guardrails"
"""Example of guardrails alone, which is no config of models."""


@pytest.fixture(scope="module")
def examples() -> Mapping[str, str]:
    """Texts of the example configs in the pinned wheel, by the end of their path."""
    installed_or_skipped(packages.installed)
    proxy = packages.installed() / "sources" / "litellm" / "proxy"
    found = {str(path.relative_to(proxy)): path.read_text() for path in sorted(proxy.rglob("*.yaml"))}
    assert len(found) > 25
    return found


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
        for path in leaves(config):
            if not is_listed(path, config, made):
                bodies = [changed_body(path, config, change) for change in ("removed", "replaced")]
                assert bodies != [body(made)] * 2, f"{name}: {path} has no effect and is not listed"


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
            return any(note.startswith(f"{setting} of ") and f"`{public}`" in note for note in made.lost)
        case (str(section), str(key), *_) if section in (*SECTIONS, "environment_variables"):
            return any(note.startswith((f"{section}.{key}:", f"{section}.{key}.")) for note in made.lost)
        case (str(section), *_):
            return any(note.startswith(f"{section}:") for note in made.lost)
    raise AssertionError(path)


def body(made: ImportedConfig) -> list[str]:
    """Return the lines of a converted config without its comments."""
    return [line for line in made.text().splitlines() if not line.lstrip().startswith("#")]


def changed_body(path: Path, config: Mapping[str, Any], change: Literal["removed", "replaced"]) -> list[str]:
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

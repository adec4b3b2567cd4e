"""Page on clients: it has the settings that `tests/world/agents` runs, and the harness can read all of it."""

import json
import re
import tomllib

import pytest
import yaml

from tests.pairs.table import ROOTS
from tests.support.gateways import SANDBOX
from tests.world.agents.document import ADDRESS, BLOCK, KEY, MODEL, PAGE, Settings, libraries, settings
from tests.world.agents.programs import PROGRAMS
from umg_grpc.config import parse

TEXT = PAGE.read_text(encoding="utf-8")
SETTINGS = settings(TEXT)
UNTESTED = {"pi"}  # programs on the page that `make agents` does not run
LIBRARIES = libraries(TEXT)
READERS = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}


def name(each: Settings) -> str:
    return f"{each.program}, {each.format}"


def test_the_page_has_every_program_that_is_tested() -> None:
    assert {each.program for each in SETTINGS} == {program.name for program in PROGRAMS} | UNTESTED


def test_every_block_of_the_page_belongs_to_the_settings_of_a_program() -> None:
    blocks = BLOCK.findall(TEXT)
    assert len(blocks) == sum(1 + len(each.files) for each in SETTINGS) + sum(map(len, LIBRARIES.values()))


def test_the_page_has_the_libraries_and_programs_without_scenarios() -> None:
    assert list(LIBRARIES) == [
        *("LangChain", "LlamaIndex", "AI SDK", "llm", "Open WebUI", "Zed"),
        "Clients of Ollama",
    ]


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_lines_of_a_library_name_the_address_and_a_model_of_the_simulated_provider(name: str) -> None:
    [channel] = parse(SANDBOX, "test.yaml", {}).channels
    text = "\n".join(block.text for block in LIBRARIES[name])
    assert set(re.findall(rf"{ADDRESS}([\w/]*)", text)) == {"" if name == "Clients of Ollama" else "/v1"}
    assert set(MODEL.findall(text)) <= {model.id for model in channel.models}
    for block in LIBRARIES[name]:
        READERS.get(block.language, str)(block.text)


@pytest.mark.parametrize("each", SETTINGS, ids=name)
def test_settings_name_one_model_of_the_simulated_provider(each: Settings) -> None:
    [channel] = parse(SANDBOX, "test.yaml", {}).channels
    assert each.model in {model.id for model in channel.models}


@pytest.mark.parametrize("each", SETTINGS, ids=name)
def test_settings_name_the_address_of_the_format(each: Settings) -> None:
    settings_text = "\n".join([*each.environment.values(), *each.files.values()])
    found = set(re.findall(rf"{ADDRESS}([\w/]*)", settings_text))
    assert len(found) == 1
    assert found.pop().rstrip("/") in ("", ROOTS.get(each.format, ""))


@pytest.mark.parametrize("each", [each for each in SETTINGS if each.program not in UNTESTED], ids=name)
def test_the_values_of_the_page_are_replaced_by_other_values(each: Settings) -> None:
    changed = each.replaced(address="http://other", key="sk-other", model="another")
    settings_text = json.dumps([dict(changed.environment), dict(changed.files), changed.command])
    assert not any(old in settings_text for old in (ADDRESS, KEY, each.model))
    assert all(new in settings_text for new in ("http://other", "another"))
    assert "sk-other" in settings_text or "UMG_API_KEY" in settings_text


FILES = [(each, path, text) for each in SETTINGS for path, text in each.files.items()]


@pytest.mark.parametrize(("each", "path", "text"), FILES, ids=[f"{name(each)}, {path}" for each, path, _ in FILES])
def test_a_file_of_the_page_has_the_format_of_its_suffix(each: Settings, path: str, text: str) -> None:
    assert READERS[path.rpartition(".")[2]](text)

"""Page of the providers: the table has the presets, and the samples are configs."""

import re

import pytest

from tests.docs.tables import DOCS, quoted
from umg_grpc.cli.provider_texts import KIND_TITLES
from umg_grpc.config import parse
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider

PAGE = (DOCS / "providers.md").read_text(encoding="utf-8")
PRESETS = PAGE[PAGE.index("\n## Presets") :]
ROWS = {
    quoted(line)[0]: [cell.strip() for cell in line.strip("|").split("|")]
    for line in PRESETS.splitlines()
    if line.startswith("| `") and "](" in line
}
SAMPLE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
KEYS = (
    "OPENAI_API_KEY",
    "MY_ANTHROPIC_KEY",
    "GROQ_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "OPENROUTER_API_KEY",
    "PROVIDER_KEY",
)


def test_the_tables_have_each_preset_below_the_heading_of_its_kind() -> None:
    assert list(ROWS) == list(PROVIDER_PRESETS)
    _, *sections = re.split(r"^### ", PRESETS, flags=re.MULTILINE)
    found = {text.partition("\n")[0]: re.findall(r"^\| `([^`]+)` \| \[", text, re.MULTILINE) for text in sections}
    assert found == {
        title: [name for name, row in PROVIDER_PRESETS.items() if row.kind == kind]
        for kind, title in KIND_TITLES.items()
    }


def keys(preset: Provider) -> list[str]:
    return [variable for names in preset.variables for variable in names.split(":")]


@pytest.mark.parametrize("name", PROVIDER_PRESETS)
def test_a_row_has_the_values_of_its_preset(name: str) -> None:
    preset = PROVIDER_PRESETS[name]
    _, service, protocols, base_url, variables, models = ROWS[name]
    assert service == f"[{preset.title}]({preset.source})"
    assert tuple(quoted(protocols)) == preset.protocols
    first, *others = base_url.split("; ")
    assert quoted(first) == [preset.base_url]
    written = {name: url for other in others for *names, url in [quoted(other)] for name in names}
    assert written == preset.base_urls
    assert quoted(variables) == keys(preset)
    assert variables.endswith("none") == (not preset.needs_key and not preset.uses_service_account)
    renamed = [model.upstream for model in preset.models if model.upstream not in {model.id, "*"}]
    assert quoted(models) == [*(model.id for model in preset.models), *renamed]


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (0, ["openai", "anthropic", "groq", "ollama", "azure"]),
        (1, ["openrouter", "ollama", "any"]),
        (2, ["azure", "bedrock", "bedrock-anthropic", "bedrock-converse", "vertex"]),
    ],
)
def test_a_sample_is_a_config(number: int, names: list[str]) -> None:
    config = parse(SAMPLE[number], "umg.yaml", dict.fromkeys(KEYS, "k"))
    assert [channel.name for channel in config.channels] == names

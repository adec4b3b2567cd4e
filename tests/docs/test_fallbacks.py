"""Page on fallbacks: each recipe's config gives its header, and the tables agree with the code."""

import re
from pathlib import Path

import pytest

from tests.docs.tables import DOCS, quoted, rows, section
from tests.support.providers.scripted import succeed
from tests.unit.e2e.test_fallbacks import CAUSES, ONE_ATTEMPT
from tests.unit.e2e.test_survival import world
from umg_grpc.config.fallback_section import FALLBACK_CAUSES as KEYS

PAGE = (DOCS / "fallbacks.md").read_text(encoding="utf-8")
SECTION = section(PAGE, "Recipes")
RECIPES = re.findall(r"```yaml\n(.*?)```\n\n```\nx-umg-route: (.*?)\n```", SECTION, re.DOTALL)
TITLES = re.findall(r"^\*\*(.+?)\.\*\*", SECTION, re.MULTILINE)
CHANNELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-5", "google": "gemini-3.8-flash", "large": "gpt-4.1"}
"""Channel -> its model, in the headers of the page."""


@pytest.mark.parametrize(("config", "route"), RECIPES, ids=TITLES)
async def test_each_recipe_has_its_header(config: str, route: str, tmp_path: Path) -> None:
    [cause] = re.findall(r"cause=(\w+)", route)
    scripts = {name: [succeed] for name in CHANNELS}
    scripts["openai"] = [CAUSES[cause]]
    more = {name: f"models: [{model}]\nprotocols: [chat]" for name, model in CHANNELS.items()}
    async with world(tmp_path, scripts, more, ONE_ATTEMPT + config) as here:
        got = await here.generate(body={"model": "gpt-4o"})
        assert (got.status, got.route) == (200, route)


def test_every_recipe_is_run() -> None:
    assert len(RECIPES) == len(TITLES) == SECTION.count("```yaml") == 5


def test_the_table_has_every_cause() -> None:
    assert [quoted(cells[0])[0] for cells in rows(PAGE, "Causes")] == list(KEYS)

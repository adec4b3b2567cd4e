"""Barriers for people with disabilities that axe finds in the page of a browser."""

import asyncio
import json
from functools import cache

import pytest

from tests.support.chromium import Page
from tests.world.pages import page_tools

LEVELS = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
"""Rules of WCAG 2.2, levels A and AA."""
COLOUR_RULES = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
"""Those of the rules that depend on colours."""
REPEATED = ["tbody tr:nth-child(n+7)", "svg g:nth-of-type(n+7)"]
"""Parts that repeat those before them: of a long list, axe reads the first rows."""
RUN = """axe.run({exclude: %s}, {runOnly: %s, resultTypes: ['violations']}).then(({violations}) => violations.map(
  ({id, nodes}) => `${id}: ${nodes.map(({html}) => html.slice(0, 200)).join(' | ')}`))"""


async def barriers(page: Page, *, colours_only: bool = False) -> list[str]:
    """Return the violations of WCAG 2.2 AA in the page that is open. `colours_only`: of the rules about colours, for a
    page whose other rules were checked. Skip the test if axe cannot be installed.
    """
    if not await page.evaluate("typeof axe === 'object'"):
        await page.evaluate(await asyncio.to_thread(_source))
    found = await page.evaluate(RUN % (json.dumps(REPEATED), json.dumps(COLOUR_RULES if colours_only else LEVELS)))
    assert isinstance(found, list)
    return found


@cache
def _source() -> str:
    try:
        return (page_tools.installed() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    except RuntimeError as error:
        pytest.skip(f"npm cannot install axe: {str(error)[-300:]}")

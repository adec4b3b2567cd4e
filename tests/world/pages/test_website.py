"""Website of the documents in a real browser: its layout on screens from phones to desktops, and its search."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from scripts import docs_site
from tests.support.chromium import Page, chromium
from tests.support.page_checks import SCHEMES, WIDTHS, contrast_faults, layout_faults

NAVIGATION = """(() => {
  const isOnTop = (node) => {
    const box = node.getBoundingClientRect();
    return node.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2));
  };
  const link = document.querySelector(".sidebar-tree a");
  if (isOnTop(link)) return true;
  const button = document.querySelector(".nav-overlay-icon");
  if (!isOnTop(button)) return false;
  document.querySelector(".sidebar-drawer").style.transition = "none";
  button.click();
  const isReached = isOnTop(link);
  button.click();
  return isReached;
})()"""
"""Whether a link of the navigation can be clicked, if need be after a click on the button that shows it."""

PHONE, *OTHERS = sorted(WIDTHS)
HITS = 3
"""Number of results among which the page of a question has to be."""
RESULTS = """[...document.querySelectorAll("#search-results ul.search > li a")]
  .map((link) => new URL(link.href).pathname.split("/site/")[1])"""
SUBMITTED = """(() => {
  const form = document.querySelector(".sidebar-search").form;
  return `${form.action}?${new URLSearchParams(new FormData(form))}`;
})()"""
"""Address that the search form opens."""
HAS_SEARCHED = "/found|did not match/.test(document.querySelector('#search-results .search-summary')?.textContent)"


@dataclass(frozen=True)
class Question:
    words: str
    page: str


QUESTIONS = [
    Question("fall back other model", "recipes/fallback"),
    Question("proxy", "recipes/corporate-proxy"),
    Question("rotate key", "recipes/rotate-keys"),
    Question("team budget", "recipes/team-budgets"),
    Question("Open WebUI", "recipes/open-webui"),
    Question("Langfuse", "recipes/langfuse"),
    Question("prompt cache", "prompt-caches"),
    Question("why was my call refused", "recipes/refused-calls"),
    Question("video callback signature", "recipes/video-callbacks"),
    Question("several processes redis", "recipes/several-processes"),
    Question("price of a model", "recipes/prices"),
    Question("Entra ID", "recipes/entra-id"),
    Question("Entra ID", "recipes/entra-id-tokens"),
    Question("single sign-on oidc", "recipes/entra-id-tokens"),
    Question("azure active directory", "recipes/entra-id"),
    Question("firewall", "recipes/corporate-proxy"),
    Question("credit card", "recipes/guards"),
    Question("load balancer", "recipes/several-processes"),
    Question("how much does it cost", "recipes/prices"),
    Question("backup model outage", "recipes/fallback"),
    Question("claude code settings", "clients"),
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return the folder of the website, which `make docs` or a run before has built, unless its sources changed since."""
    if not docs_site.is_current(docs_site.SITE):
        docs_site.build(docs_site.PAGES, docs_site.SITE)
    return docs_site.SITE


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Page, None]:
    async with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        await opened.open("about:blank")


@pytest.fixture(scope="module")
def paths(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


async def test_every_page_is_whole_on_screens_of_every_size_in_light_and_dark_colours(
    page: Page, paths: list[Path]
) -> None:
    """A page is checked on the narrowest phone, where long words and tables fit least, and on one other screen, which is
    in turn with the pages before it, as the colours are.
    """
    assert len(paths) > len(docs_site.pages())
    faults = []
    for place, path in enumerate(paths):
        await page.open(path.as_uri())
        await page.loaded()
        schemes = SCHEMES[place % 2 :][:1]
        faults += [(path.name, scheme, fault) async for scheme, fault in contrast_faults(page, schemes)]
        widths = (PHONE, OTHERS[place % len(OTHERS)])
        faults += [(path.name, width, fault) async for width, fault in layout_faults(page, widths)]
    assert faults == []


async def test_the_navigation_is_in_reach_on_every_screen(page: Page, folder: Path) -> None:
    await page.open((folder / "index.html").as_uri())
    await page.loaded()
    reached = []
    for width in WIDTHS:
        await page.screen(width, 800)
        reached.append(await page.evaluate(NAVIGATION))
    assert reached == [True] * len(WIDTHS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.words)
async def test_the_search_finds_the_page_of_a_question(page: Page, folder: Path, question: Question) -> None:
    """The words are typed into the search field of the first page."""
    await page.screen(1366, 800)
    await page.open((folder / "index.html").as_uri())
    await page.loaded()
    await page.evaluate("document.querySelector('.sidebar-search').focus()")
    await page.write(question.words)
    await page.open(await page.evaluate(SUBMITTED))
    await page.until(HAS_SEARCHED)
    found = await page.evaluate(RESULTS)
    assert f"{question.page}.html" in found[:HITS]

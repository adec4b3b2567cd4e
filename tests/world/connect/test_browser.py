"""Page of the documents in a real browser, which streams a response through the gateway from another origin."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.chromium import Page, chromium
from tests.support.gateways import KEY, channel, running
from tests.support.providers.waiting_provider import WaitingProvider
from tests.support.serving import serving
from tests.world.connect.browser_bundle import ROOT, bundle
from tests.world.sdk.runner import installed_or_skipped

WAIT_SECONDS = 60
MODEL = "famG-2.5-flash"
ADDRESS = "http://127.0.0.1:8080"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Site:
    """Page at its own origin, and the provider behind the gateway that it calls."""

    page: Page
    url: str
    provider: WaitingProvider


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Page, None]:
    async with chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def site(browser: Page, tmp_path: Path) -> AsyncGenerator[Site, None]:
    script, provider = installed_or_skipped(bundle), WaitingProvider()
    [example] = re.findall(r"```html\n(.*?)```", (ROOT / "docs" / "connect.md").read_text(), re.DOTALL)

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html")

    async def load(_: web.Request) -> web.Response:
        return web.Response(body=script, content_type="text/javascript")

    async with AsyncExitStack() as stack:
        upstream, pages = web.Application(), web.Application()
        upstream.router.add_post("/v1/chat/completions", provider.answer)
        pages.router.add_get("/", show)
        pages.router.add_get("/umg.browser.js", load)
        upstream_url = await stack.enter_async_context(serving(upstream, handler_cancellation=True))
        url = await stack.enter_async_context(serving(pages))
        config = f"channels:\n{channel('p', 'chat', f'{upstream_url}/v1', MODEL)}cors: {{origins: ['{url}']}}\n"
        gateway = await stack.enter_async_context(running(config, tmp_path))
        page = example.replace(ADDRESS, gateway.url).replace('"KEY"', f'"{KEY}"')
        assert page.count(gateway.url) == page.count(KEY) == 1
        yield Site(browser, url, provider)
        provider.go_on.set()
        await browser.open("about:blank")


def shown(text: str) -> str:
    return f"document.getElementById('response')?.textContent === {json.dumps(text)}"


async def test_a_page_shows_an_answer_while_it_is_made(site: Site) -> None:
    await site.page.open(site.url)
    await site.page.until(shown("one "))  # the provider has not sent the rest
    site.provider.go_on.set()
    await site.page.until(shown("one two"))


async def test_a_page_that_stops_an_answer_cancels_the_call_at_the_provider(site: Site) -> None:
    await site.page.open(site.url)
    await site.page.until(shown("one "))
    await site.page.evaluate("document.getElementById('stop').click()")
    await asyncio.wait_for(site.provider.left.wait(), WAIT_SECONDS)
    assert "one  [" in await site.page.evaluate("document.getElementById('response').textContent")


async def test_a_page_that_is_left_cancels_the_call_at_the_provider(site: Site) -> None:
    await site.page.open(site.url)
    await site.page.until(shown("one "))
    await site.page.open("about:blank")
    await asyncio.wait_for(site.provider.left.wait(), WAIT_SECONDS)

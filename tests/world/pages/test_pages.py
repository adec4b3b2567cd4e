"""Home page and API reference in a real browser, on a gateway with a simulated and a waiting provider."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.chromium import Page, chromium
from tests.support.gateways import KEY, Running, channel, running
from tests.support.page_checks import contrast_faults, layout_faults
from tests.support.providers.waiting_provider import WaitingProvider
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys

SCREENSHOTS = Path(__file__).parents[3] / "docs" / "screenshots"
"""Folder of the pictures that `make docs` shows, which git ignores."""
WAITING, CHAT, IMAGE, VIDEO = "waiting", "famG-2.5-flash", "imgC-1", "vidA-2"
SANDBOX = f"  - {{name: sandbox, protocols: [sandbox], pace: 0, models: [{CHAT}, {IMAGE}, {VIDEO}]}}\n"
OPEN_ALL = """new Promise((done) => {
  const views = [...document.querySelectorAll(%r)];
  for (const view of views) view.open = true;
  setTimeout(done); // the events of the views that were opened come first
})"""
DESKTOP, PHONE = (1100, 900), (360, 740)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Site:
    page: Page
    gateway: Running
    provider: WaitingProvider

    async def open(self, path: str = "/", size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        """Open a page without a stored key."""
        await self.page.screen(*size, mobile=size == PHONE)
        await self.page.scheme(scheme)
        await self.page.open(f"{self.gateway.url}{path}")
        await self.page.until(
            "document.readyState === 'complete' && !document.getElementById('count')?.matches(':empty')"
        )

    async def use_key(self, key: str = KEY) -> None:
        await self.page.evaluate("document.getElementById('key').focus()")
        await self.page.write(key)
        await self.page.press("Enter")

    async def send(self, model: str, prompt: str) -> None:
        """Choose a model, write a prompt and send it by the keyboard."""
        await self.page.until(f"[...document.querySelectorAll('#model option')].some(o => o.text === {model!r})")
        await self.page.evaluate(
            f"""{{const select = document.getElementById('model');
            select.value = [...select.options].find(o => o.text === {model!r}).value;
            select.dispatchEvent(new Event('change'));
            document.getElementById('prompt').focus();}}"""
        )
        await self.page.write(prompt)
        await self.page.press("Enter")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site, None]:
    provider = WaitingProvider()
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(chromium(tmp_path_factory.mktemp("chromium")))
        upstream = web.Application()
        upstream.router.add_post("/v1/chat/completions", provider.answer)
        url = await stack.enter_async_context(serving(upstream, handler_cancellation=True))
        config = f"channels:\n{SANDBOX}{channel('waiting', 'chat', f'{url}/v1', WAITING)}"
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("gateway")))
        await page.call(
            "Browser.grantPermissions",
            {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": gateway.url},
        )
        yield Site(page, gateway, provider)
        provider.go_on.set()
        await page.open("about:blank")


@contextmanager
def no_complaint(page: Page, *, refused: bool = False) -> Iterator[None]:
    """Fail if the browser reports an error, or a violation of the policy. `refused`: calls are refused as intended."""
    yield
    found = [entry for entry in page.log if not (refused and "'source': 'network'" in entry)]
    assert found == []


def text_of(element: str) -> str:
    return f"document.querySelector({element!r})?.textContent"


async def test_an_answer_appears_word_by_word(site: Site) -> None:
    site.provider.go_on.clear()
    await site.open()
    with no_complaint(site.page):
        await site.use_key()
        await site.send(WAITING, "count")
        await site.page.until(f"{text_of('article.model')} === 'one '")  # the provider has not sent the rest
        assert await site.page.evaluate("document.getElementById('log').getAttribute('aria-busy')") == "true"
        site.provider.go_on.set()
        await site.page.until(f"{text_of('article.model')} === 'one two'")
        await site.page.until("document.getElementById('log').getAttribute('aria-busy') === 'false'")
        assert await site.page.evaluate(text_of("article.user")) == "count"
        assert await site.page.evaluate(text_of("#health")) == "ready"
        await site.page.picture(SCREENSHOTS / "home.png")


async def test_a_stopped_answer_is_cancelled_at_the_provider(site: Site) -> None:
    site.provider.go_on.clear()
    site.provider.left.clear()
    await site.open()
    await site.use_key()
    await site.send(WAITING, "count")
    await site.page.until(f"{text_of('article.model')} === 'one '")
    await site.page.evaluate("document.getElementById('stop').click()")
    await asyncio.wait_for(site.provider.left.wait(), 60)
    await site.page.until(f"{text_of('#chat-error')} === 'Stopped.'")


async def test_images_and_videos_are_shown(site: Site) -> None:
    await site.open()
    with no_complaint(site.page):
        await site.use_key()
        await site.send(IMAGE, "a red balloon")
        await site.page.until("document.querySelector('#log img')")
        assert await site.page.evaluate("document.querySelector('#log img').decode().then(() => true)")
        await site.page.until("!document.getElementById('send').disabled")
        await site.send(VIDEO, "a red balloon")
        await site.page.until("document.querySelector('#log video')")
        shown = """new Promise(done => {
            const video = document.querySelector('#log video');
            video.onerror = () => done(-video.error.code);
            video.requestVideoFrameCallback(() => done(video.videoWidth));
            video.currentTime = 0.1;
        })"""
        assert await site.page.evaluate(shown) > 0
        await site.page.evaluate("document.querySelector('#chat-title').scrollIntoView()")
        await site.page.picture(SCREENSHOTS / "media.png")


async def test_code_has_the_address_and_the_key_and_can_be_copied(site: Site) -> None:
    await site.open()
    with no_complaint(site.page):
        await site.use_key()
        await site.page.until(f"document.querySelector('#snippets code').textContent.includes({KEY!r})")
        await site.page.evaluate("document.querySelector('#snippets button').focus()")
        await site.page.press("Enter")
        await site.page.until(f"{text_of('#snippets [role=status]')} === 'Copied'")
        copied = await site.page.evaluate("navigator.clipboard.readText()")
    assert f"curl {site.gateway.url}/v1/chat/completions" in copied
    assert f"Bearer {KEY}" in copied


async def test_a_wrong_key_is_explained(site: Site) -> None:
    await site.open()
    with no_complaint(site.page, refused=True):
        await site.use_key("sk-umg-wrong")
        await site.page.until(f"{text_of('#key-error')}.includes('key')")
        assert await site.page.evaluate(
            "document.getElementById('models').hidden && document.getElementById('model').disabled"
        )
        assert await site.page.evaluate("document.getElementById('key-error').getAttribute('role')") == "alert"


async def test_a_refused_call_is_explained_beside_the_prompt(site: Site) -> None:
    await site.open()
    with no_complaint(site.page, refused=True):
        await site.use_key()
        await site.send(CHAT, "[[fail:429]]")
        await site.page.until(f"{text_of('#chat-error')} && !document.getElementById('send').disabled")
        assert "article.model" not in await site.page.evaluate(
            "[...document.querySelectorAll('article')].map(a => `article.${a.className}`).join()"
        )


async def test_the_key_stays_in_the_page_unless_it_is_to_be_kept(site: Site) -> None:
    await site.open()
    await site.use_key()
    await site.page.until("!document.getElementById('models').hidden")
    stored = "[sessionStorage.length, localStorage.length, document.cookie.length, location.search.length]"
    assert await site.page.evaluate(stored) == [0, 0, 0, 0]
    await site.page.evaluate("document.getElementById('remember').click()")
    assert await site.page.evaluate(stored) == [1, 0, 0, 0]
    await site.page.evaluate("document.getElementById('remember').click()")
    assert await site.page.evaluate(stored) == [0, 0, 0, 0]


async def test_models_without_a_price_are_named(site: Site) -> None:
    await site.open()
    await site.use_key()
    await site.page.until("!document.getElementById('models').hidden")
    title = await site.page.evaluate("document.getElementById('models-title').textContent")
    assert title == "Models of this key: 4, 1 without a price: keys with a budget are refused"
    items = await site.page.evaluate("[...document.querySelectorAll('#model-list li')].map(li => li.textContent)")
    assert [item.split()[0] for item in items if "no price" in item] == [WAITING]


async def test_administrators_see_the_model_lists_that_could_not_be_read(site: Site, tmp_path: Path) -> None:
    broken = "channels:\n  - {name: broken, protocols: [chat], base_url: 'http://127.0.0.1:9/v1', models: discover}\n"
    problems = "[...document.querySelectorAll('#list-problems li')].map(li => li.textContent)"
    async with running(f"discovery: {{wait: 60}}\n{broken}{SANDBOX}", tmp_path) as gateway:
        _, user = await ApiKeys(gateway.service.store).create("user")
        broken_site = Site(site.page, gateway, site.provider)
        await broken_site.open()
        with no_complaint(site.page):
            await broken_site.use_key()
            await site.page.until(f"{problems}.length === 1")
            (shown,) = await site.page.evaluate(problems)
        assert shown.startswith("The model list of broken could not be read (")
        assert "no connection to 127.0.0.1:9: check that it runs, the port and the firewall" in shown

        await broken_site.open()
        with no_complaint(site.page):  # a call that is refused would be one
            await broken_site.use_key(user)
            await site.page.until("document.getElementById('list-problems').ariaBusy === 'false'")
            calls = "performance.getEntriesByType('resource').map(call => new URL(call.name).pathname)"
            assert "/umg.v1.AdminService/ListChannels" not in await site.page.evaluate(calls)
            assert await site.page.evaluate(problems) == []


async def test_all_is_reached_by_the_keyboard(site: Site) -> None:
    await site.open()
    reached = []
    for _ in range(14):
        await site.page.press("Tab")
        reached.append(await site.page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        outline = await site.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", reached
    assert reached[0] == "Go to the prompt"
    wanted = ["key", "Use key", "remember", "prompt", "send", "clear"]
    assert [each for each in reached if each in wanted] == wanted
    labels = "[...document.querySelectorAll('input, select, textarea')].filter(e => !e.labels.length).map(e => e.id)"
    assert await site.page.evaluate(labels) == []


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_phone_shows_a_page_without_scrolling_to_the_side(site: Site, path: str) -> None:
    await site.open(path, PHONE)
    with no_complaint(site.page):
        if path == "/":
            await site.use_key()
            await site.page.until("!document.getElementById('models').hidden")
        else:
            await site.page.evaluate("document.querySelector('#operations summary').click()")
            await site.page.until("document.querySelector('#operations form')")
        assert await site.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await site.page.picture(SCREENSHOTS / f"phone-{'home' if path == '/' else 'docs'}.png")


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_is_whole_on_every_screen_in_light_and_dark_colours(site: Site, path: str) -> None:
    await site.open(path)
    if path == "/":
        await site.use_key()
        await site.page.until("!document.getElementById('models').hidden")
    else:  # every operation with its parameters, and the first members of its bodies
        for opened in ("details", "details .inner > div > .schema > li > details"):
            await site.page.evaluate(OPEN_ALL % f"#operations {opened}")
    assert [fault async for fault in contrast_faults(site.page)] == []
    assert [fault async for fault in layout_faults(site.page)] == []


async def test_a_page_is_dark_where_the_system_is(site: Site) -> None:
    shown = {}
    for scheme in ("light", "dark"):
        await site.open("/", scheme=scheme)
        shown[scheme] = await site.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shown == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    await site.use_key()
    await site.page.until("!document.getElementById('models').hidden")
    await site.page.picture(SCREENSHOTS / "home-dark.png")
    await site.open("/docs", scheme="dark")
    await site.page.picture(SCREENSHOTS / "docs-dark.png")


async def test_the_reference_filters_operations_and_calls_them(site: Site) -> None:
    await site.open("/docs")
    with no_complaint(site.page):
        await site.use_key()
        await site.page.evaluate("document.getElementById('filter').focus()")
        await site.page.write("v1 chat completions")
        await site.page.until(f"{text_of('#count')} === '1 operation'")
        await site.page.evaluate(
            "document.querySelector('#operations section:not([hidden]) details:not([hidden]) summary').click()"
        )
        await site.page.until("document.querySelector('#operations textarea')")
        assert (
            await site.page.evaluate("JSON.parse(document.querySelector('#operations textarea').value).model") == CHAT
        )
        await site.page.evaluate("document.querySelector('#operations form button').click()")
        await site.page.until(f"{text_of('#operations form > [role=status]')}?.startsWith('200')")
        await site.page.until(f"{text_of('#operations form > pre')}?.includes('chat.completion')")
        await site.page.picture(SCREENSHOTS / "docs.png")


@pytest.mark.parametrize("path", ["/", "/docs", "/assets/home.js", "/assets/style.css", "/openapi.json"])
async def test_browsers_run_nothing_but_the_scripts_of_the_pages(site: Site, path: str) -> None:
    async with (
        aiohttp.ClientSession(site.gateway.url) as client,
        client.get(path, headers={"accept": "text/html"}) as answer,
    ):
        policy = answer.headers["content-security-policy"]
        body = await answer.text()
    assert answer.status == 200
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    if answer.content_type == "text/html":
        assert "//" not in body.replace("<!doctype", "")  # nothing of another host
        assert "style=" not in body
        assert "<script>" not in body


async def test_programs_have_the_state_of_the_process_at_the_home_page(site: Site) -> None:
    async with aiohttp.ClientSession(site.gateway.url) as client:
        async with client.get("/") as answer:
            assert (await answer.json(), answer.headers["vary"]) == ({"status": "alive"}, "Accept")
        async with client.get("/assets/../../pyproject.toml") as answer:
            assert answer.status == 404

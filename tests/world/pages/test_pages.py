"""API reference in a real browser, and the headers, addresses and files of all pages."""

import aiohttp
import pytest

from tests.support.page_checks import WIDTHS, contrast_faults, layout_faults
from tests.world.pages.site import CHAT, PHONE, SCREENSHOTS, Site, no_complaint, text_of

OPEN_ALL = """new Promise((done) => {
  const views = [...document.querySelectorAll(%r)];
  for (const view of views) view.open = true;
  setTimeout(done); // the events of the views that were opened come first
})"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_phone_shows_the_reference_without_scrolling_to_the_side(site: Site) -> None:
    await site.open("/docs", PHONE)
    with no_complaint(site.page):
        await site.page.evaluate("document.querySelector('#operations summary').click()")
        await site.page.until("document.querySelector('#operations form')")
        assert await site.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        await site.page.picture(SCREENSHOTS / "phone-docs.png")


async def test_the_reference_is_whole_on_every_screen_in_light_and_dark_colours(site: Site) -> None:
    """The first operations of each section are shown on all screens; then all of them on the narrowest and the widest."""
    await site.open("/docs")
    for operations, widths in (
        ("section > details:first-of-type", WIDTHS),
        ("section > details", (min(WIDTHS), max(WIDTHS))),
    ):
        # with their parameters, and the first members of their bodies
        for opened in ("", " .inner > div > .schema > li > details"):
            await site.page.evaluate(OPEN_ALL % f"#operations {operations}{opened}")
        assert [fault async for fault in layout_faults(site.page, widths)] == []
    assert [fault async for fault in contrast_faults(site.page)] == []


@pytest.mark.parametrize("path", ["/playground", "/docs"])
async def test_a_page_is_dark_where_the_system_is(site: Site, path: str) -> None:
    shown = {}
    for scheme in ("light", "dark"):
        await site.open(path, scheme=scheme)
        shown[scheme] = await site.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shown == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}
    if path == "/docs":
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


PARTS = ("playground/main.js", "playground/style.css", "vendor/marked.js", "vendor/packages.json", "style.css")


@pytest.mark.parametrize("path", ["/playground", "/docs", *(f"/assets/{part}" for part in PARTS), "/openapi.json"])
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


async def test_the_root_has_the_state_for_programs_and_leads_browsers_to_the_playground(site: Site) -> None:
    async with aiohttp.ClientSession(site.gateway.url) as client:
        async with client.get("/") as answer:
            assert (await answer.json(), answer.headers["vary"]) == ({"status": "alive"}, "Accept")
        async with client.get("/", headers={"accept": "text/html"}, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["location"]) == (302, "/playground")
            assert answer.headers["vary"] == "Accept"
        async with client.get("/assets/../../pyproject.toml") as answer:
            assert answer.status == 404


async def test_files_of_the_pages_have_types_and_tags(site: Site) -> None:
    types = {
        "playground/main.js": "text/javascript",
        "playground/style.css": "text/css",
        "vendor/packages.json": "application/json",
    }
    async with aiohttp.ClientSession(site.gateway.url) as client:
        for part, kind in types.items():
            async with client.get(f"/assets/{part}") as answer:
                assert (answer.status, answer.content_type) == (200, kind)
                tag = answer.headers["etag"]
                assert answer.headers["vary"] == "Accept-Encoding"
                assert ("content-encoding" in answer.headers) == (part != "playground/main.js")  # which is short
                packed = await answer.text()
            async with client.get(f"/assets/{part}", headers={"if-none-match": tag}) as answer:
                assert answer.status == 304
            plain = {"accept-encoding": "identity"}
            async with client.get(f"/assets/{'0' * 16}/{part}", headers=plain) as answer:
                assert (answer.status, "content-encoding" in answer.headers) == (200, False)
                assert answer.headers["cache-control"] == "no-cache"  # it is the file of another version
                assert await answer.text() == packed
        for part in (
            "playground",
            "playground/",
            "playground/..",
            "main.js",
            "vendor/../style.css/",
            "playground%2Fnone.js",
        ):
            async with client.get(f"/assets/{part}") as answer:
                assert answer.status == 404, part

"""Everyday tasks of operators at the console, in a real browser on SQLite and PostgreSQL, with their clicks counted."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.chromium import chromium
from tests.support.databases import Postgres
from tests.support.gateways import KEY, SANDBOX, Running, running
from tests.support.page_checks import contrast_faults, layout_faults
from tests.world.console.person import Person
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.budget_settings import Budget

SCREENSHOTS = Path(__file__).parents[3] / "docs" / "screenshots"
MODEL, ABSENT = "famG-2.5-flash", "famG-0-absent"
PAGES = ("", "/requests", "/keys", "/keys/new", "/keys/app", "/search?text=app", "/nothing")
ACCESS_PAGES = ("/projects", "/projects/new", "/projects/search", "/people", "/people/new")
DESKTOP, PHONE = (1366, 800), (390, 800)
INKED = """(() => {
  const canvas = document.querySelector(".plot canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const [red, green, blue] = getComputedStyle(document.querySelector(".ink.calls")).backgroundColor.match(/\\d+/g).map(Number);
  return data.some((value, at) => at % 4 === 0 && value === red && data[at + 1] === green && data[at + 2] === blue);
})()"""
"""Whether the first chart has columns in the colour of calls."""
REFRESH = """import(document.querySelector("script[src$='/console.js']").src.replace("console.js", "live.js"))
  .then((live) => live.refresh())"""
"""Reads the live parts of the page again."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Site:
    gateway: Running
    person: Person
    session: aiohttp.ClientSession
    failed_request: str

    async def key(self, name: str, **settings: object) -> str:
        """Create a key. Return its secret."""
        _, secret = await ApiKeys(self.gateway.service.store).create(name, **settings)  # type: ignore[arg-type]
        return secret

    async def status(self, secret: str) -> int:
        """Return the status of a call with a key."""
        headers = {"authorization": f"Bearer {secret}"}
        async with self.session.get("/v1/models", headers=headers) as response:
            return response.status


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "postgresql"])
async def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site, None]:
    folder, database = tmp_path_factory.mktemp("console"), ""
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        database = f"database: {server.create(folder.name)}\n"
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(chromium(folder / "chromium"))
        gateway = await stack.enter_async_context(running(SANDBOX + database, folder / "gateway"))
        session = await stack.enter_async_context(aiohttp.ClientSession(gateway.url))
        failed_request = await called(session, ABSENT)
        await called(session, MODEL)
        await ApiKeys(gateway.service.store).create("app", budget_micro_credits=10_000_000, budget_period="month")
        budget = {"name": "search", "budgets": (Budget("month", 20_000_000),)}
        await Accounts(gateway.service.store).create(PROJECT_KIND, budget)  # type: ignore[arg-type]
        person = Person(page, gateway.url)
        await page.screen(*DESKTOP)
        await person.sign_in(KEY)
        await recorded(person, failed_request)
        yield Site(gateway, person, session, failed_request)
        await page.open("about:blank")


async def called(session: aiohttp.ClientSession, model: str, secret: str = KEY) -> str:
    """Call a model. Return the id of the request."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {secret}"}
    async with session.post("/v1/chat/completions", json=body, headers=headers) as response:
        await response.read()
        return response.headers["x-request-id"]


async def recorded(person: Person, request_id: str) -> None:
    """Wait until the record of a call is in the database: it is written in the background, which no event reports."""
    async with asyncio.timeout(60):
        await person.open(f"/console/requests/{request_id}")
        while "outcome" not in await person.text() and "model_not_found" not in await person.text():
            await person.open(f"/console/requests/{request_id}")


async def test_is_all_well(site: Site) -> None:
    await site.person.open("/console")
    shown = await site.person.text()
    assert "All is well" in shown
    assert "Spend, credits" in shown
    assert site.person.clicks == 0
    await site.person.page.picture(SCREENSHOTS / "console-overview.png")


async def test_a_chart_is_read_by_keyboard_and_leads_to_the_calls_of_a_bucket(site: Site) -> None:
    page = site.person.page
    await site.person.open("/console?since=1h")
    assert await page.evaluate("document.querySelectorAll('.plot canvas').length") >= 2
    assert await page.evaluate(INKED), "the chart of calls is empty"
    await page.evaluate("document.querySelector('.plot').focus()")
    await page.press("ArrowLeft")
    value = "document.querySelector('.plot').ariaValueText"
    while "calls 0" in await page.evaluate(value):  # the minutes after the calls
        await page.press("ArrowLeft")
    assert re.fullmatch(r"\d\d \w{3} \d\d:\d\d UTC(, so far)?; calls [12]; failed [01]", await page.evaluate(value))
    assert await page.evaluate("document.querySelector('.tip').checkVisibility()")
    await site.person.enter()
    assert await page.evaluate("location.pathname") == "/console/requests"
    assert "req_" in await site.person.text()


async def test_why_did_this_call_fail(site: Site) -> None:
    await site.person.open("/console")
    await site.person.page.write("/")  # a text outside of a field is lost
    await site.person.page.evaluate("document.getElementById('search').focus()")
    await site.person.page.write(site.failed_request)
    await site.person.enter()
    shown = await site.person.text()
    assert "model_not_found" in shown
    assert "there is no model" in shown or ABSENT in shown
    assert site.person.clicks == 0
    await site.person.page.picture(SCREENSHOTS / "console-request.png")


async def test_keys_lead_to_pages_and_rows_and_ids_are_copied(site: Site) -> None:
    page = site.person.page
    await site.person.open("/console")
    await page.press("?")
    assert await page.evaluate("document.querySelector('dialog').open")
    await page.press("Escape")
    await page.press("/")
    assert await page.evaluate("document.activeElement.id") == "search"
    await page.evaluate("document.activeElement.blur()")
    await page.evaluate("document.documentElement.dataset.before = 1")
    await page.press("g")
    await page.press("r")
    await site.person.arrived()
    assert await page.evaluate("location.pathname") == "/console/requests"
    await site.person.click("Copy", leads=False)
    await page.until("document.querySelector('.copy').textContent === 'Copied'")
    copied = await page.evaluate("navigator.clipboard.readText().catch(() => '')")
    await page.press("j")
    await page.press("j")
    await page.press("k")
    first = await page.evaluate("document.querySelector('main tbody a code').textContent")
    assert copied in {first, ""}  # a browser may refuse to read
    assert await page.evaluate("document.activeElement.textContent") == first
    await site.person.enter()
    assert first in await page.evaluate("location.pathname")


async def test_a_view_is_saved_under_a_name(site: Site) -> None:
    await site.person.open("/console/requests?failed=1")
    await site.person.page.until("!document.querySelector('[data-views]').hidden")
    await site.person.click("Saved views", leads=False)
    await site.person.fill("name", "<b>failed</b> calls")
    await site.person.click("Save this view", leads=False)
    await site.person.open("/console/usage")
    await site.person.page.until("document.querySelector('[data-views] a')")
    await site.person.click("Saved views", leads=False)
    await site.person.click("<b>failed</b> calls")
    assert await site.person.page.evaluate("location.search") == "?failed=1"
    await site.person.page.evaluate("localStorage.clear()")


async def test_newer_calls_wait_behind_a_button(site: Site) -> None:
    page = site.person.page
    await site.person.open("/console/requests")
    await page.evaluate(REFRESH)  # in place of the clock, which would take five seconds
    before = await page.evaluate("document.querySelector('main tbody code').textContent")
    newest = await called(site.session, MODEL)
    button = "document.querySelector('[data-newer]')"
    async with asyncio.timeout(60):  # the record is written in the background, which no event reports
        while await page.evaluate(f"{button}.hidden"):
            await page.evaluate(REFRESH)
    assert re.fullmatch(r"\d newer calls", await page.evaluate(f"{button}.textContent"))
    assert await page.evaluate("document.querySelector('main tbody code').textContent") == before
    await page.evaluate(f"{button}.click()")
    assert await page.evaluate("document.querySelector('main tbody code').textContent") == newest
    assert await page.evaluate("document.querySelector('main tbody .copy').textContent") == "Copy"
    assert [entry for entry in page.log if "'source': 'network'" not in entry] == []


async def test_a_phone_has_a_bar_of_pages_and_rows_as_blocks(site: Site) -> None:
    page = site.person.page
    await page.screen(*PHONE, mobile=True)
    await site.person.open("/console/requests")
    labels = "[...document.querySelectorAll('main tbody tr:first-child td')].map((each) => each.dataset.label)"
    assert (await page.evaluate(labels))[:3] == ["time", "outcome", "request id"]
    whole = "[...document.querySelectorAll('main td code')].every((each) => each.scrollWidth <= each.parentElement.clientWidth || each.getBoundingClientRect().right <= innerWidth)"
    assert await page.evaluate(whole)
    bar = "[...document.querySelectorAll('.bottom a')].map((each) => [each.textContent, each.clientHeight >= 44])"
    names = ("Overview", "Requests", "Keys", "Menu")
    assert await page.evaluate(bar) == [[name, True] for name in names]
    assert await page.evaluate("Number.parseFloat(getComputedStyle(document.getElementById('search')).fontSize)") >= 16
    await page.picture(SCREENSHOTS / "console-requests-phone.png")
    await site.person.click("Menu", leads=False)
    await site.person.click("Channels")
    assert await page.evaluate("location.pathname") == "/console/channels"
    await page.screen(*DESKTOP)


async def test_which_calls_fail_just_now(site: Site) -> None:
    await site.person.open("/console/requests")
    await site.person.open("/console/requests?failed=1")
    shown = await site.person.text()
    assert site.failed_request in shown
    assert "umg requests list --since 24h --failed" in shown


async def test_a_program_gets_a_key(site: Site) -> None:
    person = site.person
    await person.open("/console")
    await person.click("Keys")
    await person.click("Create key")
    await person.fill("name", "indexer")
    await person.fill("budget, credits", "25")
    await person.click("Create key")
    shown = await person.text()
    secret = re.search(r"sk-umg-[\w-]+", shown)
    assert secret
    assert f'curl {site.gateway.url}/v1/models -H "authorization: Bearer {secret[0]}"' in shown
    assert (person.clicks, await site.status(secret[0])) == (3, 200)
    await person.page.picture(SCREENSHOTS / "console-new-key.png")
    await person.click("I have stored it")
    assert secret[0] not in await person.text()
    assert "25.00 left of 25.00" in await person.text()


async def test_a_leaked_key_is_rotated_and_revoked(site: Site) -> None:
    person, secret = site.person, await site.key("leaked")
    await person.open("/console")
    await person.page.evaluate("document.getElementById('search').focus()")
    await person.page.write(secret[:11])
    await person.enter()
    assert "leaked" in await person.text()
    await person.click("Rotate", leads=False)
    await person.page.evaluate("document.getElementById('overlap').value = '0'")
    await person.page.evaluate("document.getElementById('overlap').focus()")
    await person.page.press("Tab")
    await person.enter()
    fresh = re.search(r"sk-umg-[\w-]+", await person.text())
    assert fresh
    async with asyncio.timeout(60):  # other nodes know it within seconds, which no event reports
        while await site.status(secret) == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await site.status(fresh[0]) == 200
    await person.click("I have stored it")
    await person.click("Revoke", leads=False)
    await person.fill("Type leaked to confirm", "leaked")
    await person.enter()
    assert "The key is revoked." in await person.text()


async def test_a_budget_is_raised_on_the_page_of_its_key(site: Site) -> None:
    person = site.person
    await site.key("raised", budget_micro_credits=5_000_000, budget_period="month")
    await person.open("/console")
    await person.page.evaluate("document.getElementById('search').focus()")
    await person.page.write("raised")
    await person.enter()
    await person.click("Edit", leads=False)
    await person.fill("budget, credits", "50")
    await person.click("Save")
    assert "50.00 left of 50.00" in await person.text()
    assert person.clicks == 2


async def test_the_budget_of_a_project_is_seen(site: Site) -> None:
    person = site.person
    await person.open("/console")
    await person.click("Projects")
    assert "0 spent · 0 reserved · 20.00 left of 20.00 this month" in await person.text()
    assert person.clicks == 1


async def test_a_person_gets_a_role(site: Site) -> None:
    person = site.person
    await person.open("/console")
    await person.click("People")
    await person.click("Add")
    assert "Sees usage, budgets and prices there, and changes nothing." in await person.text()
    await person.fill("e-mail", "ada@example.com")
    await person.click("Add")
    assert "ada@example.com" in await person.text()
    assert "billing of the whole gateway" in await person.text()
    assert person.clicks == 3


async def test_a_holder_sees_the_own_key_tries_it_and_rotates_it(site: Site) -> None:
    person = site.person
    secret = await site.key("holder", budget_micro_credits=7_000_000, budget_period="month", requests_per_minute=30)
    failed = await called(site.session, ABSENT, secret)
    await person.page.call("Network.clearBrowserCookies", {})
    await person.sign_in(secret)
    await recorded(person, failed)
    await person.open("/console/me")
    shown = await person.text()
    for seen in ("7.00 left of 7.00 this month", "30", MODEL, failed, "Usage by day, UTC", "Spend, credits"):
        assert seen in shown
    assert "People" not in shown
    assert person.clicks == 0
    await person.page.picture(SCREENSHOTS / "console-me.png")
    await person.click("Playground")
    assert person.clicks == 1
    await person.open("/console/me")
    await person.click("Rotate", leads=False)
    await person.click("Rotate my key")
    assert re.search(r"sk-umg-[\w-]+", await person.text())
    assert person.clicks == 2
    await person.click("I have stored it")
    assert "7.00 left of 7.00 this month" in await person.text()
    await person.page.call("Network.clearBrowserCookies", {})
    await person.sign_in(KEY)


async def test_a_person_tries_models_without_a_key(site: Site) -> None:
    person = site.person
    await person.page.open(f"{site.gateway.url}/playground?model={MODEL}")
    await person.page.until("document.getElementById('session-form')?.hidden === false")
    await person.click("Start", leads=False)
    await person.page.until("!document.getElementById('key-used').hidden")
    await person.page.until("document.getElementById('list-problems').ariaBusy === 'false'")
    assert "Key playground of bootstrap" in await person.text()
    await person.page.evaluate("document.querySelector('#prompt').focus()")
    await person.page.write("hello")
    await person.page.press("Enter", control=True)
    await person.page.until("document.querySelector('.figures')")
    assert await person.page.evaluate("sessionStorage.length + localStorage.length") == 0


async def test_pages_are_whole_and_readable(site: Site) -> None:
    page = site.person.page
    for path in PAGES + ACCESS_PAGES:
        await site.person.open(f"/console{path}")
        assert [fault async for fault in layout_faults(page)] == [], path
        await page.screen(*DESKTOP)
        assert [fault async for fault in contrast_faults(page)] == [], path
        await page.scheme("light")
        complaints = [entry for entry in page.log if "'source': 'network'" not in entry]
        assert complaints == [], path

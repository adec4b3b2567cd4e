"""Everyday tasks of operators at the console in Chromium: by mouse on SQLite, by keyboard alone on PostgreSQL, and some of
them without scripts and on a phone; then every page and state with axe, on all screens, in light and dark colours.
"""

import asyncio
import re
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio

from http_facade.console import live_parts, object_names
from http_facade.console.page_table import CONSOLE_PAGES, find_page
from tests.support.chromium import Page, chromium
from tests.support.databases import Postgres
from tests.support.gateways import KEY, revoke
from tests.support.page_checks import contrast_faults, layout_faults
from tests.world.console.console_site import Site, call, running_site
from tests.world.console.page_states import FORBIDDEN, OWN_PAGE, STATES, State
from tests.world.console.task_table import SECRET, TASKS, Task
from tests.world.pages.axe_checks import barriers
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import Role

PICTURES = Path(__file__).parents[3] / "docs" / "screenshots"
DESKTOP, PHONE = (1366, 800), (390, 800)
ZOOMED = DESKTOP[0] // 2
"""Width of a desktop in a browser that shows pages at 200 %."""
REFLOWED = 320
"""Width to which pages must adapt (WCAG 2.2, 1.4.10)."""
OTHERS = (DESKTOP[0], ZOOMED, 1920, 768, PHONE[0])
INKED = """(() => {
  const canvas = document.querySelector(".plot canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const [red, green, blue] = getComputedStyle(document.querySelector(".ink.calls")).backgroundColor.match(/\\d+/g).map(Number);
  return data.some((value, at) => at % 4 === 0 && value === red && data[at + 1] === green && data[at + 2] === blue);
})()"""
"""Whether the first chart has columns in the colour of calls."""
NAMED_ENDS = """[...document.querySelectorAll(".charts figure")].map((figure) => [
  figure.dataset.form,
  [...figure.querySelectorAll(".line-end")].map((each) => {
    const { top, right } = each.getBoundingClientRect();
    return [each.textContent, top, right - figure.getBoundingClientRect().right];
  }),
  figure.querySelector(".legend").checkVisibility(),
])"""
"""Form of each chart, the names at the ends of its lines with their places, and whether its legend is shown."""
REFRESH = """import(document.querySelector("script[src$='/console.js']").src.replace("console.js", "live.js"))
  .then((live) => live.refresh())"""
"""Reads the live parts of the page again."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Page, None]:
    async with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened
        await opened.open("about:blank")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_sqlite(tmp_path_factory: pytest.TempPathFactory, page: Page) -> AsyncGenerator[Site, None]:
    async with running_site(tmp_path_factory.mktemp("console"), page, "") as site:
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_postgresql(
    tmp_path_factory: pytest.TempPathFactory, page: Page, postgres: Postgres
) -> AsyncGenerator[Site, None]:
    """Site in the browser of the other one, whose session ends: its tests come before."""
    folder = tmp_path_factory.mktemp("console")
    async with running_site(folder, page, f"database: {postgres.create(folder.name)}") as site:
        yield site


async def done(
    site: Site, tasks: list[Task], *, by_keys: bool = False, scripts: bool = True, phone: bool = False
) -> None:
    """Do tasks as a person does. Check the clicks, the texts, the changes, and that the browser reports nothing."""
    person, page = site.person, site.person.page
    person.by_keys, person.has_scripts, person.has_menu = by_keys, scripts, phone
    await page.screen(*(PHONE if phone else DESKTOP), mobile=phone)
    await page.call("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    names = await site.prepared()
    await person.open("/console")
    for task in tasks:
        await person.begin(at_overview=task.begins_at_overview)
        for verb, *arguments in task.steps:
            await getattr(person, verb)(*(filled(each, names) for each in arguments))
        assert person.clicks == task.clicks + person.menus, task.id
        for pattern in task.seen:
            await person.see(filled(pattern, names))
        assert person.complaints() == [], task.id
        if task.effect is not None:
            await task.effect(site, names, await person.text())
    person.by_keys, person.has_scripts, person.has_menu = False, True, False
    await page.screen(*DESKTOP)


def filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


async def test_each_task_is_done_by_mouse(on_sqlite: Site) -> None:
    await done(on_sqlite, list(TASKS))


async def test_the_most_urgent_tasks_are_done_on_a_phone(on_sqlite: Site) -> None:
    await done(on_sqlite, [task for task in TASKS if task.number in {1, 2, 4, 7}], phone=True)


async def examined(site: Site, state: State, place: int = 0) -> None:
    """Show a state, and check it on the narrowest screen and another one, in both colours, and by axe in one of them;
    make its pictures. `place`: number of the state, by which it gets the other screen and the colours of axe in turn.
    """
    page = site.person.page
    await page.screen(*DESKTOP)
    await site.person.open(f"/console{state.path}")
    for verb, *arguments in state.steps:
        await getattr(site.person, verb)(*arguments)
    in_dark = place % 2 == 1
    found: list[object] = [] if in_dark else [*await barriers(page)]
    if state.picture:
        await page.evaluate("scrollTo(0, 0)")
        await page.picture(PICTURES / f"{state.picture}.png")
    found += [fault async for fault in layout_faults(page, (REFLOWED, OTHERS[place % len(OTHERS)]))]
    if state.phone_picture:
        await page.screen(*PHONE, mobile=True)
        await page.picture(PICTURES / f"{state.picture}-phone.png")
    await page.screen(*DESKTOP)
    found += [fault async for fault in contrast_faults(page)]  # ends in dark colours
    found += await barriers(page) if in_dark else []
    if state.picture:
        await page.picture(PICTURES / f"{state.picture}-dark.png")
    await page.scheme("light")
    found += site.person.complaints()
    assert found == [], (state.id, found)


async def test_states_keep_their_shape_in_forced_colours(on_sqlite: Site) -> None:
    person = on_sqlite.person
    await person.open("/console/channels")
    await person.page.call("Emulation.setEmulatedMedia", {"features": [{"name": "forced-colors", "value": "active"}]})
    marks = "[...document.querySelectorAll('.mark')].map(each => [getComputedStyle(each).borderTopStyle, getComputedStyle(each, '::before').content])"
    for border, shape in await person.page.evaluate(marks):
        assert (border, shape[1] in "●◐■") == ("solid", True)
    await person.page.press("Tab")
    assert await person.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    await person.page.scheme("light")  # and no forced colours


async def test_a_chart_is_read_by_keyboard_and_leads_to_the_calls_of_a_bucket(on_sqlite: Site) -> None:
    person, page = on_sqlite.person, on_sqlite.person.page
    await person.open("/console?since=1h")
    assert await page.evaluate("document.querySelectorAll('.plot canvas').length") >= 2
    assert await page.evaluate(INKED), "the chart of calls is empty"
    await page.evaluate("document.querySelector('.plot').focus()")
    await page.press("ArrowLeft")
    value = "document.querySelector('.plot').ariaValueText"
    while "calls 0" in await page.evaluate(value):  # the minutes after the calls
        await page.press("ArrowLeft")
    assert re.fullmatch(r"\d\d \w{3} \d\d:\d\d UTC(, so far)?; calls \d+; failed \d+", await page.evaluate(value))
    assert await page.evaluate("document.querySelector('.tip').checkVisibility()")
    await person.enter()
    assert await page.evaluate("location.pathname") == "/console/requests"
    assert "req_" in await person.text()


async def test_lines_have_their_names_at_their_ends_in_place_of_the_legend(on_sqlite: Site) -> None:
    page = on_sqlite.person.page
    await on_sqlite.person.open("/console?since=1h")
    figures = await page.evaluate(NAMED_ENDS)
    assert {form for form, _, _ in figures} >= {"columns", "log"}
    for form, names, is_legend_shown in figures:
        assert is_legend_shown == (form != "log")
        assert [name for name, _, _ in sorted(names)] == (["p50", "p95"] if form == "log" else [])
        for (_, upper, right), (_, lower, _) in pairwise(names):  # in the order of their places
            assert (lower - upper >= 16, right <= 0) == (True, True)


async def test_keys_lead_to_pages_and_rows_and_ids_are_copied(on_sqlite: Site) -> None:
    person, page = on_sqlite.person, on_sqlite.person.page
    await person.open("/console")
    await page.press("?")
    assert await page.evaluate("document.querySelector('dialog').open")
    await page.press("Escape")
    await page.press("/")
    assert await page.evaluate("document.activeElement.id") == "search"
    await page.evaluate("document.activeElement.blur()")
    async with page.next_load():
        await page.press("g")
        await page.press("r")
    assert await page.evaluate("location.pathname") == "/console/requests"
    await person.press("Copy")
    await page.until("[...document.querySelectorAll('.copy')].some((each) => each.textContent === 'Copied')")
    copied = await page.evaluate("navigator.clipboard.readText().catch(() => '')")
    await page.press("j")
    await page.press("j")
    await page.press("k")
    first = await page.evaluate("document.querySelector('main tbody a code').textContent")
    ids = await page.evaluate("[...document.querySelectorAll('main [data-copy]')].map((each) => each.textContent)")
    assert copied in {ids[-1], ""}  # a browser may refuse to read
    assert await page.evaluate("document.activeElement.textContent") == first
    await person.enter()
    assert first in await page.evaluate("location.pathname")


async def test_a_view_is_saved_under_a_name(on_sqlite: Site) -> None:
    person, page = on_sqlite.person, on_sqlite.person.page
    await person.open("/console/requests?failed=1")
    await page.until("!document.querySelector('[data-views]').hidden")
    await person.press("Saved views")
    await person.fill("name", "<b>failed</b> calls")
    await person.press("Save this view")
    await person.open("/console/usage")
    await page.until("document.querySelector('[data-views] a')")
    await person.press("Saved views")
    await person.go("<b>failed</b> calls")
    assert await page.evaluate("location.search") == "?failed=1"
    await page.evaluate("localStorage.clear()")


async def test_newer_calls_wait_behind_a_button(on_sqlite: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_parts, "MAX_SHARED_SECONDS", 0.0)
    person, page, newest = on_sqlite.person, on_sqlite.person.page, "req_newest"
    await person.open("/console/requests")
    await page.evaluate(REFRESH)  # in place of the clock, which would take five seconds
    before = await page.evaluate("document.querySelector('main tbody code').textContent")
    await call(on_sqlite.session, "gpt-5", newest)
    button = "document.querySelector('[data-newer]')"
    async with asyncio.timeout(60):  # the record is written in the background, which no event reports
        while await page.evaluate(f"{button}.hidden"):
            await asyncio.sleep(0.1)
            await page.evaluate(REFRESH)
    assert re.fullmatch(r"\d newer calls", await page.evaluate(f"{button}.textContent"))
    assert await page.evaluate("document.querySelector('main tbody code').textContent") == before
    await page.evaluate(f"{button}.click()")
    assert await page.evaluate("document.querySelector('main tbody code').textContent") == newest
    assert await page.evaluate("document.querySelector('main tbody .copy').textContent") == "Copy"
    assert person.complaints() == []


async def test_a_phone_has_a_bar_of_pages_and_rows_as_blocks(on_sqlite: Site) -> None:
    person, page = on_sqlite.person, on_sqlite.person.page
    await page.screen(*PHONE, mobile=True)
    await person.open("/console/requests")
    labels = "[...document.querySelectorAll('main tbody tr:first-child td')].map((each) => each.dataset.label)"
    assert (await page.evaluate(labels))[:3] == ["time", "outcome", "request id"]
    whole = "[...document.querySelectorAll('main td code')].every((each) => each.scrollWidth <= each.parentElement.clientWidth || each.getBoundingClientRect().right <= innerWidth)"
    assert await page.evaluate(whole)
    bar = "[...document.querySelectorAll('.bottom a')].map((each) => [each.textContent, each.clientHeight >= 44])"
    names = ("Overview", "Requests", "Keys", "Menu")
    assert await page.evaluate(bar) == [[name, True] for name in names]
    assert await page.evaluate("Number.parseFloat(getComputedStyle(document.getElementById('search')).fontSize)") >= 16
    await page.picture(PICTURES / "console-requests-phone.png")
    await person.press("Menu")
    await person.go("Channels")
    assert await page.evaluate("location.pathname") == "/console/channels"
    await page.screen(*DESKTOP)


async def test_a_holder_sees_the_own_key_tries_it_and_rotates_it(on_sqlite: Site) -> None:
    person, failed, keys = on_sqlite.person, "req_of_the_holder", ApiKeys(on_sqlite.gateway.service.store)
    limits = {"budget_micro_credits": 7_000_000, "budget_period": "month", "requests_per_minute": 30}
    _, secret = await keys.create("holder", **limits)  # type: ignore[arg-type]
    await call(on_sqlite.session, "absent", failed, secret)
    await person.page.call("Network.clearBrowserCookies", {})
    await person.sign_in(secret)
    async with asyncio.timeout(60):  # the record is written in the background, which no event reports
        while failed not in await person.text():
            await asyncio.sleep(0.1)
            await person.open("/console/me")
    await examined(on_sqlite, OWN_PAGE)
    await person.begin(at_overview=True)
    for pattern in ("7.00 left of 7.00 this month", "30", "gpt-5", failed, "Usage by day, UTC", "Spend, credits"):
        await person.see(pattern)
    assert "People" not in await person.text()
    assert person.clicks == 0
    await person.go("Playground")
    assert person.clicks == 1
    await person.begin(at_overview=True)
    await person.press("Rotate")
    await person.go("Rotate my key")
    await person.see(SECRET.pattern)
    assert person.clicks == 2
    await person.go("I have stored it")
    await person.see("7.00 left of 7.00 this month")
    await person.page.call("Network.clearBrowserCookies", {})
    await person.sign_in(KEY)


async def test_a_person_tries_models_without_a_key(on_sqlite: Site) -> None:
    person = on_sqlite.person
    await person.page.open(f"{on_sqlite.gateway.url}/playground?model=famG-2.5-flash")
    await person.page.until("document.getElementById('session-form')?.hidden === false")
    await person.press("Start")
    await person.page.until("!document.getElementById('key-used').hidden")
    await person.page.until("document.getElementById('list-problems').ariaBusy === 'false'")
    assert "Key playground of bootstrap" in await person.text()
    await person.page.evaluate("document.querySelector('#prompt').focus()")
    await person.page.write("hello")
    await person.page.press("Enter", control=True)
    await person.page.until("document.querySelector('.figures')")
    assert await person.page.evaluate("sessionStorage.length + localStorage.length") == 0


async def test_a_person_types_the_project_of_a_key_where_there_are_many(
    on_sqlite: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_names, "MAX_OFFERED", 0)
    store, page = on_sqlite.gateway.service.store, on_sqlite.person.page
    project = await Accounts(store).get("search")
    await page.open(f"{on_sqlite.gateway.url}/playground")
    await page.until("document.getElementById('session-form')?.hidden === false")
    await page.evaluate("document.querySelector('input#session-project').focus()")
    await page.write("search")
    await on_sqlite.person.press("Start")
    await page.until("!document.getElementById('key-used').hidden")
    made = [key for key in await ApiKeys(store).list() if key.project_id == project.account_id]
    assert any(key.name.startswith("playground of bootstrap") for key in made)


async def test_a_reload_keeps_the_key_of_a_session_if_wanted_and_its_end_has_a_remedy(on_sqlite: Site) -> None:
    person, page = on_sqlite.person, on_sqlite.person.page
    address = f"{on_sqlite.gateway.url}/playground?kind=video&model=vidA-2"
    await page.open(address)
    await page.until("document.getElementById('session-form')?.hidden === false")
    await page.evaluate("document.getElementById('session-remember').click()")
    await person.press("Start")
    await page.until("document.getElementById('key-used')?.hidden === false")
    await page.evaluate("document.querySelector('#prompt').focus()")
    await page.write("a kite of a session")
    await page.press("Enter", control=True)
    await page.until("document.querySelector('.tasks > li')")
    await page.open("about:blank")
    await page.open(address)
    await page.until("document.querySelector('.tasks strong')?.textContent === 'a kite of a session'")
    await page.evaluate("document.querySelector('#prompt').focus()")
    await page.write("half a film")
    key_id, secret = [
        str(await page.evaluate(f"sessionStorage.getItem({name!r})")) for name in ("umg-session-key", "umg-key")
    ]
    await revoke(on_sqlite.gateway.service, key_id, secret)
    await page.press("Enter", control=True)
    await page.until("document.querySelector('.failure')?.textContent.includes('The key ended with your session.')")
    await person.press("Change key")
    await page.until("!document.getElementById('session-form').hidden")
    await person.press("Start")
    await page.until("!document.getElementById('key-used').hidden")
    assert await page.evaluate("document.querySelector('#prompt').value") == "half a film"
    await page.evaluate("sessionStorage.clear()")


async def test_pages_have_no_barriers_and_fit_every_screen(on_sqlite: Site) -> None:
    person = on_sqlite.person
    await on_sqlite.prepared("a red kite")
    billing = await on_sqlite.key_of(Role.BILLING)
    shown = set[str]()
    for place, state in enumerate(STATES):
        await examined(on_sqlite, state, place)
        path = str(await person.page.evaluate("location.pathname"))
        if found := find_page(path.removeprefix("/console").removeprefix("/")):
            shown.add(found[0].name)
    assert shown == {page.name for page in CONSOLE_PAGES} - {"usage_csv", "playground_key"}
    await person.page.call("Network.clearBrowserCookies", {})
    await examined(on_sqlite, State("sign-in", ""))
    await person.sign_in(billing)
    await examined(on_sqlite, FORBIDDEN)
    assert "your role is billing" in await person.text()
    await person.page.evaluate("document.body.setAttribute('style', 'color: red')")
    assert "style-src" in str(person.complaints())  # the check sees a refusal by the policy


async def test_each_task_is_done_by_keyboard_alone(on_postgresql: Site) -> None:
    await done(on_postgresql, list(TASKS), by_keys=True)


async def test_the_most_urgent_tasks_are_done_without_scripts(on_postgresql: Site) -> None:
    await done(on_postgresql, [task for task in TASKS if task.number in {2, 4, 6, 7, 9}], scripts=False)

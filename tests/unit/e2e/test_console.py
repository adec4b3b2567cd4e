"""Console over HTTP: sign-in, pages, acts of forms, roles, and the protection of both."""

import asyncio
import csv
import re
from collections.abc import AsyncGenerator, Awaitable
from datetime import timedelta
from html import unescape
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from yarl import URL

from http_facade.console import live_parts
from http_facade.console.page_table import CONSOLE_PAGES
from http_facade.console.session_calls import SessionCalls
from tests.support.console_browser import Browser, Reply
from tests.support.console_world import World, console_world
from tests.support.gateways import KEY
from tests.support.page_weight import sent_files
from tests.support.usage_records import NOW, lines, record
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.users import SERVICE_ACCOUNT, Users
from umg_grpc.base.time_units import micros_of
from umg_grpc.store.usage_record_table import UsageRecords

HOSTILE = '<script>alert(1)</script> "quoted" \' {{ 7 * 7 }} & more'

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with console_world(tmp_path_factory.mktemp("console")) as made:
        yield made


async def create(browser: Browser, name: str, **fields: str) -> Reply:
    page = await browser.get("/console/keys/new")
    return await browser.post("/console/keys/new", {**page.form("create"), "name": name, **fields})


async def test_without_a_session_the_browser_is_led_to_the_sign_in_and_back(world: World) -> None:
    browser = await world.browser()
    reply = await browser.get("/console/keys?text=a")
    assert reply.path == f"/auth/login?return={quote('/console/keys?text=a', safe='/?')}"
    async with browser.session.get("/console", headers={"cookie": "umg_session=invented"}) as response:
        assert response.url.path == "/auth/login"


async def test_a_page_of_an_ended_session_leads_to_the_sign_in_with_the_reason(world: World) -> None:
    browser = await (await world.browser()).sign_in()
    new_key, signed_in = await browser.get("/console/keys/new"), await browser.get("/console")
    forms = ("/console/keys/new", new_key.form("create")), ("/console/preferences", signed_in.form("dark"))
    logout = {name: value for name, value in forms[1][1].items() if name == "csrf_token"}
    later = await world.browser()
    later.session.cookie_jar.update_cookies({each.key: each.value for each in browser.session.cookie_jar})
    await later.post("/auth/logout", logout)
    ended = await browser.get("/console/usage?since=7d")
    assert ended.path == "/auth/login?return=/console/usage?since%3D7d&notice=session_ended"
    assert "Your session has ended; sign in again." in ended.text
    for path, form in forms:
        reply = await browser.post(path, form)
        assert "nothing was changed; sign in and send the form again" in reply.text
        assert f'name="return" value="{path.removesuffix("/preferences")}"' in reply.text
    assert (await browser.post("/auth/logout", logout)).path == "/auth/login"


async def test_signing_out_on_a_page_of_an_earlier_session_is_explained_to_browsers(world: World) -> None:
    browser = await (await world.browser()).sign_in()
    former = re.search(r'name="csrf_token" value="([^"]*)"', (await browser.get("/console")).text)
    assert former
    await browser.sign_in()
    form = {"csrf_token": former[1]}
    explained = await browser.post("/auth/logout", form, accept="text/html,*/*;q=0.8")
    assert (explained.status, explained.path) == (200, "/auth/login?notice=other_session")
    assert "this browser is still signed in by a later one" in explained.text
    assert (await browser.post("/auth/logout", form, accept="application/json")).status == 403
    assert (await browser.get("/console")).status == 200
    invented = await browser.get("/auth/login?notice=%3Cb%3E")
    assert (invented.status, 'role="alert"></p>' in invented.text) == (200, True)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the requests that pages send to the service."""
    sent, call = list[str](), SessionCalls.call

    def counted(self: SessionCalls, request: Message, kind: type[Message]) -> Awaitable[Message]:
        sent.append(request.DESCRIPTOR.name)
        return call(self, request, kind)

    monkeypatch.setattr(SessionCalls, "call", counted)
    return sent


async def test_a_page_with_charts_has_their_table_and_needs_six_calls_of_the_service(
    world: World, calls: list[str]
) -> None:
    await create(world.owner, "drawn", budget="5", budget_period="month", project=world.projects["mine"])
    key = await ApiKeys(world.gateway.service.store).get("drawn")
    async with world.owner.session.post(
        "/v1/chat/completions",
        json={"model": "famG-2.5-flash", "messages": [{"role": "user", "content": "Hi"}]},
        headers={"authorization": f"Bearer {KEY}"},
    ) as response:
        assert response.status == 200
    async with asyncio.timeout(60):  # it is written in the background, which no event reports
        while 'data-form="columns"' not in (await world.owner.get("/console")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    for path, ink in (
        ("", "calls"),
        ("/usage?by=key&since=30d", "failed"),
        (f"/keys/{key.key_id}", "projected"),
        (f"/projects/{world.projects['mine']}", ""),
        ("/channels/sandbox", "p95"),
    ):
        calls.clear()
        page = await world.owner.get(f"/console{path}")
        assert (page.status, len(calls) <= 6) == (200, True), (path, calls)
        assert not ink or f'data-ink="{ink}"' in page.text, path
        assert ("/charts.js" in page.text) == bool(ink), path


@pytest.mark.parametrize(
    "path",
    ["", "/usage", "/requests", "/channels", "/channels/sandbox", "/models", "/keys/bootstrap", "/projects/mine"],
)
async def test_pages_with_figures_state_their_age(world: World, path: str) -> None:
    page = await world.owner.get(f"/console{path}")
    assert page.status == 200, page.problem
    assert re.search(r'<div class="head">.*?as of \d\d:\d\d:\d\d UTC</span>', page.text)


async def test_a_live_page_is_sent_again_only_when_it_has_changed(world: World) -> None:
    for path in ("/console", "/console/requests?since=1h"):
        statuses = list[int]()
        while 304 not in statuses:  # a page is sent again after each minute, in which its relative times become old
            tag = (await world.owner.get(path)).headers["etag"]
            async with world.owner.session.get(path, headers={"if-none-match": tag}) as response:
                statuses.append(response.status)
            assert len(statuses) < 5, path
        async with world.owner.session.get(path, headers={"if-none-match": '"other"'}) as response:
            assert response.status == 200
    assert "etag" not in (await world.owner.get("/console/keys")).headers


async def test_live_parts_are_drawn_once_for_all_with_the_same_rights(
    world: World, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_parts, "MIN_SHARED_SECONDS", 3600.0)
    monkeypatch.setattr(live_parts, "MAX_SHARED_SECONDS", 3600.0)
    viewers = [await world.person(Role.VIEWER, WHOLE_GATEWAY) for _ in range(2)]
    member = await world.person(Role.MEMBER, world.projects["mine"])
    for path, request in (
        ("/console?since=2h", "GetCallSummaryRequest"),
        ("/console/requests?since=2h", "ListRequestRecordsRequest"),
    ):
        calls.clear()
        texts = list[str]()
        for browser, drawings in ((viewers[0], 1), (viewers[1], 1), (viewers[0], 1), (world.owner, 2), (member, 3)):
            reply = await browser.get(path, **{"live-parts": "1"})
            assert (reply.status, calls.count(request)) == (200, drawings), path
            texts.append(reply.text)
        assert texts[0] == texts[1] == texts[2]
        assert all("data-live" in text for text in texts)
        assert not any(secret in text for text in texts for secret in ("csrf_token", "form_id", *world.people))
        tag = (await viewers[1].get(path, **{"live-parts": "1"})).headers["etag"]
        assert (await viewers[1].get(path, **{"live-parts": "1", "if-none-match": tag})).status == 304


@pytest.mark.parametrize(("path", "kilobytes", "files"), [("/console", 90, 8), ("/playground", 150, 40)])
async def test_a_first_page_is_light_and_its_files_are_kept(
    world: World, path: str, kilobytes: int, files: int
) -> None:
    sent = await sent_files(world.owner.session, path)
    assert sum(each.size for each in sent) < 1000 * kilobytes
    assert len(sent) <= files
    assert [each.path for each in sent if "immutable" not in each.cache_control] == [path]
    assert sent[0].size < 40_000  # the whole of a second page


@pytest.mark.parametrize("page", [page for page in CONSOLE_PAGES if page.group], ids=lambda page: page.name)
async def test_each_page_of_the_navigation_is_shown_whole_and_kept_nowhere(world: World, page: object) -> None:
    reply = await world.owner.get(f"/console/{page.path}".rstrip("/"))  # type: ignore[attr-defined]
    assert (reply.status, reply.problem) == (200, "")
    assert reply.headers["cache-control"] == "no-store"  # type: ignore[index, call-overload]
    policy = reply.headers["content-security-policy"]  # type: ignore[index, call-overload]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|\bon[a-z]+=", reply.text)


async def test_a_key_is_created_shown_once_changed_rotated_and_revoked(world: World) -> None:
    made = await create(world.owner, HOSTILE, budget="12.50", budget_period="month", models="gpt-*, famG-*")
    assert made.status == 200, made.problem
    secret = re.search(r"sk-umg-[\w-]+", made.text)
    assert secret
    assert "<script>alert" not in made.text
    key = await ApiKeys(world.gateway.service.store).get(HOSTILE)
    assert (key.budget_micro_credits, key.budget_period, key.model_patterns) == (
        12_500_000,
        "month",
        ("gpt-*", "famG-*"),
    )
    path = f"/console/keys/{key.key_id}"
    page = await world.owner.get(path)
    assert secret[0] not in page.text

    changes = {"budget": "20", "budget_period": "day", "requests_per_minute": "60", "tokens_per_minute": "", "concurrent_requests": "", "models": ""}  # fmt: skip
    changed = await world.owner.post(path, page.form("change") | changes)
    assert (changed.status, "note=key_changed" in changed.path) == (200, True)
    key = await ApiKeys(world.gateway.service.store).get(HOSTILE)
    assert (key.budget_micro_credits, key.requests_per_minute, key.model_patterns) == (20_000_000, 60, ())

    rotated = await world.owner.post(path, (await world.owner.get(path)).form("rotate") | {"overlap": "3600"})
    assert re.search(r"sk-umg-[\w-]+", rotated.text)

    form = (await world.owner.get(path)).form("revoke")
    refused = await world.owner.post(path, form | {"name": "another"})
    assert (refused.status, refused.problem) == (400, f"not done: type `{HOSTILE}` to confirm")
    revoked = await world.owner.post(path, (await world.owner.get(path)).form("revoke") | {"name": HOSTILE})
    assert (revoked.status, ">revoked<" in revoked.text, 'value="rotate"' in revoked.text) == (200, True, False)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("budget", "much", "not saved: `budget` must be an amount of credits, such as 12.50, not `much`"),
        ("requests_per_minute", "0", "requests_per_minute"),
        ("name", "", "name"),
    ],
)
async def test_a_wrong_field_is_named_above_the_form(world: World, field: str, value: str, problem: str) -> None:
    fields = {"name": "wrong", field: value}
    page = await world.owner.get("/console/keys/new")
    reply = await world.owner.post("/console/keys/new", page.form("create") | fields)
    assert (reply.status, problem in reply.problem) == (400, True), reply.problem
    assert f'value="{value}"' in reply.text or field == "requests_per_minute"  # which this form does not have


async def test_a_form_that_was_shown_before_a_change_of_another_does_not_take_it_back(world: World) -> None:
    store = world.gateway.service.store
    key, _ = await ApiKeys(store).create("shared")
    path = f"/console/keys/{key.key_id}"
    fields = {"budget": "", "budget_period": "month", "tokens_per_minute": "", "concurrent_requests": "", "models": ""}
    first, second = await world.owner.get(path), await world.owner.get(path)
    await world.owner.post(path, first.form("change") | fields | {"requests_per_minute": "5"})
    late = fields | {"requests_per_minute": "", "budget": "7"}
    refused = await world.owner.post(path, second.form("change") | late)
    assert (refused.status, "someone changed this" in refused.problem) == (409, True)
    assert (await ApiKeys(store).get("shared")).requests_per_minute == 5
    assert re.search(r'<details class="edit" open>\s*<summary>Edit', refused.text), "the entries are folded"
    assert (await world.owner.post(path, refused.form("change") | late)).status == 200
    assert (await ApiKeys(store).get("shared")).budget_micro_credits == 7_000_000


async def test_switch_and_weight_of_a_channel_are_not_taken_back_by_a_form_shown_before(world: World) -> None:
    path = "/console/channels/videos"
    page, listed = await world.owner.get(path), await world.owner.get("/console/channels")
    weighted = await world.owner.post(path, page.form("weight") | {"weight": "3", "note": ""})
    assert "note=channel_weighted" in weighted.path, weighted.problem
    late = await world.owner.post(path, page.form("weight") | {"form_id": "late", "weight": "4", "note": "late"})
    assert (late.status, "someone changed this" in late.problem, 'value="4"' in late.text) == (409, True, True)
    assert (await world.owner.post(path, late.form("weight") | {"weight": "4", "note": ""})).status == 200

    consequences = await world.owner.post(path, page.form("disable"))  # the switch is not that of the weight
    stale = await world.owner.post(path, page.form("disable") | {"form_id": "stale"})
    disabled = await world.owner.post(path, consequences.form("disable") | {"confirmed": "1", "note": "bill"})
    assert ">disabled<" in disabled.text
    for form in (stale.form("disable") | {"confirmed": "1", "note": "other"}, page.form("disable") | {"form_id": "2"}):
        refused = await world.owner.post(path, form)
        assert (refused.status, "someone changed this" in refused.problem) == (409, True)
    assert "bill" in refused.text
    assert listed.form("disable")["seen"] == page.form("disable")["seen"]
    assert ">closed<" in (await world.owner.post(path, refused.form("enable"))).text
    again = await world.owner.post(path, refused.form("enable") | {"form_id": "again"})
    assert (again.status, "someone changed this" in again.problem) == (409, True)
    assert (await world.owner.post(path, again.form("weight") | {"weight": "", "note": ""})).status == 200


async def test_a_number_beyond_those_of_the_schema_is_named(world: World) -> None:
    page = await world.owner.get("/console/channels/videos")
    reply = await world.owner.post("/console/channels/videos", page.form("weight") | {"weight": "99999999999"})
    assert (reply.status, "`weight` must be a whole number of at most" in reply.problem) == (400, True)
    assert (await world.owner.get("/console/tasks?stuck=99999999999")).status == 400


async def test_a_viewer_has_no_form_of_a_new_key(world: World) -> None:
    viewer = await world.person(Role.VIEWER, WHOLE_GATEWAY)
    reply = await viewer.get("/console/keys/new")
    assert ("Your roles permit no new keys." in reply.text, 'name="act"' in reply.text) == (True, False)


async def test_a_form_is_accepted_once_and_from_its_own_page_alone(world: World) -> None:
    page = await world.owner.get("/console/keys/new")
    form = page.form("create") | {"name": "once"}
    assert (await world.owner.post("/console/keys/new", form, origin="https://evil.example")).status == 403
    assert (await world.owner.post("/console/keys/new", form, **{"sec-fetch-site": "cross-site"})).status == 403
    stale = await world.owner.post("/console/keys/new", form | {"csrf_token": "x"})  # as of a session before this one
    assert (stale.status, "load the page again" in stale.problem) == (403, True)
    assert (await world.owner.post("/console/keys/new", form)).status == 200
    again = await world.owner.post("/console/keys/new", form | {"name": "twice"})
    assert (again.status, "sent already" in again.problem) == (409, True)
    with pytest.raises(Exception, match="no such key"):
        await ApiKeys(world.gateway.service.store).get("twice")


async def test_a_call_is_found_by_its_id_and_shows_its_story(world: World) -> None:
    async with world.owner.session.post(
        "/v1/chat/completions",
        json={"model": "famG-2.5-flash", "messages": [{"role": "user", "content": "Hi"}]},
        headers={"authorization": f"Bearer {KEY}"},
    ) as response:
        request_id = response.headers["x-request-id"]
    async with asyncio.timeout(60):  # it is written in the background, which no event reports
        while (await world.owner.get(f"/console/requests/{request_id}")).status == 404:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    found = await world.owner.get(f"/console/search?text={request_id}")
    assert found.path == f"/console/requests/{request_id}"
    assert "famG-2.5-flash" in found.text
    listed = await world.owner.get("/console/requests?model=famG-2.5-flash&since=1h")
    assert request_id in listed.text
    assert request_id not in (await world.owner.get("/console/requests?failed=1")).text


async def test_usage_is_shown_by_dimensions_and_its_csv_has_the_same_sums(world: World) -> None:
    page = await world.owner.get("/console/usage?by=key&since=30d")
    assert (page.status, ">bootstrap<" in page.text) == (200, True), page.problem
    link = re.search(r'class="csv" href="([^"]*)"', page.text)
    assert link
    async with world.owner.session.get(unescape(link[1])) as response:
        text = await response.text()
        assert response.headers["content-disposition"].startswith('attachment; filename="usage-by-key-')
    rows = list(csv.DictReader(text.splitlines()))
    [shown] = re.findall(r'>bootstrap</a></td>\s*<td class="number">([\d,]+)<', page.text)
    assert sum(int(row["calls"]) for row in rows) == int(shown.replace(",", ""))
    assert ">and by<" in page.text
    for name in ("by", "beside"):
        wrong = await world.owner.get(f"/console/usage?{name}=colour")
        assert (wrong.status, f"`{name}`" in wrong.problem) == (400, True)
    chosen = await world.owner.get("/console/usage.csv?by=model&key=bootstrap&agent=../x")
    assert "usage-by-model-key-bootstrap-agent-.._x-20" in chosen.headers["content-disposition"]  # type: ignore[index, call-overload]
    operations = csv.DictReader((await world.owner.get("/console/usage.csv?by=operation")).text.splitlines())
    assert "generate" in {row["group"] for row in operations}


async def test_a_task_is_shown_with_its_states_and_notifications(world: World) -> None:
    async with world.owner.session.post(
        "/v1/video/generations",
        json={"model": "vidA-2", "prompt": HOSTILE},
        headers={"authorization": f"Bearer {KEY}"},
    ) as response:
        task_id = (await response.json())["task_id"]
    listed = await world.owner.get("/console/tasks?model=vidA-2")
    assert task_id in listed.text
    assert task_id not in (await world.owner.get("/console/tasks?undelivered=1")).text
    shown = await world.owner.get(f"/console/tasks/{task_id}")
    assert (shown.status, "The caller asked for no notifications." in shown.text) == (200, True)
    wrong = await world.owner.get("/console/tasks?stuck=long")
    assert (wrong.status, "`stuck`" in wrong.problem) == (400, True)


async def test_the_config_is_shown_with_its_sources_and_without_secrets(world: World) -> None:
    page = await world.owner.get("/console/config?path=channels")
    assert (page.status, "channels[0].name" in page.text, "test.yaml" in page.text) == (200, True, True)
    assert KEY not in (await world.owner.get("/console/config?all=1")).text


async def test_each_change_is_in_the_history_of_its_object(world: World) -> None:
    await create(world.owner, "watched", budget="5", budget_period="month")
    key = await ApiKeys(world.gateway.service.store).get("watched")
    page = await world.owner.get(f"/console/keys/{key.key_id}")
    await world.owner.post(
        f"/console/keys/{key.key_id}", page.form("change") | {"budget": "9", "budget_period": "month"}
    )
    link = re.search(r'href="(/console/audit[^"]*)"', page.text)
    assert link
    history = await world.owner.get(unescape(link[1]))
    assert ("CreateKey" in history.text, "UpdateKey" in history.text) == (True, True)
    assert "<del>5000000</del> <ins>9000000</ins>" in history.text
    viewer = await world.person(Role.VIEWER, WHOLE_GATEWAY)
    assert (await viewer.get("/console/audit?refused=1")).status == 200
    billing = await world.person(Role.BILLING, WHOLE_GATEWAY)
    assert (await billing.get("/console/audit")).status == 403


async def test_a_receiver_that_does_not_exist_is_named(world: World) -> None:
    page = await world.owner.get("/console/alerts")
    reply = await world.owner.post("/console/alerts", page.form("test") | {"receiver": HOSTILE})
    assert (reply.status, "receiver" in reply.problem) == (404, True), reply.problem


async def test_a_channel_is_checked_disabled_after_its_consequences_and_enabled(world: World) -> None:
    path = "/console/channels/sandbox"
    checked = await world.owner.post(path, (await world.owner.get(path)).form("check"))
    assert (checked.status, "works" in checked.text) == (200, True), checked.problem
    consequences = await world.owner.post(path, (await world.owner.get(path)).form("disable"))
    assert "are left without a channel" in consequences.text
    assert 'value="disable"' in (await world.owner.get(path)).text  # nothing was changed
    disabled = await world.owner.post(path, consequences.form("disable") | {"confirmed": "1", "note": HOSTILE})
    assert ("note=channel_disabled" in disabled.path, ">disabled<" in disabled.text) == (True, True)
    assert "<script>alert" not in disabled.text
    weighted = await world.owner.post(path, disabled.form("weight") | {"weight": "3", "note": ""})
    assert "weight 3, changed by bootstrap" in weighted.text
    wrong = await world.owner.post(path, weighted.form("weight") | {"weight": "many", "note": ""})
    assert (wrong.status, "`weight`" in wrong.problem) == (400, True)
    enabled = await world.owner.post(path, wrong.form("enable"))
    assert ">closed<" in enabled.text
    assert (await world.owner.get("/console/channels/absent")).status == 404


@pytest.mark.parametrize(
    ("role", "pages"),
    [
        (Role.OWNER, {"models", "channels"}),
        (Role.VIEWER, {"models", "channels"}),
        (Role.MEMBER, {"models"}),
        (None, set[str]()),
    ],
)
async def test_model_and_channel_of_a_call_lead_to_the_pages_that_the_role_sees(
    world: World, role: Role | None, pages: set[str]
) -> None:
    store, mine = world.gateway.service.store, world.projects["mine"]
    name = f"linked {role}"
    user = await Users(store).create(
        SERVICE_ACCOUNT, {"name": name, "memberships": [Membership(mine, role)] if role else []}
    )
    key, secret = await ApiKeys(store).create(name, user_id=user.user_id if role else None, project_id=mine)
    person = await (await world.browser()).sign_in(secret)
    before = NOW - timedelta(days=1)
    of_call = {"key_id": key.key_id, "model": HOSTILE, "channel": "a/b", "start_micros": micros_of(before)}
    outcomes = {"status": "OK"}, {"status": "NOT_FOUND", "reason": "MODEL_NOT_FOUND"}
    calls = [
        record(number, record_id=f"{name} {number}", request_id=f"req-{role}-{number}", **of_call, **each)
        for number, each in enumerate(outcomes)
    ]
    await UsageRecords(store).insert(lines(*calls))
    named = {"models": HOSTILE, "channels": "a/b"}
    links = {page: f'<a href="/console/{page}/{quote(each, safe="")}">' for page, each in named.items()}
    listed = f"/console/requests?since={before:%Y-%m-%d}&key={key.key_id}"
    for path in (listed, f"/console/requests/req-{role}-0", f"/console/requests/req-{role}-1"):
        page = await person.get(path)
        assert (page.status, "<script>alert" in page.text) == (200, False), page.problem
        is_known = not path.endswith("-1")  # there is no page of a model that was not found
        assert {each for each, link in links.items() if link in page.text} == (
            pages if is_known else pages - {"models"}
        )


@pytest.mark.parametrize("role", list(Role))
async def test_pages_follow_the_roles(world: World, role: Role) -> None:
    await create(world.owner, f"theirs {role}", project=world.projects["other"])
    theirs = await ApiKeys(world.gateway.service.store).get(f"theirs {role}")
    person = await world.person(role, world.projects["mine"])
    first = await person.get("/console")
    assert first.status == 200
    may_write = role in {Role.OWNER, Role.ADMIN, Role.MEMBER}
    assert ('href="/console/keys/new"' in (await person.get("/console/keys")).text) == may_write
    made = await create(person, f"of {role}", project=world.projects["mine"]) if may_write else None
    assert made is None or made.status == 200, made and made.problem
    hidden = await person.get(f"/console/keys/{theirs.key_id}")
    assert (hidden.status, "no such key" in hidden.problem) == (404, True)
    assert theirs.key_id not in (await person.get("/console/keys?ended=1")).text
    assert ('href="/console/requests"' in first.text) == (role is not Role.BILLING)
    for path in re.findall(r'<li><a href="(/console[^"]*)"', first.text):
        page = await person.get(path)
        assert (page.status, page.problem) == (200, ""), path


async def test_an_act_that_a_role_does_not_permit_is_refused_with_the_role(world: World) -> None:
    viewer = await world.person(Role.VIEWER, WHOLE_GATEWAY)
    await create(world.owner, "seen")
    key = await ApiKeys(world.gateway.service.store).get("seen")
    page = await viewer.get(f"/console/keys/{key.key_id}")
    assert 'value="revoke"' not in page.text
    channels = await viewer.get("/console/channels")
    assert (channels.status, "sandbox" in channels.text, 'value="disable"' in channels.text) == (200, True, False)
    token = re.search(r'name="csrf_token" value="([^"]*)"', page.text)
    assert token
    form = {"csrf_token": token[1], "form_id": "f1", "act": "revoke", "name": "seen"}
    refused = await viewer.post(f"/console/keys/{key.key_id}", form)
    assert (refused.status, "your role is viewer" in refused.problem) == (403, True)


async def test_the_overview_does_not_call_a_gateway_well_whose_calls_fail(world: World) -> None:
    made = record(0, status="UNAVAILABLE"), *(record(number) for number in range(1, 10))
    await UsageRecords(world.gateway.service.store).insert(lines(*made))
    since, until = (f"{NOW + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}" for hours in (-1, 1))
    assert (
        "No channel is out, but 10 % of the calls failed."
        in (await world.owner.get(f"/console?since={since}&until={until}")).text
    )
    assert "All is well" in (await world.owner.get(f"/console?since={until}&until={since[:4]}-12-31T00:00:00Z")).text


async def test_preferences_are_kept_in_cookies(world: World) -> None:
    page = await world.owner.get("/console/keys?text=a&include_ended=1")
    assert 'name="return" value="/console/keys?text=a&amp;include_ended=1"' in page.text
    token = re.search(r'name="csrf_token" value="([^"]*)"', page.text)
    assert token
    reply = await world.owner.post(
        "/console/preferences", {"csrf_token": token[1], "theme": "dark", "return": "/console/keys"}
    )
    assert (reply.path, '<html lang="en" class="dark" ' in reply.text) == ("/console/keys", True)
    form = {"csrf_token": token[1], "moments": "utc", "letters": "none", "return": "https://evil.example"}
    reply = await world.owner.post("/console/preferences", form)
    assert (reply.path, 'class="dark" data-moments="utc" data-letters="on"' in reply.text) == ("/console", True)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/console/", "/console"),
        ("/console/?since=1h&key=a%26b", "/console?since=1h&key=a%26b"),
        ("/console//", "/console"),
        ("/console/keys/", "/console/keys"),
        ("/console/models/a%2Fb%3Fc/", "/console/models/a/b%3Fc"),
    ],
)
async def test_a_slash_at_the_end_of_a_path_leads_to_the_page_without_it(world: World, path: str, target: str) -> None:
    url = URL(world.gateway.url + path, encoded=True)
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=False) as response:
        assert (response.status, response.headers["location"]) == (308, target)
    assert (await world.owner.get("/console/")).path == "/console"


@pytest.mark.parametrize("path", ["nothing", "keys/a/b", "%00", "console"])
async def test_an_unknown_page_is_explained_with_the_way_to_the_first_one(world: World, path: str) -> None:
    unknown = await world.owner.get(f"/console/{path}")
    assert (unknown.status, "no page" in unknown.problem) == (404, True)
    assert '<a href="/console">Go to the first page</a>' in unknown.text
    assert (await (await world.browser()).get(f"/console/{path}")).path.startswith("/auth/login")


async def test_a_wrong_filter_is_explained(world: World) -> None:
    wrong = await world.owner.get("/console/requests?since=yesterday")
    assert (wrong.status, "`since`" in wrong.problem) == (400, True)

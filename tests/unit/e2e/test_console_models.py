"""Pages of models over HTTP: prices that are set in a row and on a page, roles, hostile names, history and search."""

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.support.console_world import CONSOLE_CONFIG, World, console_world
from tests.support.usage_records import lines, record
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import WHOLE_GATEWAY, Role
from umg_grpc.base.time_units import micros_of
from umg_grpc.store.usage_record_table import UsageRecords

HOSTILE = "<script>alert('x')</script>{{7}}"
LAB = 'protocols: [chat], base_url: "http://127.0.0.1:1/v1", api_key: k'
CONFIG = f"""{CONSOLE_CONFIG}  - {{name: lab, {LAB}, models: [lab-one, stated, "{HOSTILE}"]}}
  - {{name: lab-two, {LAB}, models: [lab-one]}}
aliases: {{one: lab-one}}
models:
  stated: {{price: {{input: 1, output: 2}}}}
"""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with console_world(tmp_path_factory.mktemp("models"), CONFIG) as made:
        store = made.gateway.service.store
        key, _ = await ApiKeys(store).create("indexer")
        now = micros_of(datetime.now(UTC))
        calls = [record(n, key_id=key.key_id, model="lab-one", channel="lab", start_micros=now) for n in range(3)]
        await UsageRecords(store).insert(lines(*calls))
        yield made


async def test_a_price_is_set_in_the_row_of_a_called_model_and_taken_back_on_its_page(world: World) -> None:
    owner = world.owner
    overview = await owner.get("/console")
    assert "1 models without a price were called in the last 24 hours." in overview.text
    page = await owner.get("/console/models")
    rows = re.findall(r'<a href="/console/models/([^"]*)">', page.text)
    assert rows[:2] == ["lab-one", quote(HOSTILE, safe="")]  # the called one first
    assert ("2 models have no price; 1 of them were called" in page.text, ">indexer</a>" in page.text) == (True, True)
    assert "<script>alert" not in page.text
    wrong = await owner.post("/console/models/lab-one", page.form("set") | {"price_input": "much", "list": "1"})
    assert (wrong.status, "not saved: `input`: expected a number such as 1.25" in wrong.problem) == (400, True)
    assert 'value="much"' in wrong.text
    empty = await owner.post("/console/models/lab-one", wrong.form("set"))
    assert (empty.status, "at least one unit" in empty.problem) == (400, True)
    form = page.form("set") | {"form_id": "row", "price_input": "1.25", "price_output": "10", "note": HOSTILE}
    done = await owner.post("/console/models/lab-one", form | {"list": "1"})
    assert (done.status, done.path) == (200, "/console/models?note=price_set"), done.problem
    assert "input 1.25, output 10" in done.text

    shown = await owner.get("/console/models/lab-one")
    assert ("set by bootstrap" in shown.text, ">database <" in shown.text) == (True, True)
    assert "priority 0" in shown.text  # the reasons of its routes
    others = {"others": "cache_read=0.125", "channel": "lab-two", "price_input": "2"}
    there = await owner.post("/console/models/lab-one", shown.form("set") | others)
    assert "lab: input 1.25, output 10, lab-two: input 2, cache read 0.125" in there.text, there.problem
    history = await owner.get(unescape(re.findall(r'href="(/console/audit[^"]*)"', shown.text)[0]))
    assert history.text.count("UpdateModelPrice") == 2
    assert "<ins>input 1.25, output 10</ins>" in history.text
    for channel in ("", "lab-two"):
        page = await owner.get("/console/models/lab-one")
        reset = await owner.post("/console/models/lab-one", page.form("reset") | {"channel": channel})
        assert ("note=price_reset" in reset.path, reset.problem) == (True, "")
    assert ">no price<" in reset.text


async def test_a_price_is_not_changed_by_a_form_shown_before_another_change(world: World) -> None:
    owner, path = world.owner, f"/console/models/{quote(HOSTILE, safe='')}"
    page, listed = await owner.get(path), await owner.get("/console/models?text=script")
    set_first = await owner.post(path, page.form("set") | {"price_input": "1"})
    assert "note=price_set" in set_first.path, set_first.problem
    for late in (page.form("set") | {"form_id": "late"}, listed.form("set") | {"list": "1"}):
        refused = await owner.post(path, late | {"price_input": "2"})
        assert (refused.status, "someone changed this" in refused.problem) == (409, True)
        assert ("input 1<" in refused.text, 'value="2"' in refused.text) == (True, True)
    shown = await owner.get(path)
    assert "note=price_set" in (await owner.post(path, refused.form("set") | {"price_input": "2"})).path
    kept = await owner.post(path, shown.form("reset") | {"channel": ""})
    assert (kept.status, "input 2<" in kept.text) == (409, True)
    assert "note=price_reset" in (await owner.post(path, kept.form("reset") | {"channel": ""})).path


async def test_a_price_of_the_file_has_its_line_and_no_form(world: World) -> None:
    page = await world.owner.get("/console/models/stated")
    assert re.search(r"test\.yaml:\d+ states the price", page.text)
    assert 'value="set"' not in page.text
    token = re.search(r'name="csrf_token" value="([^"]*)"', page.text)
    assert token
    form = {"csrf_token": token[1], "form_id": "fixed", "act": "set", "price_input": "1"}
    refused = await world.owner.post("/console/models/stated", form)
    assert (refused.status, "states the price of `stated`: change it there" in refused.problem) == (400, True)
    hostile = await world.owner.get(f"/console/models/{quote(HOSTILE, safe='')}")
    assert (hostile.status, "<script>alert" in hostile.text) == (200, False)
    assert (await world.owner.get("/console/models/absent")).status == 404
    filtered = await world.owner.get("/console/models?unpriced=1&text=ONE")
    assert ('models/lab-one"' in filtered.text, "umg prices models ONE --unpriced" in filtered.text) == (True, True)


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER, Role.BILLING, Role.MEMBER])
async def test_roles_see_parts_of_a_model_and_set_no_price(world: World, role: Role) -> None:
    person = await world.person(role, WHOLE_GATEWAY)
    listed, page = await person.get("/console/models"), await person.get("/console/models/stated")
    assert (listed.status, page.status, "input 1, output 2" in page.text) == (200, 200, True)
    assert 'href="/console/models"' in listed.text
    assert ('id="prices"' in page.text) == (role is not Role.MEMBER)
    assert ('id="route1"' in page.text) == (role in {Role.ADMIN, Role.VIEWER})
    assert not {'value="set"', 'value="reset"'} & set(re.findall(r'value="[sr]et"', listed.text + page.text))
    token = re.search(r'name="csrf_token" value="([^"]*)"', page.text)
    assert token
    form = {"csrf_token": token[1], "form_id": f"of {role}", "act": "set", "price_input": "1"}
    refused = await person.post("/console/models/lab-one", form)
    assert (refused.status, f"your role is {role}" in refused.problem) == (403, True)


async def test_the_search_finds_the_objects_that_a_person_may_see(world: World) -> None:
    owner, member = world.owner, await world.person(Role.MEMBER, world.projects["mine"])
    billing = await world.person(Role.BILLING, WHOLE_GATEWAY)
    found = await owner.get("/console/search?text=lab")
    paths = set(re.findall(r'<td><a href="(/console/[^"]*)"', found.text))
    assert paths == {"/console/models/lab-one", "/console/channels/lab", "/console/channels/lab-two"}
    assert (await owner.get("/console/search?text=stated")).path == "/console/models/stated"
    assert 'href="/console/people/user_' in (await owner.get(f"/console/search?text={world.people[-1]}")).text
    assert "/console/channels/" not in (await member.get("/console/search?text=lab")).text
    assert (await member.get("/console/search?text=lab")).path == "/console/models/lab-one"
    assert "/console/people/" not in (await billing.get("/console/search?text=member")).text
    channel = await owner.get("/console/channels/lab")
    assert 'href="/console/audit?since=90d&amp;object=lab&amp;kind=channel"' in channel.text

"""Pages of projects, people and service accounts over HTTP: their contents by roles, and the acts of their forms."""

import re
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from sqlalchemy import event

from http_facade.console import object_names
from tests.support.console_browser import Browser, Reply
from tests.support.console_world import World, console_world
from umg_grpc.access.account_levels import ORGANIZATION_KIND, PROJECT_KIND
from umg_grpc.access.accounts import Account, Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.users import PERSON_KIND, SERVICE_ACCOUNT, User, Users

HOSTILE = '<script>alert(1)</script> "q" \' {{ 7 * 7 }} & more'
MICROS = 1_000_000

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with console_world(tmp_path_factory.mktemp("console")) as made:
        yield made


async def act(browser: Browser, path: str, name: str, /, **fields: str) -> Reply:
    """Send the form of an act, from its page."""
    page = await browser.get(path)
    return await browser.post(path, page.form(name) | fields)


async def forced(browser: Browser, path: str, name: str, /, **fields: str) -> Reply:
    """Send an act without its form, which the page of a person without the right lacks."""
    page = await browser.get("/console")
    token = re.search(r'name="csrf_token" value="([^"]*)"', page.text)
    assert token
    form = {"csrf_token": token[1], "form_id": f"{name} {path} {id(browser)}", "act": name, **fields}
    return await browser.post(path, form)


async def account_of(world: World, name: str) -> Account:
    return await Accounts(world.gateway.service.store).get(name)


@pytest.mark.parametrize("path", ["/console", "/console/keys", "/auth/login"])
async def test_without_tls_a_browser_gets_a_page_that_names_it(world: World, path: str) -> None:
    reply = await world.owner.get(path, host="gateway.example", accept="text/html")
    assert (reply.status, reply.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert "people sign in over TLS: set `tls`" in reply.text
    program = await world.owner.get(path, host="gateway.example", accept="*/*")
    assert (program.status, program.headers["content-type"]) == (403, "application/json")


async def test_a_page_with_a_wrong_filter_offers_itself_without_filters(world: World) -> None:
    reply = await world.owner.get("/console/requests?since=7d&key=nobody")
    assert reply.status == 404
    assert '<a href="/console/requests">Show it without filters</a>' in reply.text


async def test_a_page_reads_its_session_once(world: World) -> None:
    reads, engine = list[str](), world.gateway.service.store._engine.sync_engine

    def note(_1: object, _2: object, statement: str, *_3: object) -> None:
        if "FROM sessions" in statement:
            reads.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        for path in ("/console", "/console/usage", "/console/people"):
            reads.clear()
            assert (await world.owner.get(path)).status == 200
            assert len(reads) == 1, path
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def test_an_organisation_and_its_project_are_created_and_listed_as_a_tree(world: World) -> None:
    made = await act(world.owner, "/console/projects/new", "create", name="acme", kind="organization")
    assert (made.status, "note=account_created" in made.path) == (200, True), made.problem
    organization = await account_of(world, "acme")
    fields = {"organization": organization.account_id, "budget_month": "100", "models": "gpt-*"}
    made = await act(world.owner, "/console/projects/new", "create", name=HOSTILE, kind="project", **fields)
    assert made.status == 200, made.problem
    assert "<script>alert" not in made.text
    project = await account_of(world, HOSTILE)
    assert project.organization_id == organization.account_id
    assert (project.budgets, project.model_patterns) == ((Budget("month", 100 * MICROS),), ("gpt-*",))
    tree = (await world.owner.get("/console/projects")).text
    assert re.search(
        rf'/{organization.account_id}".*?class="nested"><a href="[^"]*/{project.account_id}"', tree, re.DOTALL
    )
    assert "0 spent · 0 reserved · 100.00 left of 100.00" in tree
    assert project.account_id in (await world.owner.get(f"/console/projects/{organization.account_id}")).text
    assert f'href="/console/projects/{organization.account_id}"' in made.text


async def test_a_change_of_a_project_keeps_the_settings_that_its_form_lacks(world: World) -> None:
    accounts = Accounts(world.gateway.service.store)
    budgets = (Budget("month", 10 * MICROS), Budget("day", MICROS, soft=True))
    made = await accounts.create(PROJECT_KIND, {"name": "changed", "budgets": budgets, "tags": {"team": "a"}})
    path = f"/console/projects/{made.account_id}"
    page = await world.owner.get(path)
    assert "<dt>team</dt><dd>a</dd>" in page.text
    fields = {
        "name": "changed",
        "budget_month": "20.50",
        "soft_budget_day": "2",
        "requests_per_minute": "60",
        "models": "gpt-*, famG-*",
    }
    saved = await world.owner.post(path, page.form("change") | fields)
    assert (saved.status, "note=account_changed" in saved.path) == (200, True), saved.problem
    changed = await account_of(world, "changed")
    assert set(changed.budgets) == {Budget("month", 20_500_000), Budget("day", 2 * MICROS, soft=True)}
    assert (changed.requests_per_minute, changed.model_patterns) == (60, ("gpt-*", "famG-*"))
    assert changed.tags == {"team": "a"}
    wrong = await act(world.owner, path, "change", name="changed", budget_month="much")
    assert (wrong.status, "`budget_month`" in wrong.problem, 'value="much"' in wrong.text) == (400, True, True)


async def test_a_project_is_closed_by_its_name_and_opened_again(world: World) -> None:
    made = await Accounts(world.gateway.service.store).create(PROJECT_KIND, {"name": "ended"})
    path = f"/console/projects/{made.account_id}"
    refused = await act(world.owner, path, "close", confirm="other")
    assert (refused.status, refused.problem) == (400, "not done: type `ended` to confirm")
    closed = await act(world.owner, path, "close", confirm="ended")
    assert (closed.status, ">closed<" in closed.text, 'value="change"' in closed.text) == (200, True, False)
    assert made.account_id not in (await world.owner.get("/console/projects")).text
    assert made.account_id in (await world.owner.get("/console/projects?closed=1")).text
    opened = await act(world.owner, path, "open")
    assert ("note=account_opened" in opened.path, 'value="change"' in opened.text) == (True, True)


@pytest.mark.parametrize("role", list(Role))
async def test_roles_of_a_project_see_it_alone_and_change_it_as_far_as_they_may(world: World, role: Role) -> None:
    store = world.gateway.service.store
    mine, other = world.projects["mine"], world.projects["other"]
    await ApiKeys(store).create(f"of a colleague of {role}", project_id=mine)
    person = await world.person(role, mine)
    tree = (await person.get("/console/projects")).text
    assert (mine in tree, other in tree) == (True, False)
    page = await person.get(f"/console/projects/{mine}")
    may_write = role in {Role.OWNER, Role.ADMIN}
    assert (page.status, 'value="change"' in page.text) == (200, may_write), page.problem
    assert (f"of a colleague of {role}" in page.text) == (role is not Role.MEMBER)
    hidden = await person.get(f"/console/projects/{other}")
    assert (hidden.status, "no such" in hidden.problem) == (404, True), hidden.problem
    assert 'href="/console/projects/new"' not in tree  # which only the whole gateway or an organisation permits
    new = await person.get("/console/projects/new")
    assert 'value="create"' not in new.text
    refused = await forced(person, "/console/projects/new", "create", name=f"by {role}", kind="project")
    assert refused.status == 403, refused.problem
    closed = await forced(person, f"/console/projects/{other}", "close", confirm="other")
    assert closed.status == 404, closed.problem


async def test_the_budgets_above_a_key_are_shown_as_far_as_the_person_sees_their_levels(world: World) -> None:
    store = world.gateway.service.store
    accounts = Accounts(store)
    above = {"name": "holding", "budgets": (Budget("month", 5 * MICROS),)}
    holding = (await accounts.create(ORGANIZATION_KIND, above)).account_id  # type: ignore[arg-type]
    fields = {"name": "branch", "organization_id": holding, "budgets": (Budget("month", 20 * MICROS),)}
    branch = (await accounts.create(PROJECT_KIND, fields)).account_id  # type: ignore[arg-type]
    key, _ = await ApiKeys(store).create("below", project_id=branch, budget_micro_credits=50 * MICROS)
    page = await world.owner.get(f"/console/keys/{key.key_id}")
    for level in (branch, holding):
        assert f'Besides, for all keys of <a href="/console/projects/{level}"' in page.text
    assert "holding binds first: it allows 5.00 more." in page.text
    viewer = await world.person(Role.VIEWER, branch)
    page = await viewer.get(f"/console/keys/{key.key_id}")
    assert ("organisation binds first: it allows 5.00 more." in page.text, "holding" in page.text) == (True, False)


async def test_an_administrator_of_an_organisation_creates_projects_in_it_alone(world: World) -> None:
    organization = await Accounts(world.gateway.service.store).create(ORGANIZATION_KIND, {"name": "lead"})
    person = await world.person(Role.ADMIN, organization.account_id)
    page = await person.get("/console/projects/new")
    assert ('value="organization"' in page.text, '<option value="">' in page.text) == (False, False)
    fields = {"name": "led", "kind": "project", "organization": organization.account_id}
    made = await person.post("/console/projects/new", page.form("create") | fields)
    assert made.status == 200, made.problem
    assert (await account_of(world, "led")).organization_id == organization.account_id


async def test_a_viewer_of_the_gateway_has_no_forms(world: World) -> None:
    viewer = await world.person(Role.VIEWER, WHOLE_GATEWAY)
    path = f"/console/projects/{world.projects['mine']}"
    assert 'name="act"' not in (await viewer.get(path)).text
    refused = await forced(viewer, path, "close", confirm="mine")
    assert (refused.status, "your role is viewer" in refused.problem) == (403, True)


async def user_of(world: World, name: str) -> User:
    return await Users(world.gateway.service.store).get(name)


async def test_a_person_is_added_by_address_and_role_and_has_a_history(world: World) -> None:
    mine = world.projects["mine"]
    form = await world.owner.get("/console/people/new")
    assert "Manages its own keys in the projects there" in form.text
    fields = {"email": "ada@example.com", "role": "member", "account": mine, "kind": "person", "name": ""}
    made = await world.owner.post("/console/people/new", form.form("create") | fields)
    assert (made.status, "note=person_added" in made.path) == (200, True), made.problem
    ada = await user_of(world, "ada@example.com")
    assert (ada.kind, ada.memberships) == (PERSON_KIND, (Membership(mine, Role.MEMBER),))
    path = f"/console/people/{ada.user_id}"
    given = await act(world.owner, path, "give", role="viewer", account="")
    assert given.status == 200, given.problem
    taken = await act(world.owner, path, "take", account=mine)
    assert taken.status == 200, taken.problem
    assert (await user_of(world, "ada@example.com")).memberships == (Membership(WHOLE_GATEWAY, Role.VIEWER),)
    renamed = await act(world.owner, path, "rename", name=HOSTILE, email="ada@example.org")
    assert (renamed.status, "<script>alert" in renamed.text) == (200, False), renamed.problem
    assert f'href="/console/audit?since=90d&amp;object={ada.user_id}"' in renamed.text
    history = (await world.owner.get(f"/console/audit?object={ada.user_id}")).text
    assert "<del>ada@example.com</del> <ins>ada@example.org</ins>" in history
    assert ada.user_id in (await world.owner.get("/console/people")).text


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("rename", {"name": "later", "email": "later@example.com"}),
        ("give", {"role": "viewer", "account": ""}),
        ("take", {}),
        ("disable", {"confirm": "changed"}),
    ],
)
async def test_a_person_is_not_changed_by_a_form_shown_before_another_change(
    world: World, name: str, fields: dict[str, str]
) -> None:
    users, mine = Users(world.gateway.service.store), world.projects["mine"]
    made = {"name": "shown", "email": f"{name}@example.com", "memberships": (Membership(mine, Role.MEMBER),)}
    user = await users.create(PERSON_KIND, made)  # type: ignore[arg-type]
    path = f"/console/people/{user.user_id}"
    page = await world.owner.get(path)
    changed = {"name": "changed", "memberships": (Membership(mine, Role.ADMIN),)}
    await users.update(user.user_id, changed)  # type: ignore[arg-type]
    refused = await world.owner.post(path, page.form(name) | fields)
    assert (refused.status, "someone changed this" in refused.problem) == (409, True)
    found = await users.get(user.user_id)
    assert (found.name, found.memberships, found.disabled) == ("changed", (Membership(mine, Role.ADMIN),), False)
    assert (await world.owner.post(path, refused.form(name) | fields)).status == 200


async def test_a_disabled_person_is_not_enabled_by_a_form_shown_before_another_change(world: World) -> None:
    users = Users(world.gateway.service.store)
    user = await users.create(PERSON_KIND, {"name": "off", "email": "off@example.com"})
    await users.update(user.user_id, {"disabled": True})
    path = f"/console/people/{user.user_id}"
    page = await world.owner.get(path)
    await users.update(user.user_id, {"name": "left us"})
    refused = await world.owner.post(path, page.form("enable"))
    assert (refused.status, (await users.get(user.user_id)).disabled) == (409, True)
    assert (await world.owner.post(path, refused.form("enable"))).status == 200


async def test_a_person_needs_an_address_and_a_known_role(world: World) -> None:
    path = "/console/people/new"
    without = await act(world.owner, path, "create", kind="person", name="eve", role="viewer", account="")
    assert (without.status, "`email`" in without.problem) == (400, True), without.problem
    unknown = await act(world.owner, path, "create", email="eve@example.com", role="king", account="")
    assert (unknown.status, "role" in unknown.problem) == (400, True), unknown.problem


async def test_a_service_account_gets_a_key_and_is_disabled_and_enabled(world: World) -> None:
    fields = {"kind": "service_account", "name": "deploy", "role": "viewer", "account": "", "email": ""}
    made = await act(world.owner, "/console/people/new", "create", **fields)
    assert made.status == 200, made.problem
    path = f"/console/people/{(await user_of(world, 'deploy')).user_id}"
    shown = await act(world.owner, path, "create_key", name="deploy key")
    secret = re.search(r"sk-umg-[\w-]+", shown.text)
    assert secret, shown.problem
    program = await (await world.browser()).sign_in(secret[0])
    assert 'href="/console/people"' in (await program.get("/console")).text
    page = await world.owner.get(path)
    assert ("deploy key" in page.text, secret[0] in page.text) == (True, False)
    refused = await act(world.owner, path, "disable", confirm="other")
    assert (refused.status, refused.problem) == (400, "not done: type `deploy` to confirm")
    disabled = await act(world.owner, path, "disable", confirm="deploy")
    assert (disabled.status, ">disabled<" in disabled.text) == (200, True), disabled.problem
    assert ">deploy<" not in (await world.owner.get("/console/people")).text
    assert ">deploy<" in (await world.owner.get("/console/people?disabled=1")).text
    enabled = await act(world.owner, path, "enable")
    assert (enabled.status, ">active<" in enabled.text) == (200, True), enabled.problem


@pytest.mark.parametrize("role", list(Role))
async def test_roles_of_a_project_see_its_people_as_far_as_they_may(world: World, role: Role) -> None:
    users = Users(world.gateway.service.store)
    mine, other = world.projects["mine"], world.projects["other"]
    known, stranger = [
        await users.create(
            PERSON_KIND,
            {"name": name, "email": f"{name}@example.com", "memberships": (Membership(account, Role.MEMBER),)},
        )
        for name, account in ((f"known-{role}", mine), (f"stranger-{role}", other))
    ]
    person = await world.person(role, mine)
    may_see, may_write = role in {Role.OWNER, Role.ADMIN, Role.VIEWER}, role in {Role.OWNER, Role.ADMIN}
    listed = await person.get("/console/people")
    assert (listed.status, known.user_id in listed.text) == ((200, True) if may_see else (403, False))
    assert ('href="/console/people"' in listed.text) == may_see  # in the navigation
    assert ('href="/console/people/new"' in listed.text) == may_write
    page = await person.get(f"/console/people/{known.user_id}")
    assert page.status == (200 if may_see else 403), page.problem
    assert (known.email in page.text, 'value="disable"' in page.text) == (may_write, may_write)
    hidden = await person.get(f"/console/people/{stranger.user_id}")
    assert hidden.status == (404 if may_see else 403), hidden.problem
    refused = await forced(person, f"/console/people/{stranger.user_id}", "disable", confirm=stranger.name)
    assert refused.status == (404 if may_see else 403), refused.problem
    new = await person.get("/console/people/new")
    assert ('value="create"' in new.text) == may_write
    assert ('<option value="owner">' in new.text) == (role is Role.OWNER)
    assert other not in new.text
    raised = await forced(person, f"/console/people/{known.user_id}", "give", role="owner", account=mine)
    assert raised.status == (200 if role is Role.OWNER else 403), raised.problem


async def test_an_administrator_has_no_form_that_takes_an_owner_away(world: World) -> None:
    mine = world.projects["mine"]
    fields = {"name": "boss", "memberships": (Membership(mine, Role.OWNER),)}
    boss = await Users(world.gateway.service.store).create(PERSON_KIND, fields)  # type: ignore[arg-type]
    page = await (await world.person(Role.ADMIN, mine)).get(f"/console/people/{boss.user_id}")
    assert page.status == 200
    assert ('value="take"' in page.text, 'value="rename"' in page.text, 'value="give"' in page.text) == (
        False,
        False,
        True,
    )


async def test_an_owner_ends_the_session_of_another(world: World) -> None:
    program = await world.person(Role.VIEWER, WHOLE_GATEWAY)
    path = f"/console/people/{(await user_of(world, world.people[-1])).user_id}"
    page = await world.owner.get(path)
    [session_id] = re.findall(r'name="session" value="(\w+)"', page.text)
    assert "ends unless used" not in (await program.get(path)).text
    ended = await act(world.owner, path, "end_session", session=session_id)
    assert ("note=session_ended" in ended.path, session_id in ended.text) == (True, False)
    assert (await program.get("/console")).path.startswith("/auth/login")


async def test_a_project_shows_its_changes_to_those_with_the_audit_log(world: World) -> None:
    made = await Accounts(world.gateway.service.store).create(PROJECT_KIND, {"name": "watched"})
    path = f"/console/projects/{made.account_id}"
    changed = await act(world.owner, path, "change", name="watched", requests_per_minute="7")
    assert f"object={made.account_id}" in changed.text
    history = await world.owner.get(f"/console/audit?object={made.account_id}")
    assert re.search("<code>requests_per_minute</code>\\s*<ins>7</ins>", history.text)
    billing = await world.person(Role.BILLING, WHOLE_GATEWAY)
    assert "/console/audit" not in (await billing.get(path)).text


async def test_forms_take_the_name_of_a_project_where_there_are_many(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_names, "MAX_OFFERED", 1)
    page = await world.owner.get("/console/keys/new")
    assert re.search(r'<input id="project" name="project" value=""', page.text)
    assert '<select id="project"' not in page.text
    made = await world.owner.post("/console/keys/new", page.form("create") | {"name": "typed", "project": "mine"})
    assert made.status == 200, made.problem
    key = await ApiKeys(world.gateway.service.store).get("typed")
    assert key.project_id == world.projects["mine"]
    unknown = await act(world.owner, "/console/keys/new", "create", name="untyped", project="no such project")
    assert (unknown.status, 'value="no such project"' in unknown.text) == (404, True)
    user = await Users(world.gateway.service.store).create(
        PERSON_KIND, {"name": "typist", "email": "typist@example.com"}
    )
    given = await act(world.owner, f"/console/people/{user.user_id}", "give", role="viewer", account="mine")
    assert given.status == 200, given.problem
    assert "mine</strong>" in given.text
    again = await act(world.owner, f"/console/people/{user.user_id}", "give", role="member", account="mine")
    assert again.status == 200, again.problem
    found = await Users(world.gateway.service.store).find(user.user_id)
    assert found
    assert found.memberships == (Membership(world.projects["mine"], Role.MEMBER),)


async def test_accounts_are_listed_by_ids_and_by_a_text_as_far_as_the_caller_sees_them(world: World) -> None:
    mine, other = world.projects["mine"], world.projects["other"]

    async def names(headers: dict[str, str], query: str) -> list[str]:
        async with world.owner.session.get(f"/admin/v1/projects?{query}", headers=headers) as response:
            return [each["settings"]["name"] for each in (await response.json())["accounts"]]

    owner = world.gateway.headers
    assert await names(owner, f"account_ids={other}&account_ids={mine}&account_ids=proj_none") == ["mine", "other"]
    assert await names(owner, "text=OTHE") == ["other"]
    assert await names(owner, f"text={mine[:14]}") == ["mine"]
    assert await names(owner, "text=%25") == []
    store = world.gateway.service.store
    user = await Users(store).create(
        SERVICE_ACCOUNT, {"name": "lister", "memberships": [Membership(mine, Role.VIEWER)]}
    )
    _, secret = await ApiKeys(store).create("key of lister", user_id=user.user_id)
    viewer = {"authorization": f"Bearer {secret}"}
    assert await names(viewer, f"account_ids={other}&account_ids={mine}") == ["mine"]

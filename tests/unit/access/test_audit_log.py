"""Audit log: an event in the transaction of each change, without secrets, that nothing can change or delete."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.audit_log import CURRENT_ACT, MAX_REFUSALS_PER_MINUTE, Act, AuditFilter, AuditLog
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.users import PERSON_KIND, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.store.audit_table import AuditRow

ADA = Act(actor_kind="user", actor_id="user_1", actor_name="ada", credential="sk-umg-3f9a", address="10.0.0.9")


async def events(store: Store) -> list[AuditRow]:
    """Return all events, oldest first."""
    return (await AuditLog(store).page(AuditFilter(), None, 1000))[::-1]


async def test_each_change_of_a_key_is_an_event_without_secrets(store: Store) -> None:
    CURRENT_ACT.set(ADA)
    keys = ApiKeys(store)
    key, first = await keys.create("app", budgets=[Budget("day", 5)])
    await keys.update("app", {"requests_per_minute": 7})
    await keys.update("app", {"requests_per_minute": 7, "budgets": [Budget("day", 5)]})  # changes nothing
    _, second = await keys.rotate("app")
    await keys.revoke("app")
    await keys.revoke("app")
    created, updated, rotated, revoked = await events(store)
    for event in (created, updated, rotated, revoked):
        assert (event.actor_id, event.actor_name, event.credential, event.address) == (
            "user_1",
            "ada",
            "sk-umg-3f9a",
            "10.0.0.9",
        )
        assert (event.object_kind, event.object_id, event.object_name) == ("key", key.key_id, "app")
        assert not any(secret in event.before_json + event.after_json for secret in (first, second, "secret"))
    assert created.before_json == ""
    settings = json.loads(created.after_json)
    assert (settings["name"], settings["administrator"]) == ("app", False)
    assert not [name for name, value in settings.items() if value in (None, "", [], {})]
    assert (updated.before_json, updated.after_json) == ('{"requests_per_minute":null}', '{"requests_per_minute":7}')
    assert json.loads(rotated.before_json)["prefix"] == first[:11]
    assert json.loads(revoked.before_json) == {"revoke_time": None}


async def test_a_change_that_fails_leaves_no_event(store: Store, keys: ApiKeys) -> None:
    await keys.create("app")
    with pytest.raises(UmgError, match="exists"):
        await keys.create("app")
    assert len(await events(store)) == 1


async def test_accounts_and_users_are_audited_and_events_are_selected(store: Store) -> None:
    project = await Accounts(store).create(PROJECT_KIND, {"name": "search"})
    await Accounts(store).set_closed(project.account_id, closed=True)
    user = await Users(store).create(PERSON_KIND, {"name": "ada"})
    await Users(store).update(user.user_id, {"disabled": True})
    found = await events(store)
    assert [event.object_kind for event in found] == ["project", "project", "user", "user"]
    assert {event.actor_kind for event in found} == {"gateway"}
    log = AuditLog(store)
    of_project = await log.page(AuditFilter(accounts=[project.account_id]), None, 10)
    assert [event.object_id for event in of_project] == [project.account_id] * 2
    for events_filter in (AuditFilter(objects=[user.user_id]), AuditFilter(kinds=["user"])):
        assert len(await log.page(events_filter, None, 10)) == 2
    assert await log.page(AuditFilter(actors=["user_1"]), None, 10) == []
    [newest] = await log.page(AuditFilter(), None, 1)
    rest = await log.page(AuditFilter(), (newest.time_micros, newest.event_id), 10)
    assert [event.event_id for event in (newest, *rest)] == [event.event_id for event in reversed(found)]


async def test_a_name_that_is_taken_is_refused_at_a_change_and_at_an_opening(store: Store) -> None:
    accounts = Accounts(store)
    first, second = [await accounts.create(PROJECT_KIND, {"name": name}) for name in ("search", "ads")]
    with pytest.raises(UmgError, match="the project `search` exists"):
        await accounts.update(second.account_id, {"name": "search"})
    await accounts.set_closed(first.account_id, closed=True)
    await accounts.update(second.account_id, {"name": "search"})
    with pytest.raises(UmgError, match="the project `search` exists"):
        await accounts.set_closed(first.account_id, closed=False)


async def test_refused_acts_are_written_up_to_a_bound(store: Store) -> None:
    log = AuditLog(store)
    for _ in range(MAX_REFUSALS_PER_MINUTE + 5):
        await log.record_refusal(Act(actor_kind="key", actor_id="key_1"), "key", "app", "not allowed")
    refused = await log.page(AuditFilter(refused_only=True), None, 1000)
    assert MAX_REFUSALS_PER_MINUTE <= len(refused) <= 2 * MAX_REFUSALS_PER_MINUTE  # of at most two minutes
    assert (refused[0].object_id, refused[0].message, refused[0].after_json) == ("app", "not allowed", "")


@pytest.mark.parametrize("column", ["event_id", "rowid"])
async def test_sqlite_refuses_to_replace_an_event(tmp_path: Path, column: str) -> None:
    store = await open_store("sqlite", tmp_path)
    try:
        await ApiKeys(store).create("app")
        names = [each.name for each in AuditRow.__table__.columns]
        values = [name if name == column or name != "event_id" else "'another'" for name in names]
        if column == "rowid":
            names, values = ["rowid", *names], ["rowid", *values]
        replace = (
            f"INSERT OR REPLACE INTO audit_events ({', '.join(names)}) SELECT {', '.join(values)} FROM audit_events"
        )
        with pytest.raises(DBAPIError, match="cannot be changed or deleted"):
            async with store.write() as session:
                await session.execute(text(replace))
        assert len(await events(store)) == 1
    finally:
        await store.aclose()


@pytest.mark.parametrize("statement", ["UPDATE audit_events SET actor_name = ''", "DELETE FROM audit_events"])
async def test_the_database_refuses_to_change_the_log(store: Store, keys: ApiKeys, statement: str) -> None:
    await keys.create("app")
    with pytest.raises(DBAPIError, match="cannot be changed or deleted"):
        async with store.write() as session:
            await session.execute(text(statement))
    assert len(await events(store)) == 1

"""Commands of accounts, users and the audit log on a database."""

import json
from pathlib import Path

import pytest

from tests.support.processes import run
from umg_grpc.store import open_store


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    await (await open_store("sqlite", tmp_path)).aclose()
    return tmp_path


async def umg(folder: Path, *arguments: str) -> str:
    code, out, err = await run(*arguments, "--data", str(folder))
    assert code == 0, err
    return out


async def listed(folder: Path, *arguments: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(await umg(folder, *arguments, "--json"))
    return found


async def test_accounts_and_their_keys_are_managed_and_audited(folder: Path) -> None:
    await umg(folder, "organizations", "create", "acme", "--rpm", "600")
    budgets = ("--budget", "100/month", "--budget", "5/day", "--soft-budget", "80/month")
    made = await umg(folder, "projects", "create", "search", "--organization", "acme", *budgets, "--tag", "team=a")
    assert all(text in made for text in ("of 100.000000 a month", "of 5.000000 a day", "of 80.000000 a month (soft)"))
    assert "team=a" in made
    await umg(folder, "projects", "update", "search", "--models", "gpt-*", "--budget", "none")
    shown = await umg(folder, "projects", "show", "search")
    assert "gpt-*" in shown
    [project] = await listed(folder, "projects", "show", "search")
    assert isinstance(settings := project["settings"], dict)
    assert (settings["name"], settings["model_patterns"]) == ("search", ["gpt-*"])
    assert "a month" not in shown
    await umg(folder, "users", "create", "Ada", "--email", "ada@example.com", "--role", "admin:search")
    await umg(folder, "keys", "create", "app", "--project", "search", "--user", "ada@example.com", "--budget", "7/day")
    [key] = await listed(folder, "keys", "list")
    assert isinstance(key["settings"], dict)
    [project] = await listed(folder, "projects", "list")
    assert key["settings"]["project_id"] == project["account_id"]
    assert (key["settings"]["budget_micro_credits"], key["settings"]["budget_period"]) == (7_000_000, "day")
    [user] = await listed(folder, "users", "show", "Ada")
    assert isinstance(user["settings"], dict)
    assert user["settings"]["name"] == "Ada"
    await umg(folder, "users", "disable", "Ada")
    assert await listed(folder, "users", "list") == []
    [user] = await listed(folder, "users", "list", "--disabled")
    assert key["settings"]["user_id"] == user["user_id"]
    await umg(folder, "projects", "close", "search")
    assert await listed(folder, "projects", "list") == []
    await umg(folder, "projects", "open", "search")
    events = await listed(folder, "audit", "list", "--since", "1h")
    methods = [str(event["method"]).rpartition("/")[2] for event in reversed(events)]
    assert methods == [
        *("CreateAccount", "CreateAccount", "UpdateAccount", "CreateUser", "CreateKey", "UpdateUser"),
        *("SetAccountClosed", "SetAccountClosed"),
    ]
    assert {event["actor_kind"] for event in events} == {"operator"}
    exported = (await umg(folder, "audit", "export")).splitlines()
    assert [json.loads(line) for line in exported] == events


@pytest.mark.parametrize("role", ["admin:", "boss:search", "boss"])
async def test_a_wrong_role_is_refused_by_its_flag(folder: Path, role: str) -> None:
    code, _, err = await run("users", "create", "Ada", "--role", role, "--data", str(folder))
    assert (code, "--role" in err) == (2, True), err
    assert await listed(folder, "users", "list") == []


async def test_a_wrong_budget_is_refused_by_its_flag(folder: Path) -> None:
    for flags, named in (
        (("--soft-budget", "1/week"), "--soft-budget"),
        (("--rpm", "0"), "--rpm"),
        (("--tag", "x"), "--tag"),
    ):
        code, _, err = await run("projects", "create", "p", *flags, "--data", str(folder))
        assert (code, named in err) == (2, True), err


async def test_another_amount_replaces_the_budget_of_a_key(folder: Path) -> None:
    await umg(folder, "keys", "create", "app", "--budget", "5", "--budget-period", "month")
    await umg(folder, "keys", "update", "app", "--budget", "6/month", "--budget", "1/day", "--soft-budget", "4/month")
    [key] = await listed(folder, "keys", "list")
    assert isinstance(settings := key["settings"], dict)
    assert (settings["budget_micro_credits"], settings["budget_period"]) == (6_000_000, "month")
    assert settings["budgets"] == [
        {"period": "day", "micro_credits": 1_000_000, "soft": False},
        {"period": "month", "micro_credits": 4_000_000, "soft": True},
    ]
    await umg(folder, "keys", "update", "app", "--budget", "none")
    [key] = await listed(folder, "keys", "list")
    assert isinstance(settings := key["settings"], dict)
    assert (settings["budget_micro_credits"], settings["budgets"]) == (None, [])

"""Commands of `umg keys` where there is no database of a gateway."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.databases import Postgres
from tests.support.gateways import SANDBOX
from tests.support.processes import run
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store

COMMANDS = [
    pytest.param(("create", "app"), id="create"),
    pytest.param(("list",), id="list"),
    pytest.param(("show", "app"), id="show"),
    pytest.param(("revoke", "app"), id="revoke"),
]


@pytest.mark.parametrize("arguments", COMMANDS)
async def test_in_a_wrong_folder_they_name_the_path_and_create_nothing(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "typo"
    code, out, err = await run("keys", *arguments, "--data", str(folder))
    assert (code, out, folder.exists()) == (1, "", False), err
    assert str(folder / "umg.db") in err
    assert "--data" in err
    assert "--config" in err


async def test_in_an_empty_database_of_a_server_they_create_nothing(postgres: Postgres, tmp_path: Path) -> None:
    config = tmp_path / "umg.yaml"
    config.write_text(f"database: {postgres.create('no_gateway')}\n{SANDBOX}")
    for _ in range(2):  # a second command finds no tables of the first
        code, out, err = await run("keys", "create", "app", "--config", str(config))
        assert (code, out) == (1, "")
        assert "there is no database at" in err
        assert "no_gateway: give the gateway's folder with --data" in err


USED = datetime(2026, 5, 1, 12, tzinfo=UTC)
BAD_BUDGETS = [
    pytest.param(("--budget", "1,5"), "--budget", id="no number"),
    pytest.param(("--quota", "1,5"), "--budget", id="no number, by the other name"),
    pytest.param(("--budget", "1.1234567"), "--budget", id="less than a micro-credit"),
    pytest.param(("--budget", "1", "--budget-period", "week"), "--budget-period", id="an unknown period"),
    pytest.param(("--budget-period", "day"), "--budget-period", id="a period without a budget"),
]


@pytest.mark.parametrize(("flags", "named"), BAD_BUDGETS)
async def test_a_bad_budget_is_refused_by_its_flag(flags: tuple[str, ...], named: str, tmp_path: Path) -> None:
    code, out, err = await run("keys", "create", "app", *flags, "--data", str(tmp_path))
    assert (code, out) == (2, "")
    assert f"{named}:" in err.replace("'", "").replace("`", "")


async def test_a_key_is_shown_with_its_last_use(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    store = await open_store("sqlite", tmp_path)
    key, _ = await ApiKeys(store).create("app")
    for expected, times in (("never", {}), ("2026-05-01T12:00:00Z", {key.key_id: USED})):
        if times:
            await ApiKeys(store).record_uses(times)
        for command in (("show", "app"), ("list",)):
            code, out, err = await run("keys", *command, *data)
            assert (code, err, "last used" in out, expected in out) == (0, "", True, True)
    await store.aclose()


async def test_a_key_is_shown_with_its_budget(tmp_path: Path) -> None:
    await (await open_store("sqlite", tmp_path)).aclose()
    data = ("--data", str(tmp_path))
    code, _, err = await run("keys", "create", "app", "--budget", "12.5", "--budget-period", "month", *data)
    assert code == 0, err
    code, out, _ = await run("keys", "show", "app", *data)
    assert (code, "12.500000 credits a month\n" in out) == (0, True)

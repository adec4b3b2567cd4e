"""Commands of `umg keys` where there is no database of a gateway."""

from pathlib import Path

import pytest

from tests.support.databases import Postgres
from tests.support.gateways import SANDBOX
from tests.support.processes import run

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

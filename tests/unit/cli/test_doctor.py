"""Command `umg doctor`: each check finds its problem, changes nothing, and names the remedy."""

import re
import resource
import socket
import sysconfig
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import text

from tests.support.alert_receivers import webhook_server
from tests.support.databases import Database, Postgres
from tests.support.full_disks import SmallDisk, disk_at
from tests.support.gateways import SANDBOX, running
from tests.support.processes import run
from tests.support.redis import RedisServer
from umg_grpc.cli import doctor_command
from umg_grpc.cli.doctor_command import Check, CheckState, Machine
from umg_grpc.config import Address, parse
from umg_grpc.process.interpreter_optimization_check import missing_optimizations
from umg_grpc.store import open_store
from umg_grpc.store.database_state import database_state
from umg_grpc.store.schema_version import NEWEST_MIGRATION

FREE = Address("127.0.0.1", 0)
OF_THE_MACHINE = {"python", "memory", "open files"}
"""Checks whose result depends on the machine of the tests."""


def machine(data: Path, config: str = "", **changes: object) -> Machine:
    return replace(Machine(parse(SANDBOX + config, "umg.yaml", {}), data, FREE, FREE), **changes)  # type: ignore[arg-type]


async def test_a_fit_machine_passes_all_checks_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "umg.yaml").write_text(SANDBOX)
    data = tmp_path / "data"
    flags = ("--config", str(tmp_path / "umg.yaml"), "--data", str(data), "--http", str(FREE), "--grpc", str(FREE))
    code, out, _ = await run("doctor", *flags, "--json")
    checks = msgspec.json.decode(out, type=list[Check])
    assert code == 0
    assert {check.name for check in checks if check.state != "ok"} <= OF_THE_MACHINE
    assert {"database", "data", "HTTP port", "gRPC port", "clock"} <= {check.name for check in checks}
    assert files(tmp_path) == ["umg.yaml"]


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_port_of_another_program_fails_the_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code, out, _ = await run("doctor", "--data", str(tmp_path), "--http", address, "--grpc", str(FREE))
    assert code == 1
    assert re.search(f"fail +HTTP port +cannot listen on {address} for HTTP", out)
    assert "another address: --http HOST:PORT" in out


async def test_the_ports_of_a_running_gateway_are_its_own(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway:
        http, grpc = Address.parse(gateway.url.partition("//")[2]), Address.parse(gateway.grpc)
        served = machine(tmp_path, http=http, grpc=grpc)
        checks = [check async for check in doctor_command._checks(served)]
    assert [check.state for check in checks if "port" in check.name] == [CheckState.OK, CheckState.OK]


@pytest.mark.parametrize(
    ("schema", "state"), [("0001", CheckState.WARN), (NEWEST_MIGRATION, CheckState.OK), ("9999", CheckState.FAIL)]
)
async def test_the_schema_of_the_database_is_compared_and_not_changed(
    schema: str, state: CheckState, database: Database
) -> None:
    store = await open_store(database.url, database.data_dir)
    async with store.write() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = :schema"), {"schema": schema})
    await store.aclose()
    config = f"database: {database.url}\n" if database.url != "sqlite" else ""
    found, clock = await doctor_command.database(machine(database.data_dir, config))
    assert (found.state, schema in found.found) == (state, True)
    assert clock.state is CheckState.OK
    assert (await database_state(database.url, database.data_dir)).schema == schema


async def test_a_database_without_a_server_fails(tmp_path: Path, postgres: Postgres) -> None:
    config = f"database: {postgres.url('missing_database')}\n"
    [found] = await doctor_command.database(machine(tmp_path, config))
    assert (found.state, "missing_database" in found.found) == (CheckState.FAIL, True)


async def test_redis_that_does_not_answer_is_a_warning(redis_server: RedisServer) -> None:
    assert (await doctor_command.redis(redis_server.url)).state is CheckState.OK
    redis_server.stop()
    assert (await doctor_command.redis(redis_server.url)).state is CheckState.WARN


async def test_a_receiver_of_alerts_that_cannot_be_reached_is_a_warning(tmp_path: Path) -> None:
    async with webhook_server() as server:
        away = "    away: {kind: email, host: 127.0.0.1, port: 1, sender: a@example.com, to: [b@example.com]}\n"
        config = f"alerts:\n  receivers:\n{server.config()}{away}usage: {{enabled: false}}\n"
        found = await doctor_command.alert_receivers(machine(tmp_path, config).config)
    assert [check.state for check in found] == [CheckState.OK, CheckState.WARN, CheckState.WARN]
    assert "away: 127.0.0.1:1 cannot be reached: " in found[1].found
    assert server.received == []
    assert await doctor_command.alert_receivers(machine(tmp_path).config) == []


def test_a_data_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert doctor_command.data_folder(tmp_path / "file").state is CheckState.FAIL
    assert doctor_command.data_folder(tmp_path / "new" / "folder").state is CheckState.OK


def test_a_nearly_full_disk_is_named(tmp_path: Path) -> None:
    with disk_at(tmp_path / "disk", "24m") as disk:
        found = doctor_command.data_folder(tmp_path / "disk")
        if isinstance(disk, SmallDisk):  # the disk of a test without privileges has space
            assert (found.state, "24 MiB free" in found.found) == (CheckState.WARN, True)


@dataclass(frozen=True)
class Limit:
    hard: int
    state: CheckState


@pytest.mark.parametrize(
    "case",
    [
        Limit(512, CheckState.FAIL),
        Limit(4096, CheckState.WARN),
        Limit(65536, CheckState.OK),
        Limit(resource.RLIM_INFINITY, CheckState.OK),
    ],
    ids=lambda case: str(case.hard),
)
def test_the_limit_of_open_files_is_compared_with_the_connections(case: Limit) -> None:
    assert doctor_command.open_files(8192, 256, case.hard).state is case.state


def test_little_memory_is_a_warning() -> None:
    assert doctor_command.memory(512 << 20, 100 << 20).state is CheckState.WARN
    assert doctor_command.memory(512 << 20, 600 << 20).state is CheckState.OK
    assert doctor_command.memory(512 << 20, None).state is CheckState.OK


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ("'--enable-optimizations' '--with-lto' '--with-ensurepip=install'", []),
        ("'--prefix=/opt' '--enable-optimizations'", ["LTO"]),
        ("'--enable-shared'", ["PGO", "LTO"]),
        ("", []),
    ],
)
def test_the_build_of_the_interpreter_is_read(
    options: str, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: options)
    assert missing_optimizations() == missing

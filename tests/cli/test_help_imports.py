"""Commands load the modules that they need: a start of `umg` is short."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX
from umg_grpc.access import permissions
from umg_grpc.cli import key_commands
from umg_grpc.store import open_store

PRINT_ALL = """
import sys
from typer.main import get_command
from typer.testing import CliRunner
from umg_grpc.cli.commands import app

def paths(command, path=()):
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from paths(each, (*path, name))

printed = 0
for path in paths(get_command(app)):
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0 and "Usage:" in result.output, path
    printed += 1
print(printed, *sorted(sys.modules))
"""
SLOW = {
    *("umg_grpc.wire", "umg_grpc.config", "umg_grpc.service", "umg_grpc.server", "umg_grpc.store", "umg_grpc.v1"),
    *("http_facade", "aiohttp", "grpc", "sqlalchemy", "rich", "uvloop", "yaml"),
}
"""Modules that take most of the time of a start of the gateway."""


def test_help_texts_load_neither_the_wire_formats_nor_the_service() -> None:
    command = [sys.executable, "-c", PRINT_ALL]
    printed, *modules = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    assert int(printed) > 20
    assert SLOW.isdisjoint(modules)


def test_the_operations_of_the_help_text_are_those_of_keys() -> None:
    assert tuple(permissions.OPERATIONS) == key_commands.OPERATIONS


RUN = """
import sys
from umg_grpc.cli.commands import app
for line in sys.stdin:
    app(line.split(), standalone_mode=False)
print("modules", *sorted(sys.modules))
"""
CODECS = {f"umg_grpc.wire.{name}" for name in ("formats", "chat", "responses", "messages", "native", "video", "images")}
SERVING = {"http_facade", "aiohttp", "umg_grpc.server", "umg_grpc.channel_factory", "redis", "limits", "opentelemetry"}
DATABASE = {"sqlalchemy", "aiosqlite"}


@dataclass(frozen=True)
class Start:
    """Commands, and the modules that none of them needs."""

    id: str
    commands: tuple[str, ...]
    unneeded: set[str]


STARTS = [
    Start("records", ("keys list", "keys create app", "keys show app", "usage", "requests list"), SERVING | CODECS),
    Start("models", ("models", "models --config umg.yaml"), SERVING | DATABASE),
    Start("files", ("init", "providers", "providers openai"), SERVING | DATABASE | CODECS | {"grpc"}),
]


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.id)
def test_a_command_loads_no_more_than_it_needs(start: Start, tmp_path: Path) -> None:
    (tmp_path / "umg.yaml" if start.id != "files" else tmp_path / "other.yaml").write_text(SANDBOX)
    asyncio.run(create_database(tmp_path / ".umg"))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(start.commands), capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [*_, last] = done.stdout.splitlines()
    assert start.unneeded.isdisjoint(last.split())


async def create_database(data: Path) -> None:
    store = await open_store("sqlite", data)
    await store.aclose()

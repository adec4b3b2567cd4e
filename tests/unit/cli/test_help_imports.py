"""Commands load the modules that they need: a start of `umg` is short."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command

from tests.support.gateways import SANDBOX
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.cli.commands import app
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
    *(
        "umg_grpc.wire",
        "umg_grpc.config",
        "umg_grpc.service",
        "umg_grpc.process.service_factory",
        "umg_grpc.store",
        "umg_grpc.v1",
    ),
    *("http_facade", "aiohttp", "grpc", "sqlalchemy", "rich", "uvloop", "yaml", "asyncio", "pydantic", "msgspec"),
}
"""Modules that take most of the time of a start of the gateway."""


def test_help_texts_load_neither_the_wire_formats_nor_the_service() -> None:
    command = [sys.executable, "-c", PRINT_ALL]
    printed, *modules = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
    assert int(printed) > 20
    assert SLOW.isdisjoint(modules)


RUN = """
import json, os, sys
from pathlib import Path
from umg_grpc.cli.commands import app
for place, commands in enumerate(json.load(sys.stdin)):
    if (child := os.fork()) == 0:
        for line in commands:
            app(line.split(), standalone_mode=False)
        Path(f"modules-{place}").write_text(" ".join(sys.modules))
        sys.exit()
    os.waitpid(child, 0)
"""
"""Program that runs the commands of each start in a fork of its own, and writes the modules of each into a file."""
CODECS = {
    f"umg_grpc.wire.{name}"
    for name in ("text_format_tables", "chat", "responses", "messages", "native", "video", "images")
}
SERVING = {
    *(
        "umg_grpc.process.service_factory",
        "umg_grpc.process.channel_factory",
        "http_facade.app",
        "aiohttp",
        "redis",
        "limits",
        "opentelemetry",
    ),
    *("pydantic", "structlog", "protovalidate", "prometheus_client", "cryptography", "jwt"),
}
DATABASE = {"sqlalchemy", "aiosqlite"}
GRPC, SCHEMA, YAML = {"grpc"}, {"google.protobuf", "umg.v1"}, {"yaml"}
AWAY = "127.0.0.1:1"
"""Address at which nothing answers."""


@dataclass(frozen=True)
class Start:
    """Commands, and the modules that none of them needs."""

    id: str
    commands: tuple[str, ...]
    unneeded: set[str]


STARTS = [
    Start(
        "signals", ("reload", f"health --http {AWAY}"), SERVING | DATABASE | CODECS | GRPC | SCHEMA | YAML | {"rich"}
    ),
    Start("providers", ("init", "providers", "providers openai"), SERVING | DATABASE | CODECS | GRPC),
    Start(
        "prices",
        ("prices list gpt-6*", "prices explain gpt-6-sol", "prices update newer.json --dry-run"),
        SERVING | DATABASE | CODECS | GRPC,
    ),
    Start(
        "conversions",
        ("import litellm litellm.yaml", "import new-api channels.json"),
        SERVING | DATABASE | CODECS | GRPC | {"rich"},
    ),
    Start(
        "checks",
        ("check sandbox.yaml", f"doctor --config sandbox.yaml --http {AWAY} --grpc {AWAY}"),
        SERVING | DATABASE | CODECS | GRPC | {"rich"},
    ),
    Start(
        "models",
        (
            f"models --http {AWAY}",
            f"models --http {AWAY} --config sandbox.yaml",
            f"models --http {AWAY} --explain none",
        ),
        SERVING | DATABASE | CODECS | GRPC,
    ),
    Start(
        "records",
        (
            *("keys list", "keys show app", "keys webhook-secret app", "keys revoke none"),
            *("usage", "summary", "requests list", "requests show none", "tasks callbacks", "alerts list"),
            *("tasks find", "tasks inspect none", "tasks redeliver none"),
            *(
                "organizations list",
                "projects list",
                "users list",
                "users sessions",
                "users end-session none",
                "audit list",
                "audit export",
            ),
        ),
        SERVING | CODECS | GRPC | YAML,
    ),
    Start(
        "channels",
        (
            *("channels list", "channels check none", "channels disable none"),
            *("channels enable none", "channels set none --weight 1"),
            *("prices models", "prices set none input=1", "prices reset none"),
        ),
        SERVING - {"protovalidate", "structlog"} | GRPC,
    ),
    Start("receivers", ("alerts test none",), SERVING | CODECS | GRPC),
    Start("config", ("config show",), SERVING | GRPC),
    Start(
        "changes",
        (
            *("keys create new", "keys update app --owner me", "keys rotate app"),
            *(
                f"{group} {act}"
                for group in ("organizations", "projects")
                for act in ("create it", "update it --rpm 5", "show it", "close it", "open it")
            ),
            *("users create ada", "users update ada --name Ada", "users show Ada", "users disable Ada"),
        ),
        SERVING - {"protovalidate"} | CODECS | GRPC | YAML,
    ),
    Start(
        "gateway",
        (f"keys list --gateway http://{AWAY}", f"usage --gateway http://{AWAY}", f"models --gateway http://{AWAY}"),
        SERVING | DATABASE | CODECS | GRPC,
    ),
    Start(
        "conformance",
        (f"conformance http://{AWAY} --list", f"conformance http://{AWAY} --key none"),
        SERVING - {"aiohttp"} | DATABASE | CODECS | GRPC,
    ),
    Start(
        "calls",
        tuple(
            f"{command} --grpc {AWAY} --key none"
            for command in (
                "chat",
                "image x",
                "video x",
                "tasks list",
                "tasks show x",
                "tasks watch x",
                "tasks cancel x",
            )
        ),
        SERVING | DATABASE | CODECS | YAML,
    ),
]
WITHOUT_LIMIT = {"serve", "openapi"}
"""Commands that need most modules: the service, or the description of all faces."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a database, in which a key is named `app`, a config, and files of other gateways."""
    folder = tmp_path_factory.mktemp("starts")
    (folder / "sandbox.yaml").write_text(SANDBOX)
    (folder / "litellm.yaml").write_text("model_list: [{model_name: m, litellm_params: {model: openai/m}}]")
    (folder / "channels.json").write_text('[{"name": "a", "type": 1, "key": "k", "models": "m"}]')
    (folder / "newer.json").write_text('[{"model": "m", "vendor": "openai", "input": "1"}]')
    asyncio.run(create_database(folder / ".umg"))
    return folder


@pytest.fixture(scope="module")
def run_folder(folder: Path) -> tuple[Path, str]:
    """Return the folder with the modules of each start, and the standard error of the commands."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([start.commands for start in STARTS]), capture_output=True, text=True, cwd=folder, check=False,
        env={**environment, "UMG_ADMIN_KEY": "none"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.id)
def test_a_command_loads_no_more_than_it_needs(start: Start, run_folder: tuple[Path, str]) -> None:
    folder, errors = run_folder
    modules = folder / f"modules-{STARTS.index(start)}"
    assert modules.exists(), errors
    assert sorted(start.unneeded & set(modules.read_text().split())) == []


def test_the_table_has_every_command() -> None:
    lines = [line for start in STARTS for line in start.commands]
    missing = [
        path for path in _paths(get_command(app)) if not any(f"{line} ".startswith(f"{path} ") for line in lines)
    ]
    assert set(missing) == WITHOUT_LIMIT


def _paths(command: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    commands: Mapping[str, object] = getattr(command, "commands", {})
    if not commands:
        yield " ".join(path)
    for name, each in commands.items():
        yield from _paths(each, (*path, name))


async def create_database(data: Path) -> None:
    store = await open_store("sqlite", data)
    await ApiKeys(store).create("app")
    await store.aclose()

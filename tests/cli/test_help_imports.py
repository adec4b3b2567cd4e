"""Help texts of all commands are printed without loading the gateway: a start of `umg` is short."""

import subprocess
import sys

from umg_grpc.access import permissions
from umg_grpc.cli import key_commands

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

"""Implementation of `umg config show`: prints the settings in force, of a file or at a gateway."""

import sys
from collections.abc import Iterator, Sequence

from umg_grpc.cli.admin_client import pages
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.text_tables import Column, Fit, Form, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

SOURCE_NAMES = enum_names(pb.ConfigSource.DESCRIPTOR)
SETTING_COLUMNS = (Column("path"), Column("value", 1, Fit.FOLDED), Column("source"), Column("waits", 2))


async def show(target: AdminTarget, prefix: str, form: Form, *, changed: bool) -> None:
    """Print the settings whose path begins with a text. `changed`: without the defaults."""
    found = list[pb.ConfigSetting]()
    async with opened(target) as admin:
        request = pb.GetConfigRequest(changed_only=changed, path_prefix=prefix)
        async for page in pages(admin, request, pb.GetConfigResponse):
            found += page.settings
    print_settings(found, page.status, form)


def print_settings(settings: Sequence[pb.ConfigSetting], status: pb.ConfigStatus, form: Form) -> None:
    """Print settings in a form, and to standard error the state of the config."""
    rows = [
        (each.path, each.value, _source(each), "for a restart" if each.waits_for_restart else "") for each in settings
    ]
    print_table(SETTING_COLUMNS, rows, form, map(to_json, settings))
    for line in _notes(status):
        print(line, file=sys.stderr)


def _source(setting: pb.ConfigSetting) -> str:
    name = SOURCE_NAMES.get(setting.source, "")
    place = f"line {setting.line}" if setting.HasField("line") else ""
    return ", ".join(part for part in (name, " and ".join(setting.variables), place) if part)


def _notes(status: pb.ConfigStatus) -> Iterator[str]:
    """Yield a line for each state of the config that needs an act of the operator."""
    if status.restart_keys:
        yield f"waits for a restart: {', '.join(status.restart_keys)}"
    if status.file_changed and not status.file_problems:
        keys = ", ".join(status.reload_keys) or "nothing that a reload applies"
        yield f"{status.filename} has changed since {time_text(status.load_time)}; `umg reload` applies: {keys}"
    for problem in status.file_problems:
        yield f"{status.filename} has changed and is invalid: {_text(problem)}"
    for problem in status.reload_problems:
        yield f"the reload at {time_text(status.failed_reload_time)} failed: {_text(problem)}"


def _text(problem: pb.ConfigProblem) -> str:
    line = f"line {problem.line}: " if problem.HasField("line") else ""
    return f"{line}{problem.path}: {problem.message}" if problem.path else f"{line}{problem.message}"

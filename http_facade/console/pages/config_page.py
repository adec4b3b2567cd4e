"""Page of the config in force: each value with its source, and the changes that wait for a reload or a restart."""

from collections.abc import Sequence
from dataclasses import dataclass

from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import Mark
from http_facade.console.page_interface import Visit
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

PAGE_SIZE = 200


@dataclass(frozen=True)
class ConfigRow:
    """Setting with the place that its value comes from."""

    path: str
    value: str
    source: str
    waits: bool


@dataclass(frozen=True)
class ConfigView:
    """Content of the page of the config."""

    rows: Sequence[ConfigRow]
    status: pb.ConfigStatus
    mark: Mark
    prefix: str
    all_settings: bool
    problems: Sequence[str]
    pages: ListPages


async def load_config(visit: Visit) -> ConfigView:
    """Return a page of the settings, those without defaults unless the address wants all."""
    filters = visit.filters
    prefix, all_settings = filters.text("path"), bool(filters.text("all"))
    request = pb.GetConfigRequest(
        changed_only=not all_settings, path_prefix=prefix, page_size=PAGE_SIZE, page_token=filters.page_token
    )
    response = await visit.calls.call(request, pb.GetConfigResponse)
    status = response.status
    return ConfigView(
        rows=[_row(setting, status.filename) for setting in response.settings],
        status=status,
        mark=_mark(status),
        prefix=prefix,
        all_settings=all_settings,
        problems=[_problem(each, status.filename) for each in (*status.file_problems, *status.reload_problems)],
        pages=filters.pages(response.next_page_token),
    )


def _row(setting: pb.ConfigSetting, filename: str) -> ConfigRow:
    sources = {
        pb.CONFIG_SOURCE_FILE: f"{filename}:{setting.line}" if setting.HasField("line") else filename,
        pb.CONFIG_SOURCE_ENVIRONMENT: ", ".join(f"${name}" for name in setting.variables),
        pb.CONFIG_SOURCE_DEFAULT: "default",
        pb.CONFIG_SOURCE_FLAG: "flag",
    }
    value, source = printable(setting.value), printable(sources.get(setting.source, ""))
    return ConfigRow(printable(setting.path), value, source, setting.waits_for_restart)


def _mark(status: pb.ConfigStatus) -> Mark:
    if status.HasField("failed_reload_time") or status.file_problems:
        return Mark("bad", "the changed file has problems")
    if status.file_changed:
        return Mark("warn", "the file has changed since it was loaded")
    return Mark("warn", "waits for a restart") if status.restart_keys else Mark("good", "in force")


def _problem(problem: pb.ConfigProblem, filename: str) -> str:
    line = f":{problem.line}" if problem.HasField("line") else ""
    return printable(f"{filename}{line} {problem.path}: {problem.message}")

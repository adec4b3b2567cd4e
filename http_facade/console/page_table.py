"""Table of the console's pages, in the order of the navigation."""

import re
from collections.abc import Mapping
from functools import cache

from http_facade.console.page_interface import Page
from http_facade.console.pages import (
    alert_page,
    audit_page,
    channel_pages,
    config_page,
    key_pages,
    me_page,
    model_pages,
    overview_page,
    people_pages,
    playground_key,
    project_pages,
    request_pages,
    search_page,
    task_pages,
    usage_page,
)
from umg_grpc.v1 import pb

WATCH_GROUP, ACCESS_GROUP, SERVE_GROUP, RECORD_GROUP = "watch", "access", "serve", "record"
CONSOLE_PAGES = (
    Page("overview", "", overview_page.load_overview, pb.PERMISSION_USAGE_READ, WATCH_GROUP, is_live=True, letter="o"),
    Page(
        "me",
        "me",
        me_page.load_me,
        pb.PERMISSION_SELF_READ,
        letter="y",
        is_for_holders=True,
        acts={"rotate": me_page.rotate_own, "end_session": me_page.end_own_session},
    ),
    Page(
        "playground_key",
        "playground-key.json",
        playground_key.load_choices,
        pb.PERMISSION_SELF_READ,
        acts={"create": playground_key.create_key_of_session, "keep": playground_key.keep_key_of_session},
    ),
    Page("search", "search", search_page.load_search, pb.PERMISSION_RECORDS_READ),
    Page(
        "requests",
        "requests",
        request_pages.load_calls,
        pb.PERMISSION_RECORDS_READ,
        WATCH_GROUP,
        is_live=True,
        letter="r",
        is_for_holders=True,
    ),
    Page("request", "requests/{request_id:.+}", request_pages.load_call, pb.PERMISSION_RECORDS_READ),
    Page("usage", "usage", usage_page.load_usage, pb.PERMISSION_USAGE_READ, WATCH_GROUP, letter="u"),
    Page("usage_csv", "usage.csv", usage_page.load_csv, pb.PERMISSION_USAGE_READ),
    Page(
        "alerts",
        "alerts",
        alert_page.load_alerts,
        pb.PERMISSION_ALERTS_READ,
        WATCH_GROUP,
        letter="a",
        acts={"test": alert_page.test_receiver},
    ),
    Page("keys", "keys", key_pages.load_keys, pb.PERMISSION_KEYS_READ, ACCESS_GROUP, letter="k"),
    Page(
        "new_key",
        "keys/new",
        key_pages.load_new_key,
        pb.PERMISSION_KEYS_WRITE,
        acts={"create": key_pages.create_key},
    ),
    Page(
        "key",
        "keys/{key_id}",
        key_pages.load_key,
        pb.PERMISSION_KEYS_READ,
        acts={"rotate": key_pages.rotate_key, "revoke": key_pages.revoke_key, "change": key_pages.change_key},
    ),
    Page("projects", "projects", project_pages.load_projects, pb.PERMISSION_ACCOUNTS_READ, ACCESS_GROUP, letter="p"),
    Page(
        "new_project",
        "projects/new",
        project_pages.load_new_project,
        pb.PERMISSION_ACCOUNTS_WRITE,
        acts={"create": project_pages.create_project},
    ),
    Page(
        "project",
        "projects/{account_id}",
        project_pages.load_project,
        pb.PERMISSION_ACCOUNTS_READ,
        acts={
            "change": project_pages.change_project,
            "close": project_pages.close_project,
            "open": project_pages.open_project,
        },
    ),
    Page("people", "people", people_pages.load_people, pb.PERMISSION_USERS_READ, ACCESS_GROUP, letter="e"),
    Page(
        "new_person",
        "people/new",
        people_pages.load_new_person,
        pb.PERMISSION_USERS_WRITE,
        acts={"create": people_pages.create_person},
    ),
    Page(
        "person",
        "people/{user_id}",
        people_pages.load_person,
        pb.PERMISSION_USERS_READ,
        acts={
            "give": people_pages.give_role,
            "take": people_pages.take_role,
            "rename": people_pages.rename_person,
            "disable": people_pages.disable_person,
            "enable": people_pages.enable_person,
            "create_key": people_pages.create_key_of,
            "end_session": people_pages.end_session_of,
        },
    ),
    Page(
        "channels",
        "channels",
        channel_pages.load_channels,
        pb.PERMISSION_CHANNELS_READ,
        SERVE_GROUP,
        letter="c",
        least=pb.PERMISSION_EXTENT_ALL,
    ),
    Page(
        "channel",
        "channels/{channel:.+}",
        channel_pages.load_channel,
        pb.PERMISSION_CHANNELS_READ,
        acts={
            "check": channel_pages.check_channel,
            "disable": channel_pages.disable_channel,
            "enable": channel_pages.enable_channel,
            "weight": channel_pages.set_weight,
        },
    ),
    Page("models", "models", model_pages.load_models, pb.PERMISSION_PRICES_READ, SERVE_GROUP, letter="m"),
    Page(
        "model",
        "models/{model:.+}",
        model_pages.load_model,
        pb.PERMISSION_PRICES_READ,
        acts={"set": model_pages.set_price, "reset": model_pages.reset_price},
    ),
    Page("tasks", "tasks", task_pages.load_tasks, pb.PERMISSION_TASKS_READ, SERVE_GROUP, letter="t"),
    Page(
        "task",
        "tasks/{task_id}",
        task_pages.load_task,
        pb.PERMISSION_TASKS_READ,
        acts={"redeliver": task_pages.redeliver},
    ),
    Page("audit", "audit", audit_page.load_audit, pb.PERMISSION_AUDIT_READ, RECORD_GROUP, letter="l"),
    Page(
        "config",
        "config",
        config_page.load_config,
        pb.PERMISSION_CONFIG_READ,
        RECORD_GROUP,
        letter="f",
        least=pb.PERMISSION_EXTENT_ALL,
    ),
)
_PARAMETER = re.compile(r"\{(\w+)(?::(.+?))?\}")


def find_page(path: str) -> tuple[Page, Mapping[str, str]] | None:
    """Return the page at a path below `/console`, with the parameters of the path; None if there is none."""
    for page in CONSOLE_PAGES:
        if match := _pattern(page.path).fullmatch(path):
            return page, match.groupdict()
    return None


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts, end = list[str](), 0
    for found in _PARAMETER.finditer(path):
        parts += re.escape(path[end : found.start()]), f"(?P<{found[1]}>{found[2] or '[^/]+'})"
        end = found.end()
    return re.compile("".join((*parts, re.escape(path[end:]))))

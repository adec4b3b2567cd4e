"""Pages of keys: the list, one key with its acts, and the form of a new one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.budget_charts import budget_chart
from http_facade.console.budget_meters import BudgetLevel, BudgetMeter, balance_meters, binding_level, key_meters
from http_facade.console.call_charts import ChartTable, calls_chart, summary_charts
from http_facade.console.call_outcomes import Mark
from http_facade.console.figure_texts import count_text
from http_facade.console.object_names import OfferedAccounts, account_names, offered_accounts
from http_facade.console.page_interface import Done, Form, Shown, Visit, object_path
from http_facade.console.page_rendering import word
from http_facade.console.pages.audit_page import history_path
from http_facade.console.pages.request_pages import CallRow, call_row
from http_facade.console.summary_figures import SpendRow, call_summary, spend_rows
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire import administration_api_json as bodies
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE, FAILED_ROWS = 50, 5
EXPIRY_WARNING = timedelta(days=7)
OVERLAP_WORDS = {"0": "now", "3600": "1 h", "86400": "24 h", "604800": "7 d"}
"""Seconds for which the former secret stays valid -> words."""
BUDGET_PERIODS = ("month", "day", "none")
ACCOUNT_KIND_NAMES = enum_names(pb.AccountKind.DESCRIPTOR)


@dataclass(frozen=True)
class KeyRow:
    """Row of the list of keys."""

    key: pb.Key
    path: str
    name: str
    mark: Mark
    project: str
    meters: Sequence[BudgetMeter]


@dataclass(frozen=True)
class KeyList:
    """Content of the list of keys."""

    rows: Sequence[KeyRow]
    text: str
    include_ended: bool
    pages: ListPages
    may_create: bool


@dataclass(frozen=True)
class KeyView:
    """Content of the page of one key."""

    row: KeyRow
    seen: str
    """Version of the settings that the form shows."""
    models: str
    operations: str
    channels: str
    tags: Mapping[str, str]
    budget_chart: ChartTable | None
    charts: ChartTable | None
    models_used: Sequence[SpendRow]
    failed: Sequence[CallRow]
    overlaps: Mapping[str, str]
    may_rotate: bool
    may_change: bool
    calls_of_last_hour: str
    """Calls that a rotation or a revocation concerns."""
    above: Sequence[BudgetLevel]
    binding: tuple[str, int] | None
    """Name of the level above that binds first, and its rest; None if the key itself binds."""
    project_path: str
    history: str
    """Page of the acts on the key; "" if the person may not see it."""


@dataclass(frozen=True)
class NewKey:
    """Content of the form of a new key."""

    projects: OfferedAccounts
    periods: Sequence[str]
    may_create: bool


@dataclass(frozen=True)
class NewSecret:
    """Secret that is shown once, with the command that calls the gateway with it."""

    key: pb.Key
    path: str
    secret: str
    is_rotated: bool


async def load_keys(visit: Visit) -> KeyList:
    """Return a page of the keys, newest first."""
    filters = visit.filters
    include_ended = bool(filters.text("ended"))
    request = pb.ListKeysRequest(
        page_size=PAGE_SIZE,
        page_token=filters.page_token,
        include_ended=include_ended,
        project_ids=filters.values("project"),
        tags=filters.tags(),
        text=filters.text("text"),
    )
    response = await visit.calls.call(request, pb.ListKeysResponse)
    names = await account_names(visit.calls, visit.rights, (key.settings.project_id for key in response.keys))
    return KeyList(
        rows=[key_row(key, names, visit.now) for key in response.keys],
        text=filters.text("text"),
        include_ended=include_ended,
        pages=filters.pages(response.next_page_token),
        may_create=visit.rights.may(pb.PERMISSION_KEYS_WRITE),
    )


async def load_key(visit: Visit) -> KeyView:
    """Return one key with its usage and its failed calls. Raise UmgError(OBJECT_NOT_FOUND)."""
    request = pb.GetUsageRequest(key_id=visit.parameters["key_id"])
    request.start_time.FromDatetime(visit.now - timedelta(hours=1))
    found = await visit.calls.call(request, pb.GetUsageResponse)
    key, above = found.key, [_level(each, visit.now) for each in found.levels]
    names = {each.account_id: each.name for each in found.levels if each.account_id}
    summary = await call_summary(visit, key_ids=[key.key_id])
    settings, row = key.settings, key_row(key, names, visit.now)
    may_rotate = _is_open(key) and visit.rights.may_change(pb.PERMISSION_KEYS_ROTATE, key)
    return KeyView(
        row=row,
        seen=form_values.version(settings),
        models=", ".join(settings.model_patterns),
        operations=", ".join(bodies.OPERATION_NAMES[each] for each in settings.operations),
        channels=", ".join(settings.channels),
        tags=dict(sorted(settings.tags.items())),
        budget_chart=await budget_chart(visit, row.meters, key_ids=[key.key_id]),
        charts=summary_charts(summary, [calls_chart(summary)], visit.calls_path(key=key.key_id), visit.now),
        models_used=spend_rows(visit, summary, key=key.key_id),
        failed=await failed_calls(visit, key),
        overlaps=OVERLAP_WORDS,
        may_rotate=may_rotate,
        may_change=_is_open(key) and visit.rights.may_change(pb.PERMISSION_KEYS_WRITE, key),
        calls_of_last_hour=count_text(found.usage.request_count),
        above=[each for each in above if each.meters],
        binding=binding_level(row.meters, above),
        history=history_path(visit, key.key_id),
        project_path=object_path("projects", settings.project_id) if settings.project_id else "",
    )


async def load_new_key(visit: Visit) -> NewKey:
    """Return the choices of the form of a new key."""
    offered = await offered_accounts(visit.calls, visit.rights, pb.PERMISSION_KEYS_WRITE, pb.ACCOUNT_KIND_PROJECT)
    return NewKey(offered, BUDGET_PERIODS, visit.rights.may(pb.PERMISSION_KEYS_WRITE))


async def create_key(visit: Visit, form: Form) -> Shown:
    """Create a key of the form, and show its secret once."""
    settings = {"name": form_values.text(form, "name"), **_settings(form)}
    if project := form_values.text(form, "project"):
        settings["project_id"] = project
    request = bodies.decode_create(msgspec.json.encode({"settings": settings}))
    made = await visit.calls.call(request, pb.CreateKeyResponse)
    return new_secret(made.key, made.secret, is_rotated=False)


async def rotate_key(visit: Visit, form: Form) -> Shown:
    """Give the key a new secret, and show it once."""
    made = await rotated(visit, form, (await _find(visit)).key_id)
    return new_secret(made.key, made.secret, is_rotated=True)


async def rotated(visit: Visit, form: Form, key_id: str) -> pb.RotateKeyResponse:
    """Rotate a key, with the overlap in a form."""
    body = {"overlap_seconds": form_values.number(form, "overlap")}
    request = bodies.decode_rotate(msgspec.json.encode(body))
    request.key_id = key_id
    return await visit.calls.call(request, pb.RotateKeyResponse)


async def revoke_key(visit: Visit, form: Form) -> Done:
    """Revoke the key whose name the form repeats."""
    key = await _find(visit)
    form_values.check_typed(form, "name", key.settings.name)
    await visit.calls.call(pb.RevokeKeyRequest(key_id=key.key_id), pb.RevokeKeyResponse)
    return Done(object_path("keys", key.key_id), "key_revoked")


async def change_key(visit: Visit, form: Form) -> Done:
    """Change the limits, the budget and the models of the key."""
    key = await _find(visit)
    form_values.check_seen(form, key.settings)
    request = bodies.decode_update(msgspec.json.encode({"settings": _settings(form)}))
    request.key_id = key.key_id
    await visit.calls.call(request, pb.UpdateKeyResponse)
    return Done(object_path("keys", key.key_id), "key_changed")


def key_row(key: pb.Key, projects: Mapping[str, str], now: datetime) -> KeyRow:
    """Return the row of a key, with the name of its project."""
    project = key.settings.project_id
    return KeyRow(
        key=key,
        path=object_path("keys", key.key_id),
        name=printable(key.settings.name),
        mark=_mark(key, now),
        project=printable(projects.get(project, project)),
        meters=key_meters(key, now),
    )


def new_secret(key: pb.Key, secret: str, *, is_rotated: bool) -> Shown:
    """Return the page that shows the secret of a key once."""
    return Shown("secret", NewSecret(key, object_path("keys", key.key_id), secret, is_rotated))


def _settings(form: Form) -> dict[str, object]:
    """Return the settings of a form by their names in JSON; None removes a limit."""
    found = form_values.limits(form)
    if "budget" in form:
        found["budget_micro_credits"] = form_values.micro_credits(form, "budget")
        period = form_values.text(form, "budget_period")
        found["budget_period"] = period if period in BUDGET_PERIODS else BUDGET_PERIODS[0]
    return found


async def _find(visit: Visit) -> pb.Key:
    request = pb.GetKeyRequest(key_id=visit.parameters["key_id"])
    return (await visit.calls.call(request, pb.GetKeyResponse)).key


def _level(level: pb.KeyLevel, now: datetime) -> BudgetLevel:
    name = printable(level.name) or word(f"account_kinds.{ACCOUNT_KIND_NAMES[level.kind]}")
    path = object_path("projects", level.account_id) if level.account_id else ""
    return BudgetLevel(name, path, balance_meters(level.balances, now))


async def failed_calls(visit: Visit, key: pb.Key) -> list[CallRow]:
    """Return the last failed calls of a key, as far as the person may see them."""
    if not visit.rights.may_change(pb.PERMISSION_RECORDS_READ, key):
        return []
    request = pb.ListRequestRecordsRequest(
        key_ids=[key.key_id],
        failed_only=True,
        page_size=FAILED_ROWS,
        start_time=visit.filters.start_time(),
        end_time=visit.filters.end_time(),
    )
    records = (await visit.calls.call(request, pb.ListRequestRecordsResponse)).records
    return [call_row(visit, record, {key.key_id: key.settings.name}) for record in records]


def _mark(key: pb.Key, now: datetime) -> Mark:
    if key.HasField("revoke_time"):
        return Mark("bad", "revoked")
    if not key.settings.HasField("expire_time"):
        return Mark("good", "active")
    rest = key.settings.expire_time.ToDatetime(UTC) - now
    if rest <= timedelta(0):
        return Mark("off", "expired")
    return Mark("warn", "expires soon") if rest < EXPIRY_WARNING else Mark("good", "active")


def _is_open(key: pb.Key) -> bool:
    return not key.HasField("revoke_time")

"""Page of the person of a session: the holder of a key has this key alone; others have roles, keys and sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from http_facade.console import form_values
from http_facade.console.address_filters import timestamp_of
from http_facade.console.budget_meters import BudgetMeter, balance_meters
from http_facade.console.figure_texts import count_text
from http_facade.console.object_names import account_names
from http_facade.console.page_interface import CALLS_PATH, Done, Form, Shown, Visit
from http_facade.console.pages.key_pages import (
    ACCOUNT_KIND_NAMES,
    OVERLAP_WORDS,
    KeyRow,
    NewSecret,
    failed_calls,
    key_row,
    rotated,
)
from http_facade.console.pages.people_pages import ROLE_NAMES
from http_facade.console.pages.request_pages import CallRow
from http_facade.console.pages.session_rows import OpenSessionRow, end_session, session_rows
from http_facade.console.summary_figures import Figure, call_summary, figures
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

ME_PATH = "/console/me"
MAX_KEYS, SHOWN_MODELS, SHOWN_DAYS = 100, 60, 30


@dataclass(frozen=True)
class LevelView:
    """Project or organisation of the own key, whose budgets and models hold for the key too."""

    kind: str
    name: str
    """ "" for an account that the person may not see."""
    meters: Sequence[BudgetMeter]
    models: str


@dataclass(frozen=True)
class LimitRow:
    """Limit at all levels."""

    name: str
    values: Sequence[str]
    """Of the key, its project and its organisation; "" for none."""


@dataclass(frozen=True)
class OwnKey:
    """Key of a holder, with everything that a holder sees."""

    row: KeyRow
    figures: Sequence[Figure]
    levels: Sequence[LevelView]
    limits: Sequence[LimitRow]
    patterns: str
    models: Sequence[str]
    """Models that the key may use; empty for a key that may not list them."""
    shown_models: int
    days: Sequence[pb.UsageEntry]
    failed: Sequence[CallRow]
    overlaps: dict[str, str]


@dataclass(frozen=True)
class OwnRole:
    """Role of the person in an account."""

    role: str
    account_id: str
    account: str


@dataclass(frozen=True)
class MyPage:
    """Content of the page."""

    name: str
    own: OwnKey | None
    """Key of a holder; None for a person with a role."""
    roles: Sequence[OwnRole]
    keys: Sequence[KeyRow]
    sessions: Sequence[OpenSessionRow]


async def load_me(visit: Visit) -> MyPage:
    """Return the key of a holder, or the roles and keys of any other person, and the sessions."""
    caller, sessions = visit.rights.caller, await session_rows(visit)
    if visit.rights.is_holder:
        return MyPage(printable(caller.name), await _own_key(visit), [], [], sessions)
    keys = await _keys(visit)
    shown = [*(each.account_id for each in caller.memberships), *(key.settings.project_id for key in keys)]
    names = await account_names(visit.calls, visit.rights, shown)
    roles = [
        OwnRole(ROLE_NAMES[each.role], each.account_id, printable(names.get(each.account_id, each.account_id)))
        for each in caller.memberships
    ]
    rows = [key_row(key, names, visit.now) for key in keys]
    return MyPage(printable(caller.name), None, roles, rows, sessions)


async def rotate_own(visit: Visit, form: Form) -> Shown:
    """Give the key of the session a new secret, and show it once."""
    made = await rotated(visit, form, visit.rights.caller.key_id)
    return Shown("secret", NewSecret(made.key, ME_PATH, made.secret, is_rotated=True))


async def end_own_session(visit: Visit, form: Form) -> Done:
    """End a session of the person."""
    await end_session(visit, form)
    return Done(ME_PATH, "session_ended")


async def _own_key(visit: Visit) -> OwnKey:
    usage = await visit.calls.call(pb.GetUsageRequest(), pb.GetUsageResponse)
    key, levels = usage.key, usage.levels
    summary = await call_summary(visit)  # of the calls that a holder may see: those of the key
    models, kept = await _models(visit), visit.filters.kept
    return OwnKey(
        row=key_row(key, {}, visit.now),
        figures=list(figures(visit, summary, f"{CALLS_PATH}{kept()}", f"{CALLS_PATH}{kept(failed='1')}")),
        levels=[
            LevelView(
                kind=ACCOUNT_KIND_NAMES[each.kind],
                name=printable(each.name),
                meters=balance_meters(each.balances, visit.now),
                models=", ".join(each.model_patterns),
            )
            for each in levels
        ],
        limits=[
            LimitRow(
                name,
                [count_text(getattr(each, name)) if each.HasField(name) else "" for each in (key.settings, *levels)],
            )
            for name in form_values.LIMIT_FIELDS
        ],
        patterns=", ".join(key.settings.model_patterns),
        models=models,
        shown_models=SHOWN_MODELS,
        days=await _days(visit, key),
        failed=await failed_calls(visit, key),
        overlaps=OVERLAP_WORDS,
    )


async def _models(visit: Visit) -> list[str]:
    try:
        return [each.id for each in (await visit.calls.call(pb.ListModelsRequest(), pb.ListModelsResponse)).models]
    except UmgError as error:  # the operations of the key may not include the list of models
        if error.reason != pb.ERROR_REASON_PERMISSION_DENIED:
            raise
        return []


async def _days(visit: Visit, key: pb.Key) -> list[pb.UsageEntry]:
    """Return the usage of the last days, the newest first; days without calls are left out."""
    today = visit.now.replace(hour=0, minute=0, second=0, microsecond=0)
    begin = timestamp_of(today - timedelta(days=SHOWN_DAYS - 1))
    request = pb.ListUsageRequest(key_ids=[key.key_id], bucket=pb.USAGE_BUCKET_DAY, start_time=begin)
    entries = (await visit.calls.call(request, pb.ListUsageResponse)).entries
    return sorted(entries, key=lambda entry: -entry.start_time.seconds)


async def _keys(visit: Visit) -> Sequence[pb.Key]:
    """Return the keys of the user; without one the key of the session."""
    caller = visit.rights.caller
    if caller.user_id:
        request = pb.ListKeysRequest(user_ids=[caller.user_id], page_size=MAX_KEYS)
        return (await visit.calls.call(request, pb.ListKeysResponse)).keys
    if not caller.key_id:
        return []
    return [(await visit.calls.call(pb.GetKeyRequest(), pb.GetKeyResponse)).key]

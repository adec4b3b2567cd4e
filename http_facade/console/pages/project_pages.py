"""Pages of organisations and projects: their tree, one of them with its acts, and the form of a new one."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

import msgspec

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.budget_charts import budget_chart
from http_facade.console.budget_meters import BudgetMeter, balance_meters
from http_facade.console.call_charts import ChartTable
from http_facade.console.call_outcomes import Mark
from http_facade.console.object_names import WHOLE_GATEWAY, accounts, accounts_of
from http_facade.console.page_interface import Done, Form, Visit, object_path
from http_facade.console.pages.audit_page import history_path
from http_facade.console.pages.key_pages import ACCOUNT_KIND_NAMES, BUDGET_PERIODS, KeyRow, key_row
from umg_grpc.base.micro_credits import credits_text
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire import account_api_json as bodies
from umg_grpc.wire.administration_api_json import OPERATION_NAMES, PERIOD_NAMES

PAGE_SIZE, MAX_KEYS, MAX_MODELS = 100, 50, 50
PROJECT_VALUE, ORGANIZATION_VALUE = pb.ACCOUNT_KIND_PROJECT, pb.ACCOUNT_KIND_ORGANIZATION
WRITE_ACCOUNTS = pb.PERMISSION_ACCOUNTS_WRITE


@dataclass(frozen=True)
class ListedAccount:
    """Row of an organisation or a project."""

    account: pb.Account
    path: str
    name: str
    kind: str
    mark: Mark
    meters: Sequence[BudgetMeter]
    is_nested: bool
    """Whether it belongs to the organisation of a row above."""


@dataclass(frozen=True)
class AccountTree:
    """Content of the list of projects."""

    rows: Sequence[ListedAccount]
    include_closed: bool
    pages: ListPages
    may_create: bool


@dataclass(frozen=True)
class AccountView:
    """Content of the page of one organisation or project."""

    row: ListedAccount
    parent: ListedAccount | None
    """Organisation of a project, if the person may see it."""
    projects: Sequence[ListedAccount]
    keys: Sequence[KeyRow]
    has_more_keys: bool
    seen: str
    """Version of the settings that the form shows."""
    models: str
    operations: str
    channels: str
    tags: Mapping[str, str]
    budgets: Mapping[tuple[str, bool], str]
    """(period, whether it is soft) -> credits, as a form offers them."""
    budget_chart: ChartTable | None
    entries: Sequence[pb.UsageEntry]
    usage_filter: str
    history: str
    """Page of the acts on it; "" if the person may not see it."""
    may_change: bool


@dataclass(frozen=True)
class NewAccount:
    """Content of the form of a new account."""

    kinds: Sequence[str]
    organizations: Mapping[str, str]
    may_be_alone: bool
    """Whether the person may create a project without an organisation."""


async def load_projects(visit: Visit) -> AccountTree:
    """Return organisations with the projects of a page below them, and projects without one at the end."""
    filters = visit.filters
    is_open = not filters.text("closed")
    organizations = await accounts(visit.calls, ORGANIZATION_VALUE, include_closed=True)
    request = pb.ListAccountsRequest(
        kind=PROJECT_VALUE, include_closed=not is_open, page_size=PAGE_SIZE, page_token=filters.page_token
    )
    response = await visit.calls.call(request, pb.ListAccountsResponse)
    below = defaultdict[str, list[pb.Account]](list)
    for project in response.accounts:
        parent = project.settings.organization_id
        below[parent if parent in organizations else ""].append(project)
    rows = list[ListedAccount]()
    for account_id, organization in organizations.items():
        projects = below.get(account_id, [])
        if projects or not (filters.page_token or (is_open and organization.HasField("close_time"))):
            rows.append(_row(organization, visit.now))
            rows += [_row(project, visit.now, is_nested=True) for project in projects]
    rows += [_row(project, visit.now) for project in below.get("", [])]
    return AccountTree(
        rows=rows,
        include_closed=not is_open,
        pages=filters.pages(response.next_page_token),
        may_create=_may_create(visit, organizations),
    )


async def load_project(visit: Visit) -> AccountView:
    """Return an organisation or a project with its usage. Raise UmgError(OBJECT_NOT_FOUND)."""
    account = await _find(visit)
    settings, is_project = account.settings, account.kind == PROJECT_VALUE
    above = await accounts_of(visit.calls, visit.rights, [settings.organization_id])
    parent = above.get(settings.organization_id)
    projects = dict[str, pb.Account]()
    if not is_project:
        projects = await accounts(visit.calls, PROJECT_VALUE, organization_id=account.account_id, include_closed=True)
    keys = await _keys(visit, account) if is_project else pb.ListKeysResponse()
    names = {account.account_id: settings.name}
    counted = [account.account_id] if is_project else list(projects)
    row = _row(account, visit.now)
    return AccountView(
        row=row,
        parent=_row(parent, visit.now) if parent else None,
        projects=[_row(each, visit.now) for each in projects.values()],
        keys=[key_row(key, names, visit.now) for key in keys.keys],
        has_more_keys=bool(keys.next_page_token),
        seen=form_values.version(settings),
        models=", ".join(settings.model_patterns),
        operations=", ".join(OPERATION_NAMES[each] for each in settings.operations),
        channels=", ".join(settings.channels),
        tags=dict(sorted(settings.tags.items())),
        budgets=_offered_budgets(settings),
        budget_chart=await budget_chart(visit, row.meters, project_ids=counted),
        entries=await _usage(visit, counted),
        usage_filter=f"project={quote(','.join(counted))}",
        history=history_path(visit, account.account_id),
        may_change=visit.rights.may(WRITE_ACCOUNTS, account.account_id),
    )


async def load_new_project(visit: Visit) -> NewAccount:
    """Return the choices of the form of a new account."""
    organizations = await accounts(visit.calls, ORGANIZATION_VALUE)
    may_be_alone = visit.rights.may(WRITE_ACCOUNTS, WHOLE_GATEWAY)
    kinds = [ACCOUNT_KIND_NAMES[PROJECT_VALUE]] if _may_create(visit, organizations) else []
    return NewAccount(
        kinds=[*kinds, ACCOUNT_KIND_NAMES[ORGANIZATION_VALUE]] if may_be_alone else kinds,
        organizations={
            account_id: printable(each.settings.name)
            for account_id, each in organizations.items()
            if visit.rights.may(WRITE_ACCOUNTS, account_id)
        },
        may_be_alone=may_be_alone,
    )


async def create_project(visit: Visit, form: Form) -> Done:
    """Create an organisation or a project."""
    settings: dict[str, object] = {"name": form_values.text(form, "name"), "budgets": _budgets(form)}
    is_organization = form_values.text(form, "kind") == ACCOUNT_KIND_NAMES[ORGANIZATION_VALUE]
    if (organization := form_values.text(form, "organization")) and not is_organization:
        settings["organization_id"] = organization
    request = bodies.decode_create_account(msgspec.json.encode({"settings": settings | form_values.limits(form)}))
    request.kind = ORGANIZATION_VALUE if is_organization else PROJECT_VALUE
    account = (await visit.calls.call(request, pb.CreateAccountResponse)).account
    return Done(_path(account), "account_created")


async def change_project(visit: Visit, form: Form) -> Done:
    """Change the name, the budgets, the limits and the models of an account."""
    account = await _find(visit)
    form_values.check_seen(form, account.settings)
    settings = {"name": form_values.text(form, "name"), "budgets": _budgets(form), **form_values.limits(form)}
    request = bodies.decode_update_account(msgspec.json.encode({"settings": settings}))
    request.account_id, request.kind = account.account_id, account.kind
    await visit.calls.call(request, pb.UpdateAccountResponse)
    return Done(_path(account), "account_changed")


async def close_project(visit: Visit, form: Form) -> Done:
    """Close the account whose name the form repeats."""
    account = await _find(visit)
    form_values.check_typed(form, "confirm", account.settings.name)
    await _set_closed(visit, account, closed=True)
    return Done(_path(account), "account_closed")


async def open_project(visit: Visit, _form: Form) -> Done:
    """Open a closed account again."""
    account = await _find(visit)
    await _set_closed(visit, account, closed=False)
    return Done(_path(account), "account_opened")


def _path(account: pb.Account) -> str:
    return object_path("projects", account.account_id)


def _row(account: pb.Account, now: datetime, *, is_nested: bool = False) -> ListedAccount:
    return ListedAccount(
        account=account,
        path=_path(account),
        name=printable(account.settings.name),
        kind=ACCOUNT_KIND_NAMES[account.kind],
        mark=Mark("off", "closed") if account.HasField("close_time") else Mark("good", "open"),
        meters=balance_meters(account.balances, now),
        is_nested=is_nested,
    )


def _may_create(visit: Visit, organizations: Mapping[str, pb.Account]) -> bool:
    return any(visit.rights.may(WRITE_ACCOUNTS, account_id) for account_id in (WHOLE_GATEWAY, *organizations))


def _offered_budgets(settings: pb.AccountSettings) -> dict[tuple[str, bool], str]:
    """Return the budgets that a form offers: one of each period, and the soft ones that there are."""
    found = {(period, False): "" for period in BUDGET_PERIODS}
    return found | {
        (PERIOD_NAMES.get(each.period, "none"), each.soft): credits_text(each.micro_credits)
        for each in settings.budgets
    }


def _budgets(form: Form) -> list[dict[str, object]]:
    """Return the budgets of the fields `budget_PERIOD` and `soft_budget_PERIOD`. Raise UmgError(INVALID_FIELD)."""
    found = list[dict[str, object]]()
    for period in BUDGET_PERIODS:
        for soft in (False, True):
            amount = form_values.micro_credits(form, f"{'soft_' if soft else ''}budget_{period}")
            if amount is not None:
                found.append({"period": period, "micro_credits": amount, "soft": soft})
    return found


async def _find(visit: Visit) -> pb.Account:
    request = pb.GetAccountRequest(account_id=visit.parameters["account_id"])
    return (await visit.calls.call(request, pb.GetAccountResponse)).account


async def _keys(visit: Visit, account: pb.Account) -> pb.ListKeysResponse:
    request = pb.ListKeysRequest(project_ids=[account.account_id], page_size=MAX_KEYS)
    return await visit.calls.call(request, pb.ListKeysResponse)


async def _usage(visit: Visit, project_ids: Sequence[str]) -> list[pb.UsageEntry]:
    """Return the usage of projects by model, that with the highest cost first."""
    if not project_ids:
        return []
    request = pb.ListUsageRequest(
        project_ids=project_ids,
        group_by=[pb.USAGE_DIMENSION_MODEL],
        start_time=visit.filters.start_time(),
        end_time=visit.filters.end_time(),
    )
    entries = (await visit.calls.call(request, pb.ListUsageResponse)).entries
    return sorted(entries, key=lambda entry: -entry.micro_credits)[:MAX_MODELS]


async def _set_closed(visit: Visit, account: pb.Account, *, closed: bool) -> None:
    request = pb.SetAccountClosedRequest(account_id=account.account_id, kind=account.kind, closed=closed)
    await visit.calls.call(request, pb.SetAccountClosedResponse)

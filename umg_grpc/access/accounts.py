"""Organisations and projects: creation, listing, changes, closing and opening."""

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.account_levels import KIND_NOUNS, ORGANIZATION_KIND, PROJECT_KIND, unknown_account
from umg_grpc.access.audit_log import ChangedObject, record_change
from umg_grpc.access.budget_settings import Budget, budgets_of
from umg_grpc.access.key_settings import NamedKeyFields, check_fields, set_columns
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import GivenClock, utc_of
from umg_grpc.store.table_definitions import AccountRow
from umg_grpc.v1 import pb

ID_PREFIXES: Final = {ORGANIZATION_KIND: "org_", PROJECT_KIND: "proj_"}
_SHARED_FIELDS = NamedKeyFields.__required_keys__ | NamedKeyFields.__optional_keys__
"""Settings that keys have too, and that are validated in the same way."""


@dataclass(frozen=True)
class Account:
    """Organisation or project as it is stored; times in UTC. An empty restriction allows all."""

    account_id: str
    kind: str
    name: str
    organization_id: str
    model_patterns: tuple[str, ...]
    channels: tuple[str, ...]
    operations: tuple[str, ...]
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_requests: int | None
    budgets: tuple[Budget, ...]
    tags: Mapping[str, str]
    create_time: datetime
    close_time: datetime | None


class AccountFields(TypedDict, total=False):
    """Settings of an account, by the names of their columns and of fields in `umg.v1.AccountSettings`."""

    name: str
    organization_id: str
    model_patterns: Collection[str]
    channels: Collection[str]
    operations: Collection[str]
    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent_requests: int | None
    budgets: Collection[Budget]
    tags: Mapping[str, str]


class Accounts:
    """Repository of organisations and projects in the database."""

    def __init__(self, store: Store, now: Callable[[], datetime] | None = None) -> None:
        self._store = store
        self._clock = store.clock if now is None else GivenClock(now)

    async def create(self, kind: str, fields: AccountFields) -> Account:
        """Create an account of the kind `ORGANIZATION_KIND` or `PROJECT_KIND`. `organization_id` is an id. Raise
        UmgError: INVALID_FIELD, OBJECT_NOT_FOUND for an unknown organisation, WRONG_STATE for a closed one,
        ALREADY_EXISTS if an account of the kind that is not closed has the name.
        """
        fields = {"name": "", **fields}
        check(fields, utc_of(self._clock))
        if kind == ORGANIZATION_KIND and fields.get("organization_id"):
            raise _invalid("organization_id", "an organisation belongs to no other one; leave it out")
        row = _new_row(kind, utc_of(self._clock))
        set_columns(row, fields, "organization_id")
        row.organization_id = fields.get("organization_id") or None
        try:
            await self._insert(row)
        except IntegrityError:
            raise _name_exists(kind, row.name) from None
        return account_of(row)

    @repeated_idempotent
    async def _insert(self, row: AccountRow) -> None:
        async with self._store.write() as session:
            if row.organization_id is not None:
                parent = await session.get(AccountRow, row.organization_id)
                if parent is None or parent.kind != ORGANIZATION_KIND:
                    raise unknown_account(row.organization_id)
                _check_open(parent)
            await session.merge(row)  # it is there already if an earlier run was committed without a response
            await self._record(session, row, None)

    @repeated
    async def get(self, reference: str, kind: str = "", among: Collection[str] | None = None) -> Account:
        """Return the account with the id or name `reference`: of one `kind`, or "" for both; of the ids `among`, or
        None for all. A closed account is found by its id, and by its name if no other one matches. Raise UmgError:
        OBJECT_NOT_FOUND, INVALID_FIELD if an organisation and a project have the name.
        """
        row = AccountRow
        query = select(row).where(or_(row.account_id == reference, row.name == reference))
        if kind:
            query = query.where(row.kind == kind)
        if among is not None:
            query = query.where(row.account_id.in_(among))
        async with self._store.read() as session:
            rows = list(await session.scalars(query.order_by(row.create_time.desc())))
        by_id = [each for each in rows if each.account_id == reference]
        for found in (by_id, [each for each in rows if each.close_time is None], rows):
            if len({each.kind for each in found}) > 1:
                ids = ", ".join(each.account_id for each in found)
                raise _invalid("account_id", f"several accounts are meant, say which: {ids}")
            if found:
                return account_of(found[0])
        raise unknown_account(reference)

    @repeated
    async def page(
        self,
        after: str,
        size: int,
        *,
        kind: str = "",
        organization_id: str = "",
        account_ids: Collection[str] = (),
        text: str = "",
        include_closed: bool = False,
        among: Collection[str] | None = None,
    ) -> tuple[list[Account], str]:
        """Return up to `size` accounts, organisations before projects, each by name, and the id after which the next
        page begins ("" if there is none). `account_ids`: of the accounts that are listed; empty for all. `text`: part
        of the name, or beginning of the id. `among`: ids of the accounts that exist for the caller; None for all. Raise
        UmgError(INVALID_FIELD) for an unknown `after`.
        """
        row = AccountRow
        query = select(row).order_by(row.kind, row.name, row.account_id).limit(size + 1)
        if kind:
            query = query.where(row.kind == kind)
        if organization_id:
            query = query.where(row.organization_id == organization_id)
        if account_ids:
            query = query.where(row.account_id.in_(account_ids))
        if text:
            is_named = row.name.icontains(text, autoescape=True)
            query = query.where(or_(is_named, row.account_id.startswith(text, autoescape=True)))
        if not include_closed:
            query = query.where(row.close_time.is_(None))
        if among is not None:
            query = query.where(row.account_id.in_(among))
        async with self._store.read() as session:
            if after:
                last = await session.get(row, after)
                if last is None:
                    message = "`page_token`: it belongs to no page of accounts; begin with the first page"
                    raise _invalid("page_token", message)
                follows_name = (row.name > last.name) | ((row.name == last.name) & (row.account_id > after))
                query = query.where((row.kind > last.kind) | ((row.kind == last.kind) & follows_name))
            found = [account_of(each) for each in await session.scalars(query)]
        return found[:size], found[size - 1].account_id if len(found) > size else ""

    @repeated_idempotent
    async def update(self, account_id: str, fields: AccountFields) -> Account:
        """Change settings of the account with this id; absent ones stay. Raise UmgError: OBJECT_NOT_FOUND,
        INVALID_FIELD, WRONG_STATE for a closed account, ALREADY_EXISTS for a used name.
        """
        check(fields, utc_of(self._clock))
        try:
            async with self._store.write() as session:
                row = await _row(session, account_id)
                kind = row.kind  # a transaction that fails leaves no row to read
                _check_open(row)
                if fields.get("organization_id", row.organization_id or "") != (row.organization_id or ""):
                    raise _invalid("organization_id", "a project stays in its organisation; create another project")
                before = _audited(row)
                set_columns(row, fields, "organization_id")
                await self._record(session, row, before)
        except IntegrityError:
            raise _name_exists(kind, fields.get("name", "")) from None
        return account_of(row)

    @repeated_idempotent
    async def set_closed(self, account_id: str, *, closed: bool) -> Account:
        """Close or open the account with this id. Raise UmgError: OBJECT_NOT_FOUND, ALREADY_EXISTS if another account
        has taken the name meanwhile.
        """
        try:
            async with self._store.write() as session:
                row = await _row(session, account_id)
                kind, name, before = row.kind, row.name, _audited(row)
                if closed != (row.close_time is not None):
                    row.close_time = utc_of(self._clock) if closed else None
                await self._record(session, row, before)
        except IntegrityError:
            raise _name_exists(kind, name) from None
        return account_of(row)

    async def _record(self, session: AsyncSession, row: AccountRow, before: Mapping[str, object] | None) -> None:
        changed = ChangedObject(row.kind, row.account_id, row.name, row.account_id)
        await record_change(session, utc_of(self._clock), changed, before, _audited(row))


def _audited(row: AccountRow) -> dict[str, object]:
    """Return the settings and the state of an account for the audit log."""
    return {column.name: getattr(row, column.name) for column in AccountRow.__table__.columns}


def check(fields: AccountFields, now: datetime) -> None:
    """Raise UmgError(INVALID_FIELD) for the first setting that is invalid, by the rules of keys."""
    shared = {name: value for name, value in fields.items() if name in _SHARED_FIELDS}
    check_fields(shared, now)  # type: ignore[arg-type]  # the fields of both have the same types
    if fields.get("name", "").startswith(tuple(ID_PREFIXES.values())):
        message = "it looks like the id of an organisation or project, by which they are named too; choose another"
        raise _invalid("name", message)


def account_of(row: AccountRow) -> Account:
    """Return a row of the database as an account."""
    return Account(
        account_id=row.account_id,
        kind=row.kind,
        name=row.name,
        organization_id=row.organization_id or "",
        model_patterns=tuple(row.model_patterns),
        channels=tuple(row.channels),
        operations=tuple(row.operations),
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        concurrent_requests=row.concurrent_requests,
        budgets=budgets_of(row.budgets),
        tags=row.tags,
        create_time=row.create_time,
        close_time=row.close_time,
    )


def _new_row(kind: str, create_time: datetime) -> AccountRow:
    return AccountRow(
        account_id=ID_PREFIXES[kind] + secrets.token_hex(8),
        kind=kind,
        model_patterns=[],
        channels=[],
        operations=[],
        budgets=[],
        tags={},
        create_time=create_time,
    )


async def _row(session: AsyncSession, account_id: str) -> AccountRow:
    row = await session.get(AccountRow, account_id)
    if row is None:
        raise unknown_account(account_id)
    return row


def _check_open(row: AccountRow) -> None:
    if row.close_time is not None:
        message = f"the {KIND_NOUNS[row.kind]} `{row.name}` is closed; open it first"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="closed")


def _name_exists(kind: str, name: str) -> UmgError:
    message = f"the {KIND_NOUNS[kind]} `{name}` exists; choose another name, or close it first"
    return UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)


def _invalid(field: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=field)

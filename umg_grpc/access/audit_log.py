"""Audit log: acts of administration, each written in the transaction of its change."""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sized
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.audit_table import AuditRow
from umg_grpc.store.database import repeated, repeated_idempotent
from umg_grpc.store.database_time import utc_of

USER_ACTOR, KEY_ACTOR, OPERATOR_ACTOR, GATEWAY_ACTOR = "user", "key", "operator", "gateway"
"""Kinds of actors, as `umg.v1.AuditActorKind` in JSON."""
MAX_REFUSALS_PER_MINUTE: Final = 100
"""Refused acts that a process writes in a minute, so that no caller can fill the database with them."""
MAX_OBJECT_ID_CHARACTERS: Final = 300


_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True)
class Act:
    """Act of administration under way: the actor, its credential and address, and the call."""

    actor_kind: str = GATEWAY_ACTOR
    actor_id: str = ""
    actor_name: str = ""
    credential: str = ""
    address: str = ""
    method: str = ""
    request_id: str = ""
    act_id: str = field(default_factory=lambda: secrets.token_hex(8))


CURRENT_ACT: ContextVar[Act | None] = ContextVar("act", default=None)
"""Act of the current call; None for acts of the gateway itself."""


@dataclass(frozen=True)
class ChangedObject:
    """Object that an act changes."""

    kind: str
    object_id: str
    name: str = ""
    account_id: str = ""
    """Project or organisation of the object; "" for none or several."""


@dataclass(frozen=True)
class AuditFilter:
    """Selection of events; all criteria that are set must match. Times are microseconds since 1970."""

    since: int = 0
    until: int | None = None
    actors: Collection[str] = ()
    objects: Collection[str] = ()
    kinds: Collection[str] = ()
    accounts: Collection[str] | None = None
    """Accounts of the objects; None for all."""
    refused_only: bool = False


async def record_change(
    session: AsyncSession,
    now: datetime,
    changed: ChangedObject,
    before: Mapping[str, object] | None,
    after: Mapping[str, object],
) -> None:
    """Write the event of a change in its transaction. `before`, `after`: settings of the object without secrets, None
    for a new object; the members that differ are written, and nothing if none does. Of a new object those with a value
    are written.
    """
    # as JSON, in which settings from a request equal those from the database
    new = {name: msgspec.Raw(_encode(value)) for name, value in after.items() if before is not None or _is_set(value)}
    former = None
    if before is not None:
        former = {name: msgspec.Raw(_encode(value)) for name, value in before.items()}
        differing = {name for name in former | new if former.get(name) != new.get(name)}
        if not differing:
            return
        former, new = ({name: value for name, value in each.items() if name in differing} for each in (former, new))
    act = CURRENT_ACT.get() or Act()
    texts = ["" if former is None else _encode(former).decode(), _encode(new).decode()]
    # the same in a repeated transaction whose first run may have been committed
    digest = hashlib.sha256("\0".join([act.act_id, changed.kind, changed.object_id, *texts]).encode()).hexdigest()
    event_id = f"audit_{digest[:24]}"
    if await session.get(AuditRow, event_id) is None:
        session.add(_row(event_id, now, act, changed, before_json=texts[0], after_json=texts[1]))


def _is_set(value: object) -> bool:
    """Return whether a setting has a value, which 0 and false are."""
    return value is not None and not (isinstance(value, Sized) and len(value) == 0)


class AuditLog:
    """Repository of the events in the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._minute, self._refusals = 0, 0

    @repeated_idempotent
    async def record_refusal(self, act: Act, kind: str, object_id: str, message: str) -> None:
        """Write the event of a refused act, in a transaction of its own. Beyond `MAX_REFUSALS_PER_MINUTE` in a minute
        nothing is written.
        """
        now = utc_of(self._store.clock)
        minute = int(now.timestamp()) // 60
        self._refusals = self._refusals + 1 if minute == self._minute else 1
        self._minute = minute
        if self._refusals > MAX_REFUSALS_PER_MINUTE:
            return
        refused = ChangedObject(kind, object_id[:MAX_OBJECT_ID_CHARACTERS])
        async with self._store.write() as session:
            event_id = f"audit_{act.act_id}"
            if await session.get(AuditRow, event_id) is None:
                session.add(_row(event_id, now, act, refused, refused=True, message=message))

    @repeated
    async def page(self, events: AuditFilter, after: tuple[int, str] | None, size: int) -> list[AuditRow]:
        """Return up to `size` selected events, newest first. `after`: time and id of the last event of the previous
        page, or None.
        """
        row = AuditRow
        query = select(row).where(row.time_micros >= events.since)
        if events.until is not None:
            query = query.where(row.time_micros < events.until)
        for column, values in (
            (row.actor_id, events.actors),
            (row.object_id, events.objects),
            (row.object_kind, events.kinds),
        ):
            if values:
                query = query.where(column.in_(values))
        if events.accounts is not None:
            query = query.where(row.account_id.in_(events.accounts))
        if events.refused_only:
            query = query.where(row.refused.is_(True))
        if after is not None:
            time, event_id = after
            query = query.where((row.time_micros < time) | ((row.time_micros == time) & (row.event_id < event_id)))
        async with self._store.read() as session:
            return [*await session.scalars(query.order_by(row.time_micros.desc(), row.event_id.desc()).limit(size))]


def _row(
    event_id: str,
    now: datetime,
    act: Act,
    changed: ChangedObject,
    *,
    refused: bool = False,
    message: str = "",
    before_json: str = "",
    after_json: str = "",
) -> AuditRow:
    return AuditRow(
        event_id=event_id,
        time_micros=micros_of(now),
        actor_kind=act.actor_kind,
        actor_id=act.actor_id[:64],
        actor_name=act.actor_name,
        credential=act.credential,
        address=act.address,
        method=act.method,
        object_kind=changed.kind,
        object_id=changed.object_id,
        object_name=changed.name,
        account_id=changed.account_id,
        refused=refused,
        message=message,
        before_json=before_json,
        after_json=after_json,
        request_id=act.request_id,
    )

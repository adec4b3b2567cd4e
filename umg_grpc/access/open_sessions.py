"""Sessions that have not ended, for their people and for administrators: lists, and ends."""

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, or_, select, tuple_

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.audit_log import ChangedObject, record_change
from umg_grpc.access.session_keys import revoke_keys_of_session
from umg_grpc.access.sessions import SESSION_KIND, has_ended
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.store import Store
from umg_grpc.store.database import repeated
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.session_table import SessionRow
from umg_grpc.store.table_definitions import ApiKey


class OpenSession(NamedTuple):
    """Session without its token; times in UTC."""

    session_id: str
    user_id: str
    """User that signed in, or to which the key belongs that opened the session; "" for none."""
    key_id: str
    """Key that opened the session; "" for a user."""
    address: str
    agent: str
    create_time: datetime
    last_use_time: datetime
    idle_end: datetime
    """Time at which the session ends unless it is used before."""
    end: datetime
    """Time at which it ends, however it is used."""


class OpenSessions:
    """Repository of the sessions that have not ended."""

    def __init__(self, store: Store, times: SessionTimes) -> None:
        self._store, self._times, self._keys = store, times, ApiKeys(store)
        self._idle = timedelta(seconds=times.idle)

    @repeated
    async def page(
        self, size: int, after: tuple[datetime, str] | None = None, *, user_id: str = "", key_id: str = ""
    ) -> list[OpenSession]:
        """Return up to `size` sessions of a user and of the user's keys, or of one key, newest first. `after`: creation
        and id of the last session of the page before.
        """
        is_meant = or_(SessionRow.user_id == user_id, ApiKey.user_id == user_id) if user_id else _is_of_key(key_id)
        return await self._found(size, is_meant, after)

    async def find(self, session_id: str) -> OpenSession | None:
        """Return a session by its id; None if there is none, or it has ended."""
        return next(iter(await self._by_id(session_id)), None)

    async def end(self, session: OpenSession, name: str, account_id: str = "") -> bool:
        """End a session and the keys that end with it, and write that to the audit log. `name`: of its user;
        `account_id`: account of the event. Return whether the session was there.
        """
        await revoke_keys_of_session(self._keys, session.session_id)
        return await self._end(session, name, account_id)

    @repeated
    async def _end(self, session: OpenSession, name: str, account_id: str) -> bool:
        ended = delete(SessionRow).where(SessionRow.session_id == session.session_id)
        async with self._store.write() as opened:
            if (await opened.execute(ended.returning(SessionRow.session_id))).first() is None:
                return False
            changed = ChangedObject(SESSION_KIND, session.session_id, name, account_id)
            await record_change(opened, utc_of(self._store.clock), changed, {"ended": False}, {"ended": True})
            return True

    @repeated
    async def _by_id(self, session_id: str) -> list[OpenSession]:
        return await self._found(1, SessionRow.session_id == session_id)

    async def _found(
        self, size: int, is_meant: ColumnElement[bool], after: tuple[datetime, str] | None = None
    ) -> list[OpenSession]:
        row = SessionRow
        position = tuple_(row.create_time, row.session_id)
        query = select(row, ApiKey.user_id).join(ApiKey, ApiKey.key_id == row.key_id, isouter=True)
        query = query.where(is_meant, row.is_code.is_(False), ~has_ended(self._times, utc_of(self._store.clock)))
        query = query.order_by(row.create_time.desc(), row.session_id.desc()).limit(size)
        if after is not None:
            query = query.where(position < after)
        async with self._store.read() as session:
            found = (await session.execute(query)).all()
        return [self._session(each, owner) for each, owner in found]

    def _session(self, row: SessionRow, owner: str | None) -> OpenSession:
        return OpenSession(
            row.session_id,
            row.user_id or owner or "",
            row.key_id or "",
            row.address,
            row.agent,
            row.create_time,
            row.last_use_time,
            min(row.last_use_time + self._idle, row.expire_time),
            row.expire_time,
        )


def _is_of_key(key_id: str) -> ColumnElement[bool]:
    return (SessionRow.key_id == key_id) & (SessionRow.key_id != "")

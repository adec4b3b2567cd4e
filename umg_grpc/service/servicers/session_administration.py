"""Lists and ends of the sessions of people, as messages of `umg.v1`."""

from __future__ import annotations  # the authority is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING, Annotated

import msgspec

from umg_grpc.access.access_control import may_see_user
from umg_grpc.access.open_sessions import OpenSession, OpenSessions
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.users import User, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

if TYPE_CHECKING:
    from datetime import datetime

    from umg_grpc.access.access_control import Authority
    from umg_grpc.access.role_permissions import Permission
    from umg_grpc.config.sign_on_section import Sessions as SessionTimes
    from umg_grpc.store import Store

PAGE_SIZE = 100


class _SessionPosition(msgspec.Struct, array_like=True):
    """Position in the list of sessions, encoded in a page token: creation and id of the last session of a page."""

    created: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    session_id: str


class SessionActs:
    """Acts on sessions, with the rights of a caller."""

    def __init__(self, store: Store, times: SessionTimes) -> None:
        self._users, self._sessions = Users(store), OpenSessions(store, times)

    async def page(self, request: pb.ListSessionsRequest, authority: Authority) -> pb.ListSessionsResponse:
        """Return one page of the sessions of the caller, or of a user that it may change."""
        user_id = authority.user_id
        if request.user_id:
            seen = authority.allowed_accounts(pb.PERMISSION_USERS_READ)
            user = await self._users.get(request.user_id, seen, authority.user_id)
            _check_change(user, authority, pb.PERMISSION_SESSIONS_READ)
            user_id = user.user_id
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        after = _position(request.page_token) if request.page_token else None
        found = await self._sessions.page(size + 1, after, user_id=user_id, key_id=authority.key_id)
        response = pb.ListSessionsResponse(sessions=map(_message, found[:size]))
        if len(found) > size:
            position = _SessionPosition(micros_of(found[size - 1].create_time), found[size - 1].session_id)
            response.next_page_token = encode_token(PageBoundary(msgspec.json.encode(position).decode()))
        return response

    async def end(self, request: pb.EndSessionRequest, authority: Authority) -> pb.EndSessionResponse:
        """End a session of the caller, or of a user that it may change."""
        session = await self._sessions.find(request.session_id)
        if session is None:
            raise _unknown_session(request.session_id)
        user = await self._users.find(session.user_id) if session.user_id else None
        if not _is_own(session, authority):
            self._check_end(session, user, authority)
        account_id = user.memberships[0].account_id if user is not None and len(user.memberships) == 1 else ""
        if not await self._sessions.end(session, "" if user is None else user.name, account_id):
            raise _unknown_session(request.session_id)
        return pb.EndSessionResponse()

    def _check_end(self, session: OpenSession, user: User | None, authority: Authority) -> None:
        """Raise UmgError for a session of another: OBJECT_NOT_FOUND if the caller may not see its user, else
        PERMISSION_DENIED.
        """
        if user is None:  # of an administrator's key
            if not authority.owns_gateway:
                raise _unknown_session(session.session_id)
            return
        if not may_see_user(authority.allowed_accounts(pb.PERMISSION_USERS_READ), user):
            raise _unknown_session(session.session_id)
        _check_change(user, authority, pb.PERMISSION_SESSIONS_WRITE)


def _is_own(session: OpenSession, authority: Authority) -> bool:
    if authority.user_id:
        return session.user_id == authority.user_id
    return session.key_id != "" and session.key_id == authority.key_id


def _check_change(user: User, authority: Authority, permission: Permission) -> None:
    """Raise UmgError(PERMISSION_DENIED) for a user that the caller may not change, itself excepted."""
    if user.user_id == authority.user_id:
        return
    memberships = (*user.memberships, *user.issuer_memberships)
    try:
        authority.check_grant(memberships or [Membership(WHOLE_GATEWAY, Role.ADMIN)])
    except UmgError:
        raise authority.denied(permission) from None


def _message(session: OpenSession) -> pb.UserSession:
    return pb.UserSession(
        session_id=session.session_id,
        user_id=session.user_id,
        key_id=session.key_id,
        address=session.address,
        agent=session.agent,
        create_time=timestamp(session.create_time),
        last_use_time=timestamp(session.last_use_time),
        idle_expire_time=timestamp(session.idle_end),
        expire_time=timestamp(session.end),
    )


def _position(token: str) -> tuple[datetime, str]:
    try:
        found = msgspec.json.decode(decode_token(token).id, type=_SessionPosition)
        return time_of(found.created), found.session_id
    except (msgspec.DecodeError, OverflowError):
        raise unknown_token() from None


def _unknown_session(session_id: str) -> UmgError:
    message = f"there is no session {echo(session_id)}, or it has ended; `umg users sessions` shows their ids"
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=session_id[:100])

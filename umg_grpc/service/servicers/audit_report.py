"""Reader of the audit log, as messages of `umg.v1`."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from umg_grpc.access.accounts import Accounts
from umg_grpc.access.audit_log import AuditFilter, AuditLog
from umg_grpc.access.role_permissions import Extent
from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.timestamps import timestamp, utc
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token
from umg_grpc.wire.protobuf_json import enum_names

if TYPE_CHECKING:
    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.store import Store
    from umg_grpc.store.audit_table import AuditRow

PAGE_SIZE = 100
PRIVATE_SETTINGS = frozenset({"email", "subject"})
"""Settings of users that are not shown to roles which see users without e-mail addresses."""
ACTOR_KINDS: Final = {
    name: pb.AuditActorKind.ValueType(value) for value, name in enum_names(pb.AuditActorKind.DESCRIPTOR).items()
}


class _EventPosition(msgspec.Struct, array_like=True):
    """Position in the list of events, encoded in a page token: time and id of the last event of a page."""

    time: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    event_id: str


class AuditReport:
    """Methods of `umg.v1.AuditService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, check: RequestCheck) -> None:
        self._calls = AdministrativeCalls("AuditService", store, check)
        self._log, self._accounts = AuditLog(store), Accounts(store)

    async def ListAuditEvents(self, request: pb.ListAuditEventsRequest, context: Context) -> pb.ListAuditEventsResponse:
        return await self._calls.run(request, context, self._list)

    async def _list(self, request: pb.ListAuditEventsRequest, authority: Authority) -> pb.ListAuditEventsResponse:
        accounts = authority.allowed_accounts(pb.PERMISSION_AUDIT_READ)
        if request.account_ids:
            named = [await self._accounts.get(each, among=accounts) for each in request.account_ids]
            accounts = frozenset(account.account_id for account in named)
        events = AuditFilter(
            since=micros_of(utc(request.start_time)) if request.HasField("start_time") else 0,
            until=micros_of(utc(request.end_time)) if request.HasField("end_time") else None,
            actors=request.actor_ids,
            objects=request.object_ids,
            kinds=request.object_kinds,
            accounts=accounts,
            refused_only=request.refused_only,
        )
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        found = await self._log.page(events, _position(request.page_token), size + 1)
        response = pb.ListAuditEventsResponse(events=[_message(row, authority) for row in found[:size]])
        if len(found) > size:
            position = _EventPosition(found[size - 1].time_micros, found[size - 1].event_id)
            response.next_page_token = encode_token(PageBoundary(msgspec.json.encode(position).decode()))
        return response


def _position(token: str) -> tuple[int, str] | None:
    if not token:
        return None
    try:
        position = msgspec.json.decode(decode_token(token).id, type=_EventPosition)
    except msgspec.DecodeError:
        raise unknown_token() from None
    return position.time, position.event_id


def _without_addresses(settings: str) -> str:
    """Return the settings of a user without its e-mail address and its subject at the issuer."""
    if not settings:
        return settings
    shown = {name: value for name, value in msgspec.json.decode(settings).items() if name not in PRIVATE_SETTINGS}
    return msgspec.json.encode(shown).decode()


def _message(row: AuditRow, authority: Authority) -> pb.AuditEvent:
    before, after = row.before_json, row.after_json
    if row.object_kind == "user" and authority.extent(pb.PERMISSION_USERS_READ, row.account_id) is not Extent.ALL:
        before, after = _without_addresses(before), _without_addresses(after)
    return pb.AuditEvent(
        event_id=row.event_id,
        time=timestamp(time_of(row.time_micros)),
        actor_kind=ACTOR_KINDS[row.actor_kind],
        actor_id=row.actor_id,
        actor_name=row.actor_name,
        credential=row.credential,
        address=row.address,
        method=row.method,
        object_kind=row.object_kind,
        object_id=row.object_id,
        object_name=row.object_name,
        account_id=row.account_id,
        refused=row.refused,
        message=row.message,
        before_json=before,
        after_json=after,
        request_id=row.request_id,
    )

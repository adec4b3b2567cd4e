"""Access check of all methods of administration: one function that every administrative servicer calls."""

from __future__ import annotations  # most types are needed by type checkers alone, and slow to import

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import unquote

from google.protobuf.message import Message

from umg_grpc.access.access_control import AccessControl, Authority
from umg_grpc.access.audit_log import CURRENT_ACT, KEY_ACTOR, OPERATOR_ACTOR, USER_ACTOR, Act, AuditLog
from umg_grpc.access.key_settings import KEY_PREFIX, SHOWN_CHARACTERS
from umg_grpc.access.role_permissions import CHANGING_PERMISSIONS, permission_of
from umg_grpc.base.errors import UmgError
from umg_grpc.base.refused_request import PEER_HEADER
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.store import Store

OBJECT_KINDS = {
    "Key": "key",
    "Account": "account",
    "User": "user",
    "Channel": "channel",
    "Callback": "task",
    "Session": "session",
    "ModelPrice": "model",
}
"""Noun in the name of a method -> kind of the object that its requests name."""

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)
RequestCheck: TypeAlias = Callable[[Message], Awaitable[None]]
"""Raises UmgError for a malformed request."""


class AdministrativeCalls:
    """Runner of the methods of one administrative service, with the rights of the caller."""

    def __init__(self, service: str, store: Store, check: RequestCheck) -> None:
        """Create a runner. `service`: name in `umg.v1`."""
        self._service, self._check = service, check
        self._access, self._audit = AccessControl(store), AuditLog(store)

    async def run(
        self,
        request: RequestT,
        context: Context,
        serve: Callable[[RequestT, Authority], Awaitable[ResponseT]],
    ) -> ResponseT:
        """Return the response of `serve`, the implementation of the method with this type of request. Changes in it are
        audited as acts of the caller, and a refused change is, too. Raise UmgError for a malformed request, and
        PERMISSION_DENIED if no role of the caller permits the act.
        """
        method = request.DESCRIPTOR.name.removesuffix("Request")
        permission = permission_of(self._service, method)
        async with converted_errors(of_settings="settings" in request.DESCRIPTOR.fields_by_name):
            authority = await self._access.authority(current().caller)
            act = _act(f"/umg.v1.{self._service}/{method}", authority, context)
            token = CURRENT_ACT.set(act)
            try:
                authority.require(permission)
                await self._check(request)
                return await serve(request, authority)
            except UmgError as error:
                if error.reason == pb.ERROR_REASON_PERMISSION_DENIED and permission in CHANGING_PERMISSIONS:
                    await self._audit.record_refusal(act, *_named_object(request), error.message)
                raise
            finally:
                CURRENT_ACT.reset(token)


def _act(method: str, authority: Authority, context: Context | None) -> Act:
    call = current()
    caller, principal = call.caller, authority.principal
    kind, actor_id = (USER_ACTOR, authority.user_id) if authority.user_id else (KEY_ACTOR, caller.key_id)
    if not caller.key_id and not authority.user_id:  # a command on the database
        kind, actor_id = OPERATOR_ACTOR, caller.name
    return Act(
        actor_kind=kind,
        actor_id=actor_id,
        actor_name=caller.name if principal is None else principal.name,
        credential=caller.key_prefix or caller.key_id,
        address=_address(context),
        method=method,
        request_id=call.arrival.request_id,
    )


def _address(context: Context | None) -> str:
    """Return the address of the caller, without the port; "" for a command on the database."""
    arrival = current().arrival
    if arrival.trusted:
        return arrival.metadata.get(PEER_HEADER, "")
    peer = "" if context is None else unquote(context.peer())  # ipv4:127.0.0.1:50051, ipv6:[::1]:50051, unix:
    kind, _, place = peer.partition(":")
    return place.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else peer


def _named_object(request: Message) -> tuple[str, str]:
    """Return kind and id of the object that a request names; the id is "" for a new one."""
    method = request.DESCRIPTOR.name.removesuffix("Request")
    for noun, kind in OBJECT_KINDS.items():
        if noun in method:
            reference = getattr(request, f"{kind}_id", "") or getattr(request, kind, "")
            # a caller may name a key by the whole secret, of which the log has the shown part alone
            return kind, reference[:SHOWN_CHARACTERS] if reference.startswith(KEY_PREFIX) else reference
    return "", ""

"""Administration of keys, usage, records of calls, and channels. An interceptor lets only keys of administrators call
these methods, except the methods by which a key reads its own data. Commands that work on a database use the class too,
in a process that imports neither gRPC nor the rules of the schema.
"""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from google.protobuf.message import Message

from umg_grpc.access.key_permissions import ADMIN_SCOPE
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.call_record_report import RequestReport
from umg_grpc.service.servicers.key_administration import KeyAdministration
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import Store
from umg_grpc.store.refused_call_table import RefusedCalls
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.base.inprocess_channel import Context


class ChannelList(Protocol):
    """Source of the list of channels with their health."""

    async def list(self) -> pb.ListChannelsResponse:
        """Return all channels with their health."""
        ...


class Administration:
    """Methods of `umg.v1.AdminService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(
        self, store: Store, channels: ChannelList, check: Callable[[Message], None], *, refuses_limits: bool = False
    ) -> None:
        self._check, self._channels = check, channels
        self._keys = KeyAdministration(store, refuses_limits=refuses_limits)
        self._usage = UsageReport(UsageRecords(store), store.clock)
        self._records = RequestReport(UsageRecords(store), RefusedCalls(store), store.clock)

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Context) -> pb.CreateKeyResponse:
        self._check(request)
        return await self._keys.create(request)

    async def GetKey(self, request: pb.GetKeyRequest, context: Context) -> pb.GetKeyResponse:
        self._check(request)
        return pb.GetKeyResponse(key=(await self._keys.find(_own_or_any(request.key_id)))[1])

    async def ListKeys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        self._check(request)
        return await self._keys.page(request)

    async def UpdateKey(self, request: pb.UpdateKeyRequest, context: Context) -> pb.UpdateKeyResponse:
        self._check(request)
        return pb.UpdateKeyResponse(key=await self._keys.update(request))

    async def RotateKey(self, request: pb.RotateKeyRequest, context: Context) -> pb.RotateKeyResponse:
        self._check(request)
        return await self._keys.rotate(request)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Context) -> pb.RevokeKeyResponse:
        self._check(request)
        return pb.RevokeKeyResponse(key=await self._keys.revoke(request.key_id))

    async def GetUsage(self, request: pb.GetUsageRequest, context: Context) -> pb.GetUsageResponse:
        self._check(request)
        key, message = await self._keys.find(_own_or_any(request.key_id))
        return await self._usage.of_key(key, message, request)

    async def ListUsage(self, request: pb.ListUsageRequest, context: Context) -> pb.ListUsageResponse:
        self._check(request)
        return await self._usage.list(request)

    async def GetRequestRecord(
        self, request: pb.GetRequestRecordRequest, context: Context
    ) -> pb.GetRequestRecordResponse:
        self._check(request)
        return await self._records.get(request, current().caller)

    async def ListRequestRecords(
        self, request: pb.ListRequestRecordsRequest, context: Context
    ) -> pb.ListRequestRecordsResponse:
        self._check(request)
        return await self._records.list(request, current().caller)

    async def ListChannels(self, request: pb.ListChannelsRequest, context: Context) -> pb.ListChannelsResponse:
        self._check(request)
        return await self._channels.list()


def _own_or_any(key_id: str) -> str:
    caller = current().caller
    if key_id not in {"", caller.key_id}:
        caller.check_scopes(frozenset({ADMIN_SCOPE}))
    return key_id or caller.key_id

"""Administration of keys, usage, records of calls, and channels, for callers with roles and for holders of keys.
Commands that work on a database use the class too, in a process that imports neither gRPC nor the rules of the schema.
"""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING

from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.caller_reports import CallerReports, ChannelList
from umg_grpc.service.servicers.key_administration import KeyAdministration
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.store import Store


class Administration:
    """Methods of `umg.v1.AdminService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(
        self, store: Store, channels: ChannelList, check: RequestCheck, *, refuses_limits: bool = False
    ) -> None:
        self._calls = AdministrativeCalls("AdminService", store, check)
        self._keys = KeyAdministration(store, refuses_limits=refuses_limits)
        self._reports = CallerReports(store, channels, self._keys)

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Context) -> pb.CreateKeyResponse:
        return await self._calls.run(request, context, self._keys.create)

    async def GetKey(self, request: pb.GetKeyRequest, context: Context) -> pb.GetKeyResponse:
        return await self._calls.run(request, context, self._keys.get)

    async def ListKeys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        return await self._calls.run(request, context, self._keys.page)

    async def UpdateKey(self, request: pb.UpdateKeyRequest, context: Context) -> pb.UpdateKeyResponse:
        return await self._calls.run(request, context, self._keys.update)

    async def RotateKey(self, request: pb.RotateKeyRequest, context: Context) -> pb.RotateKeyResponse:
        return await self._calls.run(request, context, self._keys.rotate)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Context) -> pb.RevokeKeyResponse:
        return await self._calls.run(request, context, self._keys.revoke)

    async def GetUsage(self, request: pb.GetUsageRequest, context: Context) -> pb.GetUsageResponse:
        return await self._calls.run(request, context, self._reports.usage_of_key)

    async def ListUsage(self, request: pb.ListUsageRequest, context: Context) -> pb.ListUsageResponse:
        return await self._calls.run(request, context, self._reports.usage)

    async def ListEndUserUsage(
        self, request: pb.ListEndUserUsageRequest, context: Context
    ) -> pb.ListEndUserUsageResponse:
        return await self._calls.run(request, context, self._reports.end_user_usage)

    async def GetCallSummary(self, request: pb.GetCallSummaryRequest, context: Context) -> pb.GetCallSummaryResponse:
        return await self._calls.run(request, context, self._reports.summary)

    async def GetRequestRecord(
        self, request: pb.GetRequestRecordRequest, context: Context
    ) -> pb.GetRequestRecordResponse:
        return await self._calls.run(request, context, self._reports.record)

    async def ListRequestRecords(
        self, request: pb.ListRequestRecordsRequest, context: Context
    ) -> pb.ListRequestRecordsResponse:
        return await self._calls.run(request, context, self._reports.records)

    async def ListChannels(self, request: pb.ListChannelsRequest, context: Context) -> pb.ListChannelsResponse:
        return await self._calls.run(request, context, self._reports.channels)

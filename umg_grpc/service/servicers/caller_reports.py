"""Reports of usage, records of calls, and channels, as far as a caller may see them."""

from typing import Protocol

from umg_grpc.access.access_control import Authority
from umg_grpc.access.role_permissions import Extent, Permission
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.call_record_report import Reader, RequestReport
from umg_grpc.service.servicers.call_summary_report import CallSummaryReport
from umg_grpc.service.servicers.caller_references import CallerReferences
from umg_grpc.service.servicers.end_user_report import EndUserReport
from umg_grpc.service.servicers.key_administration import KeyAdministration
from umg_grpc.service.servicers.key_levels import KeyLevels
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import Store
from umg_grpc.store.call_summaries import CallSummaries
from umg_grpc.store.end_user_usage import EndUserUsage
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.store.refused_call_table import RefusedCalls
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb


class ChannelList(Protocol):
    """Source of the list of channels with their health."""

    async def list(self) -> pb.ListChannelsResponse:
        """Return all channels with their health."""
        ...


class CallerReports:
    """Reports for a caller with its rights."""

    def __init__(self, store: Store, channels: ChannelList, keys: KeyAdministration) -> None:
        self._channels, self._keys, self._references = channels, keys, CallerReferences(store)
        self._levels = KeyLevels(store)
        self._usage = UsageReport(UsageRecords(store), store.clock)
        self._summaries = CallSummaryReport(CallSummaries(store), store.clock)
        self._end_users = EndUserReport(EndUserUsage(store), store.clock)
        self._records = RequestReport(UsageRecords(store), RefusedCalls(store), store.clock)

    async def usage_of_key(self, request: pb.GetUsageRequest, authority: Authority) -> pb.GetUsageResponse:
        """Return the usage of one key."""
        key, message = await self._keys.find(request.key_id, authority, pb.PERMISSION_USAGE_READ)
        response = await self._usage.of_key(key, message, request)
        response.levels.extend(await self._levels.messages(key, authority))
        return response

    async def usage(self, request: pb.ListUsageRequest, authority: Authority) -> pb.ListUsageResponse:
        """Return one page of sums of usage."""
        keys = await self._references.keys(request, authority, pb.PERMISSION_USAGE_READ)
        return await self._usage.list(request, keys)

    async def summary(self, request: pb.GetCallSummaryRequest, authority: Authority) -> pb.GetCallSummaryResponse:
        """Return the summary of calls."""
        keys = await self._references.keys(request, authority, pb.PERMISSION_USAGE_READ)
        return await self._summaries.get(request, keys)

    async def end_user_usage(
        self, request: pb.ListEndUserUsageRequest, authority: Authority
    ) -> pb.ListEndUserUsageResponse:
        """Return one page of the usage of end users."""
        keys = await self._references.keys(request, authority, pb.PERMISSION_USAGE_READ)
        return await self._end_users.list(request, keys)

    async def record(self, request: pb.GetRequestRecordRequest, authority: Authority) -> pb.GetRequestRecordResponse:
        """Return the record of one call."""
        keys = KeySelection(scope=authority.key_scope(pb.PERMISSION_RECORDS_READ))
        return await self._records.get(request, reader_of(keys, authority, pb.PERMISSION_RECORDS_READ))

    async def records(
        self, request: pb.ListRequestRecordsRequest, authority: Authority
    ) -> pb.ListRequestRecordsResponse:
        """Return one page of records of calls."""
        keys = await self._references.keys(request, authority, pb.PERMISSION_RECORDS_READ)
        return await self._records.list(request, reader_of(keys, authority, pb.PERMISSION_RECORDS_READ))

    async def channels(self, _: pb.ListChannelsRequest, authority: Authority) -> pb.ListChannelsResponse:
        """Return the channels with their health, or the prices of models alone."""
        response = await self._channels.list()
        if authority.greatest_extent(pb.PERMISSION_CHANNELS_READ) is Extent.PART:
            prices = (pb.ModelChannels(model=each.model, prices=each.prices) for each in response.models)
            return pb.ListChannelsResponse(models=prices)
        return response


def reader_of(keys: KeySelection, authority: Authority, permission: Permission) -> Reader:
    """Return the caller as a reader of calls of some keys, with the details that its extent of a permission shows."""
    sees_details = authority.greatest_extent(permission) >= Extent.PART
    return Reader(keys, sees_details, sees_channels=sees_details or current().caller.show_route)

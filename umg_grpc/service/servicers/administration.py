"""Administration of keys, usage, records of calls, and channels. An interceptor lets only keys of administrators call
these methods, except the methods by which each key reads its own data.

Commands that work on a database use the class too, in a process that imports neither gRPC nor the rules of the schema.
"""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from google.protobuf.message import Message
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.api_keys import DEFAULT_OVERLAP, Key, Keys
from umg_grpc.access.key_settings import KeyFields
from umg_grpc.access.per_worker_limit_checks import check_key
from umg_grpc.access.permissions import ADMIN
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.call import current
from umg_grpc.service.servicers.api_key_messages import changes_of, fields_of, message_of
from umg_grpc.service.servicers.call_record_report import RequestReport
from umg_grpc.service.servicers.usage_report import UsageReport
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import NO_BALANCE, BudgetAccounts, period_start
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb
from umg_grpc.wire.core.page_token import PageBoundary, decode_token, encode_token

if TYPE_CHECKING:
    from umg_grpc.base.inprocess_channel import Context

PAGE_SIZE = 100


class ChannelList(Protocol):
    """Source of the list of channels with their health."""

    async def list(self) -> pb.ListChannelsResponse:
        """Return all channels with their health."""
        ...


class Administration:
    """Methods of `umg.v1.AdminService`, for the servicer and for commands that work on a database without a gateway."""

    def __init__(
        self,
        store: Store,
        channels: ChannelList,
        check: Callable[[Message], None],
        *,
        refuses_limits: bool = False,
    ) -> None:
        """Create the methods. `check`: raises UmgError for a request that breaks a rule of the schema.
        `refuses_limits`: whether to reject keys with limits, which several workers without Redis cannot count together.
        """
        self._check = check
        self._keys, self._clock = Keys(store), store.clock
        self._refuses_limits = refuses_limits
        self._budgets = BudgetAccounts(store)
        records = UsageRecords(store)
        self._usage = UsageReport(records, store.clock)
        self._records = RequestReport(records, store.clock)
        self._channels = channels

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Context) -> pb.CreateKeyResponse:
        """Create a key. Return it with its secret, which cannot be read again."""
        self._check(request)
        fields = fields_of(request.settings)
        self._check_limits(fields)
        async with _errors():
            key, secret = await self._keys.create(request.settings.name, **fields)
        return pb.CreateKeyResponse(key=message_of(key), secret=secret)

    async def GetKey(self, request: pb.GetKeyRequest, context: Context) -> pb.GetKeyResponse:
        """Return a key: any key to an administrator, only its own to any other caller."""
        self._check(request)
        async with _errors():
            [message] = await self._messages([await self._keys.get(_own_or_any(request.key_id))])
            return pb.GetKeyResponse(key=message)

    async def ListKeys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        """Return one page of all API keys, without their secrets, newest first."""
        self._check(request)
        after, size = (
            decode_token(request.page_token).id,
            request.page_size if request.HasField("page_size") else PAGE_SIZE,
        )
        async with _errors():
            keys, last = await self._keys.page(after, size, include_ended=request.include_ended)
            messages = await self._messages(keys)
        token = encode_token(PageBoundary(last)) if last else ""
        return pb.ListKeysResponse(keys=messages, next_page_token=token)

    async def UpdateKey(self, request: pb.UpdateKeyRequest, context: Context) -> pb.UpdateKeyResponse:
        """Change the fields of a key that the update mask names. Return the changed key."""
        self._check(request)
        changes = changes_of(request.settings, request.update_mask.paths)
        self._check_limits(changes)
        async with _errors():
            [message] = await self._messages([await self._keys.update(request.key_id, changes)])
            return pb.UpdateKeyResponse(key=message)

    async def RotateKey(self, request: pb.RotateKeyRequest, context: Context) -> pb.RotateKeyResponse:
        """Replace the secret of a key. Return the key with the new secret; the old one stays valid for the requested
        time.
        """
        self._check(request)
        overlap = request.overlap.ToTimedelta() if request.HasField("overlap") else DEFAULT_OVERLAP
        async with _errors():
            key, secret = await self._keys.rotate(request.key_id, overlap)
            [message] = await self._messages([key])
        return pb.RotateKeyResponse(key=message, secret=secret)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Context) -> pb.RevokeKeyResponse:
        """Revoke a key, which then admits no further calls."""
        self._check(request)
        async with _errors():
            [message] = await self._messages([await self._keys.revoke(request.key_id)])
            return pb.RevokeKeyResponse(key=message)

    def _check_limits(self, fields: KeyFields) -> None:
        """Raise UmgError(WRONG_STATE) if a key is to get a limit that several workers without Redis cannot count
        together.
        """
        if self._refuses_limits:
            check_key(fields)

    async def _messages(self, keys: Collection[Key]) -> list[pb.Key]:
        """Return the keys as messages, each with the balance of its budget in the current period."""
        now = utc_of(self._clock)
        periods = {
            key.key_id: period_start(key.budget_period, now) for key in keys if key.budget_micro_credits is not None
        }
        balances = await self._budgets.balances(periods)
        return [message_of(key, balances.get(key.key_id, NO_BALANCE)) for key in keys]

    async def GetUsage(self, request: pb.GetUsageRequest, context: Context) -> pb.GetUsageResponse:
        """Return the balance and the usage of a key: of any key to an administrator, only of its own to any other
        caller.
        """
        self._check(request)
        async with _errors():
            key = await self._keys.get(_own_or_any(request.key_id))
            [message] = await self._messages([key])
            entry = await self._usage.of_key(key, request)
        response = pb.GetUsageResponse(key=message, usage=entry)
        if key.budget_micro_credits is not None:
            spent = message.spent_micro_credits + message.reserved_micro_credits
            response.remaining_micro_credits = max(0, key.budget_micro_credits - spent)
        return response

    async def ListUsage(self, request: pb.ListUsageRequest, context: Context) -> pb.ListUsageResponse:
        """Return one page of usage: a sum for each group of calls (for example key and day), by the request's grouping
        and filter.
        """
        self._check(request)
        async with _errors():
            return await self._usage.list(request)

    async def GetRequestRecord(
        self, request: pb.GetRequestRecordRequest, context: Context
    ) -> pb.GetRequestRecordResponse:
        """Return the record of a call: of any call to an administrator, only of its own calls to any other caller."""
        self._check(request)
        async with _errors():
            return await self._records.get(request, current().caller)

    async def ListRequestRecords(
        self, request: pb.ListRequestRecordsRequest, context: Context
    ) -> pb.ListRequestRecordsResponse:
        """Return one page of the records of calls that match the request's filter, newest first."""
        self._check(request)
        async with _errors():
            return await self._records.list(request, current().caller)

    async def ListChannels(self, request: pb.ListChannelsRequest, context: Context) -> pb.ListChannelsResponse:
        """Return the channels with their health."""
        self._check(request)
        return await self._channels.list()


def _own_or_any(key_id: str) -> str:
    """Return the id of the key that a call reads: `key_id`, or the caller's own key for "". Raise
    UmgError(PERMISSION_DENIED) for another key unless the caller is an administrator.
    """
    caller = current().caller
    if key_id not in {"", caller.key_id}:
        caller.check_scopes(frozenset({ADMIN}))
    return key_id or caller.key_id


@asynccontextmanager
async def _errors() -> AsyncGenerator[None, None]:
    """Convert the errors of the block: failures of the database to UmgError(UNAVAILABLE), and the field name in the
    error for an invalid field to its path in the request.
    """
    try:
        yield
    except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
        message = "the database does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1") from None
    except UmgError as error:
        field = error.metadata.get("field", "")
        if field not in pb.KeySettings.DESCRIPTOR.fields_by_name:
            raise
        raise UmgError(error.reason, error.message, **{**error.metadata, "field": f"settings.{field}"}) from None

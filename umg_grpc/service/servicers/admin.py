"""Administration: keys. Only keys of administrators may call it, which an interceptor checks."""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.access.key_fields import KeyFields, NamedKeyFields
from umg_grpc.access.keys import DEFAULT_OVERLAP, Key, Keys
from umg_grpc.access.permissions import ADMIN
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.service.pipeline.call import current
from umg_grpc.service.pipeline.validation import check
from umg_grpc.service.servicers.unserved import not_served
from umg_grpc.store.budgets import NO_BALANCE, Balance, BudgetAccounts, period_start
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.admin import OPERATION_NAMES, OPERATION_VALUES, PERIOD_NAMES, PERIOD_VALUES
from umg_grpc.wire.models.page_token import PageBoundary, decode_token, encode_token

PAGE_SIZE = 100


class AdminServicer(rpc.AdminServiceServicer):
    """`umg.v1.AdminService`."""

    def __init__(self, keys: Keys, budgets: BudgetAccounts) -> None:
        self._keys = keys
        self._budgets = budgets

    async def CreateKey(self, request: pb.CreateKeyRequest, context: Context) -> pb.CreateKeyResponse:
        """Create a key. Return it with its secret."""
        check(request)
        async with _errors():
            key, secret = await self._keys.create(request.settings.name, **_fields(request.settings))
        return pb.CreateKeyResponse(key=_message(key), secret=secret)

    async def GetKey(self, request: pb.GetKeyRequest, context: Context) -> pb.GetKeyResponse:
        """Return a key: to an administrator any, to other callers their own."""
        check(request)
        caller = current().caller
        key_id = request.key_id or caller.key_id
        if key_id != caller.key_id:
            caller.check_scopes(frozenset({ADMIN}))
        async with _errors():
            [message] = await self._messages([await self._keys.get(key_id)])
            return pb.GetKeyResponse(key=message)

    async def ListKeys(self, request: pb.ListKeysRequest, context: Context) -> pb.ListKeysResponse:
        """Return one page of the keys, newest first."""
        check(request)
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
        """Change the fields of a key that the mask names."""
        check(request)
        changes = _changes(request.settings, request.update_mask.paths)
        async with _errors():
            [message] = await self._messages([await self._keys.update(request.key_id, changes)])
            return pb.UpdateKeyResponse(key=message)

    async def RotateKey(self, request: pb.RotateKeyRequest, context: Context) -> pb.RotateKeyResponse:
        """Give a key a new secret. Return the key with this secret."""
        check(request)
        overlap = request.overlap.ToTimedelta() if request.HasField("overlap") else DEFAULT_OVERLAP
        async with _errors():
            key, secret = await self._keys.rotate(request.key_id, overlap)
            [message] = await self._messages([key])
        return pb.RotateKeyResponse(key=message, secret=secret)

    async def RevokeKey(self, request: pb.RevokeKeyRequest, context: Context) -> pb.RevokeKeyResponse:
        """Revoke a key."""
        check(request)
        async with _errors():
            [message] = await self._messages([await self._keys.revoke(request.key_id)])
            return pb.RevokeKeyResponse(key=message)

    async def _messages(self, keys: Collection[Key]) -> list[pb.Key]:
        """Return the keys as messages, each with the balance of its budget."""
        now = datetime.now(UTC)
        periods = {
            key.key_id: period_start(key.budget_period, now) for key in keys if key.budget_micro_credits is not None
        }
        balances = await self._budgets.balances(periods)
        return [_message(key, balances.get(key.key_id, NO_BALANCE)) for key in keys]

    async def GetUsage(self, request: pb.GetUsageRequest, context: Context) -> pb.GetUsageResponse:
        raise not_served("usage")

    async def ListUsage(self, request: pb.ListUsageRequest, context: Context) -> pb.ListUsageResponse:
        raise not_served("usage")

    async def GetRequestRecord(
        self, request: pb.GetRequestRecordRequest, context: Context
    ) -> pb.GetRequestRecordResponse:
        raise not_served("records of requests")


@asynccontextmanager
async def _errors() -> AsyncGenerator[None, None]:
    """Name fields by their path in the request, and report a database that fails as UNAVAILABLE."""
    try:
        yield
    except (SQLAlchemyError, OSError):  # TimeoutError is an OSError
        message = "the database of the keys does not answer; try again"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message) from None
    except UmgError as error:
        field = error.metadata.get("field", "")
        if field not in pb.KeySettings.DESCRIPTOR.fields_by_name:
            raise
        raise UmgError(error.reason, error.message, **{**error.metadata, "field": f"settings.{field}"}) from None


def _changes(settings: pb.KeySettings, paths: Collection[str]) -> NamedKeyFields:
    """Return the fields that the mask names. Raise UmgError for a mask that is empty or names an unknown path."""
    fields: NamedKeyFields = {"name": settings.name, **_fields(settings)}
    unknown = [path for path in paths if path not in fields]
    if unknown or not paths:
        problem = f"`{unknown[0]}` is no field of the settings" if unknown else "name at least one field to change"
        message = f"update_mask: {problem}; name some of {', '.join(fields)}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="update_mask")
    return {name: value for name, value in fields.items() if name in paths}  # type: ignore[return-value]  # some of its keys


def _fields(settings: pb.KeySettings) -> KeyFields:
    """Return the settings as the store has them, without the name."""
    return {
        "model_patterns": list(settings.model_patterns),
        "operations": [OPERATION_NAMES[operation] for operation in settings.operations],
        "channels": list(settings.channels),
        "administrator": settings.administrator,
        "requests_per_minute": settings.requests_per_minute if settings.HasField("requests_per_minute") else None,
        "tokens_per_minute": settings.tokens_per_minute if settings.HasField("tokens_per_minute") else None,
        "concurrent_requests": settings.concurrent_requests if settings.HasField("concurrent_requests") else None,
        "budget_micro_credits": settings.budget_micro_credits if settings.HasField("budget_micro_credits") else None,
        "budget_period": _stored_period(settings.budget_period),
        "expire_time": settings.expire_time.ToDatetime(UTC) if settings.HasField("expire_time") else None,
        "show_route": settings.show_route,
        "owner": settings.owner,
        "tags": dict(settings.tags),
    }


def _stored_period(period: "pb.BudgetPeriod.ValueType") -> str:
    return PERIOD_NAMES[period] if period != pb.BUDGET_PERIOD_UNSPECIFIED else ""


def _message(key: Key, balance: Balance = NO_BALANCE) -> pb.Key:
    return pb.Key(
        spent_micro_credits=balance.spent,
        reserved_micro_credits=balance.held,
        key_id=key.key_id,
        prefix=key.prefix,
        settings=pb.KeySettings(
            name=key.name,
            model_patterns=key.model_patterns,
            operations=[OPERATION_VALUES[name] for name in key.operations],
            channels=key.channels,
            administrator=key.administrator,
            requests_per_minute=key.requests_per_minute,
            tokens_per_minute=key.tokens_per_minute,
            concurrent_requests=key.concurrent_requests,
            budget_micro_credits=key.budget_micro_credits,
            budget_period=PERIOD_VALUES[key.budget_period or "none"],
            expire_time=_timestamp(key.expire_time),
            show_route=key.show_route,
            owner=key.owner,
            tags=key.tags,
        ),
        create_time=_timestamp(key.create_time),
        revoke_time=_timestamp(key.revoke_time),
        previous_prefix=key.previous_prefix,
        previous_expire_time=_timestamp(key.previous_expire_time),
    )


def _timestamp(time: datetime | None) -> Timestamp | None:
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message

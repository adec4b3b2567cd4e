"""Keys for administrators: creation, look-up, changes, rotation and revocation, as messages of `umg.v1`."""

from collections.abc import Collection

from umg_grpc.access.api_keys import DEFAULT_OVERLAP, ApiKeys, Key
from umg_grpc.access.key_settings import KeyFields
from umg_grpc.access.multi_worker_limit_rejection import check_key
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.api_key_messages import changes_of, fields_of, message_of
from umg_grpc.service.servicers.budget_messages import balance_messages, present_accounts
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import NO_BALANCE, BudgetAccounts, period_start
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

PAGE_SIZE = 100


class KeyAdministration:
    """Keys of the database, as messages. Each method raises UmgError, UNAVAILABLE if the database does not answer."""

    def __init__(self, store: Store, *, refuses_limits: bool) -> None:
        """Create the administration. `refuses_limits`: reject keys with limits, which workers count separately."""
        self._keys, self._clock = ApiKeys(store), store.clock
        self._refuses_limits = refuses_limits
        self._budgets = BudgetAccounts(store)

    async def create(self, request: pb.CreateKeyRequest) -> pb.CreateKeyResponse:
        """Create a key. Return it with its secret, which cannot be read again."""
        fields = fields_of(request.settings)
        self._check_limits(fields)
        async with converted_errors():
            key, secret = await self._keys.create(request.settings.name, **fields)
            [message] = await self._messages([key])
        return pb.CreateKeyResponse(key=message, secret=secret)

    async def find(self, key_id: str) -> tuple[Key, pb.Key]:
        """Return a key, and its message with the balance of its budget."""
        async with converted_errors():
            key = await self._keys.get(key_id)
            [message] = await self._messages([key])
            return key, message

    async def page(self, request: pb.ListKeysRequest) -> pb.ListKeysResponse:
        """Return one page of all API keys, without their secrets, newest first."""
        after = decode_token(request.page_token).id
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        async with converted_errors():
            keys, last = await self._keys.page(after, size, include_ended=request.include_ended)
            messages = await self._messages(keys)
        token = encode_token(PageBoundary(last)) if last else ""
        return pb.ListKeysResponse(keys=messages, next_page_token=token)

    async def update(self, request: pb.UpdateKeyRequest) -> pb.Key:
        """Change the fields of a key that the update mask names. Return the changed key."""
        changes = changes_of(request.settings, request.update_mask.paths)
        self._check_limits(changes)
        async with converted_errors():
            [message] = await self._messages([await self._keys.update(request.key_id, changes)])
            return message

    async def rotate(self, request: pb.RotateKeyRequest) -> pb.RotateKeyResponse:
        """Replace a key's secret. Return the key with the new one; the old one stays valid for the requested time."""
        overlap = request.overlap.ToTimedelta() if request.HasField("overlap") else DEFAULT_OVERLAP
        async with converted_errors():
            key, secret = await self._keys.rotate(request.key_id, overlap)
            [message] = await self._messages([key])
        return pb.RotateKeyResponse(key=message, secret=secret)

    async def revoke(self, key_id: str) -> pb.Key:
        """Revoke a key, which then admits no further calls. Return it."""
        async with converted_errors():
            [message] = await self._messages([await self._keys.revoke(key_id)])
            return message

    def _check_limits(self, fields: KeyFields) -> None:
        if self._refuses_limits:
            check_key(fields)

    async def _messages(self, keys: Collection[Key]) -> list[pb.Key]:
        """Return the keys as messages, each with the balances of its budgets in their current periods."""
        now = utc_of(self._clock)
        periods = {
            key.key_id: period_start(key.budget_period, now) for key in keys if key.budget_micro_credits is not None
        }
        for key in keys:
            periods |= present_accounts(key.key_id, key.budgets, now)
        balances = await self._budgets.balances(periods)
        return [
            message_of(
                key,
                balances.get(key.key_id, NO_BALANCE),
                balance_messages(key.key_id, key.budgets, balances, now),
            )
            for key in keys
        ]

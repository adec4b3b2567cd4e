"""Keys for administrators and holders: creation, look-up, changes, rotation and revocation, as messages of `umg.v1`."""

from collections.abc import Collection

from umg_grpc.access.access_control import Authority
from umg_grpc.access.api_keys import DEFAULT_OVERLAP, ApiKeys, Key
from umg_grpc.access.key_permissions import ADMIN_SCOPE
from umg_grpc.access.key_settings import KeyFields
from umg_grpc.access.multi_worker_limit_rejection import check_key
from umg_grpc.access.role_permissions import Extent, Permission
from umg_grpc.access.session_keys import SESSION_TAG
from umg_grpc.access.users import SERVICE_ACCOUNT, User, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.servicers.api_key_messages import changes_of, fields_of, message_of
from umg_grpc.service.servicers.budget_messages import balance_messages, present_accounts
from umg_grpc.service.servicers.caller_references import CallerReferences
from umg_grpc.store import Store
from umg_grpc.store.budget_accounts import NO_BALANCE, BudgetAccounts, period_start
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

PAGE_SIZE = 100
BUDGET_FIELDS = frozenset(
    {"name", "budget_micro_credits", "budget_period", "budgets", "owner", "tags", "project_id", "user_id"}
)
"""Settings that a role sees which may read budgets alone."""


class KeyAdministration:
    """Keys of the database, as messages. Each method raises UmgError, UNAVAILABLE if the database does not answer."""

    def __init__(self, store: Store, *, refuses_limits: bool) -> None:
        """Create the administration. `refuses_limits`: reject keys with limits, which workers count separately."""
        self._keys, self._clock = ApiKeys(store), store.clock
        self._users, self._references = Users(store), CallerReferences(store)
        self._refuses_limits = refuses_limits
        self._budgets = BudgetAccounts(store)

    async def create(self, request: pb.CreateKeyRequest, authority: Authority) -> pb.CreateKeyResponse:
        """Create a key. Return it with its secret, which cannot be read again."""
        fields = fields_of(request.settings)
        self._check_limits(fields)
        if not fields.get("project_id"):
            fields["project_id"] = authority.only_project(pb.PERMISSION_KEYS_WRITE)
        if request.ends_with_session:
            fields |= _session_fields(fields, authority)
        await self._check_owners(fields, authority, None)
        key, secret = await self._keys.create(request.settings.name, **fields)
        [message] = await self._messages([key], authority)
        return pb.CreateKeyResponse(key=message, secret=secret)

    async def get(self, request: pb.GetKeyRequest, authority: Authority) -> pb.GetKeyResponse:
        """Return a key with the balances of its budgets."""
        _, message = await self.find(request.key_id, authority, pb.PERMISSION_KEYS_READ)
        return pb.GetKeyResponse(key=message)

    async def find(self, reference: str, authority: Authority, permission: Permission) -> tuple[Key, pb.Key]:
        """Return a key for which the caller has the permission, and its message with the balances of its budgets."""
        key = await self._find(reference, authority, permission)
        [message] = await self._messages([key], authority)
        return key, message

    async def page(self, request: pb.ListKeysRequest, authority: Authority) -> pb.ListKeysResponse:
        """Return one page of the API keys that the caller may see, without their secrets, newest first."""
        after = decode_token(request.page_token).id
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        selection = await self._references.keys(request, authority, pb.PERMISSION_KEYS_READ)
        keys, last = await self._keys.page(after, size, include_ended=request.include_ended, selection=selection)
        messages = await self._messages(keys, authority)
        token = encode_token(PageBoundary(last)) if last else ""
        return pb.ListKeysResponse(keys=messages, next_page_token=token)

    async def update(self, request: pb.UpdateKeyRequest, authority: Authority) -> pb.UpdateKeyResponse:
        """Change the fields of a key that the update mask names. Return the changed key."""
        changes = changes_of(request.settings, request.update_mask.paths)
        self._check_limits(changes)
        key = await self._find(request.key_id, authority, pb.PERMISSION_KEYS_WRITE)
        await self._check_owners(changes, authority, key)
        [message] = await self._messages([await self._keys.update(key.key_id, changes)], authority)
        return pb.UpdateKeyResponse(key=message)

    async def rotate(self, request: pb.RotateKeyRequest, authority: Authority) -> pb.RotateKeyResponse:
        """Replace a key's secret. Return the key with the new one; the old one stays valid for the requested time."""
        overlap = request.overlap.ToTimedelta() if request.HasField("overlap") else DEFAULT_OVERLAP
        key = await self._find(request.key_id, authority, pb.PERMISSION_KEYS_ROTATE)
        if key.user_id and key.key_id != authority.key_id:
            _check_acts_for(await self._users.find(key.user_id), authority)
        key, secret = await self._keys.rotate(key.key_id, overlap)
        [message] = await self._messages([key], authority)
        return pb.RotateKeyResponse(key=message, secret=secret)

    async def revoke(self, request: pb.RevokeKeyRequest, authority: Authority) -> pb.RevokeKeyResponse:
        """Revoke a key, which then admits no further calls. Return it."""
        key = await self._find(request.key_id, authority, pb.PERMISSION_KEYS_WRITE)
        [message] = await self._messages([await self._keys.revoke(key.key_id)], authority)
        return pb.RevokeKeyResponse(key=message)

    async def _find(self, reference: str, authority: Authority, permission: Permission) -> Key:
        """Return the key with this id, name or prefix, the calling one for "", if the caller has the permission."""
        if authority.principal is None and reference not in {"", authority.key_id}:
            raise authority.denied(permission)
        key = await self._keys.get(reference or authority.key_id, authority.key_scope(pb.PERMISSION_KEYS_READ))
        authority.check_key(permission, key)
        return key

    async def _check_owners(self, fields: KeyFields, authority: Authority, key: Key | None) -> None:
        """Replace names of the project and the user by ids. Raise UmgError if the caller may not set them, or may not
        make an administrator. `key`: that is changed, None for a new one.
        """
        project_id, write = "" if key is None else key.project_id, pb.PERMISSION_KEYS_WRITE
        if reference := fields.get("project_id"):
            project_id = fields["project_id"] = await self._references.project_id(reference, authority, write)
        extent = authority.extent(write, project_id)
        if extent is Extent.NONE:
            raise authority.denied(write, project_id)
        if extent is Extent.OWN:
            former = authority.user_id if key is None else key.user_id
            fields["user_id"] = fields.get("user_id") or former
        if reference := fields.get("user_id"):
            user = await self._references.user(reference, authority, write)
            if extent is Extent.OWN and user.user_id != authority.user_id:
                raise authority.denied(write, project_id)
            _check_acts_for(user, authority)
            fields["user_id"] = user.user_id
        if fields.get("administrator") and not authority.owns_gateway:
            message = "not allowed: only an owner of the whole gateway makes keys administrators"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=ADMIN_SCOPE)

    def _check_limits(self, fields: KeyFields) -> None:
        if self._refuses_limits:
            check_key(fields)

    async def _messages(self, keys: Collection[Key], authority: Authority) -> list[pb.Key]:
        """Return the keys as messages, each with the balances of its budgets in the current periods."""
        now = utc_of(self._clock)
        periods = {
            key.key_id: period_start(key.budget_period, now) for key in keys if key.budget_micro_credits is not None
        }
        for key in keys:
            periods |= present_accounts(key.key_id, key.budgets, now)
        balances = await self._budgets.balances(periods)
        found = list[pb.Key]()
        for key in keys:
            of_list = balance_messages(key.key_id, key.budgets, balances, now)
            message = message_of(key, balances.get(key.key_id, NO_BALANCE), of_list)
            if authority.extent(pb.PERMISSION_KEYS_READ, key.project_id) is Extent.PART:
                _keep_budgets(message)
            found.append(message)
        return found


def _session_fields(fields: KeyFields, authority: Authority) -> KeyFields:
    """Return the fields by which a key ends with the session of the call. Raise UmgError(PERMISSION_DENIED) without."""
    caller = current().caller
    if not caller.session_id:
        message = "only a session makes keys that end with it; sign in, or leave `ends_with_session` out"
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="ends_with_session")
    return {
        "expire_time": caller.session_end,
        "tags": {**fields.get("tags", {}), SESSION_TAG: caller.session_id},
        "user_id": authority.user_id,
    }


def _check_acts_for(user: User | None, authority: Authority) -> None:
    """Raise UmgError(PERMISSION_DENIED) if a key of the user would have roles that the caller may not give: a key of a
    service account has its roles, and its secret would make them the caller's.
    """
    if user is not None and user.kind == SERVICE_ACCOUNT and user.user_id != authority.user_id:
        authority.check_grant(user.memberships)


def _keep_budgets(message: pb.Key) -> None:
    for field, _ in message.settings.ListFields():
        if field.name not in BUDGET_FIELDS:
            message.settings.ClearField(field.name)  # type: ignore[arg-type]  # a name of the message's own

"""Administration of organisations and projects, as messages of `umg.v1`."""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from collections.abc import Collection
from typing import TYPE_CHECKING, Final, TypeAlias

from umg_grpc.access.account_levels import ORGANIZATION_KIND
from umg_grpc.access.accounts import Account, AccountFields, Accounts
from umg_grpc.access.multi_worker_limit_rejection import check_key
from umg_grpc.access.principals import WHOLE_GATEWAY
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.budget_messages import balance_messages, budget_messages, budget_of, present_accounts
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.update_masks import check_mask
from umg_grpc.store.budget_accounts import BudgetAccounts
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import OPERATION_NAMES, OPERATION_VALUES
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token
from umg_grpc.wire.protobuf_json import enum_names

if TYPE_CHECKING:
    from umg_grpc.access.access_control import Authority
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.store import Store

PAGE_SIZE = 100
KIND_NAMES: Final = enum_names(pb.AccountKind.DESCRIPTOR)
KIND_VALUES: Final = {name: pb.AccountKind.ValueType(value) for value, name in KIND_NAMES.items()}
Named: TypeAlias = "pb.GetAccountRequest | pb.UpdateAccountRequest | pb.SetAccountClosedRequest"
READ_ACCOUNTS, WRITE_ACCOUNTS = pb.PERMISSION_ACCOUNTS_READ, pb.PERMISSION_ACCOUNTS_WRITE


class AccountAdministration:
    """Methods of `umg.v1.AccountService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, check: RequestCheck, *, refuses_limits: bool = False) -> None:
        """Create the administration. `refuses_limits`: reject limits, which workers count separately."""
        self._calls = AdministrativeCalls("AccountService", store, check)
        self._acts = AccountActs(store, refuses_limits=refuses_limits)

    async def CreateAccount(self, request: pb.CreateAccountRequest, context: Context) -> pb.CreateAccountResponse:
        return await self._calls.run(request, context, self._acts.create)

    async def GetAccount(self, request: pb.GetAccountRequest, context: Context) -> pb.GetAccountResponse:
        return await self._calls.run(request, context, self._acts.get)

    async def ListAccounts(self, request: pb.ListAccountsRequest, context: Context) -> pb.ListAccountsResponse:
        return await self._calls.run(request, context, self._acts.page)

    async def UpdateAccount(self, request: pb.UpdateAccountRequest, context: Context) -> pb.UpdateAccountResponse:
        return await self._calls.run(request, context, self._acts.update)

    async def SetAccountClosed(
        self, request: pb.SetAccountClosedRequest, context: Context
    ) -> pb.SetAccountClosedResponse:
        return await self._calls.run(request, context, self._acts.set_closed)


class AccountActs:
    """Acts on organisations and projects, with the rights of a caller."""

    def __init__(self, store: Store, *, refuses_limits: bool) -> None:
        self._accounts, self._budgets, self._clock = Accounts(store), BudgetAccounts(store), store.clock
        self._refuses_limits = refuses_limits

    async def create(self, request: pb.CreateAccountRequest, authority: Authority) -> pb.CreateAccountResponse:
        """Create an account."""
        fields, parent = fields_of(request.settings), WHOLE_GATEWAY
        self._check_limits(fields)
        if reference := fields.get("organization_id"):
            among = authority.allowed_accounts(READ_ACCOUNTS)
            parent = (await self._accounts.get(reference, ORGANIZATION_KIND, among)).account_id
            fields["organization_id"] = parent
        authority.check_account(WRITE_ACCOUNTS, parent)
        account = await self._accounts.create(KIND_NAMES[request.kind], fields)
        return pb.CreateAccountResponse(account=await self._message(account))

    async def get(self, request: pb.GetAccountRequest, authority: Authority) -> pb.GetAccountResponse:
        """Return an account that the caller may see."""
        return pb.GetAccountResponse(account=await self._message(await self._find(request, authority)))

    async def page(self, request: pb.ListAccountsRequest, authority: Authority) -> pb.ListAccountsResponse:
        """Return one page of accounts that the caller may see."""
        among = authority.allowed_accounts(READ_ACCOUNTS)
        parent = ""
        if request.organization_id:
            parent = (await self._accounts.get(request.organization_id, ORGANIZATION_KIND, among)).account_id
        accounts, last = await self._accounts.page(
            decode_token(request.page_token).id,
            request.page_size if request.HasField("page_size") else PAGE_SIZE,
            kind=KIND_NAMES.get(request.kind, ""),
            organization_id=parent,
            account_ids=request.account_ids,
            text=request.text,
            include_closed=request.include_closed,
            among=among,
        )
        token = encode_token(PageBoundary(last)) if last else ""
        return pb.ListAccountsResponse(accounts=await self._messages(accounts), next_page_token=token)

    async def update(self, request: pb.UpdateAccountRequest, authority: Authority) -> pb.UpdateAccountResponse:
        """Change an account."""
        changes = changes_of(request.settings, request.update_mask.paths)
        self._check_limits(changes)
        account = await self._find(request, authority)
        authority.check_account(WRITE_ACCOUNTS, account.account_id)
        changed = await self._accounts.update(account.account_id, changes)
        return pb.UpdateAccountResponse(account=await self._message(changed))

    async def set_closed(
        self, request: pb.SetAccountClosedRequest, authority: Authority
    ) -> pb.SetAccountClosedResponse:
        """Close or open an account."""
        account = await self._find(request, authority)
        authority.check_account(WRITE_ACCOUNTS, account.account_id)
        changed = await self._accounts.set_closed(account.account_id, closed=request.closed)
        return pb.SetAccountClosedResponse(account=await self._message(changed))

    async def _find(self, request: Named, authority: Authority) -> Account:
        kind = KIND_NAMES.get(request.kind, "")
        return await self._accounts.get(request.account_id, kind, authority.allowed_accounts(READ_ACCOUNTS))

    def _check_limits(self, fields: AccountFields) -> None:
        if self._refuses_limits:
            check_key(
                {
                    "requests_per_minute": fields.get("requests_per_minute"),
                    "tokens_per_minute": fields.get("tokens_per_minute"),
                    "concurrent_requests": fields.get("concurrent_requests"),
                }
            )

    async def _message(self, account: Account) -> pb.Account:
        return (await self._messages([account]))[0]

    async def _messages(self, accounts: Collection[Account]) -> list[pb.Account]:
        now = utc_of(self._clock)
        periods = dict[str, int]()
        for account in accounts:
            periods |= present_accounts(account.account_id, account.budgets, now)
        balances = await self._budgets.balances(periods)
        found = [message_of(account) for account in accounts]
        for account, message in zip(accounts, found, strict=True):
            message.balances.extend(balance_messages(account.account_id, account.budgets, balances, now))
        return found


def fields_of(settings: pb.AccountSettings) -> AccountFields:
    """Return the settings of an account as fields of the database. An unknown number of an enum becomes its own name,
    which the validation refuses.
    """
    return {
        "name": settings.name,
        "organization_id": settings.organization_id,
        "model_patterns": list(settings.model_patterns),
        "channels": list(settings.channels),
        "operations": [OPERATION_NAMES.get(operation, str(operation)) for operation in settings.operations],
        "requests_per_minute": settings.requests_per_minute if settings.HasField("requests_per_minute") else None,
        "tokens_per_minute": settings.tokens_per_minute if settings.HasField("tokens_per_minute") else None,
        "concurrent_requests": settings.concurrent_requests if settings.HasField("concurrent_requests") else None,
        "budgets": [budget_of(budget) for budget in settings.budgets],
        "tags": dict(settings.tags),
    }


def changes_of(settings: pb.AccountSettings, paths: Collection[str]) -> AccountFields:
    """Return the fields that the mask `paths` selects. Raise UmgError(INVALID_FIELD) for an empty or unknown path."""
    fields = fields_of(settings)
    del fields["organization_id"]
    check_mask(paths, fields, "cannot be changed")
    return {name: value for name, value in fields.items() if name in paths}  # type: ignore[return-value]  # some of its keys


def message_of(account: Account) -> pb.Account:
    """Return an account as a message, without its balances."""
    return pb.Account(
        account_id=account.account_id,
        kind=KIND_VALUES[account.kind],
        settings=pb.AccountSettings(
            name=account.name,
            organization_id=account.organization_id,
            model_patterns=account.model_patterns,
            channels=account.channels,
            operations=[OPERATION_VALUES[name] for name in account.operations],
            requests_per_minute=account.requests_per_minute,
            tokens_per_minute=account.tokens_per_minute,
            concurrent_requests=account.concurrent_requests,
            budgets=budget_messages(account.budgets),
            tags=account.tags,
        ),
        create_time=timestamp(account.create_time),
        close_time=timestamp(account.close_time),
    )

"""Names of keys and accounts beside their ids, and the accounts that a form offers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from http_facade.console.caller_rights import CallerRights, ServiceCalls
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

MAX_KEYS, MAX_ACCOUNTS = 1000, 1000
WHOLE_GATEWAY = ""
MAX_OFFERED = 200
"""Accounts that a form lists; of more, the person types the name or the id of one."""


@dataclass(frozen=True)
class OfferedAccounts:
    """Accounts of which a form offers one."""

    names: Mapping[str, str]
    """By ids; empty if they are too many."""
    is_typed: bool = False
    """Whether the person types the name or the id."""
    may_be_none: bool = False
    """Whether none may be chosen."""

    @property
    def exist(self) -> bool:
        """Whether there is a choice."""
        return bool(self.names) or self.is_typed or self.may_be_none


async def key_names(calls: ServiceCalls, key_ids: Iterable[str]) -> Mapping[str, str]:
    """Return the names of keys by their ids, as far as the person may see them."""
    wanted = sorted({key_id for key_id in key_ids if key_id})[:MAX_KEYS]
    if not wanted:
        return {}
    request = pb.ListKeysRequest(key_ids=wanted, include_ended=True, page_size=MAX_KEYS)
    return {key.key_id: key.settings.name for key in (await calls.call(request, pb.ListKeysResponse)).keys}


async def key_ids_of(calls: ServiceCalls, references: Iterable[str]) -> list[str]:
    """Return the ids of keys that are named by id, name or prefix. Raise UmgError(OBJECT_NOT_FOUND)."""
    found = [await calls.call(pb.GetKeyRequest(key_id=each), pb.GetKeyResponse) for each in references]
    return [each.key.key_id for each in found]


async def accounts(
    calls: ServiceCalls,
    kind: "pb.AccountKind.ValueType" = pb.ACCOUNT_KIND_UNSPECIFIED,
    *,
    organization_id: str = "",
    include_closed: bool = False,
    size: int = MAX_ACCOUNTS,
) -> dict[str, pb.Account]:
    """Return the first organisations and projects that the person may see, by their ids."""
    request = pb.ListAccountsRequest(
        kind=kind, organization_id=organization_id, include_closed=include_closed, page_size=size
    )
    found = (await calls.call(request, pb.ListAccountsResponse)).accounts
    return {account.account_id: account for account in found}


async def accounts_of(calls: ServiceCalls, rights: CallerRights, account_ids: Iterable[str]) -> dict[str, pb.Account]:
    """Return organisations and projects by their ids, as far as the person may see them."""
    wanted = sorted({account_id for account_id in account_ids if account_id})[:MAX_ACCOUNTS]
    if not wanted or not rights.may(pb.PERMISSION_ACCOUNTS_READ):
        return {}
    request = pb.ListAccountsRequest(account_ids=wanted, include_closed=True, page_size=len(wanted))
    found = (await calls.call(request, pb.ListAccountsResponse)).accounts
    return {account.account_id: account for account in found}


async def account_names(calls: ServiceCalls, rights: CallerRights, account_ids: Iterable[str]) -> Mapping[str, str]:
    """Return the names of organisations and projects by their ids, as far as the person may see them."""
    found = await accounts_of(calls, rights, account_ids)
    return {account_id: account.settings.name for account_id, account in found.items()}


async def offered_accounts(
    calls: ServiceCalls,
    rights: CallerRights,
    permission: "pb.Permission.ValueType",
    kind: "pb.AccountKind.ValueType" = pb.ACCOUNT_KIND_UNSPECIFIED,
) -> OfferedAccounts:
    """Return the open accounts in which the person has a permission; none stands for the whole gateway."""
    may_be_none = rights.may(permission, WHOLE_GATEWAY)
    if not (rights.may(pb.PERMISSION_ACCOUNTS_READ) and rights.may(permission)):
        return OfferedAccounts({}, may_be_none=may_be_none)
    found = await accounts(calls, kind, size=MAX_OFFERED + 1)
    if len(found) > MAX_OFFERED:
        return OfferedAccounts({}, is_typed=True, may_be_none=may_be_none)
    names = {each.account_id: printable(each.settings.name) for each in found.values()}
    may_choose = {account_id: name for account_id, name in names.items() if rights.may(permission, account_id)}
    return OfferedAccounts(may_choose, may_be_none=may_be_none)

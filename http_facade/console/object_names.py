"""Names of keys and accounts beside their ids, for pages that show many of them."""

from collections.abc import Iterable, Mapping

from http_facade.console.caller_rights import CallerRights, ServiceCalls
from umg_grpc.v1 import pb

MAX_KEYS, MAX_ACCOUNTS = 1000, 1000


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


async def account_names(calls: ServiceCalls, rights: CallerRights) -> Mapping[str, str]:
    """Return the names of the organisations and projects that the person may see, by their ids."""
    found = {}
    if rights.may(pb.PERMISSION_ACCOUNTS_READ):
        for kind in (pb.ACCOUNT_KIND_ORGANIZATION, pb.ACCOUNT_KIND_PROJECT):
            request = pb.ListAccountsRequest(kind=kind, page_size=MAX_ACCOUNTS)
            for account in (await calls.call(request, pb.ListAccountsResponse)).accounts:
                found[account.account_id] = account.settings.name
    return found

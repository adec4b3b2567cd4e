"""Look-up of API keys by the texts that people name them by: ids, names and the first characters of secrets."""

from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from umg_grpc.access.key_settings import SHOWN_CHARACTERS
from umg_grpc.base.errors import UmgError
from umg_grpc.store.key_selection import KeyScope, KeySelection
from umg_grpc.store.table_definitions import ApiKey
from umg_grpc.v1 import pb


async def find_key(session: AsyncSession, reference: str, scope: KeyScope | None = None) -> ApiKey:
    """Return the row of the key with this id, name or prefix, tried in this order; a revoked one only if no other key
    matches. Raise UmgError: OBJECT_NOT_FOUND, INVALID_FIELD if several keys match.
    """
    prefix = reference.rstrip("….")  # as `umg keys list` shows it
    by_prefix_too = (ApiKey.prefix == prefix) & (ApiKey.prefix != "")
    named = or_(ApiKey.key_id == reference, ApiKey.name == reference, by_prefix_too)
    query = select(ApiKey).where(named, *KeySelection(scope=scope).conditions())
    rows = list(await session.scalars(query.order_by(ApiKey.create_time.desc())))
    live = [row for row in rows if row.revoke_time is None]
    by_id = [row for row in rows if row.key_id == reference]
    by_name = [row for row in live if row.name == reference]
    # Of several revoked keys with one name the newest matches, so that `revoke NAME` twice finds the same key.
    revoked_name = [row for row in rows if row.name == reference][:1]
    by_prefix = [row for row in live if row.prefix == prefix]
    # a name and a prefix of two keys: neither is guessed
    meant = list({row.key_id: row for row in (*by_name, *by_prefix)}.values())
    for found in (by_id, meant, revoked_name, rows):
        if len(found) > 1:
            ids = ", ".join(row.key_id for row in found)
            raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"several keys are meant, say which: {ids}", field="key")
        if found:
            return found[0]
    raise unknown_key(reference)


async def find_live_key(session: AsyncSession, reference: str) -> ApiKey:
    """Return the row that `find_key` returns. Raise UmgError(WRONG_STATE) for a revoked key."""
    row = await find_key(session, reference)
    if row.revoke_time is not None:
        message = f"the key `{row.name}` was revoked, which is permanent; create another one"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="revoked")
    return row


async def check_name_is_no_prefix(session: AsyncSession, row: ApiKey) -> None:
    """Raise UmgError(INVALID_FIELD) if a key has the prefix or the id of another one as its name."""
    prefix = row.name.rstrip("….")
    others = or_(ApiKey.prefix == prefix, ApiKey.previous_prefix == prefix, ApiKey.key_id == row.name)
    if prefix and await session.scalar(select(ApiKey.key_id).where(others, ApiKey.key_id != row.key_id).limit(1)):
        message = "the name is the prefix or the id of another key; choose another"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="name")


def unknown_key(reference: str) -> UmgError:
    """Return the error for an unknown key, and for one that the caller may not see."""
    message = "there is no such key; `umg keys list` shows ids, names and prefixes"
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=reference[:SHOWN_CHARACTERS])

"""Keys that end with a session, which one of their tags names."""

from typing import Final

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store.key_selection import KeySelection

SESSION_TAG: Final = "umg.session"
"""Tag with the id of the session with which a key ends."""
MAX_KEYS = 1000


async def revoke_keys_of_session(keys: ApiKeys, session_id: str) -> None:
    """Revoke the keys that end with a session."""
    found, _ = await keys.page("", MAX_KEYS, selection=KeySelection(tags={SESSION_TAG: session_id}))
    for key in found:
        await keys.revoke(key.key_id)

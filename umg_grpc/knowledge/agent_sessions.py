"""Sessions of agents: headers and body members in which clients name the session of a request. Requests of a session
share the beginning of their prompt. The headers are rows of `data/session_headers.json`, in order of precedence. Pure:
no I/O and no clock.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

MAX_CHARACTERS = 256
"""Longest value that is taken as the name of a session; other values are ignored."""


class SessionHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a request header of some clients."""

    header: str
    """Name in lower case."""
    names: Literal["session", "agent"]
    """`session`: a session; `agent`: an agent within a session, with a conversation apart from the session's."""
    client: str
    source: str
    as_of: str


SESSION_HEADER_ROWS = tuple(read_rows("session_headers", SessionHeader))
SESSION_HEADERS = tuple(row.header for row in SESSION_HEADER_ROWS if row.names == "session")
AGENT_HEADERS = tuple(row.header for row in SESSION_HEADER_ROWS if row.names == "agent")
_OLDER_USER = re.compile(r"user_[\w-]+_session_([\w-]+)")
"""Form of `metadata.user_id` in older versions of Claude Code."""


class Session(NamedTuple):
    """Session of a client, as the client names it."""

    id: str
    agent: str = ""
    """Agent within the session; "" for the main one."""


class _User(Struct):
    """Form of `metadata.user_id` in newer versions of Claude Code."""

    session_id: str = ""
    device_id: str = ""
    account_uuid: str = ""


def session_of(headers: Mapping[str, str], *, prompt_cache_key: str = "", user: str = "") -> Session | None:
    """Return the session of a request; None if it names none. The first header of the table (names in lower case)
    decides, else the prompt cache key, else the end user's id, which some agents use for it.
    """
    named = _first(headers, SESSION_HEADERS) or _usable(prompt_cache_key) or _usable(_session_in(user))
    return Session(named, _first(headers, AGENT_HEADERS)) if named else None


def end_user_of(user: str) -> str:
    """Return the end user in an id that a client sent (`user`), without the session that some agents add to it."""
    if user.startswith("{"):
        try:
            found = msgspec.json.decode(user, type=_User)
        except (ValueError, RecursionError):
            return user
        return found.account_uuid or found.device_id or user
    older = _OLDER_USER.fullmatch(user)
    return user if older is None else user[: -len("_session_") - len(older[1])]


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := _usable(headers.get(name, "")))), "")


def _usable(value: str) -> str:
    value = value.strip()
    return value if len(value) <= MAX_CHARACTERS else ""


def _session_in(user: str) -> str:
    if user.startswith("{"):
        try:
            return msgspec.json.decode(user, type=_User).session_id
        except (ValueError, RecursionError):
            return ""
    found = _OLDER_USER.fullmatch(user)
    return found[1] if found is not None else ""

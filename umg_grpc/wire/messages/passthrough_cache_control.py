"""Prompt cache marks (`cache_control`) and their scopes in raw JSON messages: detection, renaming and removal."""

import re
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, parse

MAX_DEPTH = 10  # maximum depth of lists and objects around a mark: a document in a tool's result is the deepest
_PERSISTENT = re.compile(rb'"type"\s*:\s*"persistent"')
_SCOPED = re.compile(rb'"cache_control"\s*:\s*\{[^{}]*"scope"\s*:')
_ANY = re.compile(rb'"cache_control"')

Edit: TypeAlias = Callable[[dict[str, Raw]], None]  # edits the cache mark of a block, a tool or a body, in place


class _Mark(Struct):
    type: str | None = None


def has_persistent(body: bytes) -> bool:
    """Return whether a body may contain a `persistent` cache mark, which the gateway accepts but providers reject."""
    return b'"persistent"' in body and _PERSISTENT.search(body) is not None


def rename_persistent(fields: dict[str, Raw]) -> None:
    """Replace marks of type `persistent`, which only the gateway accepts, on request, system, tools and messages."""
    _rename(fields)
    for name in ("system", "tools", "messages"):
        if name in fields:
            fields[name] = _edit_marks(fields[name], _PERSISTENT, _rename)


def has_scopes(body: bytes) -> bool:
    """Return whether a body may contain a cache mark with a `scope`, which only one vendor accepts."""
    return b'"scope"' in body and _SCOPED.search(body) is not None


def remove_scopes(fields: dict[str, Raw]) -> None:
    """Remove the `scope` of each cache mark: on the request, the system prompt, the tools and the messages."""
    _remove_scope(fields)
    for name in ("system", "tools", "messages"):
        if name in fields:
            fields[name] = _edit_marks(fields[name], _SCOPED, _remove_scope)


def without_marks(turns: Raw) -> Raw:
    """Return the JSON list `messages` without the cache marks (`cache_control`) of its blocks."""
    return _edit_marks(turns, _ANY, _remove)


def _rename(members: dict[str, Raw]) -> None:
    raw = members.get("cache_control", ABSENT_MEMBER)
    if bytes(raw).startswith(b"{") and parse(_Mark, raw, "cache_control").type == "persistent":
        mark: JsonObject = {"type": "ephemeral", "ttl": "1h"}
        members["cache_control"] = Raw(msgspec.json.encode(mark))


def _remove_scope(members: dict[str, Raw]) -> None:
    raw = members.get("cache_control", ABSENT_MEMBER)
    if bytes(raw).startswith(b"{"):
        mark = parse(dict[str, Raw], raw, "cache_control")
        if mark.pop("scope", None) is not None:
            members["cache_control"] = Raw(msgspec.json.encode(mark))


def _remove(members: dict[str, Raw]) -> None:
    members.pop("cache_control", None)


def _edit_marks(raw: Raw, found: re.Pattern[bytes], edit: Edit, depth: int = 0) -> Raw:
    """Return a JSON list after `edit` was applied to each object with a cache mark, including blocks within blocks."""
    text = bytes(raw)
    if depth > MAX_DEPTH or not found.search(text):
        return raw
    if text.startswith(b"["):
        items = [_edit_marks(item, found, edit, depth + 1) for item in parse(list[Raw], raw, "messages")]
        return Raw(msgspec.json.encode(items))
    if not text.startswith(b"{"):
        return raw
    members = parse(dict[str, Raw], raw, "messages")
    edit(members)
    for name in ("content", "source"):  # of a turn, a tool's result, a document
        if name in members:
            members[name] = _edit_marks(members[name], found, edit, depth + 1)
    return Raw(msgspec.json.encode(members))

"""What a request names of a provider's account by its id: files, conversations, caches, stores. Pure.

All callers of a channel share its account, so that an id which one of them guessed, or saw, would show it what another
keeps there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

SHOWN_CHARACTERS = 128
UNKNOWN = "?"
"""Id of what cannot be read."""

# Fields of blocks and tools that only their own format knows.
BLOCK_FIELDS = frozenset({"file_id", "file_ids"})
NAMED_ITEMS = frozenset({"item_reference", "image_generation_call"})
"""Types of items that stand for what the provider keeps under their own id."""
TOOL_FIELDS = BLOCK_FIELDS | {
    *("container", "container_id", "vector_store_ids"),
    *("fileSearchStoreNames", "file_search_store_names"),
}


# What stands in every small body that names one; `\\u` may spell any of them in another way.
TELLING = (
    *(
        b'"id"',
        b"_id",
        b"fileUri",
        b"file_uri",
        b"container",
        b"conversation",
        b"prompt",
        b"vector_store",
        b"fileSearchStore",
    ),
    *(b"cachedContent", b"cached_content", b"item_reference", b"image_generation_call", b'"audio"', b"\\u"),
)
SMALL_BYTES = 16 * 2**10  # above it the look into the bytes takes as long as the one into the request


class AccountObject(NamedTuple):
    """One of them."""

    field: str
    """Canonical path of what names it."""
    id: str


def _tells(body: bytes) -> bool:
    for word in TELLING:  # noqa: SIM110  `any` over a generator takes many times as long
        if word in body:
            return True
    return False


def account_objects(request: pb.GenerateRequest) -> list[AccountObject]:
    """All that the request names, in no order. What the model itself said, in blocks that only its format knows, counts
    as nothing: it gives no access.
    """
    body = request.source.body
    if body and len(body) < SMALL_BYTES and not _tells(body):
        return []
    named = [
        AccountObject(field, name)
        for field, name in (
            ("previous_response_id", request.previous_response_id),
            ("conversation_id", request.conversation_id),
            ("cached_content", request.cached_content),
        )
        if name
    ]
    if request.HasField("prompt_template") and (name := request.prompt_template.prompt_id):
        named.append(AccountObject("prompt_template.prompt_id", name))
    if "container" in request.source.indispensable_fields:
        named += (AccountObject("container", name) for name in _container(request.source.body))
    for index, tool in enumerate(request.tools):
        kind = tool.WhichOneof("kind")
        if kind == "file_search":
            at = f"tools[{index}].file_search.vector_store_ids"
            named += (AccountObject(at, name) for name in tool.file_search.vector_store_ids)
        elif kind == "opaque":
            named += (AccountObject(f"tools[{index}]", name) for name in _in_json(tool.opaque.json, TOOL_FIELDS))
    for index, part in enumerate(request.instructions):
        if part.HasField("text"):
            continue  # as nearly all are; this is done for every call
        named += (AccountObject(f"instructions[{index}]{at}", name) for at, name in _in_part(part, pb.ROLE_SYSTEM))
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.parts):
            if not part.HasField("text") and part.WhichOneof("kind") in HOLDING:
                at = f"messages[{index}].parts[{position}]"
                named += (AccountObject(at + inner, name) for inner, name in _in_part(part, message.role))
    return named


HOLDING = frozenset({"media", "tool_result", "opaque"})
"""Kinds of parts that may name an object."""


def refuse_unknown(objects: Sequence[AccountObject], made: Mapping[str, str], channel: str) -> None:
    """Raises UmgError(OBJECT_NOT_FOUND) unless the channel made all of the objects for this caller; `made` has the
    channels of those that some channel did.
    """
    for field, name in objects:
        if made.get(name) != channel:
            shown = name[:SHOWN_CHARACTERS]
            message = (
                f"`{field}`: this key has no object '{shown}' at the provider; what lies in the provider's account can "
                "be named only where the operator says `shared_objects: true` of the channel"
            )
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=shown, field=field)


def _in_part(part: pb.Part, role: "pb.Role.ValueType") -> Iterator[tuple[str, str]]:
    """Where in the part, and the id."""
    match part.WhichOneof("kind"):
        case "media" if part.media.file_id and part.media.file_id == part.media.media_id:
            yield "", part.media.media_id  # made by the model, and not sent as a file
        case "media" if part.media.file_id:
            yield ".media.file_id", part.media.file_id
        case "media":
            for index, piece in enumerate(part.media.blocks.parts):
                yield from ((f".media.blocks.parts[{index}]{at}", name) for at, name in _in_part(piece, role))
        case "tool_result":
            for index, piece in enumerate(part.tool_result.parts):
                if piece.HasField("text"):
                    continue
                yield from ((f".tool_result.parts[{index}]{at}", name) for at, name in _in_part(piece, role))
        case "opaque" if role != pb.ROLE_ASSISTANT:
            fields = BLOCK_FIELDS | {"id"} if part.opaque.type in NAMED_ITEMS else BLOCK_FIELDS
            yield from (("", name) for name in _in_json(part.opaque.json, fields))
        case _:
            pass


class _Container(msgspec.Struct):
    id: str | None = None


class _WithContainer(msgspec.Struct):
    container: str | _Container | None = None


def _container(body: bytes) -> Iterator[str]:
    """Of a messages body; one without an id is a new one."""
    try:
        container = msgspec.json.decode(body, type=_WithContainer).container
    except (ValueError, RecursionError):
        yield UNKNOWN
        return
    name = container.id if isinstance(container, _Container) else container
    if name:
        yield name


def _in_json(text: str, fields: frozenset[str]) -> Iterator[str]:
    """Ids in fields of these names, at any depth."""
    try:
        yield from _in_value(msgspec.json.decode(text, type=object), fields)
    except (ValueError, RecursionError):
        yield UNKNOWN


def _in_value(value: object, fields: frozenset[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _in_value(each, fields)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key in fields:
                yield from (name for name in (each if isinstance(each, list) else [each]) if isinstance(name, str))
            if not isinstance(each, str):
                yield from _in_value(each, fields)

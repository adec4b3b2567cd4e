"""Protection of the objects in a provider's account (files, conversations, caches, vector stores) to which a text
request refers by id. All callers of a channel share its account, so that a caller could guess the id of another
caller's object. Each id in a request must therefore be of an object that the provider made for this caller.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS, TEXT_UPSTREAMS
from umg_grpc.wire.core.account_object_detection import UNKNOWN_OBJECT, is_public
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import TextFormat

SHOWN_CHARACTERS = 128
INSTRUCTING_ROLES = frozenset({pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER})
_FILE_SCHEME = "fileid://"
_FILE_ADDRESS = re.compile(rf"{_FILE_SCHEME}([\w.-]+)", re.IGNORECASE)


class AccountObject(NamedTuple):
    """Reference of a request to an object in a provider's account: the object's id, and the path of its field."""

    field: str
    """Path of the field with the id, for error messages: canonical, or as in the caller's body."""
    id: str


def account_objects(
    request: pb.GenerateRequest, protocols: Collection[str], notes: RequestNotes = NO_NOTES
) -> list[AccountObject]:
    """Return all references to objects that the provider gets if the request is sent to a channel with these protocols.
    `notes`: facts about the decoded body, for example the fields that were changed after decoding. If the channel has
    the format of the caller's body, the body itself is searched by the rules of this format, since it may contain
    fields without a canonical form.
    """
    source = request.source
    own = TEXT_FORMATS.get(source.format) if source.format in protocols else None
    if own is not None:
        body = source.body
        is_plain = not notes.edited and own.objects.is_plain(body)
        if is_plain and b"fileid" not in body.lower() and b"\\u" not in body:  # a letter may be escaped
            return []  # neither a member nor an address in an instruction names an object
    named = list[AccountObject]()
    if own is not None:
        found_in_body = own.objects.in_body(body, _reencoded_members(own, notes.edited))
        named = [AccountObject(*found) for found in found_in_body]
    named.extend(_in_instructions(request))
    found = {each.id for each in named}
    named.extend([each for each in _in_fields(request) if each.id not in found])
    if own is not None and "messages" not in notes.edited:
        return named
    named += _in_tools(request, protocols)
    for index, part in enumerate(request.instructions):
        if not part.HasField("text"):
            at = f"instructions[{index}]"
            named += (AccountObject(at + inner, name) for inner, name in _in_part(part, protocols))
    for index, message in enumerate(request.messages):
        from_model = message.role == pb.ROLE_ASSISTANT
        for position, part in enumerate(message.parts):
            if not part.HasField("text") and part.WhichOneof("kind") in OBJECT_PARTS:
                at = f"messages[{index}].parts[{position}]"
                named += (
                    AccountObject(at + inner, name) for inner, name in _in_part(part, protocols, from_model=from_model)
                )
    return named


def _reencoded_members(own: TextFormat, edited: Collection[str]) -> list[str]:
    members = [own.conversation_field, *own.instruction_fields] if "messages" in edited else []
    return [*members, "previous_response_id"] if "previous_response_id" in edited else members


OBJECT_PARTS = frozenset({"media", "tool_result", "opaque"})
"""Kinds of message parts that may refer to an object."""


def check_ownership(objects: Sequence[AccountObject], made: Mapping[str, str], channel: str) -> None:
    """Raise UmgError(OBJECT_NOT_FOUND) unless the channel made all the objects for this caller.
    `made`: object id -> channel that made the object, for the objects of this caller.
    """
    for field, name in objects:
        if made.get(name) != channel:
            shown = name[:SHOWN_CHARACTERS]
            at = f"`{field}`: " if field else ""
            message = (
                f"{at}this key has no object '{shown}' at the provider; leave it out, or send the content itself. "
                "Objects of the provider's account can be named only if the operator sets `shared_objects: true` for "
                "the channel"
            )
            error = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=shown)
            if field:
                error.metadata["field"] = field
            raise error


def _in_fields(request: pb.GenerateRequest) -> Iterator[AccountObject]:
    """Yield the references in fields outside of messages and tools, for example to a conversation or a template."""
    for field, name in (
        ("previous_response_id", request.previous_response_id),
        ("conversation_id", request.conversation_id),
        ("cached_content", request.cached_content),
    ):
        if name:
            yield AccountObject(field, name)
    if request.HasField("prompt_template") and (name := request.prompt_template.prompt_id):
        yield AccountObject("prompt_template.prompt_id", name)


def _in_instructions(request: pb.GenerateRequest) -> Iterator[AccountObject]:
    if request.instructions:
        yield from _in_texts(request.instructions, "instructions")
    for index, message in enumerate(request.messages):
        if message.role in INSTRUCTING_ROLES:
            yield from _in_texts(message.parts, f"messages[{index}].parts")


def _in_texts(parts: Iterable[pb.Part], path: str) -> Iterator[AccountObject]:
    for index, part in enumerate(parts):
        text = part.text.text
        if _FILE_SCHEME in text.lower():  # the search of the pattern takes ten times as long
            yield from (AccountObject(f"{path}[{index}]", name) for name in _FILE_ADDRESS.findall(text))


class _Voice(msgspec.Struct):
    """JSON of `audio_output.voice_json`, of which only the id of a custom voice is read."""

    id: str


def _in_tools(request: pb.GenerateRequest, protocols: Collection[str]) -> Iterator[AccountObject]:
    for index, tool in enumerate(request.tools):
        kind = tool.WhichOneof("kind")
        if kind == "file_search":
            at = f"tools[{index}].file_search.vector_store_ids"
            yield from (AccountObject(at, name) for name in tool.file_search.vector_store_ids)
        elif kind == "opaque":
            yield from (AccountObject(f"tools[{index}]", name) for name in _in_opaque(tool.opaque, protocols))
        elif kind == "function" and tool.function.HasField("declared"):
            declared = tool.function.declared
            yield from (AccountObject(f"tools[{index}]", name) for name in _in_opaque(declared, protocols))
    if "{" in (voice := request.audio_output.voice_json):
        try:
            yield AccountObject("audio_output.voice_json", msgspec.json.decode(voice, type=_Voice).id)
        except (ValueError, RecursionError):
            yield AccountObject("audio_output.voice_json", UNKNOWN_OBJECT)


def _in_part(part: pb.Part, protocols: Collection[str], *, from_model: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (path of the field below the part, object id) for each reference in a part. Only references that a channel
    with these protocols is sent are included. `from_model`: whether the part is in an assistant message.
    """
    match part.WhichOneof("kind"):
        case "media":
            yield from _in_media(part.media, protocols, from_model=from_model)
        case "tool_result":
            for index, piece in enumerate(part.tool_result.parts):
                if piece.HasField("text"):
                    continue
                inside = _in_part(piece, protocols, from_model=from_model)
                yield from ((f".tool_result.parts[{index}]{at}", name) for at, name in inside)
        case "opaque":
            yield from (("", name) for name in _in_opaque(part.opaque, protocols, from_model=from_model))
        case "text" | "reasoning" | "tool_call" | "server_tool_call" | "server_tool_result" | "refusal":
            pass  # not in `OBJECT_PARTS`
        case "compaction" | None:
            pass  # replaced by the text of its summary; a kind newer than this build
        case unhandled:
            assert_never(unhandled)


def _in_media(media: pb.MediaPart, protocols: Collection[str], *, from_model: bool) -> Iterator[tuple[str, str]]:
    match media.WhichOneof("source"):
        case "file_id" if media.file_id and media.file_id == media.media_id:
            yield "", media.media_id  # media that the model made, which is sent by its media id
        case "file_id" if media.file_id:
            yield ".media.file_id", media.file_id
        case "uri" if not is_public(media.uri):
            yield ".media.uri", media.uri
        case "data" if media.media_id and not media.data:
            yield ".media.media_id", media.media_id
        case "blocks":
            for index, piece in enumerate(media.blocks.parts):
                inside = _in_part(piece, protocols, from_model=from_model)
                yield from ((f".media.blocks.parts[{index}]{at}", name) for at, name in inside)
        case "file_id" | "uri" | "data" | None:
            pass  # no object: an empty id, a public address, or the content itself
        case unhandled:
            assert_never(unhandled)


def _in_opaque(opaque: pb.OpaquePart, protocols: Collection[str], *, from_model: bool = False) -> Iterator[str]:
    """Yield the object ids in an opaque part of one provider's format, if the channel has it and is sent the part."""
    if opaque.format in protocols and (codec := TEXT_UPSTREAMS.get(opaque.format)) is not None:
        yield from (name for _, name in codec.objects.in_json(opaque.json, from_model=from_model))

"""Decoding of messages and their content blocks, of a caller's request and of a provider's response."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import (
    check_address,
    decode_base64,
    is_data_url,
    normal_mime,
    parse_data_url,
    sniff,
)
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, invalid, is_present, missing, parse
from umg_grpc.wire.core.reasoning_state_conversion import read
from umg_grpc.wire.core.unknown_role_messages import RawTurns, append_opaque_turn
from umg_grpc.wire.errors.provider_errors import unreadable
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.cache_control import decode_mark
from umg_grpc.wire.messages.citations import decode_citation
from umg_grpc.wire.messages.server_tools import (
    RESULT_OF,
    decode_search_result,
    decode_server_call,
    decode_server_result,
    has_content,
)
from umg_grpc.wire.messages.tool_calls import decode_call

# `system` gives instructions in the middle of a conversation (beta `mid-conversation-system-2026-04-07`).
MESSAGE_ROLES = {"user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT, "system": pb.ROLE_SYSTEM}

UNSIGNED_SIGNATURE = "umg.unsigned"  # of reasoning received without one; providers reject it

Owner: TypeAlias = pb.Message | pb.ToolResult | pb.DocumentBlocks
ReadState: TypeAlias = Callable[[str], pb.ReasoningState]
ReadBlock: TypeAlias = Callable[[Raw, Owner, str], None]


def returned_state(text: str) -> pb.ReasoningState:
    """Return the state that a caller sent back, with the format that created it: other formats' states are wrapped."""
    return read(text, "messages")


def provider_state(text: str) -> pb.ReasoningState:
    """Return the reasoning state (opaque data) in a response of a provider of this format."""
    return pb.ReasoningState(format="messages", data=text)


def decode_messages(turns: list[schema.Turn], request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode the `messages` of a body; one with an unknown role as raw JSON, with its path in `notes`. Raise
    UmgError(MISSING_FIELD, INVALID_FIELD) with the path of the field.
    """
    raw_turns: RawTurns | None = None
    for index, turn in enumerate(turns):
        if turn.role not in MESSAGE_ROLES:
            raw_turns = raw_turns or RawTurns(request.source, "messages")
            append_opaque_turn(request, notes, raw_turns[index], turn.role, f"messages[{index}].role")
            continue
        message = request.messages.add(role=MESSAGE_ROLES[turn.role])
        if turn.content is None:
            if turn.role != "system":  # a system turn may only change options, for example `output_config`
                raise missing(f"messages[{index}].content")
        elif isinstance(turn.content, str):
            message.parts.add().text.text = turn.content
        else:
            decode_blocks(turn.content, message, f"messages[{index}].content", returned_state, BLOCK_READERS)


def decode_system(system: str | list[Raw], request: pb.GenerateRequest) -> None:
    """Decode a text or text blocks into `request.instructions`, "" into nothing. Raise UmgError with the path."""
    if isinstance(system, str):
        if system:
            request.instructions.add().text.text = system
        return
    for index, raw in enumerate(system):
        at = f"system[{index}]"
        if (kind := parse(schema.Kind, raw, at).type) != "text":
            raise missing(f"{at}.type") if kind is None else invalid(f"{at}.type", "expected `text`; send text blocks")
        block = parse(schema.TextBlock, raw, at)
        part = request.instructions.add()
        part.text.text = block.text
        decode_mark(part, block, at)


def decode_response_blocks(blocks: list[Raw], message: pb.Message) -> None:
    """Decode the content blocks of a provider's response. Raise UmgError(UPSTREAM_FAILED) for an invalid block."""
    try:
        decode_blocks(blocks, message, "content", provider_state, RESPONSE_BLOCKS)
    except UmgError:
        raise unreadable() from None  # the field is the provider's, not the caller's


def decode_blocks(
    blocks: list[Raw], message: pb.Message, at: str, read_state: ReadState, known: dict[str, ReadBlock]
) -> None:
    """Append the content blocks of a message to `message.parts`; unknown types become raw JSON.

    A `redacted_thinking` block in which the gateway put the state of another format's tool call becomes the state of
    the next call. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path. `known`: type -> function (block, target,
    path) that appends its part.
    """
    held: pb.ReasoningState | None = None
    for index, raw in enumerate(blocks):
        path = f"{at}[{index}]"
        kind = parse(schema.Kind, raw, path).type
        if held is not None and kind != "tool_use":
            _redacted(message, held)
            held = None
        if kind == "redacted_thinking":
            state = read_state(parse(schema.RedactedThinkingBlock, raw, path).data)
            if state.format == "messages":
                _redacted(message, state)
            else:
                held = state
        elif kind == "thinking":
            _thinking(parse(schema.ThinkingBlock, raw, path), message, read_state)
        elif kind in known:
            known[kind](raw, message, path)
            if held is not None:
                message.parts[-1].state.CopyFrom(held)
                held = None
        elif kind is None:
            raise missing(f"{path}.type")
        elif (result := RESULT_OF.fullmatch(kind)) and has_content(raw):
            decode_server_result(raw, message, path, result[1])
        else:
            append_opaque(raw, kind, message)
    if held is not None:
        _redacted(message, held)


def append_opaque(raw: Raw, kind: str, owner: Owner) -> None:
    """Append a block of an unknown type (`kind`) to the parts of `owner`, as raw JSON."""
    opaque = owner.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "messages", kind, str(raw, "utf-8")


# --- one function for each type of block


def _text(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.TextBlock, raw, at)
    part = owner.parts.add()
    part.text.text = block.text
    for index, citation in enumerate(block.citations or ()):
        # raises for JSON that is no object; any other citation is kept
        parse(schema.Kind, citation, f"{at}.citations[{index}]")
        part.text.citations.append(decode_citation(citation))
    decode_mark(part, block, at)


def _thinking(block: schema.ThinkingBlock, message: pb.Message, read_state: ReadState) -> None:
    part = message.parts.add()
    part.reasoning.SetInParent()
    if block.thinking:
        part.reasoning.texts.append(block.thinking)
    if block.signature and block.signature != UNSIGNED_SIGNATURE:
        part.state.CopyFrom(read_state(block.signature))


def _redacted(message: pb.Message, state: pb.ReasoningState) -> None:
    part = message.parts.add()
    part.reasoning.redacted = True
    part.state.CopyFrom(state)


def _image(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.ImageBlock, raw, at)
    part = owner.parts.add()
    part.media.kind = pb.MEDIA_KIND_IMAGE
    _source(block.source, part.media, f"{at}.source")
    decode_mark(part, block, at)


def _document(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.DocumentBlock, raw, at)
    part = owner.parts.add()
    media = part.media
    media.kind, media.title, media.context = pb.MEDIA_KIND_DOCUMENT, block.title or "", block.context or ""
    if block.citations is not None and block.citations.enabled is not None:
        media.citable = block.citations.enabled
    _source(block.source, media, f"{at}.source")
    decode_mark(part, block, at)


def _search_result(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.SearchResultBlock, raw, at)
    part = owner.parts.add()
    media = part.media
    media.kind, media.title, media.origin = pb.MEDIA_KIND_DOCUMENT, block.title, block.source
    if block.citations is not None and block.citations.enabled is not None:
        media.citable = block.citations.enabled
    _pieces(block.content, media, f"{at}.content")
    decode_mark(part, block, at)


def _source(raw: Raw, media: pb.MediaPart, at: str) -> None:
    image = media.kind == pb.MEDIA_KIND_IMAGE
    match parse(schema.Kind, raw, at).type:
        case "base64":
            _inline(parse(schema.Base64Source, raw, at), media, at)
        case "url":
            _address(parse(schema.UrlSource, raw, at).url, media, f"{at}.url")
        case "file":
            media.file_id = parse(schema.FileSource, raw, at).file_id
        case "text" if not image:
            text = parse(schema.TextSource, raw, at)
            media.data, media.mime_type = text.data.encode(), normal_mime(text.media_type or "") or "text/plain"
        case "content" if not image:
            content = parse(schema.ContentSource, raw, at).content
            if isinstance(content, str):
                media.blocks.parts.add().text.text = content
            else:
                _pieces(content, media, f"{at}.content")
        case None:
            raise missing(f"{at}.type")
        case _:  # a source of an unknown type is no file that any provider could be sent
            known = "`base64`, `url`, `file`" if image else "`base64`, `text`, `url`, `file`, `content`"
            raise invalid(f"{at}.type", f"it is not one of its values; send one of {known}")


def _inline(source: schema.Base64Source, media: pb.MediaPart, at: str) -> None:
    data, mime = decode_base64(source.data, f"{at}.data"), normal_mime(source.media_type or "")
    if not data:
        raise invalid(f"{at}.data", "it is empty; add the file, encoded as base64")
    if media.kind == pb.MEDIA_KIND_IMAGE and not mime.startswith("image/"):
        mime = sniff(data) or mime
    media.data, media.mime_type = data, mime or sniff(data)


def _address(url: str, media: pb.MediaPart, field: str) -> None:
    if is_data_url(url):
        media.mime_type, media.data = parse_data_url(url, field)
    else:
        media.uri = check_address(url, field, "bytes go into a source of type `base64`")


def _pieces(blocks: list[Raw], media: pb.MediaPart, at: str) -> None:
    media.blocks.SetInParent()
    for index, raw in enumerate(blocks):
        match parse(schema.Kind, raw, f"{at}[{index}]").type:
            case "text":
                _text(raw, media.blocks, f"{at}[{index}]")
            case "image":
                _image(raw, media.blocks, f"{at}[{index}]")
            case None:
                raise missing(f"{at}[{index}].type")
            case _:  # a document has no other blocks in any provider
                raise invalid(f"{at}[{index}].type", "expected `text` or `image`; send one of them")


def _tool_result(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.ToolResultBlock, raw, at)
    part = owner.parts.add()
    result = part.tool_result
    result.call_id = block.tool_use_id
    if block.is_error is not None:
        result.is_error = block.is_error
    if isinstance(block.content, str):
        if block.content:
            result.parts.add().text.text = block.content
    else:
        for index, inner in enumerate(block.content or ()):
            path = f"{at}.content[{index}]"
            kind = parse(schema.Kind, inner, path).type
            if kind is None:
                raise missing(f"{path}.type")
            if kind in RESULT_BLOCKS:
                BLOCK_READERS[kind](inner, result, path)
            else:
                append_opaque(inner, kind, result)
    decode_mark(part, block, at)


def _tool_reference(raw: Raw, owner: Owner, at: str) -> None:
    block = parse(schema.ToolReferenceBlock, raw, at)
    append_opaque(raw, "tool_reference", owner)
    owner.parts[-1].opaque.text = f"loaded: {block.tool_name}"


def _with_input(read_block: ReadBlock) -> ReadBlock:
    def filled(raw: Raw, owner: Owner, at: str) -> None:
        members = parse(dict[str, Raw], raw, at)
        if not is_present(members.get("input", ABSENT_MEMBER)):
            raw = Raw(msgspec.json.encode(members | {"input": Raw(b"{}")}))
        read_block(raw, owner, at)

    return filled


BLOCK_READERS: dict[str, ReadBlock] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_use": decode_call,
    "tool_result": _tool_result,
    "tool_reference": _tool_reference,
    "server_tool_use": decode_server_call,
    "web_search_tool_result": decode_search_result,
}
RESPONSE_BLOCKS = BLOCK_READERS | {
    "tool_use": _with_input(decode_call),
    "server_tool_use": _with_input(decode_server_call),
}
RESULT_BLOCKS = frozenset({"text", "image", "document", "search_result", "tool_reference"})

"""Documents in chat messages for providers that have them as parts of type `document_url`, instead of `file`."""

import msgspec
from msgspec import Raw

from umg_grpc.wire.chat import schema
from umg_grpc.wire.core.base64_media import decode_base64, is_data_url, sniff
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_values


def encode_document(address: str, name: str) -> JsonObject:
    """Return a document as a part of type `document_url`. `address`: an address or a data URL; `name`: or ""."""
    named: JsonObject = {"document_name": name} if name else {}
    return {"type": "document_url", "document_url": address, **named}


def with_document_urls(messages: Raw) -> Raw:
    """Return a caller's `messages` with files that are sent as bytes as `document_url` parts; itself if it has none."""
    if b'"file_data"' not in bytes(messages):
        return messages
    return edit_values(messages, (EACH_ELEMENT, "content", EACH_ELEMENT), _with_document_url)


def _with_document_url(part: Raw) -> Raw:
    if parse(schema.Kind, part, "messages.content").type != "file":
        return part
    file = parse(schema.FilePart, part, "messages.content").file
    if file.file_data is None:
        return part
    address = file.file_data
    if not is_data_url(address):
        mime = sniff(decode_base64(address, "messages.content.file.file_data")) or "application/pdf"
        address = f"data:{mime};base64,{address}"
    return Raw(msgspec.json.encode(encode_document(address, file.filename or "")))

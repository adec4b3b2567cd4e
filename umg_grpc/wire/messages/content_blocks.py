"""Encoding of images and documents as content blocks. Requests to providers and responses to callers use the same."""

from collections.abc import Iterator
from typing import assert_never

import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import file_type
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.messages.cache_control import encode_cache

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})  # and text/*


def encode_image(media: pb.MediaPart) -> JsonObject | None:
    """Return an image as an `image` block; None if it has no source, or a media type that providers reject."""
    match media.WhichOneof("source"):
        case "data":
            data = media.data
            mime = file_type(media.mime_type, data) or "image/png"
            return {"type": "image", "source": _inline(data, mime)} if mime in IMAGE_TYPES else None
        case "uri":
            return {"type": "image", "source": {"type": "url", "url": media.uri}}
        case "file_id":
            return {"type": "image", "source": {"type": "file", "file_id": media.file_id}}
        case "blocks" | None:
            return None
        case unhandled:
            assert_never(unhandled)


def _inline(data: bytes, mime: str) -> JsonObject:
    return {"type": "base64", "media_type": mime, "data": pybase64.b64encode_as_string(data)}


def encode_document(media: pb.MediaPart, report: Report, at: str) -> JsonObject | None:
    """Return a document as a `document` block, or `search_result` for parts with an origin; None for media that
    providers do not accept. Raise UmgError(UNTRANSLATABLE) for parts other than texts and images. Report fields left
    out.
    """
    if media.kind != pb.MEDIA_KIND_DOCUMENT:
        return None
    if media.HasField("blocks") and media.origin:
        block: JsonObject = {"type": "search_result", "source": media.origin, "title": media.title}
        block["content"] = list(_pieces(media.blocks, f"{at}.blocks"))
        if media.context:
            report.drop("context")
    else:
        source = _document_source(media, at)
        if source is None:
            return None
        block = {"type": "document", "source": source}
        if title := media.title or media.filename:
            block["title"] = title
        if media.context:
            block["context"] = media.context
        if media.origin:
            report.drop("origin")
    if media.HasField("citable"):
        block["citations"] = {"enabled": media.citable}
    return block


def _document_source(media: pb.MediaPart, at: str) -> JsonObject | None:
    match media.WhichOneof("source"):
        case "blocks":
            return {"type": "content", "content": list(_pieces(media.blocks, f"{at}.blocks"))}
        case "uri":
            return {"type": "url", "url": media.uri}
        case "file_id":
            return {"type": "file", "file_id": media.file_id}
        case "data" | None:
            mime = file_type(media.mime_type, media.data)
            if mime == "application/pdf":
                return _inline(media.data, mime)
            if mime and not mime.startswith("text/") and mime not in TEXT_TYPES:
                return None
            try:
                return {"type": "text", "media_type": "text/plain", "data": media.data.decode()}
            except UnicodeDecodeError:
                return None
        case unhandled:
            assert_never(unhandled)


def _pieces(blocks: pb.DocumentBlocks, at: str) -> Iterator[JsonObject]:
    for index, part in enumerate(blocks.parts):
        encoded: JsonObject | None = None
        if part.HasField("text"):
            encoded = {"type": "text", "text": part.text.text}
        elif part.HasField("media") and part.media.kind == pb.MEDIA_KIND_IMAGE:
            encoded = encode_image(part.media)
        if encoded is None:
            raise untranslatable(f"{at}.parts[{index}]", "a document in pieces holds texts and images")
        if part.HasField("cache_control"):
            encoded["cache_control"] = encode_cache(part.cache_control)
        yield encoded

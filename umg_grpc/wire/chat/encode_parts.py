"""Encoding of the parts of canonical messages as content parts of a chat request to a provider."""

from typing import assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.decode_messages import IMAGE_DETAILS
from umg_grpc.wire.chat.document_parts import encode_document
from umg_grpc.wire.core.base64_media import data_url, encode_input_audio, file_type
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.dropped_fields_report import Report, foreign, unknown_part, untranslatable


class PartEncoder:
    """Encoder of single parts of messages as content parts. `keeps_parts`: texts stay separate parts, with their cache
    breakpoints. `has_document_urls`: the provider accepts `document_url`.
    """

    def __init__(
        self, request: pb.GenerateRequest, report: Report, *, keeps_parts: bool, has_document_urls: bool
    ) -> None:
        self._request = request
        self._report = report
        self._keeps_parts = keeps_parts
        self._has_document_urls = has_document_urls

    def encode(self, part: pb.Part, at: str) -> object:
        """Return a part as a content part. Raise UmgError(UNTRANSLATABLE, INVALID_FIELD) if chat has none for it."""
        match part.WhichOneof("kind"):
            case "text":
                if part.text.citations:
                    self._report.drop("citations")
                return {"type": "text", "text": part.text.text}
            case "refusal":
                return {"type": "refusal", "refusal": part.refusal.text}
            case "media":
                return self._media(part.media, at)
            case "opaque" if part.opaque.format == "chat":
                return json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque" if part.opaque.text:
                return {"type": "text", "text": part.opaque.text}
            case "opaque":
                raise foreign(part.opaque, at)
            case "compaction" | None:
                raise unknown_part(at)
            case "reasoning" | "tool_call" | "tool_result" | "server_tool_call" | "server_tool_result":
                raise untranslatable(at, "a chat turn of this role cannot hold it")
            case unhandled:
                assert_never(unhandled)

    def is_encodable(self, part: pb.Part, at: str) -> bool:
        """Return whether chat can express a part, else report it. Raise UmgError(UNTRANSLATABLE) for unknown kinds."""
        kind = part.WhichOneof("kind")
        if kind is None:
            raise unknown_part(at)
        if kind in ("server_tool_call", "server_tool_result", "reasoning") or part.thought:
            self._report.drop("thought" if part.thought else kind)
            return False
        return True

    def text_of(self, part: pb.Part, at: str) -> str:
        """Return the text of a part of the instructions. Raise UmgError(UNTRANSLATABLE) for a part of another kind."""
        if part.HasField("cache_control") and not self._keeps_parts:
            self._report.drop("cache_control")
        if not part.HasField("text"):
            raise untranslatable(at, "instructions are text in chat")
        return part.text.text

    def _media(self, media: pb.MediaPart, at: str) -> JsonObject:
        source = media.WhichOneof("source")
        document = media.kind == pb.MEDIA_KIND_DOCUMENT
        titled = source == "blocks" or (document and source == "data" and not media.filename)
        for field in ("context", "citable", "origin") if titled else ("title", "context", "citable", "origin"):
            if getattr(media, field):
                self._report.drop(field)
        if media.detail and media.detail not in IMAGE_DETAILS:
            self._report.drop("detail")
        if media.kind == pb.MEDIA_KIND_IMAGE and source in ("data", "uri"):
            url = media.uri or _image_url(media)
            detail = media.detail or self._request.media_detail
            shown = without_empty({"url": url, "detail": detail if detail in IMAGE_DETAILS else ""})
            return {"type": "image_url", "image_url": shown}
        if (audio := encode_input_audio(media)) is not None:
            return audio
        if document and source == "uri" and self._has_document_urls:
            return encode_document(media.uri, media.filename or media.title)
        if document and source == "file_id":
            return {"type": "file", "file": {"file_id": media.file_id}}
        if document and source == "data":
            mime = file_type(media.mime_type, media.data) or "application/pdf"
            if mime.startswith("text/") and (text := _text_in(media.data)) is not None:
                named = media.title or media.filename
                return {"type": "text", "text": f"{named}\n\n{text}" if named else text}
            if self._has_document_urls:
                return encode_document(data_url(mime, media.data), media.filename or media.title)
            name = media.filename or media.title or f"document.{mime.rpartition('/')[2]}"
            return {"type": "file", "file": {"filename": name, "file_data": data_url(mime, media.data)}}
        if source == "blocks" and all(part.HasField("text") for part in media.blocks.parts):
            return {
                "type": "text",
                "text": "\n\n".join([media.title, *(part.text.text for part in media.blocks.parts)]).strip(),
            }
        kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
        raise untranslatable(
            at, f"chat cannot express this {kind} ({media.mime_type or source}); send its bytes in another form"
        )


def without_empty(fields: JsonObject) -> JsonObject:
    """Return an object without its members that are empty strings, except `content`."""
    return {name: value for name, value in fields.items() if value != "" or name == "content"}


def _image_url(image: pb.MediaPart) -> str:
    data = image.data
    return data_url(file_type(image.mime_type, data) or "image/png", data)


def _text_in(data: bytes) -> str | None:
    """Return a document as text, since no provider accepts text files; None if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None

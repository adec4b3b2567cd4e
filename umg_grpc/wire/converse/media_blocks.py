"""Encoding of media as blocks of Converse requests: images, documents, videos and sounds, all as bytes."""

import re
import unicodedata
from collections.abc import Mapping

import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import file_type
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report, untranslatable

IMAGE_FORMATS: Mapping[str, str] = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
VIDEO_FORMATS: Mapping[str, str] = {
    **{f"video/{form}": form for form in ("mov", "mp4", "webm", "mpeg", "mpg", "wmv")},
    "video/x-matroska": "mkv",
    "video/quicktime": "mov",
    "video/x-flv": "flv",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
AUDIO_FORMATS: Mapping[str, str] = {
    **{f"audio/{form}": form for form in ("wav", "flac", "aac", "x-aac", "ogg", "opus", "mp4", "m4a", "webm", "pcm")},
    "audio/mpeg": "mp3",
    "audio/x-m4a": "m4a",
    "audio/x-matroska": "mka",
}
DOCUMENT_FORMATS: Mapping[str, str] = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/markdown": "md",
}
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
MEDIA_FORMATS: Mapping[int, tuple[str, Mapping[str, str]]] = {
    pb.MEDIA_KIND_IMAGE: ("image", IMAGE_FORMATS),
    pb.MEDIA_KIND_VIDEO: ("video", VIDEO_FORMATS),
    pb.MEDIA_KIND_AUDIO: ("audio", AUDIO_FORMATS),
}
"""Kind of media -> (member of a block, {media type -> format name})."""
MEDIA_TYPES: Mapping[str, str] = {name: mime for mime, name in IMAGE_FORMATS.items()}
"""Format name of an image in a response -> media type."""

DEFAULT_NAME = "document"
MAX_NAME_CHARACTERS = 200
NUMBER_CHARACTERS = 8  # characters of a name that are reserved for a number
_ILLEGAL = re.compile(r"[^0-9A-Za-z_\s()\[\]-]")
_MARKS = re.compile(r"[\u0300-\u036f]")  # accents after their letters in decomposed characters
_SPACES = re.compile(r"\s+")
_ENDING = re.compile(r"\.[0-9A-Za-z]{1,5}$")


class MediaEncoder:
    """Encoder of the media of one request. Each document gets a different name."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._names: set[str] = set()

    def encode(self, media: pb.MediaPart, at: str) -> JsonObject:
        """Return media as a content block. Raise UmgError(UNTRANSLATABLE) for media that the provider rejects."""
        if media.detail not in ("", "auto"):
            self._report.drop("detail")
        if media.uri or media.file_id:
            raise untranslatable(at, "this model's provider reads no addresses and no ids of files; send the bytes")
        if media.kind == pb.MEDIA_KIND_DOCUMENT:
            return self._document(media, at)
        name, formats = MEDIA_FORMATS.get(media.kind, ("", {}))
        mime = file_type(media.mime_type, media.data)
        if (form := formats.get(mime)) is None or not media.data:
            raise _refused(media, mime, at)
        return {name: {"format": form, "source": _bytes(media.data)}}

    def _document(self, media: pb.MediaPart, at: str) -> JsonObject:
        if media.HasField("blocks") and media.origin:
            return {"searchResult": self._search_result(media, at)}
        document: JsonObject = {"name": self._name(media)}
        if media.HasField("blocks"):
            document["source"] = {"content": _pieces(media.blocks, at)}
        else:
            mime = file_type(media.mime_type, media.data)
            form = DOCUMENT_FORMATS.get(mime)
            if form is None and (not mime or mime.startswith("text/") or mime in TEXT_TYPES) and _is_text(media.data):
                form = "txt"
            if form is None or not media.data:
                raise _refused(media, mime, at)
            document |= {"format": form, "source": _bytes(media.data)}
        if media.context:
            document["context"] = media.context
        if media.HasField("citable"):
            document["citations"] = {"enabled": media.citable}
        if media.origin:
            self._report.drop("origin")
        return {"document": document}

    def _search_result(self, media: pb.MediaPart, at: str) -> JsonObject:
        result: JsonObject = {
            "source": media.origin,
            "title": media.title or media.origin,
            "content": _pieces(media.blocks, at),
        }
        if media.HasField("citable"):
            result["citations"] = {"enabled": media.citable}
        if media.context:
            self._report.drop("context")
        return result

    def _name(self, media: pb.MediaPart) -> str:
        """Return a document's name: only letters without accents, digits, `-_()[]` and single spaces; no extension."""
        stated = _MARKS.sub("", unicodedata.normalize("NFKD", media.title or media.filename))
        plain = _SPACES.sub(" ", _ILLEGAL.sub(" ", _ENDING.sub("", stated))).strip()
        name = plain = plain[: MAX_NAME_CHARACTERS - NUMBER_CHARACTERS].strip() or DEFAULT_NAME
        number = 1
        while name in self._names:
            number += 1
            name = f"{plain}-{number}"
        self._names.add(name)
        if media.title and name != media.title:
            self._report.drop("title", name)
        return name


def _refused(media: pb.MediaPart, mime: str, at: str) -> Exception:
    kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
    form = mime or media.WhichOneof("source") or "empty"
    return untranslatable(at, f"this model's provider does not accept this {kind} ({form}); send another form")


def _bytes(data: bytes) -> JsonObject:
    return {"bytes": pybase64.b64encode_as_string(data)}


def _pieces(blocks: pb.DocumentBlocks, at: str) -> list[JsonObject]:
    """Return the texts of a document in pieces. Raise UmgError(UNTRANSLATABLE) if one is no text, or all are blank."""
    for index, part in enumerate(blocks.parts):
        if not part.HasField("text"):
            raise untranslatable(f"{at}.blocks.parts[{index}]", "a document in pieces holds texts in this format")
    texts: list[JsonObject] = [{"text": part.text.text} for part in blocks.parts if part.text.text.strip()]
    if not texts:
        raise untranslatable(f"{at}.blocks", "the document is empty; add its text or leave it out")
    return texts


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True

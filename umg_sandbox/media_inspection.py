"""Inspection of images and other media in a prompt for simulated responses, by their headers and without downloads."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import assert_never

from PIL import Image

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import sniff
from umg_grpc.wire.core.image_file_headers import AVIF_TYPE, BMP_TYPE, HEIC_TYPE, TIFF_TYPE, read_header, sniff_image
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.dropped_fields_report import untranslatable
from umg_sandbox.words_from_prompt import digest

IMAGE_TOKENS = 1000  # text document, Limits: estimate of token counting
PAGE_TOKENS = 1000
BYTES_A_TOKEN = 1000
FIRST_WORDS = 80

# Formats of Pillow for the types whose headers `image_file_headers` does not read.
_MEASURED = {BMP_TYPE: "BMP", TIFF_TYPE: "TIFF", AVIF_TYPE: "AVIF"}
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_NAMES = {
    pb.MEDIA_KIND_IMAGE: "Image",
    pb.MEDIA_KIND_AUDIO: "Audio",
    pb.MEDIA_KIND_VIDEO: "Video",
    pb.MEDIA_KIND_DOCUMENT: "Document",
}


@dataclass(frozen=True)
class MediaDescription:
    """Properties of one medium (image, document, audio or video) that a simulated response states."""

    kind: "pb.MediaKind.ValueType"
    words: str
    """Type and size: `image/png, 64 x 48 pixels`."""
    tokens: int
    fingerprint: bytes
    text: str | None = None
    """Text of a text document; `tokens` does not include its tokens."""
    blocks: int = 0
    """Number of pieces in which a document was sent; 0 for one that was sent as a whole."""
    citable: bool = False

    @property
    def name(self) -> str:
        """Kind of the medium as a word, for example `Image`."""
        return _NAMES.get(self.kind, "Medium")


def inspect_media(media: pb.MediaPart, at: str) -> MediaDescription:
    """Return the description of a medium. `at`: its canonical path. Raise UmgError: INVALID_FIELD for an image that
    cannot be decoded, UNTRANSLATABLE for a file that is stored only at a provider.
    """
    kind = media.kind
    match media.WhichOneof("source"):
        case "file_id":
            raise untranslatable(at, "the sandbox keeps no files; send the bytes themselves")
        case "uri":
            words = f"{media.mime_type or 'of unknown type'}, at {media.uri[:200]}, which was not fetched"
            return MediaDescription(kind, words, IMAGE_TOKENS, digest(media.uri))
        case "data":
            return _inspect_data(media, at)
        case "blocks" | None:
            raise invalid(at, "the medium has no source; send its bytes or its address")
        case unhandled:
            assert_never(unhandled)


def _inspect_data(media: pb.MediaPart, at: str) -> MediaDescription:
    data, mime = media.data, media.mime_type or sniff(media.data) or "application/octet-stream"
    fingerprint = blake2b(data, digest_size=16).digest()
    if media.kind == pb.MEDIA_KIND_IMAGE:
        return MediaDescription(media.kind, _image(data, at), IMAGE_TOKENS, fingerprint)
    size = f"{mime}, {len(data)} bytes"
    if media.kind != pb.MEDIA_KIND_DOCUMENT:
        return MediaDescription(media.kind, size, 1 + len(data) // BYTES_A_TOKEN, fingerprint)
    if mime.startswith("text/") or mime == "application/json":
        text = data.decode("utf-8", "replace")
        return MediaDescription(media.kind, size, 0, fingerprint, text, citable=media.citable)
    if data.startswith(b"%PDF-"):
        pages = sum(1 for _ in _PAGE.finditer(data))  # finds none if they are compressed
        size += f", {pages} pages" if pages > 1 else ", 1 page" if pages else ""
        return MediaDescription(media.kind, size, PAGE_TOKENS * max(pages, 1), fingerprint)
    return MediaDescription(media.kind, size, 1 + len(data) // BYTES_A_TOKEN, fingerprint)


def _image(data: bytes, at: str) -> str:
    mime = sniff_image(data)
    if mime == HEIC_TYPE:
        return "image/heic, whose size the sandbox cannot read"
    size = _measure(data, mime) if mime in _MEASURED else None
    if size is None:
        header = read_header(data, at)
        size = (header.width, header.height)
    return f"{mime}, {size[0]} x {size[1]} pixels"


def _measure(data: bytes, mime: str) -> tuple[int, int] | None:
    Image.init()
    try:
        # not Image.open: it warns about or rejects images that would be large when decoded
        with Image.OPEN[_MEASURED[mime]][0](BytesIO(data), "") as image:
            return image.size
    except Exception:  # the exceptions of readers on broken files are not documented
        return None

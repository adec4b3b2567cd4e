"""What the sandbox sees of media: it reads headers, and fetches nothing."""

import re
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO

from PIL import Image

from umg_grpc.upstream.sandbox.words import digest
from umg_grpc.v1 import pb
from umg_grpc.wire.json import invalid
from umg_grpc.wire.media import sniff
from umg_grpc.wire.report import untranslatable

IMAGE_TOKENS = 1000  # text document, Limits: the estimate of token counting
PAGE_TOKENS = 1000
BYTES_A_TOKEN = 1000
"""Of sound and moving pictures."""
FIRST_WORDS = 80
"""Characters of a text that an answer repeats."""

# The formats that are read. Others that Pillow knows start programs or are no pictures.
IMAGE_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")
_HEIF = re.compile(rb"....ftyp(?:heic|heix|mif1|msf1|hevc)", re.DOTALL)
_NAMES = {
    pb.MEDIA_KIND_IMAGE: "Image",
    pb.MEDIA_KIND_AUDIO: "Audio",
    pb.MEDIA_KIND_VIDEO: "Video",
    pb.MEDIA_KIND_DOCUMENT: "Document",
}


@dataclass(frozen=True)
class Sight:
    """What is seen of one medium."""

    kind: "pb.MediaKind.ValueType"
    words: str
    """`image/png, 64 x 48 pixels`."""
    tokens: int
    fingerprint: bytes
    text: str | None = None
    """The text of a document that is text; its tokens are counted beside `tokens`."""
    blocks: int = 0
    """Pieces of a document that was given in pieces."""
    citable: bool = False

    @property
    def name(self) -> str:
        """`Image`, `Document`, ..."""
        return _NAMES.get(self.kind, "Medium")


def look(media: pb.MediaPart, at: str) -> Sight:
    """What is seen of a medium that is not in pieces. Raises UmgError: INVALID_FIELD for an image that is none,
    UNTRANSLATABLE for a file that only some provider has.
    """
    kind = media.kind
    match media.WhichOneof("source"):
        case "file_id":
            raise untranslatable(at, "the sandbox keeps no files; send the bytes themselves")
        case "uri":
            words = f"{media.mime_type or 'of unknown type'}, at {media.uri[:200]}, which was not fetched"
            return Sight(kind, words, IMAGE_TOKENS, digest(media.uri))
        case "data":
            return _look_inside(media, at)
    raise invalid(at, "the medium has no source; send its bytes or its address")


def _look_inside(media: pb.MediaPart, at: str) -> Sight:
    data, mime = media.data, media.mime_type or sniff(media.data) or "application/octet-stream"
    fingerprint = blake2b(data, digest_size=16).digest()
    if media.kind == pb.MEDIA_KIND_IMAGE:
        return Sight(media.kind, _image(data, at), IMAGE_TOKENS, fingerprint)
    size = f"{mime}, {len(data)} bytes"
    if media.kind != pb.MEDIA_KIND_DOCUMENT:
        return Sight(media.kind, size, 1 + len(data) // BYTES_A_TOKEN, fingerprint)
    if mime.startswith("text/") or mime == "application/json":
        text = data.decode("utf-8", "replace")
        return Sight(media.kind, size, 0, fingerprint, text, citable=media.citable)
    if data.startswith(b"%PDF-"):
        pages = sum(1 for _ in _PAGE.finditer(data))  # none is found where they are compressed
        size += f", {pages} pages" if pages > 1 else ", 1 page" if pages else ""
        return Sight(media.kind, size, PAGE_TOKENS * max(pages, 1), fingerprint)
    return Sight(media.kind, size, 1 + len(data) // BYTES_A_TOKEN, fingerprint)


def _image(data: bytes, at: str) -> str:
    """Type and size of an image. Only its header is read, so that its size in pixels costs nothing."""
    Image.init()
    for name in IMAGE_FORMATS:
        if name not in Image.OPEN:
            continue
        factory, accepts = Image.OPEN[name]
        if accepts is None or accepts(data[:16]) is not True:
            continue
        try:
            # not Image.open: that warns of, and refuses, pictures that would be large once they were decoded
            with factory(BytesIO(data), "") as image:
                return f"{Image.MIME.get(name, 'image')}, {image.size[0]} x {image.size[1]} pixels"
        except Exception:  # noqa: S112 - what readers raise on broken files is not documented
            continue
    if _HEIF.match(data[:12]):
        return "image/heic, whose size the sandbox cannot read"
    raise invalid(at, "the image cannot be read; send a whole PNG, JPEG, GIF or WebP file")

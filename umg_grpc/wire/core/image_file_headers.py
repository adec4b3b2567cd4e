"""Type and size of image files, read from their headers without decoding pixels."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from umg_grpc.wire.core.json_decoding import invalid

PNG_TYPE, JPEG_TYPE, GIF_TYPE, WEBP_TYPE = "image/png", "image/jpeg", "image/gif", "image/webp"
BMP_TYPE, TIFF_TYPE, AVIF_TYPE, HEIC_TYPE = "image/bmp", "image/tiff", "image/avif", "image/heic"

ACCEPTED_TYPES = (PNG_TYPE, JPEG_TYPE, GIF_TYPE, WEBP_TYPE)
"""Media types that all image models accept as input (image document, "Limits")."""
MAX_PIXELS = 64 * 2**20
"""Maximum pixels of an input image, 8192 x 8192: a file of some kilobytes may contain billions of pixels."""

MAX_BLOCKS = 20_000
"""Maximum segments or blocks before image data (cameras write dozens); hostile headers then take milliseconds."""

_ACCEPTED = "PNG, JPEG, GIF or WebP"
_SIGNATURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), PNG_TYPE),
    (re.compile(rb"\xff\xd8\xff"), JPEG_TYPE),
    (re.compile(rb"GIF8[79]a"), GIF_TYPE),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), WEBP_TYPE),
    (re.compile(rb"BM"), BMP_TYPE),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), TIFF_TYPE),
    (re.compile(rb"....ftypavi[fs]", re.DOTALL), AVIF_TYPE),
    (re.compile(rb"....ftyp(?:hei[cxms]|hev[cxms]|mif1|msf1)", re.DOTALL), HEIC_TYPE),
)

_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # of JPEG; the others are tables
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))
_GIF_EXTENSION, _GIF_IMAGE = 0x21, 0x2C


@dataclass(frozen=True)
class ImageHeader:
    """Media type of an image file, and its size in pixels."""

    mime_type: str
    width: int
    height: int

    @property
    def pixels(self) -> int:
        return self.width * self.height


def sniff_image(data: bytes) -> str:
    """Return an image file's media type by its signature, "" if unknown. Types that are not accepted (BMP, TIFF, AVIF,
    HEIC) are detected, too, so that an error can name them.
    """
    head = data[:16]
    return next((mime for signature, mime in _SIGNATURES if signature.match(head)), "")


def read_header(data: bytes, field: str) -> ImageHeader:
    """Return the media type and size of an image file. Raise UmgError(INVALID_FIELD) for a file that is no image, for a
    type outside `ACCEPTED_TYPES`, and for a broken header. `field`: path of the image, for the error.
    """
    mime = sniff_image(data)
    if mime not in _SIZES:
        found = f"the file is of type {mime}" if mime else "the file is not an image"
        raise invalid(field, f"{found}; send a {_ACCEPTED} file")
    try:
        width, height = _SIZES[mime](data)
    except (IndexError, _BrokenHeaderError):
        raise invalid(field, f"the {mime} file is broken: its header is incomplete; send the whole file") from None
    if not width or not height:
        raise invalid(field, f"the {mime} file is {width} x {height} pixels and therefore empty; send another image")
    return ImageHeader(mime, width, height)


def check_image(data: bytes, field: str, max_pixels: int = MAX_PIXELS) -> ImageHeader:
    """Return the type and size of an image file. Raise UmgError(INVALID_FIELD) about `field` for a file that is not an
    accepted image, or that has more than `max_pixels` pixels and so takes too much memory when decoded.
    """
    header = read_header(data, field)
    if header.pixels > max_pixels:
        size = f"{header.width} x {header.height} pixels"
        raise invalid(field, f"the image is {size}, and at most {max_pixels} pixels are accepted; send a smaller one")
    return header


class _BrokenHeaderError(Exception):
    """Error of an image file whose header lacks fields that its format requires."""


def _big(data: bytes, start: int, length: int) -> int:
    return int.from_bytes(_slice(data, start, length), "big")


def _little(data: bytes, start: int, length: int) -> int:
    return int.from_bytes(_slice(data, start, length), "little")


def _slice(data: bytes, start: int, length: int) -> bytes:
    piece = data[start : start + length]
    if len(piece) < length:
        raise _BrokenHeaderError
    return piece


def _png_size(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        raise _BrokenHeaderError
    return _big(data, 16, 4), _big(data, 20, 4)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) from the frame header of a JPEG file, which is somewhere before the first scan."""
    sizes, position = list[tuple[int, int]](), 2
    for _ in range(MAX_BLOCKS):
        marker = data[position + 1]
        if data[position] != 0xFF or marker == _END_OF_IMAGE:
            break
        if marker == _START_OF_SCAN and len(sizes) == 1:
            return sizes[0]
        if marker in _FRAME_HEADERS:
            sizes.append((_big(data, position + 7, 2), _big(data, position + 5, 2)))
        if marker == 0xFF:  # a fill byte before the marker
            position += 1
        elif marker in _WITHOUT_LENGTH:
            position += 2
        else:
            position += 2 + max(_big(data, position + 2, 2), 2)
    raise _BrokenHeaderError


def _gif_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) of a GIF file: the size of its logical screen, enlarged to contain the first frame, as
    decoders do. Raise IndexError or _BrokenHeaderError for an incomplete header.
    """
    width, height, flags = _little(data, 6, 2), _little(data, 8, 2), data[10]
    position = 13 + (3 * 2 ** (1 + (flags & 7)) if flags & 0x80 else 0)  # after the colour table
    inside = False
    for _ in range(MAX_BLOCKS):
        if inside:  # blocks with their lengths, up to an empty one
            inside = data[position] > 0
            position += 1 + data[position]
        elif data[position] == _GIF_EXTENSION:
            inside, position = True, position + 2
        elif data[position] == _GIF_IMAGE:
            left, top, wide, high = (_little(data, position + offset, 2) for offset in (1, 3, 5, 7))
            return max(width, left + wide), max(height, top + high)
        else:
            break
    raise _BrokenHeaderError


def _webp_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) of a WebP file: of the canvas if it has the extended header, else of the image data."""
    match data[12:16]:
        case b"VP8X":
            return 1 + _little(data, 24, 3), 1 + _little(data, 27, 3)
        case b"VP8L" if data[20] == 0x2F:
            bits = _little(data, 21, 4)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
        case _:  # any other first chunk
            raise _BrokenHeaderError


_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    PNG_TYPE: _png_size,
    JPEG_TYPE: _jpeg_size,
    GIF_TYPE: _gif_size,
    WEBP_TYPE: _webp_size,
}

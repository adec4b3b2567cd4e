"""Media inside JSON: data URLs and base64, as their many writers spell them."""

import base64
import binascii
from urllib.parse import unquote_to_bytes

from umg_grpc.wire.json import invalid

FETCHED = ("http", "https", "gs")
"""Schemes of the addresses that providers fetch."""

_STANDARD = str.maketrans("-_", "+/", " \t\r\n")
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
}
_SIGNATURES = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
]


def is_data_url(url: str) -> bool:
    """Whether the bytes are in the address itself."""
    return url[:5].lower() == "data:"


def parse_data_url(url: str, field: str) -> tuple[str, bytes]:
    """(media type, bytes). The type is "" when the address has none and the bytes do not tell. Raises
    UmgError(INVALID_FIELD).
    """
    head, comma, body = url[5:].partition(",")
    if not comma:
        raise invalid(field, "expected `data:<media type>;base64,<data>`; add the comma and the data")
    mime, *parameters = head.split(";")
    if any(parameter.strip().lower() == "base64" for parameter in parameters):
        data = decode_base64(body, field)
    else:
        data = unquote_to_bytes(body)
    return normal_mime(mime) or sniff(data), data


def check_address(url: str, field: str, instead: str) -> str:
    """The address, which a provider may fetch: no file of its own machine. Raises UmgError(INVALID_FIELD), which says
    `instead`: what to do with bytes.
    """
    scheme, slashes, _ = url.partition("://")
    if not slashes or scheme.strip().lower() not in FETCHED:
        raise invalid(field, f"expected an http(s) address; {instead}")
    return url


def decode_base64(text: str, field: str) -> bytes:
    """The bytes, in whichever alphabet, with or without padding and line ends. Raises UmgError(INVALID_FIELD)."""
    compact = text.translate(_STANDARD).rstrip("=")
    try:
        return binascii.a2b_base64(compact + "=" * (-len(compact) % 4), strict_mode=True)
    except ValueError:
        raise invalid(field, "the base64 cannot be decoded; encode the whole file once, as standard base64") from None


def data_url(mime: str, data: bytes) -> str:
    """The inverse of `parse_data_url`."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def normal_mime(mime: str) -> str:
    """The media type in lower case, without parameters, under its registered name."""
    plain = mime.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def sniff(data: bytes) -> str:
    """The media type that the first bytes tell, "" when they do not."""
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    return next((mime for signature, mime in _SIGNATURES if data.startswith(signature)), "")

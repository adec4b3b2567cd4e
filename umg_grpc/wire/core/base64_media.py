"""Media inside JSON: decoding and encoding of data URLs and base64, in all variants that callers send."""

import re
import struct
from urllib.parse import unquote_to_bytes

import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import sniff_image
from umg_grpc.wire.core.json_decoding import JsonObject, invalid

FETCHED_SCHEMES = ("http", "https", "gs")

INPUT_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
"""Format of `input_audio` in chat and responses -> media type."""
OUTPUT_AUDIO_TYPES = {
    **INPUT_AUDIO_TYPES,
    "aac": "audio/aac",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "pcm16": "audio/pcm",
}
_AUDIO_FORMATS = {mime: name for name, mime in INPUT_AUDIO_TYPES.items()}

_TYPES_BY_ENDING = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
}

_AUDIO_BEGINNINGS = {
    ".wav": re.compile(rb"RIFF.{4}WAVE", re.DOTALL),
    ".mp3": re.compile(rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]"),
    ".flac": re.compile(rb"fLaC"),
    ".ogg": re.compile(rb"OggS"),
    ".m4a": re.compile(rb".{4}ftyp", re.DOTALL),
    ".webm": re.compile(rb"\x1a\x45\xdf\xa3"),
}
"""Extension of an audio file's name -> pattern of the file's first bytes."""

WAV_HEAD_BYTES = 36
_WAV_FORMAT = struct.Struct("<HHI6xH")
SAMPLE_CODECS = frozenset({1, 3})
"""Codecs of WAV files with uncompressed samples: integers (1) and floating-point numbers (3)."""

_STANDARD = str.maketrans("-_", "+/", " \t\r\n")
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
}


def is_data_url(url: str) -> bool:
    """Return whether the URL is a data URL, which contains the bytes."""
    return url[:5].lower() == "data:"


def parse_data_url(url: str, field: str) -> tuple[str, bytes]:
    """Return (media type, bytes) of a data URL. The type is "" if neither the URL nor the first bytes state it. Raise
    UmgError(INVALID_FIELD) for a URL without a comma, or with invalid base64. `field`: path of the URL, for the error.
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
    """Return an address after checking that providers may fetch it (http, for example). Raise UmgError(INVALID_FIELD)
    for any other address, for example a file's. `field`: path of the address. `instead`: advice on sending bytes; both
    for the error.
    """
    scheme, slashes, _ = url.partition("://")
    if not slashes or scheme.strip().lower() not in FETCHED_SCHEMES:
        raise invalid(field, f"expected an http(s) address; {instead}")
    return url


def decode_base64(text: str, field: str) -> bytes:
    """Return the bytes of base64 in the standard or the URL-safe alphabet, with or without padding and line ends. Raise
    UmgError(INVALID_FIELD) for any other text. `field`: path of the text, for that error.
    """
    compact = text.translate(_STANDARD).rstrip("=")
    try:
        return pybase64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except ValueError:
        raise invalid(field, "the base64 cannot be decoded; encode the whole file once, as standard base64") from None


def data_url(mime: str, data: bytes) -> str:
    """Return a data URL with the media type and the bytes in base64."""
    return f"data:{mime};base64,{pybase64.b64encode_as_string(data)}"


def normal_mime(mime: str) -> str:
    """Return a media type in lower case, without parameters, and under its registered name; "" for ""."""
    plain = mime.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def sniff(data: bytes) -> str:
    """Return the media type of an image, a PDF or a WAV file by its first bytes; "" for any other file."""
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "audio/wav"
    return sniff_image(data)


def audio_ending(data: bytes) -> str:
    """Return the file name extension for an audio file, by its first bytes; "" if they are unknown."""
    return next((ending for ending, begin in _AUDIO_BEGINNINGS.items() if begin.match(data)), "")


def sample_bytes_of_a_second(data: bytes) -> int:
    """Return the number of bytes per second of a WAV file with uncompressed samples; 0 for any other file. Like FFmpeg,
    it reads only the first format chunk, and ignores the byte rate that the file states.
    """
    if len(data) < WAV_HEAD_BYTES or data[:4] != b"RIFF" or data[8:16] != b"WAVEfmt ":
        return 0
    codec, channels, rate, bits = _WAV_FORMAT.unpack_from(data, 20)
    return int(rate * channels * bits // 8) if codec in SAMPLE_CODECS else 0


def file_type(declared: str, data: bytes) -> str:
    """Return the media type of a file for a provider; "" if unknown. For images and for files without a declared type,
    the first bytes decide: tools often declare a wrong type, which some providers reject.
    """
    if declared in ("", "application/octet-stream"):
        return sniff(data) or declared
    return (sniff_image(data) or declared) if declared.startswith("image/") else declared


def decode_image(url: str, media: pb.MediaPart, field: str) -> None:
    """Set `media` to the image at an address or in a data URL. Raise UmgError(INVALID_FIELD) for an address that
    providers cannot fetch, and for a broken or empty data URL. `field`: path of the URL, for the error.
    """
    media.kind = pb.MEDIA_KIND_IMAGE
    if not is_data_url(url):
        media.uri = check_address(url, field, "bytes go into a data URL, `data:image/png;base64,...`")
        return
    media.mime_type, media.data = parse_data_url(url, field)
    if not media.data:
        raise invalid(field, "the data URL is empty; add the image")
    if not media.mime_type.startswith("image/"):
        media.mime_type = sniff(media.data) or media.mime_type


def decode_file(text: str, media: pb.MediaPart, field: str) -> None:
    """Set bytes and type of `media`, a document whose file name is set already. `text`: a data URL, as SDKs send it, or
    bare base64. Raise UmgError(INVALID_FIELD) for other text, and for an empty file. `field`: path of the text.
    """
    if is_data_url(text):
        media.mime_type, media.data = parse_data_url(text, field)
    else:
        media.data = decode_base64(text, field)
        media.mime_type = sniff(media.data)
    if not media.data:
        raise invalid(field, "the file is empty; add its bytes")
    if not media.mime_type:
        media.mime_type = _TYPES_BY_ENDING.get(media.filename.lower().rpartition(".")[2], "")


def decode_input_audio(data: str, audio_format: str, media: pb.MediaPart, field: str) -> None:
    """Set `media` to the audio of a member `input_audio`. `data`: base64 or a data URL. `audio_format`: name of the
    format (`wav`). Raise UmgError(INVALID_FIELD) for broken base64. `field`: path of the data, for that error.
    """
    media.kind, media.mime_type = pb.MEDIA_KIND_AUDIO, INPUT_AUDIO_TYPES[audio_format]
    media.data = parse_data_url(data, field)[1] if is_data_url(data) else decode_base64(data, field)


def encode_input_audio(media: pb.MediaPart) -> JsonObject | None:
    """Return audio as a part `input_audio`; None for other media, without bytes, and for a type that it cannot name."""
    if media.kind != pb.MEDIA_KIND_AUDIO or not media.HasField("data") or media.mime_type not in _AUDIO_FORMATS:
        return None
    audio = {"data": pybase64.b64encode_as_string(media.data), "format": _AUDIO_FORMATS[media.mime_type]}
    return {"type": "input_audio", "input_audio": audio}

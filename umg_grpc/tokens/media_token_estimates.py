"""Estimated tokens of media. They are estimates because no provider publishes its rules for all media."""

import re
import struct

from umg_grpc.v1 import pb

IMAGE_TOKENS = 1000  # for any size and source (text document, count_tokens rules; readings, 15)

PAGE_TOKENS = 1500
PAGE_BYTES = 50_000  # bytes a page of a document whose pages cannot be counted
PDF_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")

AUDIO_TOKENS_PER_SECOND = 32
AUDIO_BYTES_PER_SECOND = 16_000  # 128 kbit/s, of compressed sound
AUDIO_SECONDS_BY_REFERENCE = 60

VIDEO_TOKENS_PER_SECOND = 300
VIDEO_BYTES_PER_SECOND = 250_000  # 2 Mbit/s
VIDEO_SECONDS_BY_REFERENCE = 60


def media_tokens(media: pb.MediaPart) -> int | str:
    """Return the estimated tokens of a medium; for a text document return its text, to be counted. A URL or file id is
    not fetched: it counts as one page of a document, or as one minute of audio or video.
    """
    if media.kind == pb.MEDIA_KIND_IMAGE or media.mime_type.startswith("image/"):
        return IMAGE_TOKENS
    data = media.data if media.WhichOneof("source") == "data" else None
    if media.kind == pb.MEDIA_KIND_AUDIO:
        return _rounded_up(AUDIO_TOKENS_PER_SECOND * (AUDIO_SECONDS_BY_REFERENCE if data is None else _seconds(data)))
    if media.kind == pb.MEDIA_KIND_VIDEO:
        seconds = VIDEO_SECONDS_BY_REFERENCE if data is None else len(data) / VIDEO_BYTES_PER_SECOND
        return _rounded_up(VIDEO_TOKENS_PER_SECOND * seconds)
    return PAGE_TOKENS if data is None else _document(data)


def _document(data: bytes) -> int | str:
    if data.startswith(b"%PDF"):
        pages = len(PDF_PAGE.findall(data)) or _rounded_up(len(data) / PAGE_BYTES)
        return PAGE_TOKENS * pages
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return PAGE_TOKENS * _rounded_up(len(data) / PAGE_BYTES)


def _seconds(data: bytes) -> float:
    """Return the length of audio in seconds: by the byte rate in a WAV header, otherwise estimated at 128 kbit/s."""
    bytes_per_second = AUDIO_BYTES_PER_SECOND
    if data[:4] == b"RIFF" and data[8:16] == b"WAVEfmt " and len(data) >= 44:
        bytes_per_second = struct.unpack_from("<I", data, 28)[0] or AUDIO_BYTES_PER_SECOND
    return len(data) / bytes_per_second


def _rounded_up(number: float) -> int:
    return -int(-number // 1)

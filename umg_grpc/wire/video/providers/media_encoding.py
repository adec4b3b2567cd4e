"""Encoding of the input media of submissions as URLs, data URLs or base64, depending on the provider."""

from collections.abc import Collection

from pybase64 import b64encode_as_string

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import data_url, sniff
from umg_grpc.wire.dropped_fields_report import untranslatable

HTTP_SCHEMES = ("http", "https")
DEFAULT_TYPES = {
    pb.VIDEO_MEDIA_KIND_IMAGE: "image/png",
    pb.VIDEO_MEDIA_KIND_VIDEO: "video/mp4",
    pb.VIDEO_MEDIA_KIND_AUDIO: "audio/mpeg",
}
FILE_NAMES = {
    "image/png": "image.png",
    "image/jpeg": "image.jpg",
    "image/webp": "image.webp",
    "image/gif": "image.gif",
    "image/bmp": "image.bmp",
    "video/mp4": "video.mp4",
    "audio/mpeg": "audio.mp3",
    "audio/wav": "audio.wav",
}


def at(position: int) -> str:
    """Return the canonical path of a medium (`parameters.media[0]`) by its position, for errors."""
    return f"parameters.media[{position}]"


def media_type(media: pb.VideoMedia) -> str:
    """Return the media type of a medium with bytes: by its first bytes, else as declared, else its kind's default."""
    return sniff(media.data) or media.mime_type or DEFAULT_TYPES.get(media.kind, "application/octet-stream")


def file_name(media: pb.VideoMedia) -> str:
    """Return a file name for the upload of a medium, with the extension of its type."""
    return FILE_NAMES.get(media_type(media), "file")


def address(media: pb.VideoMedia, position: int, schemes: Collection[str] = HTTP_SCHEMES) -> str:
    """Return the URL of a medium. `position`: index in the list of media, for errors; `schemes`: URL schemes that the
    provider accepts. Raise UmgError(UNTRANSLATABLE) for any other scheme.
    """
    scheme, separator, _ = media.url.partition("://")
    if not separator or scheme.lower() not in schemes:
        shown = "an asset of a library" if scheme.lower() == "asset" else "an address of this scheme"
        raise untranslatable(at(position), f"this model's provider does not accept {shown}; send an https URL or bytes")
    return media.url


def address_or_data_url(media: pb.VideoMedia, position: int, schemes: Collection[str] = HTTP_SCHEMES) -> str:
    """Return the URL of a medium, or a data URL with its bytes. `position`: index in the list of media, for errors;
    `schemes`: URL schemes that the provider accepts. Raise UmgError(UNTRANSLATABLE) for any other scheme.
    """
    if media.WhichOneof("source") == "url":
        return address(media, position, schemes)
    return data_url(media_type(media), media.data)


def address_or_base64(media: pb.VideoMedia, position: int) -> str:
    """Return the URL of a medium, or its bytes in base64. `position`: index in the list of media, for errors. Raise
    UmgError(UNTRANSLATABLE) for a URL of another scheme than http and https.
    """
    if media.WhichOneof("source") == "url":
        return address(media, position)
    return base64_of(media)


def video_address(media: pb.VideoMedia, position: int) -> str:
    """Return the URL of a video, for a provider that accepts videos only by URL. `position`: index in the list of
    media, for errors. Raise UmgError(UNTRANSLATABLE) for bytes, and for a URL other than http and https.
    """
    if media.WhichOneof("source") == "data":
        raise untranslatable(at(position), "this model's provider accepts a video by its URL only; send an https URL")
    return address(media, position)


def base64_of(media: pb.VideoMedia) -> str:
    """Return the bytes of a medium in standard base64, without a prefix."""
    return b64encode_as_string(media.data)


def inline(media: pb.VideoMedia, position: int) -> pb.VideoMedia:
    """Return a medium unchanged if it has bytes. Raise UmgError(UNTRANSLATABLE) for a URL: its scheme is neither http
    nor https, since the channel has already downloaded those. `position`: index in the list of media, for errors.
    """
    if media.WhichOneof("source") == "url":
        raise untranslatable(at(position), "this model's provider accepts only bytes; send an https URL or bytes")
    return media

"""Decoding of images, videos and audio in submissions of video tasks, which are URLs, data URLs or base64."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64, is_data_url, normal_mime, parse_data_url, sniff
from umg_grpc.wire.core.json_decoding import invalid

URL_SCHEMES = ("http", "https", "asset")
"""URL schemes that callers may use; `asset` refers to a file in the library of the provider of family `vidD`."""
_NAMES = {pb.VIDEO_MEDIA_KIND_IMAGE: "image", pb.VIDEO_MEDIA_KIND_VIDEO: "video", pb.VIDEO_MEDIA_KIND_AUDIO: "audio"}
_VIDEO_ENDINGS = (".mp4", ".mov", ".webm", ".m4v", ".avi", ".mkv")


def decode_medium(
    text: str, kind: "pb.VideoMediaKind.ValueType", role: "pb.VideoMediaRole.ValueType", path: str
) -> pb.VideoMedia:
    """Return the medium for a string at `path` of a body. Raise UmgError(INVALID_FIELD) if the string is no URL, data
    URL or base64, or if its file is of another kind than `kind`.
    """
    name = _NAMES[kind]
    medium = pb.VideoMedia(kind=kind, role=role)
    scheme, slashes, rest = text.partition("://")
    if slashes and not is_data_url(text):
        if scheme.lower() not in URL_SCHEMES or not rest.strip("/") or not text.isprintable() or " " in text:
            raise invalid(path, f"expected an https address of the {name}; correct it")
        medium.url = text
        return medium
    if is_data_url(text):
        mime, data = parse_data_url(text, path)
    else:
        data = decode_base64(text, path)
        mime = sniff_medium(data)
        if not mime:
            raise invalid(path, f"it is neither an https address nor the base64 of a known type of {name}; correct it")
    if not data:
        raise invalid(path, f"it is empty; send an address or the base64 of the {name}")
    if mime.partition("/")[0] != name:
        mime = sniff_medium(data) or mime
    if mime.partition("/")[0] not in (name, "application", ""):
        raise invalid(path, f"expected the {name} that the field is for, got {normal_mime(mime)}; correct it")
    medium.data = data
    if mime:
        medium.mime_type = mime
    return medium


def sniff_medium(data: bytes) -> str:
    """Return the media type of a file by its first bytes; "" if they are unknown."""
    if known := sniff(data):
        return known
    if data[4:8] == b"ftyp":
        return "video/mp4"
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return "video/webm"
    if data[:3] == b"ID3" or data[:2] in (b"\xff\xfb", b"\xff\xf3"):
        return "audio/mpeg"
    return ""


def is_video(text: str) -> bool:
    """Return whether a URL or data URL refers to a video, by its file extension or media type."""
    if is_data_url(text):
        return text[5:].lower().startswith("video/")
    return text.partition("?")[0].partition("#")[0].lower().endswith(_VIDEO_ENDINGS)

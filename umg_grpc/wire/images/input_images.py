"""Input images of callers (addresses, data URLs, base64): decoding, and checks of type and size of the files."""

from urllib.parse import urlsplit

import pybase64

from umg_grpc.errors import UmgError
from umg_grpc.image_family_rules import placed_images
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_files import check_image
from umg_grpc.wire.core.json import echo, invalid
from umg_grpc.wire.core.media import decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.images.long_json_strings import LongText

ACCEPTED = "send an https address, a data URL (`data:image/png;base64,...`) or base64"
_HEAD_CHARACTERS = 256
"""Maximum characters before the comma of a data URL that is decoded without a copy of its text."""


def decode_input(value: str, image: pb.ImageInput, at: str) -> None:
    """Decode an input image: an address, a data URL or base64. Raise UmgError(INVALID_FIELD) naming the field `at`."""
    if isinstance(value, LongText):
        _decode_long(value, image, at)
        return
    if is_data_url(value):
        fill_bytes(_decode_data_url(value, at), image, at)
        return
    scheme, slashes, _ = value[:64].partition("://")
    if not slashes:
        try:
            data = _decode_base64(value, at)
        except UmgError:
            raise invalid(at, f"it is neither an address nor base64; {ACCEPTED}") from None
        fill_bytes(data, image, at)
        return
    if scheme.strip().lower() not in ("http", "https"):
        raise invalid(at, f"an address with `{echo(scheme)}` cannot be fetched; {ACCEPTED}")
    if not _has_host(value):
        raise invalid(at, f"the address names no host; {ACCEPTED}")
    image.url = value


def fill_bytes(data: bytes, image: pb.ImageInput, at: str) -> None:
    """Set the bytes of an input image and its media type, by the signature of the bytes and not as the caller declares
    it. Raise UmgError(INVALID_FIELD) for other files than images, other types than JPEG, PNG, GIF and WebP, and for
    images with too many pixels.
    """
    if not data:
        raise invalid(at, f"the image is empty; {ACCEPTED}")
    image.mime_type = check_image(data, at).mime_type
    image.data = data


def check_inputs(request: pb.GenerateImageRequest) -> None:
    """Check the input images of a gRPC request as `fill_bytes` does, and set their media types. Raise
    UmgError(INVALID_FIELD) naming the canonical field.
    """
    for at, image in placed_images(request, with_mask=True):
        if image.HasField("data"):
            image.mime_type = check_image(image.data, at).mime_type
        elif is_data_url(image.url):
            decode_input(image.url, image, at)


def _has_host(address: str) -> bool:
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False


def _decode_data_url(url: str, at: str) -> bytes:
    start = _base64_start(url[:_HEAD_CHARACTERS])
    return parse_data_url(url, at)[1] if start < 0 else _decode_base64(url[start:], at)


def _base64_start(head: str) -> int:
    """Return the position at which the base64 begins in a data URL; -1 for a data URL without base64. `head`: beginning
    of the URL.
    """
    comma = head.find(",")
    return comma + 1 if comma >= 0 and "base64" in head[:comma].lower().replace(" ", "").split(";") else -1


def _decode_base64(text: str, at: str) -> bytes:
    """Return the bytes that base64 encodes. The standard form is decoded without a copy of the text, any other variant
    with one.
    """
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        return decode_base64(text, at)


def _decode_long(value: LongText, image: pb.ImageInput, at: str) -> None:
    """Decode an input image from a long string, without a copy of its text."""
    head = str(value.content[:_HEAD_CHARACTERS], "latin-1")
    start = _base64_start(head) if is_data_url(head) else 0
    if start >= 0 and "://" not in head[start:]:
        try:
            data = pybase64.b64decode(value.content[start:], validate=True)
        except ValueError:
            pass  # another variant, or no base64
        else:
            fill_bytes(data, image, at)
            return
    decode_input(str(value.content, "utf-8"), image, at)

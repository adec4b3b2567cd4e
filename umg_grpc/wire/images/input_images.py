"""Input images of callers (URLs, data URLs, base64): decoding, and checks of file types and sizes."""

from urllib.parse import urlsplit

import pybase64

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import placed_images
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.core.image_file_headers import check_image
from umg_grpc.wire.core.json_decoding import echo, invalid
from umg_grpc.wire.images.long_json_strings import LongText

ACCEPTED_IMAGES = "send an https address, a data URL (`data:image/png;base64,...`) or base64"
_HEAD_CHARACTERS = 256
"""Maximum characters before the comma of a data URL that is decoded without copying its text."""


def decode_input(value: str, image: pb.ImageInput, at: str) -> None:
    """Set `image` from a string in a request: a URL, a data URL or base64. `at`: path of the string in the body.
    Raise UmgError(INVALID_FIELD) for any other string and for a file that is no accepted image.
    """
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
            raise invalid(at, f"it is neither an address nor base64; {ACCEPTED_IMAGES}") from None
        fill_bytes(data, image, at)
        return
    if scheme.strip().lower() not in ("http", "https"):
        raise invalid(at, f"an address with `{echo(scheme)}` cannot be fetched; {ACCEPTED_IMAGES}")
    if not _has_host(value):
        raise invalid(at, f"the address names no host; {ACCEPTED_IMAGES}")
    image.url = value


def fill_bytes(data: bytes, image: pb.ImageInput, at: str) -> None:
    """Set the bytes and media type of `image`. The file's first bytes decide the type, not a declared one. Raise
    UmgError(INVALID_FIELD) for a file other than JPEG, PNG, GIF and WebP, and for too many pixels.
    """
    if not data:
        raise invalid(at, f"the image is empty; {ACCEPTED_IMAGES}")
    image.mime_type = check_image(data, at).mime_type
    image.data = data


def check_inputs(request: pb.GenerateImageRequest) -> None:
    """Check the files of input images in a request received by gRPC, and set their media types in place. Raise
    UmgError(INVALID_FIELD) for a file that is not an accepted image.
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
    comma = head.find(",")
    return comma + 1 if comma >= 0 and "base64" in head[:comma].lower().replace(" ", "").split(";") else -1


def _decode_base64(text: str, at: str) -> bytes:
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        return decode_base64(text, at)


def _decode_long(value: LongText, image: pb.ImageInput, at: str) -> None:
    """Set `image` from a long string of a JSON body, without copying its text. `at`: path of the string in the body."""
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

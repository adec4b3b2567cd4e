"""Steps that several protocols share when they decode a provider's image response."""

import re
from collections.abc import Mapping, Sequence

import msgspec
import pybase64
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64
from umg_grpc.wire.core.image_file_headers import read_header, sniff_image
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.errors.provider_errors import unreadable
from umg_grpc.wire.images.schema import OUTPUT_FORMATS, SVG_TYPE

NO_IMAGES = ": it has no images"
OUTPUT_NAMES = {mime: name for name, mime in OUTPUT_FORMATS.items()}
_EDGE = re.compile("[0-9]{1,6}")
_SVG = re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<svg[\s>]")
_DATA_URL, _QUOTE = b"data:", ord('"')


class Layer(Struct):
    """Members of an image that is a layer of a picture (volcengine_ark_runtime 5.0.54, types/images/images.py)."""

    z_index: Raw = ABSENT_MEMBER
    bounding_box: Raw = ABSENT_MEMBER
    name: Raw = ABSENT_MEMBER
    description: Raw = ABSENT_MEMBER


LAYER_MEMBERS = Layer.__struct_fields__


def set_layer(image: pb.Image, item: Struct) -> None:
    """Set further members of `image`, in place, from the members of `item` that describe a layer."""
    set_further(image, {name: raw for name in LAYER_MEMBERS if is_present(raw := getattr(item, name, ABSENT_MEMBER))})


def set_further(image: pb.Image, members: Mapping[str, Raw]) -> None:
    """Set the further members of `image`, in place."""
    if members:
        image.extra_json = msgspec.json.encode(members).decode()


def is_text(raw: Raw) -> bool:
    """Return whether a raw JSON value is a non-empty string, without copying the value, which may be a large file."""
    view = memoryview(raw)
    return len(view) > 2 and view[0] == _QUOTE


def set_file(image: pb.Image, encoded: Raw, url: str | None) -> None:
    """Set the bytes or the URL of `image`. Raise UmgError(UPSTREAM_FAILED) if it has neither."""
    if is_text(encoded):
        set_bytes(image, encoded)
    elif url:
        image.url = url
    else:
        raise unreadable(": an image has neither an address nor data")


def set_bytes(image: pb.Image, encoded: Raw) -> None:
    """Set the bytes of `image`, with their type and size, from base64. Raise UmgError(UPSTREAM_FAILED) if invalid."""
    data = bytes_of(encoded)
    image.data, image.mime_type = data, sniff_image(data) or (SVG_TYPE if _SVG.match(data) else "")
    try:
        header = read_header(data, "data")
    except UmgError:  # a type without a known header: callers may still know it
        return
    image.width, image.height = header.width, header.height


def bytes_of(encoded: Raw) -> bytes:
    """Return the bytes of base64 or of a data URL. Raise UmgError(UPSTREAM_FAILED) for any other value."""
    text = memoryview(encoded)
    if not is_text(encoded):
        raise unreadable(NO_IMAGES)
    inner = text[1:-1]
    if bytes(inner[: len(_DATA_URL)]) == _DATA_URL or b"\\" in bytes(inner[:4096]):
        return _lenient(encoded)
    try:
        return pybase64.b64decode(inner, validate=True)
    except ValueError:
        return _lenient(encoded)


def _lenient(encoded: Raw) -> bytes:
    try:
        text = msgspec.json.decode(encoded, type=str)
        return decode_base64(text.partition(",")[2] if text.startswith("data:") else text, "data")
    except (UmgError, ValueError):  # a ValueError of half of a surrogate pair
        raise unreadable(": the data of an image is not base64") from None


def copy_size(image: pb.Image, size: str | None) -> None:
    """Set width and height of `image` from a size like `1024x1024`, unless the bytes state them. Ignore other texts."""
    width, _, height = (size or "").replace("*", "x").partition("x")
    if not image.HasField("width") and _EDGE.fullmatch(width) and _EDGE.fullmatch(height):
        image.width, image.height = int(width), int(height)


def set_time(time: Timestamp, seconds: float | None) -> None:
    """Set `time` from the Unix seconds that a provider states. None and an impossible time are ignored."""
    if seconds is not None and 0 < seconds < 2**33:
        time.seconds = int(seconds)


def check_images(result: pb.ImageResult, failures: Sequence[UmgError]) -> None:
    """Set the number of images. If there is no image, raise the first of `failures`, else UmgError(UPSTREAM_FAILED)."""
    if not result.images:
        raise failures[0] if failures else unreadable(NO_IMAGES)
    result.usage.image_count = len(result.images)


def no_image(message: str) -> UmgError:
    """Return UPSTREAM_FAILED for a response without image or refusal. Another attempt is allowed, as it may succeed."""
    error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status="200")
    return error.with_failure(Failure.TRANSIENT)


def blocked(message: str) -> UmgError:
    """Return CONTENT_BLOCKED for content that policy refuses. There is no failover: others would refuse it, too."""
    return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message).with_failure(Failure.CALLER)


def add_result(total: pb.ImageResult, result: pb.ImageResult) -> None:
    """Add the images and the usage of `result`, the result of one of several calls, to `total`, in place."""
    usage = pb.ImageUsage()
    for name in pb.ImageUsage.DESCRIPTOR.fields_by_name:
        if name == "image_count" or total.usage.HasField(name) or result.usage.HasField(name):  # type: ignore[arg-type]
            setattr(usage, name, count(getattr(total.usage, name) + getattr(result.usage, name)))
    total.MergeFrom(result)
    total.usage.CopyFrom(usage)

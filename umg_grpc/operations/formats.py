"""Wire formats of all operations by name. Apart from the rows, since it imports the codecs."""

from itertools import chain
from typing import Any, TypeAlias

from umg_grpc.operations import UNARY, UnaryOperation
from umg_grpc.wire import TEXT_FACES, TEXT_UPSTREAMS
from umg_grpc.wire.image_format import ImageFormat
from umg_grpc.wire.images import IMAGE_FORMATS
from umg_grpc.wire.images.provider_protocol import ImageProtocol
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.text_format import TextFace, TextUpstream
from umg_grpc.wire.unary_format import UnaryFace, UnaryProviderFormat
from umg_grpc.wire.video import VIDEO_FACES
from umg_grpc.wire.video.caller_api_interface import EntryFormat

AnyFormat: TypeAlias = TextFace | UnaryFace[Any, Any] | ImageFormat


def all_formats() -> tuple[AnyFormat, ...]:
    """Return the formats of the callers of all operations but videos, whose HTTP APIs are in `VIDEO_FACES`."""
    unary = chain.from_iterable(row.faces.values() for row in UNARY.values())
    return (*TEXT_FACES.values(), *unary, *IMAGE_FORMATS.values())


def codec_of(name: str) -> AnyFormat | None:
    """Return the format of callers with this name; None for an unknown name and for videos."""
    if name in TEXT_FACES:
        return TEXT_FACES[name]
    for row in UNARY.values():
        if name in row.faces:
            return row.faces[name]
    return IMAGE_FORMATS.get(name)


def upstream_of(name: str) -> TextUpstream | UnaryProviderFormat[Any, Any] | ImageProtocol | None:
    """Return the format of providers with this name; None for an unknown name and for videos."""
    if name in TEXT_UPSTREAMS:
        return TEXT_UPSTREAMS[name]
    for row in UNARY.values():
        if name in row.provider_formats:
            return row.provider_formats[name]
    return IMAGE_PROTOCOLS.get(name)


def face_of(name: str) -> AnyFormat | EntryFormat | None:
    """Return the format with this name for callers, including the HTTP APIs of videos; None for an unknown name."""
    return codec_of(name) or VIDEO_FACES.get(name)


def unary_operation(name: str) -> UnaryOperation[Any, Any]:
    """Return the operation to which a wire format belongs. Raise KeyError for an unknown name and for the format of an
    operation of another kind.
    """
    for row in UNARY.values():
        if name in row.faces:
            return row
    raise KeyError(name)


def unary_codec(name: str) -> UnaryFace[Any, Any]:
    """Return a callers' format of an operation with one response. Raise KeyError as `unary_operation` does."""
    return unary_operation(name).faces[name]

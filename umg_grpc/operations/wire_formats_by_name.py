"""Wire formats of all operations by name. They are separate from the rows, because this module imports codecs."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from umg_grpc.operations import UNARY_OPERATIONS, UnaryOperation
from umg_grpc.wire import TEXT_FACES, TEXT_UPSTREAMS
from umg_grpc.wire.image_format_interface import ImageFormat
from umg_grpc.wire.images import IMAGE_FORMATS
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.text_format_interface import TextFace, TextProviderFormat
from umg_grpc.wire.unary_format_interface import UnaryFace, UnaryProviderFormat
from umg_grpc.wire.video import VIDEO_FACES
from umg_grpc.wire.video.caller_api_interface import EntryFormat

AnyFormat: TypeAlias = TextFace | UnaryFace[Any, Any] | ImageFormat | EntryFormat
AnyUpstream: TypeAlias = TextProviderFormat | UnaryProviderFormat[Any, Any] | ImageProtocol
FormatT = TypeVar("FormatT")

FACE_TABLES: tuple[Mapping[str, AnyFormat], ...] = (
    TEXT_FACES,
    *(row.faces for row in UNARY_OPERATIONS.values()),
    IMAGE_FORMATS,
    VIDEO_FACES,
)
"""Tables (name -> format) of the formats in which callers call."""
UPSTREAM_TABLES: tuple[Mapping[str, AnyUpstream], ...] = (
    TEXT_UPSTREAMS,
    *(row.provider_formats for row in UNARY_OPERATIONS.values()),
    IMAGE_PROTOCOLS,
)
"""Tables (name -> format) of the formats in which providers are called, except for videos."""


def all_faces() -> Iterable[AnyFormat]:
    """Return the formats of the callers of all operations."""
    return chain.from_iterable(table.values() for table in FACE_TABLES)


def face_of(name: str) -> AnyFormat | None:
    """Return the callers' format with this name; None for an unknown name."""
    return _find(FACE_TABLES, name)


def upstream_of(name: str) -> AnyUpstream | None:
    """Return the providers' format with this name; None for an unknown name and for videos."""
    return _find(UPSTREAM_TABLES, name)


def _find(tables: Iterable[Mapping[str, FormatT]], name: str) -> FormatT | None:
    for table in tables:
        if name in table:
            return table[name]
    return None


def unary_operation(name: str) -> UnaryOperation[Any, Any]:
    """Return the operation of a wire format. Raise KeyError for an unknown format, or a non-unary operation."""
    for row in UNARY_OPERATIONS.values():
        if name in row.faces:
            return row
    raise KeyError(name)


def unary_codec(name: str) -> UnaryFace[Any, Any]:
    """Return a callers' format of a unary operation. Raise KeyError as `unary_operation` does."""
    return unary_operation(name).faces[name]

"""Wire formats, as pure codecs. Their tables, see `formats`, are names of this package, loaded by the first use of one:
a command that lists keys needs a part of the package, and no format.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umg_grpc.wire.formats import (
        EMBEDDING_FORMATS,
        FORMATS,
        IMAGE_FORMATS,
        RERANK_FORMATS,
        AnyFormat,
        all_formats,
        codec_of,
        face_of,
        headers_of_limits,
        stores_by_default,
    )

__all__ = [
    "EMBEDDING_FORMATS",
    "FORMATS",
    "IMAGE_FORMATS",
    "RERANK_FORMATS",
    "AnyFormat",
    "all_formats",
    "codec_of",
    "face_of",
    "headers_of_limits",
    "stores_by_default",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module("umg_grpc.wire.formats"), name)
    globals()[name] = found
    return found

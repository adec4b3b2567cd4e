"""Wire formats: codecs between JSON (of callers and providers) and the messages of `umg.v1`, without I/O. Tables of
text formats are imported at their first use, so that a command like listing keys imports no codec.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umg_grpc.wire.text_format_tables import (
        TEXT_FACES,
        TEXT_FORMATS,
        TEXT_UPSTREAMS,
        headers_of_limits,
        stores_by_default,
    )

__all__ = ["TEXT_FACES", "TEXT_FORMATS", "TEXT_UPSTREAMS", "headers_of_limits", "stores_by_default"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module("umg_grpc.wire.text_format_tables"), name)
    globals()[name] = found
    return found

"""Page tokens of model lists, which stay valid when models are added or removed."""

import base64
import zlib
from dataclasses import dataclass

from umg_grpc.wire.core.json import invalid


@dataclass(frozen=True)
class PageBoundary:
    """Boundary between two pages of a model list: the position before the first model id that is greater than or equal
    to `id`. It stays valid when the list changes.
    """

    id: str = ""
    back: bool = False
    """Whether the page ends there; else it begins there."""


def page_after(model: str) -> PageBoundary:
    """Return the boundary at which the page after an id begins. The id need not be in the list."""
    return PageBoundary(f"{model}\0")  # the smallest greater id


def page_before(model: str) -> PageBoundary:
    """Return the boundary at which the page before an id ends. The id need not be in the list."""
    return PageBoundary(model, back=True)


def encode_token(boundary: PageBoundary) -> str:
    """Return the token of the page that begins or ends at a boundary."""
    payload = (b"<" if boundary.back else b">") + boundary.id.encode()
    return base64.urlsafe_b64encode(zlib.crc32(payload).to_bytes(4) + payload).decode().rstrip("=")


def decode_token(token: str) -> PageBoundary:
    """Return the boundary in a page token; for "" that of the first page. Raise UmgError(INVALID_FIELD) for a text that
    is not a token of `encode_token`.
    """
    if not token:
        return PageBoundary()
    try:
        payload = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[4:].decode()
    except ValueError:
        payload = ""
    boundary = PageBoundary(payload[1:], back=payload.startswith("<"))
    if encode_token(boundary) != token:
        raise invalid(
            "page_token", "no earlier answer gave this token; send one as it came, or none for the first page"
        )
    return boundary

"""Page tokens of model lists, which stay valid when models are added or removed."""

import base64
import zlib
from dataclasses import dataclass

from umg_grpc.wire.core.json_decoding import invalid


@dataclass(frozen=True)
class PageBoundary:
    """Boundary in a model list before the first id that is not less than `id`. It stays valid when the list changes."""

    id: str = ""
    back: bool = False
    """Whether the page ends at the boundary; otherwise the page begins there."""


def page_after(model: str) -> PageBoundary:
    """Return the boundary at which the page after the id `model` begins. The id need not be in the list."""
    return PageBoundary(f"{model}\0")  # the smallest greater id


def page_before(model: str) -> PageBoundary:
    """Return the boundary at which the page before the id `model` ends. The id need not be in the list."""
    return PageBoundary(model, back=True)


def encode_token(boundary: PageBoundary) -> str:
    """Return the `page_token` of the page that begins or ends at a boundary: URL-safe base64 with a checksum."""
    payload = (b"<" if boundary.back else b">") + boundary.id.encode()
    return base64.urlsafe_b64encode(zlib.crc32(payload).to_bytes(4) + payload).decode().rstrip("=")


def decode_token(token: str) -> PageBoundary:
    """Return the boundary in a `page_token`; the list's start for "". Raise UmgError(INVALID_FIELD) for other texts."""
    if not token:
        return PageBoundary()
    try:
        payload = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[4:].decode()
    except ValueError:
        payload = ""
    boundary = PageBoundary(payload[1:], back=payload.startswith("<"))
    if encode_token(boundary) != token:
        raise invalid(
            "page_token", "no earlier response gave this token; send one as it came, or none for the first page"
        )
    return boundary

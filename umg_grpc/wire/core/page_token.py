"""Tokens for the pages of a model list."""

import base64
import zlib
from dataclasses import dataclass

from umg_grpc.wire.core.json import invalid


@dataclass(frozen=True)
class PageBoundary:
    """Boundary between two pages: the position before the first model id that is greater than or equal to `id`. It
    stays valid when the list changes.
    """

    id: str = ""
    back: bool = False
    """Whether the page ends there; else it begins there."""


def page_after(model: str) -> PageBoundary:
    """Return the beginning of the page after an id, which need not be the id of a model."""
    return PageBoundary(f"{model}\0")  # the smallest greater id


def page_before(model: str) -> PageBoundary:
    """Return the end of the page before an id, which need not be the id of a model."""
    return PageBoundary(model, back=True)


def encode_token(boundary: PageBoundary) -> str:
    """Return the token of the page at a boundary."""
    payload = (b"<" if boundary.back else b">") + boundary.id.encode()
    return base64.urlsafe_b64encode(zlib.crc32(payload).to_bytes(4) + payload).decode().rstrip("=")


def decode_token(token: str) -> PageBoundary:
    """Return the boundary of the page with this token, "" for the first page. Raise UmgError(INVALID_FIELD) for a text
    that is not a token of `encode_token`.
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

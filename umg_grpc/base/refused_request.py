"""Request that the HTTP server refused by itself, for the records of calls, and the address of an unknown client."""

from typing import NamedTuple

from umg_grpc.base.errors import UmgError

PEER_HEADER = "x-umg-peer"
"""Metadata with the address of the client, which the HTTP server adds to the check of an unknown key."""


class RefusedRequest(NamedTuple):
    """Request that was refused before the service was called for it. A text is "" if it is not known."""

    face: str
    request_id: str
    error: UmgError
    authorization: str = ""
    address: str = ""
    model: str = ""
    body: bytes = b""
    """JSON body that could not be decoded; b"" for another failure."""
    seconds: float = 0.0

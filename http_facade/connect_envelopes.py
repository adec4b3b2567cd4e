"""Envelopes of messages in the Connect protocol and gRPC-Web: flags, the length in four bytes, the message."""

import asyncio
import struct
from typing import Protocol

from google.rpc.status_pb2 import Status

from http_facade.decompression import WINDOWS, decompress, too_large
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import echo

ENVELOPE = struct.Struct(">BI")
COMPRESSED = 1
"""Flag of a compressed message."""
IDENTITY = "identity"

Pairs = tuple[tuple[str, str], ...]
"""Metadata of a call, in which a name may be several times."""


class EnvelopedProtocol(Protocol):
    """Protocol whose messages have envelopes, in one of its encodings."""

    @property
    def in_json(self) -> bool:
        """Whether messages are in JSON, not in protobuf."""
        ...

    @property
    def timeout_header(self) -> str:
        """Name of the header with the caller's timeout."""
        ...

    @property
    def encoding_header(self) -> str:
        """Name of the header with the compression of the messages."""
        ...

    def timeout_seconds(self, given: str) -> float:
        """Return the timeout in the value of its header. Raise UmgError(INVALID_FIELD)."""
        ...

    def end(self, status: Status, trailers: Pairs) -> bytes:
        """Return the envelope that ends an answer."""
        ...


def envelope(message: bytes, flags: int = 0) -> bytes:
    """Return a message in its envelope."""
    return ENVELOPE.pack(flags, len(message)) + message


async def opened_message(body: bytes, encoding: str, header: str, limit_bytes: int) -> bytes:
    """Return the only message in a body, decompressed up to the limit. `encoding` is the value of `header`.

    Raise UmgError: NOT_IMPLEMENTED for a compression that is not served and for another number of messages;
    MALFORMED_BODY for broken ones; BODY_TOO_LARGE; INTERNAL, as the protocols have it, for a compressed message without
    a compression.
    """
    if encoding not in {IDENTITY, *WINDOWS}:
        message = f"send messages uncompressed or with {header}: gzip, not {echo(encoding)}"
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, message)
    if not body:
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, "the body has no message; send one in its envelope")
    flags, length = ENVELOPE.unpack_from(body) if len(body) >= ENVELOPE.size else (0, 0)
    given = body[ENVELOPE.size :]
    if len(body) < ENVELOPE.size or len(given) < length or flags > COMPRESSED:
        message = "the body is no envelope: a byte of flags, the length in four bytes, and the message"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)
    if len(given) > length:
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, "the body has more than one message; methods take one")
    if flags:
        if encoding == IDENTITY:
            message = f"the message is compressed; name its compression in {header}"
            raise UmgError(pb.ERROR_REASON_INTERNAL, message)
        return await asyncio.to_thread(decompress, given, encoding, limit_bytes)
    if length > limit_bytes:
        raise too_large(limit_bytes)
    return given

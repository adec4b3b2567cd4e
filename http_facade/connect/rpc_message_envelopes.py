"""Envelopes of messages in the Connect protocol and gRPC-Web: a byte of flags, four of the length, the message."""

import asyncio
import struct
from typing import Protocol

from google.rpc.status_pb2 import Status

from http_facade.body_decompression import DECOMPRESSION_WINDOWS, decompress, too_large
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo

ENVELOPE_HEAD = struct.Struct(">BI")
COMPRESSED_FLAG = 1
IDENTITY_ENCODING = "identity"

Pairs = tuple[tuple[str, str], ...]
"""Metadata of a call, in which a name may be several times."""


class EnvelopedProtocol(Protocol):
    """Interface of the protocols with messages in envelopes: streams of the Connect protocol, and gRPC-Web. An instance
    has one protocol and one encoding of messages, JSON or protobuf.
    """

    @property
    def in_json(self) -> bool:
        """Whether messages are encoded as JSON; otherwise as protobuf."""
        ...

    @property
    def timeout_header(self) -> str:
        """Name of the header in which the caller sends the timeout of the call."""
        ...

    @property
    def encoding_header(self) -> str:
        """Name of the header that names the compression of the messages."""
        ...

    def timeout_seconds(self, given: str) -> float:
        """Parse the value of the timeout header into seconds. Raise UmgError(INVALID_FIELD) for an invalid value."""
        ...

    def end(self, status: Status, trailers: Pairs) -> bytes:
        """Return the last envelope of a response, with the status of the call (OK or its error) and its trailers."""
        ...


def envelope(message: bytes, flags: int = 0) -> bytes:
    """Return a message's envelope: the byte `flags` (0: uncompressed), the length in four bytes, and the message."""
    return ENVELOPE_HEAD.pack(flags, len(message)) + message


async def opened_message(body: bytes, encoding: str, header: str, limit_bytes: int) -> bytes:
    """Return the single message of a request body, from its envelope, decompressed to at most `limit_bytes`.
    `encoding`: value of the request header `header`, which names the compression. Raise UmgError: NOT_IMPLEMENTED for
    an unknown compression or not exactly one message; MALFORMED_BODY for an incomplete envelope; BODY_TOO_LARGE;
    INTERNAL, as the protocols demand, for a compressed message without a named compression.
    """
    if encoding not in {IDENTITY_ENCODING, *DECOMPRESSION_WINDOWS}:
        message = f"send messages uncompressed or with {header}: gzip, not {echo(encoding)}"
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, message)
    if not body:
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, "the body has no message; send one in its envelope")
    flags, length = ENVELOPE_HEAD.unpack_from(body) if len(body) >= ENVELOPE_HEAD.size else (0, 0)
    given = body[ENVELOPE_HEAD.size :]
    if len(body) < ENVELOPE_HEAD.size or len(given) < length or flags > COMPRESSED_FLAG:
        message = "the body is no envelope: a byte of flags, the length in four bytes, and the message"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)
    if len(given) > length:
        raise UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, "the body has more than one message; methods take one")
    if flags:
        if encoding == IDENTITY_ENCODING:
            message = f"the message is compressed; name its compression in {header}"
            raise UmgError(pb.ERROR_REASON_INTERNAL, message)
        return await asyncio.to_thread(decompress, given, encoding, limit_bytes)
    if length > limit_bytes:
        raise too_large(limit_bytes)
    return given

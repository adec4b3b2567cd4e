"""Decoding of the caller's body in a call (its source document) into the canonical request."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.model_fallbacks import RequestOfModel
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import source_headers
from umg_grpc.wire.core.json_decoding import missing
from umg_grpc.wire.core.request_body_decoding import decode_body, is_slow
from umg_grpc.wire.facts_beside_request import DecodedRequest


class Face(Protocol):
    """Caller's wire format of a body. `source_headers`: names of the HTTP headers that its decoder also reads."""

    @property
    def source_headers(self) -> tuple[str, ...]: ...


Codec = TypeVar("Codec", bound=Face)
Request = TypeVar("Request", bound=RequestOfModel)


async def read_source(
    source: pb.SourceDocument,
    formats: Mapping[str, Codec],
    decode: Callable[[Codec, bytes, Mapping[str, str]], DecodedRequest[Request]],
    *,
    none: str,
    limit: int,
) -> DecodedRequest[Request]:
    """Decode the caller's body in `source`. Return the canonical request with facts about the body. `formats`: codecs
    by format. `decode`: called in a thread for a large body. `none`: phrase for the error about a format that is not in
    `formats` ("no text format"). `limit`: maximum size of the body in bytes. Raise UmgError: BODY_TOO_LARGE,
    INVALID_FIELD, and others with the messages of the body's format.
    """
    body = source.body  # each access to it is a copy
    if len(body) > limit:
        message = f"source.body is larger than {limit} bytes, the most that this gateway takes"
        raise UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(limit))
    codec = formats.get(source.format)
    if codec is None:
        message = f"source.format: {source.format[:64]!r} is {none}; use one of {', '.join(formats)}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="source.format")
    headers = source_headers(codec.source_headers, source.headers)

    def decoded(body: bytes, headers: Mapping[str, str]) -> DecodedRequest[Request]:
        return decode(codec, body, headers)

    if is_slow(body):
        read = await asyncio.to_thread(decode_body, decoded, body, headers)
    else:
        read = decode_body(decoded, body, headers)
    if not read.canonical.model:
        raise missing("model")
    return read

"""A caller's own body, from which an untrusted call's canonical form is taken."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.headers import source_headers
from umg_grpc.wire.json import missing


class Face(Protocol):
    """A wire format, as far as its bodies are read here."""

    @property
    def source_headers(self) -> tuple[str, ...]: ...


class Named(Protocol):
    """A message of the schema that names a model."""

    model: str


Codec = TypeVar("Codec", bound=Face)
Request = TypeVar("Request", bound=Named)


async def read_source(
    source: pb.SourceDocument,
    formats: Mapping[str, Codec],
    decode: Callable[[Codec, bytes, Mapping[str, str]], Request],
    *,
    none: str,
    limit: int,
) -> Request:
    """What the document says, in the words of its own format's errors. `decode`: (codec, body, headers), which also
    gives the request the model of its path; called in a thread for a large body. `none`: what a format is that is not
    one of `formats`, for its error. `limit`: of the body, in bytes.
    """
    if len(source.body) > limit:
        message = f"source.body is larger than {limit} bytes, the most that this gateway takes"
        raise UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(limit))
    codec = formats.get(source.format)
    if codec is None:
        message = f"source.format: {source.format[:64]!r} is {none}; use one of {', '.join(formats)}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="source.format")
    headers = source_headers(codec.source_headers, source.headers)
    if len(source.body) < BIG_BYTES:
        request = decode(codec, source.body, headers)
    else:
        request = await asyncio.to_thread(decode, codec, source.body, headers)
    if not request.model:
        raise missing("model")
    return request

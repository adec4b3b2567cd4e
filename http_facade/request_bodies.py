"""A request's body: as JSON text within the limit, and decoded."""

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import grpc
from aiohttp import hdrs, web

from http_facade.calls import Exchange, check_key, exchange, seconds_left
from http_facade.connections import Connection
from http_facade.settings import Settings
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.headers import source_headers
from umg_grpc.wire.json import echo

Decoded = TypeVar("Decoded")

JSON = "application/json"

WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
ZLIB_MASK, ZLIB_VALUE = 0x0F, 8  # of the first byte of a zlib stream

SLOWEST = 16384
"""Bytes a second: an upload on the worst of lines is faster."""


class Bodies:
    """Reads the bodies of one row: each decoded by the row's format, off the event loop where it is large."""

    def __init__(self, face: str, source_headers: Sequence[str], channel: grpc.aio.Channel, settings: Settings) -> None:
        """`source_headers`: those of the format that go with a body."""
        self._face = face
        self._source_headers = source_headers
        self._models = rpc.ModelServiceStub(channel)
        self._settings = settings

    async def decoded(self, request: web.Request, decode: Callable[[bytes, Mapping[str, str]], Decoded]) -> Decoded:
        """What `decode` makes of the body, of a call that the gate let in. Raises UmgError; that of the gate first,
        then that of the key.

        The gate is asked before the body is read, so that a refusal costs nothing, and the call enters when it is
        read, so that no slow sender stands in the way of others.
        """
        known = exchange(request)
        self._check_room(request, known)
        is_big = (request.content_length or BIG_BYTES) >= BIG_BYTES
        if is_big:
            await check_key(self._models, request, self._face)  # before the work that a large body makes
        try:
            body = await read_body(request, self._settings.body_limit_bytes, self._settings.upload_seconds)
            await self._enter(request, known)
            headers = source_headers(self._source_headers, request.headers)
            if len(body) < BIG_BYTES:
                return decode(body, headers)
            return await asyncio.to_thread(decode, body, headers)
        except UmgError:
            if not (is_big or known.refused):
                await check_key(self._models, request, self._face)  # whoever has none is told that first
            raise

    def _check_room(self, request: web.Request, known: Exchange) -> None:
        connection: object = request.protocol
        if isinstance(connection, Connection) and connection.was_checked:
            connection.was_checked = False
            return
        try:
            self._settings.gate.check()
        except UmgError:
            known.refused = True
            raise

    async def _enter(self, request: web.Request, known: Exchange) -> None:
        seconds = seconds_left(request)
        try:
            await self._settings.gate.enter(seconds)
        except UmgError:
            known.refused = True
            raise
        known.admitted = True


async def read_body(request: web.Request, limit_bytes: int, seconds: float) -> bytes:
    """The body, decompressed. Absent content type counts as JSON: plain HTTP libraries send none.

    Raises UmgError: UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE (before anything is read where the length is told), or
    MALFORMED_BODY for an upload that broke off, stood still for `seconds` or took as long beside one for each `SLOWEST`
    bytes, or is not compressed as it says.
    """
    kind = request.headers.get(hdrs.CONTENT_TYPE)
    if kind not in {None, JSON}:
        _check_content_type(kind or "")
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if encoding not in {"", "identity", *WINDOWS}:
        message = f"send the body uncompressed or with content-encoding: gzip or deflate, not {echo(encoding)}"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, message)
    if (request.content_length or 0) > limit_bytes:
        exchange(request).spent = True
        raise too_large(limit_bytes)
    if request.content.is_eof() and request.content.exception() is None:  # small ones came with their headers
        body = request.content.read_nowait()
    else:
        body = await _upload(request, limit_bytes, seconds)
    if encoding in WINDOWS:
        # a few compressed kilobytes may be the whole limit unpacked: too long for the event loop
        return await asyncio.to_thread(decompress, body, encoding, limit_bytes)
    if len(body) > limit_bytes:
        raise too_large(limit_bytes)
    return body


async def _upload(request: web.Request, limit_bytes: int, seconds: float) -> bytes:
    """The body as it comes, compressed or not."""
    chunks, size, began_at = list[bytes](), 0, time.monotonic()
    try:
        while True:
            allowed = began_at + seconds + size / SLOWEST - time.monotonic()
            async with asyncio.timeout(min(seconds, allowed)):
                chunk = await request.content.readany()
            if not chunk:
                return b"".join(chunks)
            size += len(chunk)
            if size > limit_bytes:
                exchange(request).spent = True
                raise too_large(limit_bytes)
            chunks.append(chunk)
    except TimeoutError:
        exchange(request).spent = True
        why = f"nothing of it came for {seconds:g} seconds" if seconds <= allowed else "it came too slowly"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body broke off: {why}") from None
    except web.RequestPayloadError:
        exchange(request).spent = True
        message = "the body's transfer encoding is broken: a chunk is not what it says"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message) from None


def decompress(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    """The body as it was before `encoding`, made no further than the limit. Raises UmgError as `read_body`."""
    window = WINDOWS[encoding]
    if encoding == "deflate" and body and body[0] & ZLIB_MASK != ZLIB_VALUE:
        window = -zlib.MAX_WBITS  # many clients send it without the wrapper that the standard asks for
    decompressor = zlib.decompressobj(window)
    try:
        plain = decompressor.decompress(body, limit_bytes + 1)
    except zlib.error:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not compressed with {encoding}") from None
    if len(plain) > limit_bytes:
        raise too_large(limit_bytes)
    if not decompressor.eof or decompressor.unused_data:
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not one whole {encoding} stream")
    return plain


def too_large(limit_bytes: int) -> UmgError:
    """BODY_TOO_LARGE, with the limit in words and bytes."""
    message = f"the body is larger than {limit_bytes} bytes ({limit_bytes / 2**20:g} MiB), the limit of this gateway"
    return UmgError(pb.ERROR_REASON_BODY_TOO_LARGE, message, limit_bytes=str(limit_bytes))


def _check_content_type(kind: str) -> None:
    essence = kind.partition(";")[0].strip().lower()
    if essence not in {"", JSON}:
        message = f"send the body with content-type: {JSON}, not {echo(essence)}"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, message)

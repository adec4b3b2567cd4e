"""Request bodies: received within limits of size and time, decompressed, and decoded."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

import grpc
from aiohttp import hdrs, web

from http_facade.body_decompression import DECOMPRESSION_WINDOWS, decompress, too_large
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.key_check import KeyCheck
from http_facade.exchange.server_settings import Settings
from http_facade.thread_offload import run_large
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import source_headers
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.core.model_in_path import with_model
from umg_grpc.wire.core.multipart_forms import FORM_TYPE
from umg_grpc.wire.core.request_body_decoding import decode_body, decode_form_body, is_slow

Decoded = TypeVar("Decoded")

JSON_TYPE = "application/json"

MAX_KEYLESS_BYTES = 2 << 20
"""Largest body of a request without a key, in bytes, as the service has it."""
MIN_UPLOAD_BYTES_PER_SECOND = 16384
"""Least speed of an upload in bytes a second, below that of very slow connections."""
SLOW_JOIN_BYTES = 4 << 20
"""Size in bytes from which the parts of a body are joined in a thread, which takes some milliseconds."""


class BodyReader:
    """Reader of the request bodies of one route. Before it reads a body, it admits the call and checks the API key."""

    def __init__(self, face: str, source_headers: Sequence[str], channel: grpc.aio.Channel, settings: Settings) -> None:
        """Create a reader of bodies in the caller's format `face`. `source_headers`: headers that its decoder needs."""
        self._source_headers = source_headers
        self._keys = KeyCheck(face, channel, settings)
        self._settings = settings

    async def read(
        self,
        exchange: HttpExchange,
        decode: Callable[[bytes, Mapping[str, str], str], Decoded],
        decode_form: Callable[[bytes, str], Decoded] | None = None,
        accepted: tuple[str, ...] = (JSON_TYPE,),
    ) -> Decoded:
        """Admit the call, check its API key, receive the body, and return the result of `decode`, in a thread for large
        bodies. `decode` takes a body of one of the `accepted` media types (empty for any), its headers and the model in
        the path; `decode_form` takes a multipart form and its content type, if the route accepts forms.

        Raises UmgError if the load shedder rejects the call, then if the key is invalid, then if the body is. Both
        checks precede the body, so that a rejection costs little. The slot is taken after the body, so that slow
        uploads occupy none.
        """
        body = await self.receive(
            exchange, accepted if decode_form is None else tuple(dict.fromkeys((*accepted, FORM_TYPE)))
        )
        sent = exchange.request.headers
        if decode_form is not None and essence_of(content_type := sent.get(hdrs.CONTENT_TYPE, JSON_TYPE)) == FORM_TYPE:
            return await run_large(lambda: decode_form_body(decode_form, body, content_type), len(body))
        headers = source_headers(self._source_headers, sent)
        if deployment := exchange.deployment:
            decode = _of_deployment(decode, deployment)
        try:
            if is_slow(body):
                return await asyncio.to_thread(decode_body, decode, body, headers, exchange.model)
            return decode_body(decode, body, headers, exchange.model if exchange.parameters else "")
        except UmgError:
            exchange.refused_body = body
            raise

    async def receive(
        self, exchange: HttpExchange, accepted: Collection[str], *, needs_key: bool = True, envelope_bytes: int = 0
    ) -> bytes:
        """Admit the call, check its API key if `needs_key`, and return the undecoded body. `accepted`: media types,
        empty for any; `envelope_bytes`: size of envelopes, which is added to the size limit. Raises UmgError if the
        load shedder rejects the call, or if the key or the body is invalid.
        """
        if exchange.connection.is_expected:
            exchange.connection.is_expected = False
        else:
            self._check_load(exchange)
        limit_bytes = self._settings.body_limit_bytes
        if not needs_key:
            limit_bytes = min(limit_bytes, MAX_KEYLESS_BYTES)
        elif not self._keys.is_known(exchange):
            await self._keys.check(exchange)
        body = await read_body(exchange, limit_bytes + envelope_bytes, self._settings.upload_seconds, accepted)
        seconds = exchange.seconds_left()
        try:
            await self._settings.load_shedder.enter(seconds)
        except UmgError:
            exchange.rejected = True
            raise
        exchange.admitted = True
        return body

    def _check_load(self, exchange: HttpExchange) -> None:
        try:
            self._settings.load_shedder.check()
        except UmgError:
            exchange.rejected = True
            raise


def _of_deployment(
    decode: Callable[[bytes, Mapping[str, str], str], Decoded], deployment: str
) -> Callable[[bytes, Mapping[str, str], str], Decoded]:
    return lambda body, headers, model: decode(with_model(body, deployment), headers, model)


async def read_body(
    exchange: HttpExchange, limit_bytes: int, seconds: float, accepted: Collection[str] = (JSON_TYPE,)
) -> bytes:
    """Receive the body of a request, and return it decompressed. `accepted`: allowed media types, empty for any; a
    missing content type counts as JSON, since plain HTTP libraries send none. Raises UmgError: UNSUPPORTED_MEDIA_TYPE;
    BODY_TOO_LARGE, before receiving if the length is declared; MALFORMED_BODY if no bytes came for `seconds`, if the
    upload took longer than `seconds` plus one second for each `MIN_UPLOAD_BYTES_PER_SECOND` bytes, or if the transfer
    encoding or the compression is broken.
    """
    request = exchange.request
    kind = request.headers.get(hdrs.CONTENT_TYPE)
    if accepted and kind is not None and (kind != JSON_TYPE or JSON_TYPE not in accepted):
        check_content_type(kind, accepted)
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if encoding and encoding not in {"identity", *DECOMPRESSION_WINDOWS}:
        message = f"send the body uncompressed or with content-encoding: gzip or deflate, not {echo(encoding)}"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, message)
    if (body := exchange.body) is None:
        if declared_bytes(request) > limit_bytes:
            exchange.is_body_unread = True
            raise too_large(limit_bytes)
        body = await _upload(exchange, limit_bytes, seconds)
    if encoding in DECOMPRESSION_WINDOWS:
        # a few compressed kilobytes may decompress to the whole limit, which takes too long for the event loop
        return await asyncio.to_thread(decompress, body, encoding, limit_bytes)
    if len(body) > limit_bytes:
        raise too_large(limit_bytes)
    return body


def declared_bytes(request: web.BaseRequest) -> int:
    """Return the length of the body that the headers declare; 0 if they declare none."""
    return int(request.headers.get(hdrs.CONTENT_LENGTH, "").lstrip("0") or 0)


async def _upload(exchange: HttpExchange, limit_bytes: int, seconds: float) -> bytes:
    """Receive the body as the client sent it, still compressed, within the limits of `read_body`."""
    chunks, size, began_at = list[bytes](), 0, time.monotonic()
    try:
        while True:
            allowed = began_at + seconds + size / MIN_UPLOAD_BYTES_PER_SECOND - time.monotonic()
            async with asyncio.timeout(min(seconds, allowed)):
                chunk = await exchange.request.content.readany()
            if not chunk:
                break
            size += len(chunk)
            if size > limit_bytes:
                exchange.is_body_unread = True
                raise too_large(limit_bytes)
            chunks.append(chunk)
    except TimeoutError:
        exchange.is_body_unread = True
        why = f"nothing of it came for {seconds:g} seconds" if seconds <= allowed else "it came too slowly"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body broke off: {why}") from None
    except web.RequestPayloadError:
        exchange.is_body_unread = True
        message = "the body's transfer encoding is broken: a chunk does not have the length that it states"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message) from None
    return b"".join(chunks) if size < SLOW_JOIN_BYTES else await asyncio.to_thread(b"".join, chunks)


def essence_of(content_type: str) -> str:
    """Return the media type of a content type header: without parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def check_content_type(kind: str, accepted: Collection[str]) -> None:
    """Raise UmgError(UNSUPPORTED_MEDIA_TYPE) if the media type `kind` is not in `accepted`."""
    essence = essence_of(kind)
    if essence not in {"", *accepted}:
        message = f"send the body with content-type: {' or '.join(accepted)}, not {echo(essence)}"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, message)

"""Decoding of providers' response bodies. A body that cannot be decoded is a failure of the provider."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import structlog

from umg_grpc.base.errors import Failure, UmgError, place_of
from umg_grpc.upstream.http.proxy_response_detection import is_of_proxy, proxy_refusal
from umg_grpc.v1 import pb
from umg_grpc.wire.core.split_character_repair import replace_invalid_utf8
from umg_grpc.wire.core.sse import BYTE_ORDER_MARK
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import from_provider, unreadable
from umg_grpc.wire.text_format_interface import BIG_BYTES

logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Params = ParamSpec("Params")
Decoded = TypeVar("Decoded")
DecodeError = Callable[[int, Mapping[str, str], bytes], UmgError]


async def decoded_parts(parts: list[bytes], decode: Callable[[bytes], Decoded], turn: asyncio.Semaphore) -> Decoded:
    """Return the result of `decode` for a body read in parts. The list is emptied, to release memory. A large body is
    joined and decoded in a thread, one body at a time by the semaphore `turn`: several threads would slow down the
    event loop and finish no sooner.
    """
    return await joined(parts, partial(decoded_body, decode=decode), turn)


async def joined(parts: list[bytes], decode: Callable[[bytes], Decoded], turn: asyncio.Semaphore) -> Decoded:
    """Return the result of `decode` for a body read in parts, as `decoded_parts` does, also if it is no text."""
    if sum(map(len, parts)) < BIG_BYTES:
        return decode(b"".join(parts))
    async with turn:
        return await asyncio.to_thread(_decode_parts, parts, decode)


def _decode_parts(parts: list[bytes], decode: Callable[[bytes], Decoded]) -> Decoded:
    body = b"".join(parts)
    parts.clear()
    return decode(body)


def decoded_body(
    body: bytes, decode: Callable[Concatenate[bytes, Params], Decoded], *arguments: Params.args, **named: Params.kwargs
) -> Decoded:
    """Return the result of `decode(body, *arguments, **named)`, with invalid UTF-8 in the body replaced. Raise the
    errors of `decode`, or UmgError(UPSTREAM_FAILED). Call it in a thread for a body of BIG_BYTES or more.
    """
    return guarded(decode, replace_invalid_utf8(body.removeprefix(BYTE_ORDER_MARK)), *arguments, **named)


def refusal(
    decode_error: DecodeError, status: int, headers: Mapping[str, str], body: bytes, *, is_forwarded: bool
) -> UmgError:
    """Return the error for a status other than 200. `is_forwarded`: an HTTP proxy may have made the response."""
    known = {name.lower(): value for name, value in headers.items()}
    if is_forwarded and is_of_proxy(known):
        return proxy_refusal(status)
    if 300 <= status < 400:
        message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status)).with_failure(
            Failure.DOWN
        )
    try:
        return guarded(decode_error, status, known, body)
    except UmgError:
        return from_provider(status, ProviderError())  # the status is sufficient


def guarded(decode: Callable[Params, Decoded], *arguments: Params.args, **named: Params.kwargs) -> Decoded:
    """Return a decoder's result. Raise its UmgError; log any other exception, and raise UmgError(UPSTREAM_FAILED)."""
    try:
        return decode(*arguments, **named)
    except UmgError:
        raise
    except Exception as error:  # the cause of any exception is the provider's bytes
        logger.error("a response could not be decoded", place=place_of(error))
    raise unreadable()  # raised outside the except clause, so that it does not reference the frames of the decoder

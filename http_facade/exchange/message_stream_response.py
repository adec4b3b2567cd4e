"""Streamed responses of methods with their own messages, for example images: each message is encoded as it comes."""

import asyncio
from contextlib import aclosing
from typing import Generic, TypeVar

from aiohttp import web
from google.protobuf.message import Message

from http_facade.exchange.event_stream_response import EventStream
from http_facade.exchange.grpc_service_calls import OpenedStream, response_headers
from http_facade.exchange.handler_failures import explain
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.server_settings import Settings
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.sse import EVENT_STREAM
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_grpc.wire.unary_format_interface import MessageEncoder

MessageT = TypeVar("MessageT", bound=Message)


async def stream_messages(
    exchange: HttpExchange,
    opened: OpenedStream[MessageT],
    encoder: MessageEncoder[MessageT],
    face: str,
    settings: Settings,
) -> web.StreamResponse:
    """Send the messages of a call, `opened`, as they come. The response begins with the first message, so that a
    failure before it is returned as a JSON error with its own HTTP status. If the format has no errors in streams, a
    later failure closes the connection.
    """
    parts, call = opened
    encoded = CuttableEncoder(encoder)
    events = EventStream(exchange, encoded, EVENT_STREAM, encoder.heartbeat, settings)
    if encoder.heartbeat:  # without one, nothing can be sent before the first message
        call.on_early_metadata = events.begin_early
    async with aclosing(parts), events:
        try:
            async for part in parts:
                is_large = part.ByteSize() >= BIG_BYTES
                frames = await asyncio.to_thread(encoder.feed, part) if is_large else encoder.feed(part)
                if not exchange.is_begun:
                    events.content_type = encoder.content_type(part)
                    await events.begin(response_headers(call.initial))
                await events.write_large(frames)
            if not exchange.is_begun:
                raise UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider's stream ended before it began")
            await events.write_large(encoded.close())
        except Exception as failure:
            if not exchange.is_begun:
                raise
            if (end := _end_failed(exchange, encoded, face, failure)) is not None:
                await events.write_large(end)
            else:
                events.break_off()
    return events.response


def _end_failed(
    exchange: HttpExchange, encoded: "CuttableEncoder[MessageT]", face: str, failure: Exception
) -> bytes | None:
    """Return the bytes that end a stream with an error; None if its format has no errors. As a separate function, it
    leaves no variable of the caller with the exception, which would keep the files in memory.
    """
    error = explain(failure, exchange, face)
    exchange.failure = error.name
    return encoded.error(error)


class CuttableEncoder(Generic[MessageT]):
    """Encoder of the end of one stream, which a shutdown can end with an error."""

    reservation = None  # it keeps nothing of the response, see `EncodedResponse`

    def __init__(self, encoder: MessageEncoder[MessageT]) -> None:
        self._encoder = encoder
        self._is_cut = False

    def close(self) -> bytes:
        """Return the bytes that end a complete response; empty if `cut` has already ended it."""
        return b"" if self._is_cut else self._encoder.close()

    def error(self, error: UmgError) -> bytes | None:
        """Return the bytes that end a failed response; empty if `cut` has already ended it."""
        return b"" if self._is_cut else self._encoder.error(error)

    def cut(self, error: UmgError) -> bytes | None:
        """Return the bytes that end the response at once with a shutdown error; None if its format has no errors."""
        self._is_cut = True
        return self._encoder.error(error)

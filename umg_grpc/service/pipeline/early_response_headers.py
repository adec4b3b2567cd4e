"""Early response headers of streams whose first message is late, so that proxies and clients keep the connection. They
are sent later if the provider has not answered yet: an error that comes before them can still set the status.
"""

import asyncio
import time
from contextvars import Context as ContextVariables

import grpc
import structlog

from umg_grpc.base.http_exchange_progress import StreamStart
from umg_grpc.base.inprocess_channel import Context, InProcessContext
from umg_grpc.config import Config
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.wire.core.gateway_headers import WAITING_HEADER

ANSWERED_SECONDS = 2.0
"""Seconds after the provider's status 200 until the headers are sent, if nothing else came."""
CHECK_COUNT = 8
"""Checks of the waiting streams in the time `ANSWERED_SECONDS`, while there are any."""
MIN_CHECK_SECONDS = 0.005
EMPTY_CONTEXT = ContextVariables()
"""Context of the timer, without the variables of the call that started it, which would stay in memory with it."""

logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class WaitingStream(StreamStart):
    """Stream whose first message has not come yet. It does not refer to its call, since the call refers to it."""

    is_sent: bool = False
    """Whether the headers were sent early, or are about to be."""
    sending: asyncio.Task[None] | None = None
    """Task that sends the headers over a gRPC socket; None in process, where they are sent at once."""

    async def finish_sending(self) -> None:
        """Wait until headers that are just being sent early are sent: nothing can be sent before them."""
        if self.sending is not None:
            await asyncio.wait({self.sending})


class SlowStarts:
    """Streams of this process that wait for their first message. One timer checks all of them; it runs only while a
    stream waits, so that a stream which begins at once costs no timer of its own.
    """

    def __init__(self, headers_after: float = Config.stream_headers_after) -> None:
        """Create the check. `headers_after`: seconds until headers are sent if the provider has sent no status."""
        self._headers_after = headers_after
        self._waiting: dict[WaitingStream, tuple[Call, Context]] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call: Call, context: Context) -> WaitingStream:
        """Add the stream of an admitted call; `end` must be called later. `context`: sends the headers."""
        stream = call.stream_start = WaitingStream(time.monotonic())
        self._waiting[stream] = call, context
        if self._timer is None:
            self._start_timer()
        return stream

    def end(self, stream: WaitingStream) -> bool:
        """Remove a stream that has begun or failed. Return whether its headers were sent early (`finish_sending`)."""
        self._waiting.pop(stream, None)
        return stream.is_sent

    def _start_timer(self) -> None:
        seconds = max(MIN_CHECK_SECONDS, self._answered_seconds / CHECK_COUNT)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check, context=EMPTY_CONTEXT)

    @property
    def _answered_seconds(self) -> float:
        return min(ANSWERED_SECONDS, self._headers_after)

    def _check(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        self._start_timer()
        now, answered_seconds = time.monotonic(), self._answered_seconds
        due = list[WaitingStream]()
        for stream in self._waiting:
            if now - stream.began_at < answered_seconds:
                break  # the later ones are younger
            if now - stream.answered_at >= answered_seconds or now - stream.began_at >= self._headers_after:
                due.append(stream)
        for stream in due:
            call, context = self._waiting.pop(stream)
            try:
                _send_headers(stream, call, context)
            except Exception as error:  # the other streams need the timer
                logger.error("headers were not sent early", request_id=call.arrival.request_id, exc_info=error)


def _send_headers(stream: WaitingStream, call: Call, context: Context) -> None:
    headers = (*call.metadata, (WAITING_HEADER, "true"))
    if isinstance(context, InProcessContext):
        stream.is_sent = context.send_early(headers)
    else:
        stream.is_sent = True
        stream.sending = asyncio.create_task(_send(context, headers), name="early headers")


async def _send(context: Context, headers: tuple[tuple[str, str], ...]) -> None:
    try:
        await context.send_initial_metadata(headers)
    except (grpc.RpcError, asyncio.InvalidStateError) as error:
        logger.debug("the caller of a slow stream has left", cause=type(error).__name__)

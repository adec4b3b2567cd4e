"""Client whose calls block, without `async`, with the same methods. The asynchronous client does the work, on an event
loop in a thread.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import contextmanager
from typing import TypeVar

from umg_client import v1
from umg_client.client import Client, connect
from umg_client.content import Content, Progress
from umg_client.tools import Tools
from umg_client.v1 import blocking

Value = TypeVar("Value")


@contextmanager
def connect_sync(
    address: str,
    key: str,
    *,
    secure: bool | ssl.SSLContext = False,
    retries: int = 2,
    timeout: float | None = None,
) -> Iterator["SyncClient"]:
    """Yield a client whose calls block, with the parameters of `connect`. Several threads may use it at once."""
    with _loop() as loop:
        connection = connect(address, key, secure=secure, retries=retries, timeout=timeout)
        client = loop.run(connection.__aenter__())
        try:
            yield SyncClient(client, loop)
        finally:
            loop.run(connection.__aexit__(None, None, None))


class Loop:
    """Event loop that runs in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, coroutine: Coroutine[object, object, Value]) -> Value:
        """Run a coroutine on the loop, wait for it, and return its result. If the wait is interrupted, the coroutine is
        cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:  # KeyboardInterrupt too
            future.cancel()
            raise

    def iterate(self, stream: AsyncIterator[Value]) -> Iterator[Value]:
        """Yield the messages of an asynchronous stream. Leaving the iteration cancels its call."""
        try:
            while True:
                try:
                    yield self.run(_next(stream))
                except StopAsyncIteration:
                    return
        finally:
            if not self._loop.is_closed():  # as for an iterator that outlives its client
                self.run(_close(stream))


async def _next(stream: AsyncIterator[Value]) -> Value:
    return await anext(stream)


async def _close(stream: AsyncIterator[object]) -> None:
    """Close a stream, which is a generator although the stubs declare an iterator."""
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()


@contextmanager
def _loop() -> Iterator[Loop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="umg-client", daemon=True)
    thread.start()
    try:
        yield Loop(loop)
    finally:
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class SyncClient:
    """Client whose calls block, with the stubs and methods of `Client`. A stream is a generator. Closing it, or leaving
    its loop, cancels the call.
    """

    def __init__(self, client: Client, loop: Loop) -> None:
        self._client = client
        self._loop = loop
        self.accounts = blocking.AccountService(client.accounts, loop)
        self.admin = blocking.AdminService(client.admin, loop)
        self.alerts = blocking.AlertService(client.alerts, loop)
        self.channels = blocking.ChannelService(client.channels, loop)
        self.audit = blocking.AuditService(client.audit, loop)
        self.tasks = blocking.TaskService(client.tasks, loop)
        self.users = blocking.UserService(client.users, loop)
        self.config = blocking.ConfigService(client.config, loop)
        self.model_prices = blocking.ModelPriceService(client.model_prices, loop)
        self.embeddings = blocking.EmbeddingService(client.embeddings, loop)
        self.files = blocking.FileService(client.files, loop)
        self.generation = blocking.GenerationService(client.generation, loop)
        self.images = blocking.ImageService(client.images, loop)
        self.models = blocking.ModelService(client.models, loop)
        self.moderations = blocking.ModerationService(client.moderations, loop)
        self.rerank = blocking.RerankService(client.rerank, loop)
        self.speech = blocking.SpeechService(client.speech, loop)
        self.transcriptions = blocking.TranscriptionService(client.transcriptions, loop)
        self.videos = blocking.VideoService(client.videos, loop)

    def chat(self, model: str, text: str, *, instructions: str = "") -> Iterator[str]:
        """Yield the pieces of a response, as `Client.chat`."""
        return self._loop.iterate(self._client.chat(model, text, instructions=instructions))

    def tool_loop(self, request: v1.GenerateRequest, tools: Tools, *, max_answers: int = 10) -> v1.GenerateResponse:
        """Return the first answer without tool calls, as `Client.tool_loop`."""
        return self._loop.run(self._client.tool_loop(request, tools, max_answers=max_answers))

    def make_video(self, request: v1.CreateVideoTaskRequest, *, progress: Progress | None = None) -> v1.VideoTask:
        """Submit a video and return its task in its final state, as `Client.make_video`. `progress` is called in
        another thread.
        """
        return self._loop.run(self._client.make_video(request, progress=progress))

    def download_video(self, task_id: str, *, progress: Progress | None = None) -> Content:
        """Return the video of a finished task, as `Client.download_video`. `progress` is called in another thread."""
        return self._loop.run(self._client.download_video(task_id, progress=progress))

    def download_image(self, image: v1.Image, *, progress: Progress | None = None) -> Content:
        """Return the bytes of a generated image, as `Client.download_image`. `progress` is called in another thread."""
        return self._loop.run(self._client.download_image(image, progress=progress))

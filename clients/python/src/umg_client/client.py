"""Client of one gateway, with a stub for each of its services."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from grpclib.client import Channel

from umg_client import v1
from umg_client.calls import (
    Accounts,
    Admin,
    Alerts,
    Audit,
    Channels,
    Config,
    Embeddings,
    Files,
    Generation,
    Images,
    ModelPrices,
    Models,
    Moderations,
    Options,
    Rerank,
    Speech,
    Tasks,
    Transcriptions,
    Users,
    Videos,
    closed,
)
from umg_client.content import Content, Progress, collect, file_token
from umg_client.errors import StatusDetailsCodec
from umg_client.messages import text_part, tool_calls, user
from umg_client.tools import Tools, result_of


@asynccontextmanager
async def connect(
    address: str,
    key: str,
    *,
    secure: bool | ssl.SSLContext = False,
    retries: int = 2,
    timeout: float | None = None,  # noqa: ASYNC109 - of each call, not of this one
) -> AsyncIterator["Client"]:
    """Yield a client of the gateway at `HOST:PORT` that calls with this key, and close it at the end of the block.

    The first call connects, and the next call after a lost connection connects again. With `secure` the connection uses
    TLS; True trusts the certificate authorities of this machine, and a context is set to HTTP/2. `retries` is the
    number of further attempts of a call that may safely be repeated, `timeout` the deadline of calls without their own,
    in seconds; None sets none. Raises ValueError if the address has no port.
    """
    place = urlsplit(f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError(f"{address!r} is no address; write HOST:PORT")
    if isinstance(secure, ssl.SSLContext):
        secure.set_alpn_protocols(["h2"])  # servers of gRPC refuse a connection without it
    codec = StatusDetailsCodec()
    async with Channel(place.hostname, place.port, ssl=secure or None, status_details_codec=codec) as channel:
        yield Client(channel, Options(key, retries, timeout))


class Client:
    """Generated stubs of the gateway's services. A stub has a method for each operation, which takes the request
    message and the keyword arguments `timeout` in seconds and `metadata` to send.

    A failed call raises `UmgError`. A stream is an asynchronous generator. Closing it, or cancelling the task that
    reads it, cancels the call, and the gateway then cancels the call to the provider.
    """

    def __init__(self, channel: Channel, options: Options) -> None:
        self.accounts = Accounts(channel, options)
        self.admin = Admin(channel, options)
        self.alerts = Alerts(channel, options)
        self.channels = Channels(channel, options)
        self.audit = Audit(channel, options)
        self.tasks = Tasks(channel, options)
        self.users = Users(channel, options)
        self.config = Config(channel, options)
        self.model_prices = ModelPrices(channel, options)
        self.embeddings = Embeddings(channel, options)
        self.files = Files(channel, options)
        self.generation = Generation(channel, options)
        self.images = Images(channel, options)
        self.models = Models(channel, options)
        self.moderations = Moderations(channel, options)
        self.rerank = Rerank(channel, options)
        self.speech = Speech(channel, options)
        self.transcriptions = Transcriptions(channel, options)
        self.videos = Videos(channel, options)

    async def chat(self, model: str, text: str, *, instructions: str = "") -> AsyncGenerator[str, None]:
        """Yield the streamed answer of a model to one text, in pieces. Other requests use
        `generation.stream_generate`.
        """
        request = v1.GenerateRequest(model=model, messages=[user(text)])
        if instructions:
            request.instructions.append(text_part(instructions))
        stream = self.generation.stream_generate(v1.StreamGenerateRequest(request=request))
        async with closed(stream) as messages:
            async for message in messages:
                for event in message.events:
                    if event.text_delta:
                        yield event.text_delta

    async def tool_loop(
        self, request: v1.GenerateRequest, tools: Tools, *, max_answers: int = 10
    ) -> v1.GenerateResponse:
        """Return the first response without tool calls. The calls of those before it are run by `tools`, and their
        results are sent with the next request. After `max_answers` the last response is returned as it is.
        """
        messages = list(request.messages)
        for _ in range(max_answers):
            answer = await self.generation.generate(replace(request, messages=messages))
            calls = tool_calls(answer)
            if not calls:
                break
            if answer.candidates[0].message is not None:
                messages.append(answer.candidates[0].message)
            results = [await result_of(call, tools) for call in calls]
            messages.append(v1.Message(role=v1.Role.TOOL, parts=results))
        return answer

    async def make_video(self, request: v1.CreateVideoTaskRequest, *, progress: Progress | None = None) -> v1.VideoTask:
        """Submit a video and return its task in its final state, which may be a failure. `progress` is called with each
        change of the percentage, out of 100.
        """
        created = await self.videos.create_video_task(request)
        task = created.task or v1.VideoTask()
        async with closed(self.videos.watch_video_task(v1.WatchVideoTaskRequest(task_id=task.task_id))) as stream:
            async for message in stream:
                task = message.task or task
                if progress is not None:
                    progress(task.progress_percent, 100)
        return task

    async def download_video(self, task_id: str, *, progress: Progress | None = None) -> Content:
        """Return the video of a finished task. `progress` is called after each chunk."""
        async with closed(self.videos.download_video(v1.DownloadVideoRequest(task_id=task_id))) as messages:
            return await collect(messages, progress)

    async def download_image(self, image: v1.Image, *, progress: Progress | None = None) -> Content:
        """Return the bytes of a generated image, which are in the message or in a file of the gateway. Raise ValueError
        for an address of a provider.
        """
        if image.url is not None:
            request = v1.DownloadFileRequest(token=file_token(image.url))
            async with closed(self.files.download_file(request)) as messages:
                return await collect(messages, progress)
        data = image.data or b""
        if progress is not None:
            progress(len(data), len(data))
        return Content(data, image.mime_type)

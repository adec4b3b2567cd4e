"""A connection to one gateway, with a stub for each of its services."""

import ssl
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from betterproto2 import Message
from betterproto2.grpclib import ServiceStub
from betterproto2.grpclib.grpclib_client import MetadataLike
from grpclib.client import Channel
from grpclib.metadata import Deadline

from umg_client import v1
from umg_client.errors import StatusDetailsCodec, failures

if TYPE_CHECKING:
    from grpclib._typing import IProtoMessage  # what betterproto2's stubs say they take

Answer = TypeVar("Answer", bound=Message)


@asynccontextmanager
async def connect(address: str, key: str, *, secure: bool | ssl.SSLContext = False) -> AsyncIterator["Client"]:
    """A client of the gateway at `HOST:PORT`, which calls with this key and is closed at the end of the block.

    The connection is made by the first call, and again by the next when it was lost. With `secure` it is TLS: True
    trusts the authorities that this machine trusts. Raises ValueError when the address has no port.
    """
    place = urlsplit(f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError(f"{address!r} is no address; write HOST:PORT")
    codec = StatusDetailsCodec()
    async with Channel(place.hostname, place.port, ssl=secure or None, status_details_codec=codec) as channel:
        yield Client(channel, key)


class Client:
    """The gateway's services, each as its generated stub: a method for each operation, which takes the request message
    and, by name, `timeout` in seconds and `metadata` to send along.

    A failed call raises `UmgError`. A stream is an asynchronous generator: closing it, leaving it, or cancelling the
    task that reads it cancels the call, and the gateway then stops the provider.
    """

    def __init__(self, channel: Channel, key: str) -> None:
        credentials = {"authorization": f"Bearer {key}"}
        self.admin = Admin(channel, metadata=credentials)
        self.embeddings = Embeddings(channel, metadata=credentials)
        self.files = Files(channel, metadata=credentials)
        self.generation = Generation(channel, metadata=credentials)
        self.images = Images(channel, metadata=credentials)
        self.models = Models(channel, metadata=credentials)
        self.rerank = Rerank(channel, metadata=credentials)
        self.videos = Videos(channel, metadata=credentials)

    async def chat(self, model: str, text: str, *, instructions: str = "") -> AsyncGenerator[str, None]:
        """The model's answer to one text, piece by piece as it comes. For all else there is
        `generation.stream_generate`.
        """
        request = v1.GenerateRequest(model=model, messages=[v1.Message(role=v1.Role.USER, parts=[_text(text)])])
        if instructions:
            request.instructions.append(_text(instructions))
        stream = self.generation.stream_generate(v1.StreamGenerateRequest(request=request))
        async with _closed(stream) as messages:
            async for message in messages:
                for event in message.events:
                    if event.text_delta:
                        yield event.text_delta


def _text(text: str) -> v1.Part:
    return v1.Part(text=v1.TextPart(text=text))


@asynccontextmanager
async def _closed(stream: AsyncIterator[Answer]) -> AsyncIterator[AsyncIterator[Answer]]:
    """The stream, whose call has ended at the end of the block. (A generator, though the stubs promise less.)"""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


class Calls(ServiceStub):
    """What every call has around it: credentials, a request id, and failures raised as `UmgError`."""

    async def _unary_unary(
        self,
        route: str,
        request: "IProtoMessage",
        response_type: type[Answer],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the method that this replaces takes it
        deadline: Deadline | None = None,
        metadata: MetadataLike | None = None,
    ) -> Answer:
        sent, request_id = self._metadata(metadata)
        with failures(request_id):
            return await super()._unary_unary(
                route, request, response_type, timeout=timeout, deadline=deadline, metadata=sent
            )

    async def _unary_stream(
        self,
        route: str,
        request: "IProtoMessage",
        response_type: type[Answer],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
        deadline: Deadline | None = None,
        metadata: MetadataLike | None = None,
    ) -> AsyncGenerator[Answer, None]:
        sent, request_id = self._metadata(metadata)
        answers = super()._unary_stream(
            route, request, response_type, timeout=timeout, deadline=deadline, metadata=sent
        )
        with failures(request_id):
            async with _closed(answers) as stream:
                async for answer in stream:
                    yield answer

    def _metadata(self, own: MetadataLike | None) -> tuple[dict[str, str | bytes], str]:
        """What to send, and the request id in it. What the caller gives goes before what we would send."""
        sent = {"x-request-id": uuid.uuid4().hex, **dict(self.metadata or ()), **dict(own or ())}
        return sent, str(sent["x-request-id"])


class Admin(Calls, v1.AdminServiceStub):
    """`umg.v1.AdminService`."""


class Embeddings(Calls, v1.EmbeddingServiceStub):
    """`umg.v1.EmbeddingService`."""


class Files(Calls, v1.FileServiceStub):
    """`umg.v1.FileService`."""


class Generation(Calls, v1.GenerationServiceStub):
    """`umg.v1.GenerationService`."""


class Images(Calls, v1.ImageServiceStub):
    """`umg.v1.ImageService`."""


class Models(Calls, v1.ModelServiceStub):
    """`umg.v1.ModelService`."""


class Rerank(Calls, v1.RerankServiceStub):
    """`umg.v1.RerankService`."""


class Videos(Calls, v1.VideoServiceStub):
    """`umg.v1.VideoService`."""

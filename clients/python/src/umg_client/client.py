"""Client of one gateway, with a stub for each of its services."""

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
    from grpclib._typing import IProtoMessage  # the request type in the signatures of betterproto2's stubs

Answer = TypeVar("Answer", bound=Message)


@asynccontextmanager
async def connect(address: str, key: str, *, secure: bool | ssl.SSLContext = False) -> AsyncIterator["Client"]:
    """Yield a client of the gateway at `HOST:PORT` that calls with this key, and close it at the end of the block.

    The first call connects, and the next call after a lost connection connects again. With `secure` the connection uses
    TLS; True trusts the certificate authorities of this machine. Raises ValueError if the address has no port.
    """
    place = urlsplit(f"//{address}")
    if place.hostname is None or place.port is None:
        raise ValueError(f"{address!r} is no address; write HOST:PORT")
    codec = StatusDetailsCodec()
    async with Channel(place.hostname, place.port, ssl=secure or None, status_details_codec=codec) as channel:
        yield Client(channel, key)


class Client:
    """Generated stubs of the gateway's services. A stub has a method for each operation, which takes the request
    message and the keyword arguments `timeout` in seconds and `metadata` to send.

    A failed call raises `UmgError`. A stream is an asynchronous generator. Closing it, or cancelling the task that
    reads it, cancels the call, and the gateway then cancels the call to the provider.
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
        """Yield the streamed answer of a model to one text, in pieces. Other requests use
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
    """Yield a stream, and end its call at the end of the block. The stubs declare an iterator, but it is a
    generator.
    """
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


class Calls(ServiceStub):
    """Base of the stubs, which adds credentials and a request id to each call and raises failures as `UmgError`."""

    async def _unary_unary(
        self,
        route: str,
        request: "IProtoMessage",
        response_type: type[Answer],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - a parameter of the overridden method
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

    def _metadata(self, given: MetadataLike | None) -> tuple[dict[str, str | bytes], str]:
        """Return the metadata to send, and its request id. The caller's metadata overrides ours."""
        sent = {"x-request-id": uuid.uuid4().hex, **dict(self.metadata or ()), **dict(given or ())}
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

"""Base class of the generated stubs: credentials, request ids, deadlines, retries and errors of each call."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from betterproto2 import Message
from betterproto2.grpclib import ServiceStub
from betterproto2.grpclib.grpclib_client import MetadataLike
from grpclib.client import Channel
from grpclib.metadata import Deadline

from umg_client import v1
from umg_client.errors import UmgError, failures
from umg_client.retries import Retries

if TYPE_CHECKING:
    from grpclib._typing import IProtoMessage  # the request type in the signatures of betterproto2's stubs

Answer = TypeVar("Answer", bound=Message)


@dataclass(frozen=True)
class Options:
    """Options of all calls of a client."""

    key: str  # "" sends none
    retries: int
    timeout: float | None  # seconds, for calls without their own


@dataclass(frozen=True)
class Call:
    """Metadata and deadline of one call, the same for each attempt."""

    metadata: dict[str, str | bytes]
    deadline: Deadline | None
    retries: Retries

    @property
    def request_id(self) -> str:
        """Id of the call in the log of the gateway."""
        return str(self.metadata["x-request-id"])


class Calls(ServiceStub):
    """Stub that adds credentials, a request id and retries to each call and raises failures as `UmgError`."""

    def __init__(self, channel: Channel, options: Options) -> None:
        super().__init__(channel)
        self._options = options

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
        call = self._call(route, timeout, deadline, metadata)
        while True:
            try:
                with failures(call.request_id):
                    return await super()._unary_unary(
                        route, request, response_type, deadline=call.deadline, metadata=call.metadata
                    )
            except UmgError as error:
                await asyncio.sleep(call.retries.wait_seconds(error))

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
        call = self._call(route, timeout, deadline, metadata)
        begun = False
        while True:
            answers = super()._unary_stream(
                route, request, response_type, deadline=call.deadline, metadata=call.metadata
            )
            try:
                with failures(call.request_id):
                    async with closed(answers) as stream:
                        async for answer in stream:
                            begun = True
                            yield answer
                    return
            except UmgError as error:
                if begun:
                    raise
                await asyncio.sleep(call.retries.wait_seconds(error))

    def _call(
        self, route: str, seconds: float | None, deadline: Deadline | None, metadata: MetadataLike | None
    ) -> Call:
        """Return the metadata and the deadline of a call. The caller's metadata overrides the client's."""
        ours = {"x-request-id": uuid.uuid4().hex}
        if self._options.key:
            ours["authorization"] = f"Bearer {self._options.key}"
        seconds = self._options.timeout if seconds is None else seconds
        if deadline is None and seconds is not None:
            deadline = Deadline.from_timeout(seconds)
        return Call({**ours, **dict(metadata or ())}, deadline, Retries(route, self._options.retries, deadline))


@asynccontextmanager
async def closed(stream: AsyncIterator[Answer]) -> AsyncIterator[AsyncIterator[Answer]]:
    """Yield a stream, and end its call at the end of the block. The stubs declare an iterator, but it is a
    generator.
    """
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


class Accounts(Calls, v1.AccountServiceStub):
    """Stub of the service `umg.v1.AccountService`."""


class Admin(Calls, v1.AdminServiceStub):
    """Stub of the service `umg.v1.AdminService`."""


class Alerts(Calls, v1.AlertServiceStub):
    """Stub of the service `umg.v1.AlertService`."""


class Audit(Calls, v1.AuditServiceStub):
    """Stub of the service `umg.v1.AuditService`."""


class Channels(Calls, v1.ChannelServiceStub):
    """Stub of the service `umg.v1.ChannelService`."""


class Config(Calls, v1.ConfigServiceStub):
    """Stub of the service `umg.v1.ConfigService`."""


class ModelPrices(Calls, v1.ModelPriceServiceStub):
    """Stub of the service `umg.v1.ModelPriceService`."""


class Tasks(Calls, v1.TaskServiceStub):
    """Stub of the service `umg.v1.TaskService`."""


class Users(Calls, v1.UserServiceStub):
    """Stub of the service `umg.v1.UserService`."""


class Embeddings(Calls, v1.EmbeddingServiceStub):
    """Stub of the service `umg.v1.EmbeddingService`."""


class Files(Calls, v1.FileServiceStub):
    """Stub of the service `umg.v1.FileService`."""


class Generation(Calls, v1.GenerationServiceStub):
    """Stub of the service `umg.v1.GenerationService`."""


class Images(Calls, v1.ImageServiceStub):
    """Stub of the service `umg.v1.ImageService`."""


class Models(Calls, v1.ModelServiceStub):
    """Stub of the service `umg.v1.ModelService`."""


class Moderations(Calls, v1.ModerationServiceStub):
    """Stub of the service `umg.v1.ModerationService`."""


class Rerank(Calls, v1.RerankServiceStub):
    """Stub of the service `umg.v1.RerankService`."""


class Speech(Calls, v1.SpeechServiceStub):
    """Stub of the service `umg.v1.SpeechService`."""


class Transcriptions(Calls, v1.TranscriptionServiceStub):
    """Stub of the service `umg.v1.TranscriptionService`."""


class Videos(Calls, v1.VideoServiceStub):
    """Stub of the service `umg.v1.VideoService`."""

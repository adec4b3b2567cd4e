"""HTTP facade in front of a scripted service whose behaviour the model's name selects, with and without a socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Never, TypeAlias

import aiohttp
import grpc
import pytest
import structlog

from http_facade.app import Runner, make_app
from http_facade.exchange.handler_failures import log
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.server_settings import Settings
from tests.support import logs
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import DETAILS_KEY, HTTP_STATUSES, to_status
from umg_grpc.base.inprocess_channel import InProcessChannel, InProcessContext, InProcessServer
from umg_grpc.v1 import pb, rpc

Context: TypeAlias = "grpc.aio.ServicerContext[object, object]"

CHAT = "/v1/chat/completions"
KEY = {"authorization": "Bearer umg-key"}
BODY_LIMIT = 2 * 2**20
LARGE = 32 * 2**20
"""Characters of the response of the model `large`: more than all buffers on the way hold."""


def body(model: str, *, stream: bool = False) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": stream}


def delta(text: str) -> pb.StreamGenerateResponse:
    return pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta=text)])


def started(model: str) -> pb.StreamGenerateResponse:
    beginning = pb.GenerationStarted(response_id="resp-1", model=model)
    return pb.StreamGenerateResponse(
        events=[pb.GenerateEvent(started=beginning), pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart()))]
    )


FINISHED = pb.StreamGenerateResponse(
    events=[
        pb.GenerateEvent(part_ended=pb.PartEnded()),
        pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP)),
    ]
)


async def fail(context: Context, error: UmgError, headers: tuple[tuple[str, str], ...] = ()) -> Never:
    details = (DETAILS_KEY, to_status(error))
    await context.abort(HTTP_STATUSES[error.reason], error.message, trailing_metadata=(*headers, details))


async def send_early(context: Context) -> None:
    """Send the headers of a stream before its first message, as the service does for slow providers."""
    headers = (("x-umg-waiting", "true"), ("x-umg-dropped", "seed"))
    if isinstance(context, InProcessContext):
        context.send_early(headers)
    else:
        await context.send_initial_metadata(headers)


@dataclass
class Service(rpc.GenerationServiceServicer, rpc.ModelServiceServicer):
    """Service whose behaviour the model's name selects. It records the requests."""

    failure: UmgError | None = None  # of the models `fail` and `break`
    initial: tuple[tuple[str, str], ...] = ()  # initial metadata of every answer
    models: tuple[pb.Model, ...] = ()
    metadata: list[dict[str, str]] = field(default_factory=list)
    seconds_left: list[float | None] = field(default_factory=list)  # until the deadlines of the calls
    requests: list[pb.GenerateRequest] = field(default_factory=list)
    requested_models: list[str] = field(default_factory=list)
    sent: int = 0  # messages of the model `flood`
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    left_at: asyncio.Future[float] | None = None

    async def _begin(self, context: Context) -> None:
        self.seconds_left.append(context.time_remaining())
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata() or ()})
        await context.send_initial_metadata(self.initial)

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        await self._begin(context)
        self.requests.append(request)
        match request.model:
            case "fail":
                await fail(context, self.failure, self.initial)
            case "crash":
                raise ZeroDivisionError("what nobody may see")
            case "wait":
                await self._wait()
        text = pb.Part(text=pb.TextPart(text="hello" if request.model != "large" else "x" * LARGE))
        message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[text])
        candidate = pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_STOP)
        return pb.GenerateResponse(response_id="resp-1", model=request.model, candidates=[candidate])

    async def StreamGenerate(
        self, message: pb.StreamGenerateRequest, context: Context
    ) -> AsyncIterator[pb.StreamGenerateResponse]:
        request = message.request
        if request.model.startswith("slow"):
            await send_early(context)
            await self._wait()
            if request.model == "slow fail":
                await fail(context, self.failure, self.initial)
        else:
            await self._begin(context)
        self.requests.append(request)
        if request.model == "fail":
            await fail(context, self.failure, self.initial)
        if request.model == "wait":
            await self._wait()
        if request.model == "empty":
            return
        yield started(request.model)
        yield delta("one ")
        match request.model:
            case "break":
                await fail(context, self.failure, self.initial)
            case "crash mid":
                raise ZeroDivisionError("what nobody may see")
            case "wait mid":
                await self._wait()
            case "flood":
                while True:
                    self.sent += 1
                    yield delta("x" * 65536)
            case "long":
                for _ in range(12):
                    yield delta("x" * 2**20)
        yield delta("two")
        yield FINISHED

    async def _wait(self) -> None:
        """Wait until the test sets `go_on`, or the caller left."""
        self.reached.set()
        try:
            await self.go_on.wait()
        except (asyncio.CancelledError, GeneratorExit):
            if self.left_at is not None and not self.left_at.done():
                self.left_at.set_result(asyncio.get_running_loop().time())
            raise

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        await self._begin(context)
        if self.failure is not None:
            await fail(context, self.failure, self.initial)
        return pb.ListModelsResponse(models=self.models)

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        await self._begin(context)
        self.requested_models.append(request.model)
        for model in self.models:
            if model.id == request.model:
                return pb.GetModelResponse(model=model)
        missing = UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, f"no model {request.model}", model=request.model)
        return await fail(context, missing)


@dataclass(frozen=True)
class Face:
    port: int
    client: aiohttp.ClientSession
    service: Service
    runner: Runner
    stack: AsyncExitStack

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def chat(
        self, model: str, *, stream: bool = False, **arguments: object
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        arguments.setdefault("headers", KEY)
        return self.client.post(self.url(CHAT), json=body(model, stream=stream), **arguments)

    async def alive(self) -> int:
        """Return the status of `/healthz`. After this round trip, all data that was sent before has arrived."""
        async with self.client.get(self.url("/healthz")) as answer:
            return answer.status

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection without an HTTP client. It is closed with the facade at the latest."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)

        async def close() -> None:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

        self.stack.push_async_callback(close)
        return reader, writer


SETTINGS = Settings(
    ready=Readiness,
    metrics=lambda: (b"umg_up 1\n", "text/plain; version=0.0.4; charset=utf-8"),
    body_limit_bytes=BODY_LIMIT,
    find_key=lambda authorization: authorization,
)


async def channel_to(
    kind: str, stack: AsyncExitStack, *services: Callable[[grpc.aio.Server], None]
) -> grpc.aio.Channel:
    """Return a channel to a new server, on which each of the functions registers a service."""
    server = InProcessServer() if kind == "in-process" else grpc.aio.server()
    for register in services:
        register(server)
    if isinstance(server, InProcessServer):
        return InProcessChannel(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    stack.push_async_callback(server.stop, 0)
    return await stack.enter_async_context(
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])
    )


MakeFace: TypeAlias = Callable[..., Awaitable[Face]]


@pytest.fixture(params=["socket", "in-process"])
async def make_face(request: pytest.FixtureRequest) -> AsyncIterator[MakeFace]:
    """Yield a function that starts a facade with other settings than the usual, on either channel."""
    async with AsyncExitStack() as stack:

        async def make(**changes: object) -> Face:
            service = Service()
            added = (rpc.add_GenerationServiceServicer_to_server, rpc.add_ModelServiceServicer_to_server)
            channel = await channel_to(request.param, stack, *(partial(add, service) for add in added))
            app = make_app(channel, replace(SETTINGS, **{"drain_seconds": 1, **changes}))
            runner = Runner(app)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            port = await runner.listen("127.0.0.1", 0)
            client = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
            return Face(port, client, service, runner, stack)

        yield make


@pytest.fixture
async def face(make_face: MakeFace) -> Face:
    return await make_face()


@pytest.fixture(autouse=True)
def plain_log() -> Iterator[None]:
    """Set the log of the tests, regardless of the configuration of other tests and of cached loggers."""
    configured = structlog.get_config()
    logs.configure()
    vars(log).pop("bind", None)
    yield
    structlog.configure(**configured)


@pytest.fixture
def quiet() -> Iterator[logs.Warnings]:
    """Return the log of aiohttp and asyncio, which must be empty at the end."""
    with logs.library_warnings() as warnings:
        yield warnings

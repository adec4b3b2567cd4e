"""In-process channel: for stubs and servicers it behaves like a channel with a socket."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import grpc
import pytest
import pytest_asyncio

from umg_grpc.base.inprocess_channel import (
    Context,
    HandlerTable,
    InProcessChannel,
    InProcessServer,
    Interceptor,
    Stream,
    Unary,
)
from umg_grpc.v1 import pb, rpc


class Scripted(rpc.ModelServiceServicer, rpc.GenerationServiceServicer):
    """Service whose behaviour the model id selects."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def GetModel(self, request: pb.GetModelRequest, context: Context) -> pb.GetModelResponse:
        if request.model == "refused":
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such model", (("why", "it is refused"),))
        metadata = dict(context.invocation_metadata() or ())
        await context.send_initial_metadata((("seen", str(metadata.get("sent", ""))),))
        return pb.GetModelResponse(model=pb.Model(id=request.model))

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        try:
            await context.send_initial_metadata((("x-first", "yes"),))
            for text in ("a", "b", "c"):
                yield pb.StreamGenerateResponse(events=[pb.GenerateEvent(text_delta=text)])
            if request.request.model == "broken":
                await context.abort(grpc.StatusCode.UNAVAILABLE, "it broke")
            if request.request.model == "endless":
                await asyncio.Event().wait()
        finally:
            self.ended.set()


class Tagging(Interceptor):
    """Interceptor that counts its wrapped methods, and passes calls on."""

    def __init__(self) -> None:
        self.wrapped: list[str] = []
        self.calls: list[str] = []

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        self.wrapped.append(method)

        async def call(request: object, context: Context) -> object:
            self.calls.append(method)
            return await inner(request, context)

        return call

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        self.wrapped.append(method)

        async def call(request: object, context: Context) -> AsyncGenerator[object, None]:
            self.calls.append(method)
            async with aclosing(inner(request, context)) as messages:
                async for message in messages:
                    yield message

        return call


class Channels:
    def __init__(self, channel: grpc.aio.Channel, servicer: Scripted, interceptor: Tagging) -> None:
        self.models = rpc.ModelServiceStub(channel)
        self.generation = rpc.GenerationServiceStub(channel)
        self.images = rpc.ImageServiceStub(channel)
        self.servicer, self.interceptor = servicer, interceptor


def _register(server: grpc.aio.Server, servicer: Scripted) -> None:
    rpc.add_ModelServiceServicer_to_server(servicer, server)
    rpc.add_GenerationServiceServicer_to_server(servicer, server)


@asynccontextmanager
async def _without_socket() -> AsyncIterator[Channels]:
    servicer, interceptor = Scripted(), Tagging()
    server = InProcessServer([interceptor])
    _register(server, servicer)
    async with InProcessChannel(server) as channel:
        yield Channels(channel, servicer, interceptor)


@asynccontextmanager
async def _with_socket() -> AsyncIterator[Channels]:
    servicer, interceptor = Scripted(), Tagging()
    methods = InProcessServer([interceptor])
    _register(methods, servicer)
    server = grpc.aio.server(handlers=[HandlerTable(methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Channels(channel, servicer, interceptor)
    await server.stop(None)


@pytest_asyncio.fixture(params=[_without_socket, _with_socket], ids=["in process", "socket"])
async def channels(request: pytest.FixtureRequest) -> AsyncIterator[Channels]:
    async with request.param() as made:
        yield made


async def test_a_unary_call_brings_its_answer_and_initial_metadata(channels: Channels) -> None:
    call = channels.models.GetModel(pb.GetModelRequest(model="m"), metadata=(("sent", "1"),))
    assert (await call).model.id == "m"
    assert dict(await call.initial_metadata())["seen"] == "1"
    assert await call.code() == grpc.StatusCode.OK


async def test_an_aborted_call_raises_its_status_details_and_metadata(channels: Channels) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channels.models.GetModel(pb.GetModelRequest(model="refused"))
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.NOT_FOUND, "no such model")
    assert dict(caught.value.trailing_metadata() or ())["why"] == "it is refused"


async def test_a_stream_brings_its_messages_in_order(channels: Channels) -> None:
    call = channels.generation.StreamGenerate(pb.StreamGenerateRequest())
    texts = [message.events[0].text_delta async for message in call]
    assert texts == ["a", "b", "c"]
    assert dict(await call.initial_metadata())["x-first"] == "yes"


async def test_a_stream_is_read_message_by_message_to_its_end(channels: Channels) -> None:
    call = channels.generation.StreamGenerate(pb.StreamGenerateRequest())
    read = [await call.read() for _ in range(4)]
    assert [isinstance(message, pb.StreamGenerateResponse) for message in read] == [True, True, True, False]
    assert read[-1] is grpc.aio.EOF


async def test_a_stream_that_breaks_raises_after_its_messages(channels: Channels) -> None:
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="broken"))
    seen = 0
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in channels.generation.StreamGenerate(request):
            seen += 1
    assert (seen, caught.value.code()) == (3, grpc.StatusCode.UNAVAILABLE)


async def test_an_operation_without_a_servicer_is_unimplemented(channels: Channels) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channels.images.GenerateImage(pb.GenerateImageRequest())
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in channels.images.StreamGenerateImage(pb.StreamGenerateImageRequest()):
            pass
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


async def test_an_interceptor_wraps_a_method_once_and_sees_each_call(channels: Channels) -> None:
    for _ in range(3):
        await channels.models.GetModel(pb.GetModelRequest(model="m"))
    method = "/umg.v1.ModelService/GetModel"
    assert channels.interceptor.wrapped.count(method) == 1
    assert channels.interceptor.calls == [method] * 3


async def test_closing_a_stream_without_a_socket_ends_its_servicer_before_it_returns() -> None:
    async with _without_socket() as channels:
        request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="endless"))
        call = channels.generation.StreamGenerate(request)
        async for _ in call:
            break
        await call.aclose()
        assert channels.servicer.ended.is_set()


async def test_cancelling_the_consumer_of_a_stream_without_a_socket_ends_its_servicer() -> None:
    async with _without_socket() as channels:
        request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="endless"))
        third = asyncio.Event()

        async def consume() -> None:
            seen = 0
            async for _ in channels.generation.StreamGenerate(request):
                seen += 1
                if seen == 3:
                    third.set()

        task = asyncio.create_task(consume())
        await third.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert channels.servicer.ended.is_set()

"""Load shedder: the number of calls that are admitted, the calls that are rejected, and the methods that it limits."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import structlog
from google.protobuf.descriptor_pool import Default

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.base.errors import UmgError
from umg_grpc.base.inprocess_channel import HandlerTable, InProcessServer
from umg_grpc.config import Overload
from umg_grpc.process.service_factory import SERVICE_NAMES
from umg_grpc.service.pipeline.call_interceptor import CallInterceptor
from umg_grpc.service.pipeline.call_log import CallLog
from umg_grpc.service.resilience.call_start_queue import ALWAYS_STARTED
from umg_grpc.service.resilience.load_shedding import BEHIND_CAUSE, FULL_CAUSE, LoadShedder, uses_model
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.store import Store, open_store
from umg_grpc.v1 import pb, rpc


@pytest.fixture
def load_shedder() -> LoadShedder:
    return LoadShedder(Overload(calls=2, queue=1, wait=60))


async def test_calls_are_admitted_up_to_the_limit_and_some_wait(load_shedder: LoadShedder) -> None:
    for _ in range(2):
        load_shedder.check()
        await load_shedder.enter()
    load_shedder.check()
    waiting = asyncio.ensure_future(load_shedder.enter())
    await asyncio.sleep(0)
    assert (load_shedder.calls, load_shedder.waiting, load_shedder.admits()) == (2, 1, False)
    with pytest.raises(UmgError) as caught:
        load_shedder.check()
    assert (caught.value.reason, caught.value.cause) == (pb.ERROR_REASON_UNAVAILABLE, FULL_CAUSE)
    assert caught.value.metadata == {"retry_after_seconds": "1"}
    load_shedder.leave()
    await waiting
    assert (load_shedder.calls, load_shedder.waiting) == (2, 0)
    load_shedder.leave()
    load_shedder.leave()
    assert (load_shedder.calls, load_shedder.admits()) == (0, True)


async def test_a_queued_call_does_not_wait_beyond_its_deadline(load_shedder: LoadShedder) -> None:
    for _ in range(2):
        await load_shedder.enter()
    with pytest.raises(UmgError):
        await load_shedder.enter(0.001)
    assert (load_shedder.calls, load_shedder.waiting) == (2, 0)


async def test_refusals_are_counted_by_their_reason() -> None:
    counted = list[str]()
    load_shedder = LoadShedder(Overload(calls=1, queue=0), counted.append)
    await load_shedder.enter()
    for check in (load_shedder.check, load_shedder.check):
        with pytest.raises(UmgError):
            check()
    with pytest.raises(UmgError):
        await load_shedder.enter()
    load_shedder.refused("connections")
    assert counted == [FULL_CAUSE, FULL_CAUSE, FULL_CAUSE, "connections"]


def test_only_calls_of_models_are_subject_to_load_shedding() -> None:
    services = (Default().FindServiceByName(name) for name in SERVICE_NAMES)
    methods = ((service.full_name, method.name) for service in services for method in service.methods)
    model_methods = {method for service, method in methods if uses_model(f"/{service}/{method}")}
    assert {"Generate", "StreamGenerate", "CountTokens", "Embed", "Rerank", "CreateVideoTask"} <= model_methods
    assert (
        not {
            "GetStoredResponse",
            "DeleteStoredResponse",
            "CancelStoredResponse",
            "ListInputItems",
            "ListModels",
            "GetModel",
            "GetFile",
            "DownloadFile",
            "DownloadVideo",
            "WatchVideoTask",
            "ReceiveVideoCallback",
        }
        & model_methods
    )
    assert not uses_model("/grpc.health.v1.CircuitBreakers/Check")


class Generation(rpc.GenerationServiceServicer):
    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.reached = asyncio.Event()

    async def Generate(self, request: pb.GenerateRequest, context: object) -> pb.GenerateResponse:
        self.reached.set()
        await self.go_on.wait()
        if request.model == "fail":
            raise ZeroDivisionError
        return pb.GenerateResponse()

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: object
    ) -> AsyncIterator[pb.StreamGenerateResponse]:
        yield pb.StreamGenerateResponse()
        self.reached.set()
        await self.go_on.wait()
        yield pb.StreamGenerateResponse()


class Watched(LoadShedder):
    """Load shedder with one slot, the reasons of its rejections, and an event for the release of the slot."""

    def __init__(self) -> None:
        self.refused_reasons = list[str]()
        super().__init__(Overload(calls=1, queue=0), self.refused_reasons.append)
        self.left = asyncio.Event()
        self._release, self.leave = self.leave, self._leave

    def _leave(self) -> None:
        self._release()
        self.left.set()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@dataclass
class Caller:
    stub: rpc.GenerationServiceStub
    metadata: tuple[tuple[str, str], ...]


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store("sqlite", tmp_path)
    yield store
    await store.aclose()


async def connect(load_shedder: LoadShedder, servicer: Generation, store: Store, stack: AsyncExitStack) -> Caller:
    keys = ApiKeys(store)
    _, secret = await keys.create("caller")
    authenticator = Authenticator(keys)
    await authenticator.start()
    stack.push_async_callback(authenticator.aclose)
    methods = InProcessServer([CallInterceptor(CallLog(Metrics()), authenticator, load_shedder)])
    rpc.add_GenerationServiceServicer_to_server(servicer, methods)
    server = grpc.aio.server(handlers=[HandlerTable(methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    stack.push_async_callback(server.stop, 0)
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
    return Caller(rpc.GenerationServiceStub(channel), (("authorization", f"Bearer {secret}"),))


@pytest.mark.parametrize("model", ["m", "fail"])
async def test_a_call_over_a_socket_holds_a_slot_until_it_ends(model: str, store: Store, stack: AsyncExitStack) -> None:
    load_shedder, servicer = Watched(), Generation()
    caller = await connect(load_shedder, servicer, store, stack)
    generate = caller.stub.Generate
    call = asyncio.ensure_future(generate(pb.GenerateRequest(model=model), metadata=caller.metadata).code())
    await servicer.reached.wait()
    assert load_shedder.calls == 1
    with pytest.raises(grpc.aio.AioRpcError, match="as many calls under way as it takes") as caught:
        await generate(pb.GenerateRequest())  # refused before its key is checked
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert load_shedder.refused_reasons == [FULL_CAUSE]
    servicer.go_on.set()
    await call
    await load_shedder.left.wait()
    assert load_shedder.calls == 0


async def test_a_cancelled_stream_releases_its_slot(store: Store, stack: AsyncExitStack) -> None:
    load_shedder, servicer = Watched(), Generation()
    caller = await connect(load_shedder, servicer, store, stack)
    call = caller.stub.StreamGenerate(pb.StreamGenerateRequest(), metadata=caller.metadata)
    await call.read()
    await servicer.reached.wait()
    assert load_shedder.calls == 1
    call.cancel()
    async with asyncio.timeout(60):
        await load_shedder.left.wait()
    assert load_shedder.calls == 0


async def test_calls_that_cannot_start_soon_are_refused() -> None:
    counted = list[str]()
    load_shedder = LoadShedder(Overload(queue=0), counted.append)
    for _ in range(ALWAYS_STARTED):
        load_shedder.check()
    with pytest.raises(UmgError, match="behind with its work") as caught:
        load_shedder.check()
    assert caught.value.cause == BEHIND_CAUSE
    assert counted == [BEHIND_CAUSE]


async def test_refusals_have_one_line_in_the_log_for_all_of_a_second() -> None:
    load_shedder = LoadShedder(Overload(calls=1, queue=0))
    await load_shedder.enter()
    with structlog.testing.capture_logs() as logged:
        for _ in range(3):
            load_shedder.refusal()
        load_shedder.refused("connections")
        assert logged == []
        load_shedder.close()
    assert logged == [
        {
            "event": "calls refused",
            "log_level": "warning",
            FULL_CAUSE: 3,
            "connections": 1,
            "under_way": 1,
            "waiting": 0,
        }
    ]

"""The gate: how many calls get in, when they are counted out, and which ask it at all."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing

import grpc
import pytest
from google.protobuf.descriptor_pool import Default

from umg_grpc.config import Overload
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context, Interceptor, Stream, Unary
from umg_grpc.server import SERVICES
from umg_grpc.service.call import CURRENT, Call
from umg_grpc.service.gate import (
    BEHIND,
    CREDIT_SECONDS,
    FULL,
    GUARD_SECONDS,
    MOST_RATE,
    PATIENCE,
    PROMPT_SECONDS,
    SPARE,
    Gate,
    Gating,
    Pace,
    asks_a_model,
)
from umg_grpc.v1 import pb, rpc

BOUND, TICK = 0.1, 0.025


class Clock:
    """Ticks of a process: how late each is says what it had to do."""

    def __init__(self) -> None:
        self.pace = Pace(BOUND)
        self.now = 100.0

    def tick(self, late: float, times: int = 1) -> None:
        for _ in range(times):
            self.now += TICK + late
            self.pace.tick(self.now, late)

    def taken(self, asked: int, *, is_idle: bool = False) -> int:
        return sum(self.pace.take(is_idle=is_idle) for _ in range(asked))


def test_a_process_that_keeps_up_takes_on_all() -> None:
    clock = Clock()
    clock.tick(BOUND / 2, times=100)
    assert clock.taken(10_000) == 10_000
    assert not clock.pace.is_guarded


def test_one_long_stall_is_no_overload() -> None:
    clock = Clock()
    clock.tick(late=5)
    assert clock.taken(1000) == 1000
    clock.tick(late=0)
    clock.tick(late=5)
    assert clock.taken(1000) == 1000


def test_a_process_that_stays_late_counts_its_calls_out() -> None:
    clock = Clock()
    clock.tick(BOUND * 2, times=PATIENCE)
    assert clock.taken(1000) == 1


def behind() -> Clock:
    clock = Clock()
    clock.tick(BOUND * 2, times=PATIENCE + 1)
    return clock


def asked_much(clock: Clock, late: float, ticks: int) -> list[int]:
    """How many of more than enough are taken on after each tick."""
    taken = list[int]()
    for _ in range(ticks):
        clock.tick(late)
        taken.append(clock.taken(10_000))
    return taken


def test_it_takes_on_more_and_more_while_it_is_in_time() -> None:
    taken = asked_much(behind(), late=0, ticks=150)
    first, second, third = (sum(taken[at : at + 30]) for at in (0, 30, 60))
    assert first < second / 2 < third / 4
    assert taken[-1] >= MOST_RATE * CREDIT_SECONDS


def test_it_takes_on_less_and_less_while_it_is_late_but_never_nothing() -> None:
    clock = behind()
    asked_much(clock, late=0, ticks=300)
    little = asked_much(clock, late=PROMPT_SECONDS * 2, ticks=100)
    assert sum(little[:10]) > 2 * sum(little[10:20]) > 0
    assert min(little) >= 1
    asked_much(clock, late=0, ticks=300)
    much = asked_much(clock, late=BOUND, ticks=100)
    assert sum(much[:10]) < sum(little[:10]), "the later it is the fewer"
    assert min(much) >= 1


def test_it_takes_on_some_more_when_it_has_nothing_to_do() -> None:
    clock = behind()
    clock.taken(1000)
    assert clock.taken(1000, is_idle=True) == SPARE
    assert clock.taken(1000, is_idle=True) == 0
    clock.tick(late=0)
    assert clock.taken(1000, is_idle=True) > SPARE


def test_after_a_quiet_while_it_does_not_take_on_all_who_come_together() -> None:
    clock = behind()
    clock.tick(late=0, times=int(GUARD_SECONDS / TICK / 2))
    assert clock.taken(10_000) <= MOST_RATE * CREDIT_SECONDS + 1


def test_it_ends_though_now_and_then_some_come_together() -> None:
    clock = behind()
    for _ in range(int(2 * GUARD_SECONDS / TICK)):
        clock.tick(late=PROMPT_SECONDS * 1.5)
        clock.taken(1)
    clock.taken(3)
    assert not clock.pace.is_guarded
    clock = behind()
    for _ in range(int(2 * GUARD_SECONDS / TICK)):
        clock.tick(late=PROMPT_SECONDS * 1.5)
        clock.taken(3)
    assert clock.pace.is_guarded, "most are refused"


def test_a_small_lateness_alone_does_not_keep_it_counting() -> None:
    clock = behind()
    clock.tick(late=PROMPT_SECONDS * 2, times=int(GUARD_SECONDS / TICK) + 5)
    assert clock.taken(10_000) == 10_000


def test_it_takes_on_all_again_when_nothing_was_late_and_nobody_refused_for_a_while() -> None:
    clock = behind()
    clock.tick(late=0, times=int(GUARD_SECONDS / TICK) - 2)
    assert clock.pace.is_guarded
    clock.tick(late=0, times=5)
    assert clock.taken(1000) == 1000


@pytest.fixture
def gate() -> Gate:
    return Gate(Overload(calls=2, queue=1, wait=60))


async def test_as_many_get_in_as_there_are_places_and_some_wait(gate: Gate) -> None:
    for _ in range(2):
        gate.check()
        await gate.enter()
    gate.check()
    waiting = asyncio.ensure_future(gate.enter())
    await asyncio.sleep(0)
    assert (gate.calls, gate.waiting, gate.is_tight) == (2, 1, True)
    with pytest.raises(UmgError) as caught:
        gate.check()
    assert (caught.value.reason, caught.value.cause) == (pb.ERROR_REASON_UNAVAILABLE, FULL)
    assert caught.value.metadata == {"retry_after_seconds": "1"}
    gate.leave()
    await waiting
    assert (gate.calls, gate.waiting) == (2, 0)
    gate.leave()
    gate.leave()
    assert (gate.calls, gate.is_tight) == (0, False)


async def test_nobody_waits_longer_than_the_caller_does(gate: Gate) -> None:
    for _ in range(2):
        await gate.enter()
    with pytest.raises(UmgError):
        await gate.enter(0.001)
    assert (gate.calls, gate.waiting) == (2, 0)


async def test_refusals_are_counted_by_their_reason() -> None:
    counted = list[str]()
    gate = Gate(Overload(calls=1, queue=0), counted.append)
    await gate.enter()
    for ask in (gate.check, gate.check):
        with pytest.raises(UmgError):
            ask()
    with pytest.raises(UmgError):
        await gate.enter()
    gate.refused("connections")
    assert counted == [FULL, FULL, FULL, "connections"]


async def test_a_gate_measures_how_late_the_process_is() -> None:
    gate = Gate(Overload(lag=0.001))
    gate.start()
    async with asyncio.timeout(20):
        while not gate.is_tight:
            time.sleep(0.02)  # noqa: ASYNC251  # a process that is behind
            await asyncio.sleep(0)
    gate.close()


def test_what_asks_a_model_passes_the_gate_and_what_looks_something_up_does_not() -> None:
    services = (Default().FindServiceByName(name) for name in SERVICES)
    methods = ((service.full_name, method.name) for service in services for method in service.methods)
    asking = {method for service, method in methods if asks_a_model(f"/{service}/{method}")}
    assert {"Generate", "StreamGenerate", "CountTokens", "Embed", "Rerank"} <= asking
    assert not {"GetResponse", "DeleteResponse", "CancelResponse", "ListInputItems", "ListModels", "GetModel"} & asking
    assert not asks_a_model("/grpc.health.v1.Health/Check")


class Generation(rpc.GenerationServiceServicer):
    """Waits until it may go on."""

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


class Opening(Interceptor):
    """What stands around it in the product: opens the call, and tells a refusal as a status."""

    def wrap_unary(self, method: str, inner: Unary) -> Unary:
        async def opened(request: object, context: Context) -> object:
            CURRENT.set(Call(method, {}, trusted=False, request_id="r"))
            try:
                return await inner(request, context)
            except UmgError as error:
                return await context.abort(grpc.StatusCode.UNAVAILABLE, error.cause)

        return opened

    def wrap_stream(self, method: str, inner: Stream) -> Stream:
        async def opened(request: object, context: Context) -> AsyncGenerator[object, None]:
            CURRENT.set(Call(method, {}, trusted=False, request_id="r"))
            async with aclosing(inner(request, context)) as messages:
                async for message in messages:
                    yield message

        return opened


class Watched(Gate):
    """Has one place, and says when it is left."""

    def __init__(self) -> None:
        super().__init__(Overload(calls=1, queue=0))
        self.left = asyncio.Event()

    def leave(self) -> None:
        super().leave()
        self.left.set()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def socket_stub(gate: Gate, servicer: Generation, stack: AsyncExitStack) -> rpc.GenerationServiceStub:
    server = grpc.aio.server(interceptors=[Opening(), Gating(gate)])
    rpc.add_GenerationServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    stack.push_async_callback(server.stop, 0)
    return rpc.GenerationServiceStub(await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}")))


@pytest.mark.parametrize("model", ["m", "fail"])
async def test_a_call_over_a_socket_has_a_place_until_it_ends(model: str, stack: AsyncExitStack) -> None:
    gate, servicer = Watched(), Generation()
    stub = await socket_stub(gate, servicer, stack)
    call = asyncio.ensure_future(stub.Generate(pb.GenerateRequest(model=model)).code())
    await servicer.reached.wait()
    assert gate.calls == 1
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Generate(pb.GenerateRequest())
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAVAILABLE, FULL)
    servicer.go_on.set()
    await call
    await gate.left.wait()
    assert gate.calls == 0


async def test_a_stream_that_its_caller_leaves_gives_its_place_back(stack: AsyncExitStack) -> None:
    gate, servicer = Watched(), Generation()
    stub = await socket_stub(gate, servicer, stack)
    call = stub.StreamGenerate(pb.StreamGenerateRequest())
    await call.read()
    await servicer.reached.wait()
    assert gate.calls == 1
    call.cancel()
    async with asyncio.timeout(5):
        await gate.left.wait()
    assert gate.calls == 0


async def test_calls_that_are_counted_out_are_told_why() -> None:
    gate = Gate(Overload())
    gate._pace.is_guarded = True
    with pytest.raises(UmgError, match="behind with its work") as caught:
        gate.check()
    assert caught.value.cause == BEHIND

"""Calls of `VideoService` over gRPC, for tests."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import grpc
import pytest

from tests.support.gateways import KEY
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

if TYPE_CHECKING:
    Stub: TypeAlias = rpc.VideoServiceAsyncStub
else:
    Stub = object

Found = TypeVar("Found")

MODEL = "clips-1"
SECONDS = 120.0
AUTHORIZED = (("authorization", f"Bearer {KEY}"),)


def stub_of(channel: grpc.aio.Channel) -> Stub:
    return rpc.VideoServiceStub(channel)  # type: ignore[return-value]  # the stubs of grpc type the threaded one


def request(prompt: str = "a cat", **fields: object) -> pb.CreateVideoTaskRequest:
    parameters = pb.VideoParameters(prompt=prompt, duration_seconds=5)
    return pb.CreateVideoTaskRequest(model=MODEL, parameters=parameters, **fields)  # type: ignore[arg-type]


async def create(stub: Stub, prompt: str = "a cat", *metadata: tuple[str, str], **fields: object) -> pb.VideoTask:
    made = await stub.CreateVideoTask(request(prompt, **fields), metadata=[*AUTHORIZED, *metadata])
    return made.task


async def get(stub: Stub, task_id: str) -> pb.VideoTask:
    return (await stub.GetVideoTask(pb.GetVideoTaskRequest(task_id=task_id), metadata=AUTHORIZED)).task


async def ended(stub: Stub, task_id: str) -> pb.VideoTask:
    async with asyncio.timeout(SECONDS):
        async for message in stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task_id), metadata=AUTHORIZED):
            last = message.task
    return last


async def reason(call: Awaitable[object]) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc(caught.value).name


async def eventually(read: Callable[[], Awaitable[Found]], wanted: Callable[[Found], bool]) -> Found:
    """Read again and again until the result is the wanted one. Return it."""
    async with asyncio.timeout(SECONDS):
        while True:
            if wanted(found := await read()):
                return found
            await asyncio.sleep(0.02)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)

"""Costs of image calls: records by size and quality, partial failures, budgets and limits of keys, cached images."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from tests.support.gateways import KEY, Running, running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords
from umg_grpc.v1 import pb, rpc

CONFIG = """
channels:
  - name: sandbox
    protocols: [sandbox]
    timeout: {first_byte: 0.2}
    models: [imgA-3-0-t2i-250415, imgA-4-0-250828, imgC-1, famG-2.5-flash-image]
models:
  imgA-3-0-t2i-250415: {price: {image: 0.03, request: 0.001}, limits: {rpm: 30}}
  imgA-4-0-250828: {price: {image: {2048x2048: 0.05, any: 0.2}}}
  imgC-1: {price: {image: {1024x1024: {low: 0.011, high: 0.167}, 1536x1024: {high: 0.25}}}}
  famG-2.5-flash-image: {price: {image: {1K: 0.04, 2K: 0.1}, input: 0, output: 0}}
"""
SMALL = {"model": "imgA-3-0-t2i-250415", "size": "720x1280"}
AUTO = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO


@asynccontextmanager
async def calling(gateway: Running, key: str = KEY) -> AsyncGenerator["Caller", None]:
    async with grpc.aio.insecure_channel(gateway.grpc, [("grpc.max_receive_message_length", -1)]) as channel:
        yield Caller(rpc.ImageServiceStub(channel), key)


@dataclass(frozen=True)
class Caller:
    stub: "rpc.ImageServiceAsyncStub"
    key: str

    async def make(self, request_id: str, *, cache: str = "", **fields: object) -> pb.GenerateImageResponse:
        request = pb.GenerateImageRequest(**{"prompt": "a lake", **fields})  # type: ignore[arg-type]
        return await self.stub.GenerateImage(request, metadata=self.metadata(request_id, cache))

    async def stream(self, request_id: str, **fields: object) -> None:
        request = pb.GenerateImageRequest(**{"prompt": "a lake", **fields})  # type: ignore[arg-type]
        message = pb.StreamGenerateImageRequest(request=request)
        async for _ in self.stub.StreamGenerateImage(message, metadata=self.metadata(request_id)):
            pass

    async def fails(self, request_id: str, **fields: object) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.make(request_id, **fields)
        return from_rpc(caught.value).name

    def metadata(self, request_id: str, cache: str = "") -> tuple[tuple[str, str], ...]:
        pairs = (("authorization", f"Bearer {self.key}"), ("x-request-id", request_id.replace(" ", "-")))
        return (*pairs, ("x-umg-cache", cache)) if cache else pairs


async def records(data: Path, *request_ids: str) -> list[UsageRecord]:
    store = await open_store("sqlite", data)
    try:
        found = UsageRecords(store)
        return [record for request_id in request_ids for record in await found.find(request_id.replace(" ", "-"))]
    finally:
        await store.aclose()


@dataclass(frozen=True)
class Charge:
    id: str
    images: int
    micro_credits: int
    fields: dict[str, object] = field(default_factory=dict)
    stream: bool = False


CHARGES = [
    Charge("an image and a request", 1, 31_000, SMALL),
    Charge("a size without a price of its own", 1, 200_000, {"model": "imgA-4-0-250828", "size": "2304x1728"}),
    Charge(
        "a group", 2, 100_000,
        {"model": "imgA-4-0-250828", "prompt": "two cats", "sequential_image_generation": AUTO},
    ),
    Charge("a quality", 2, 22_000, {"model": "imgC-1", "quality": "low", "n": 2}),
    Charge("the default quality", 1, 250_000, {"model": "imgC-1", "size": "1536x1024"}),
    Charge("the highest price", 1, 250_000, {"model": "imgC-1", "size": "1536x1024", "quality": "low"}),
    Charge("a tier", 1, 40_000, {"model": "famG-2.5-flash-image"}),
    Charge("a tier by its quality", 1, 100_000, {"model": "famG-2.5-flash-image", "quality": "hd"}),
    Charge("images of which some fail", 2, 22_000, {"model": "imgC-1", "quality": "low", "n": 4, "prompt": "[[fail:mid]]"}),
    Charge("a failure", 0, 0, {"model": "imgC-1", "prompt": "[[fail]]"}),
    Charge("a provider that does not answer", 0, 0, {"model": "imgC-1", "prompt": "[[slow]]"}),
    Charge("a stream", 2, 22_000, {"model": "imgC-1", "quality": "low", "n": 2, "partial_images": 1}, stream=True),
    Charge("a stream that breaks off", 1, 11_000, {"model": "imgC-1", "quality": "low", "n": 2, "prompt": "[[fail:mid]]"}, stream=True),
    Charge("a stream that fails", 0, 0, {"model": "imgC-1", "prompt": "[[fail]]"}, stream=True),
]  # fmt: skip


async def test_each_call_is_charged_for_the_images_that_it_made(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, calling(gateway) as caller:
        for case in CHARGES:
            with suppress(grpc.aio.AioRpcError):
                await (caller.stream if case.stream else caller.make)(case.id, **case.fields)
    found = await records(tmp_path, *(case.id for case in CHARGES))
    assert [(record.request_id, record.images, record.micro_credits) for record in found] == [
        (case.id.replace(" ", "-"), case.images, case.micro_credits) for case in CHARGES
    ]
    assert {record.operation for record in found} == {"generate_image"}
    assert [record.status for record in found if not record.images] == [
        "UNAVAILABLE",
        "DEADLINE_EXCEEDED",
        "UNAVAILABLE",
    ]


async def test_a_budget_is_reserved_for_all_images_of_a_call_and_never_overdrawn(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway:
        keys = ApiKeys(gateway.service.store)
        _, secret = await keys.create("painter", budget_micro_credits=100_000)
        async with calling(gateway, secret) as caller:
            assert await caller.fails("too many", model="imgC-1", quality="low", n=10) == "QUOTA_EXHAUSTED"
            calls = [caller.make(f"call {number}", **SMALL) for number in range(8)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            made = [answer for answer in answers if isinstance(answer, pb.GenerateImageResponse)]
            refused = [from_rpc(answer) for answer in answers if isinstance(answer, grpc.aio.AioRpcError)]
            assert (len(made), {error.name for error in refused}) == (3, {"QUOTA_EXHAUSTED"})
            assert await caller.fails("failed", **SMALL, prompt="[[fail]]") == "QUOTA_EXHAUSTED"
    found = await records(tmp_path, *(f"call {number}" for number in range(8)))
    assert sum(record.micro_credits for record in found) == 93_000


async def test_a_failed_call_gives_its_reservation_back(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway:
        _, secret = await ApiKeys(gateway.service.store).create("painter", budget_micro_credits=31_000)
        async with calling(gateway, secret) as caller:
            for number in range(3):
                assert await caller.fails(f"failed {number}", **SMALL, prompt="[[fail]]") == "UPSTREAM_FAILED"
            await caller.make("made", **SMALL)
            assert await caller.fails("no more", **SMALL) == "QUOTA_EXHAUSTED"


async def test_the_limits_of_a_key_and_of_a_model_apply(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway:
        _, secret = await ApiKeys(gateway.service.store).create("painter", requests_per_minute=2)
        async with calling(gateway, secret) as caller:
            await caller.make("first", **SMALL)
            await caller.make("second", **SMALL)
            assert await caller.fails("third", **SMALL) == "RATE_LIMITED"


async def test_cached_images_cost_nothing(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, calling(gateway) as caller:
        cacheable = {**SMALL, "seed": 3, "response_format": pb.IMAGE_RESPONSE_FORMAT_B64_JSON}
        first = await caller.make("first", cache="5m", **cacheable)
        again = await caller.make("again", cache="5m", **cacheable)
        assert first.result.images[0].data == again.result.images[0].data
        await caller.make("a url", cache="5m", **{**cacheable, "response_format": pb.IMAGE_RESPONSE_FORMAT_URL})
        await caller.make("a url again", cache="5m", **{**cacheable, "response_format": pb.IMAGE_RESPONSE_FORMAT_URL})
    found = await records(tmp_path, "first", "again", "a url", "a url again")
    assert [(record.cached, record.micro_credits) for record in found] == [
        (False, 31_000), (True, 0), (False, 31_000), (False, 31_000),
    ]  # fmt: skip

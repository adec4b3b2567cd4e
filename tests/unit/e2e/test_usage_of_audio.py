"""Usage of speech, transcription and rankings: characters, seconds and searches in records and sums, and the estimates of
calls in flight, by which they are charged if the process is killed.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tests.support.gateways import running
from tests.support.serving import serving
from umg_grpc.store.in_flight_record_file import OPEN_SUFFIX, records_of
from umg_grpc.store.usage_record_table import UsageRecord
from umg_grpc.wire.core.audio_file_properties import wav_file

pytestmark = pytest.mark.asyncio

RECORDING = wav_file(bytes(96_000), 24_000)
"""Two seconds of silence."""
PRICES = """
models:
  voice: {capabilities: {operations: [speech]}, price: {character: 0.00001}}
  token-voice: {capabilities: {operations: [speech]}, price: {audio_output: 10}}
  ear: {capabilities: {operations: [transcribe]}, price: {audio_second: 0.0001}}
  token-ear: {capabilities: {operations: [transcribe]}, price: {audio_input: 10}}
  ranks: {capabilities: {operations: [rerank]}, price: {search: 0.002}}
shipped_prices: false
"""


@dataclass
class Provider:
    """Provider whose answers wait until they are released."""

    released: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        await request.read()
        self.arrived.set()
        await self.released.wait()
        if request.path.endswith("/speech"):
            return web.Response(body=b"ID3", content_type="audio/mpeg")
        if request.path.endswith("/rerank"):
            ranked = [{"index": index, "relevance_score": 1.0} for index in range(150)]
            return web.json_response({"id": "r", "results": ranked, "meta": {"billed_units": {"search_units": 2}}})
        return web.json_response({"text": "Hi"})


@asynccontextmanager
async def gateway_of(data: Path) -> AsyncGenerator[tuple[Provider, aiohttp.ClientSession], None]:
    provider, app = Provider(), web.Application()
    app.router.add_post("/{path:.*}", provider.answer)
    async with serving(app) as url:
        channel = f"{{name: it, protocols: [speech, transcriptions, rerank], base_url: '{url}/v1', api_key: k, models: "
        config = f"channels:\n  - {channel}[voice, token-voice, ear, token-ear, ranks]}}\n{PRICES}"
        async with (
            running(config, data) as gateway,
            aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        ):
            yield provider, session


def called(session: aiohttp.ClientSession, model: str) -> asyncio.Task[int]:
    async def call() -> int:
        options: dict[str, Any]
        if "voice" in model:
            path, options = "audio/speech", {"json": {"model": model, "input": "x" * 100, "voice": "alloy"}}
        elif model == "ranks":
            path, options = "rerank", {"json": {"model": model, "query": "x", "documents": ["a"] * 150}}
        else:
            form = aiohttp.FormData({"model": model})
            form.add_field("file", RECORDING, filename="a.wav")
            path, options = "audio/transcriptions", {"data": form}
        async with session.post(f"/v1/{path}", **options) as response:
            await response.read()
            return response.status

    return asyncio.create_task(call())


@dataclass(frozen=True)
class Charged:
    """Model, with the units and the cost of its call in flight, and of the finished one."""

    id: str
    in_flight: dict[str, int]
    finished: dict[str, int]


SIZE_SECONDS = 3  # of the samples and the head of the file, of which a killed call is charged
CASES = (
    Charged("voice", {"characters": 100, "micro_credits": 1000}, {"characters": 100, "micro_credits": 1000}),
    Charged(
        "token-voice",
        {"audio_output_tokens": 200, "micro_credits": 2000, "characters": 0},
        {"audio_output_tokens": 200, "micro_credits": 2000, "characters": 100},
    ),
    Charged(
        "ear",
        {"audio_seconds": SIZE_SECONDS, "micro_credits": 100 * SIZE_SECONDS},
        {"audio_seconds": 2, "micro_credits": 200},
    ),
    Charged(
        "token-ear",
        {"audio_input_tokens": 17 * SIZE_SECONDS, "micro_credits": 170 * SIZE_SECONDS},
        {"audio_input_tokens": 34, "micro_credits": 340},
    ),
    Charged("ranks", {"searches": 2, "micro_credits": 4000}, {"searches": 2, "micro_credits": 4000}),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_has_its_units_while_it_is_in_flight_and_after_it(case: Charged, tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as (provider, session):
        call = called(session, case.id)
        async with asyncio.timeout(60):
            await provider.arrived.wait()
        open_records = in_flight(tmp_path)
        provider.released.set()
        assert await call == 200
        finished = await recorded(session)
    assert {name: getattr(open_records[0], name) for name in case.in_flight} == case.in_flight
    assert {name: finished.get(name, 0) for name in case.finished} == case.finished


@pytest.mark.parametrize(("budget", "status"), [(300, 200), (299, 429)])
async def test_a_budget_has_to_pay_for_the_samples_of_a_file(budget: int, status: int, tmp_path: Path) -> None:
    async with gateway_of(tmp_path) as (provider, session):
        provider.released.set()
        settings = {"name": "spender", "budget_micro_credits": budget}
        async with session.post("/admin/v1/keys", json={"settings": settings}) as response:
            secret = (await response.json())["secret"]
        session.headers["authorization"] = f"Bearer {secret}"
        assert await called(session, "ear") == status


def in_flight(data: Path) -> list[UsageRecord]:
    return [
        msgspec.json.decode(record, type=UsageRecord)
        for path in (data / "usage").glob(f"*{OPEN_SUFFIX}")
        for record in records_of(path.parent, path.stem)
    ]


async def recorded(session: aiohttp.ClientSession) -> dict[str, int]:
    """Return the units and the cost in the sums of usage, once they have the call."""
    async with asyncio.timeout(60):
        while True:
            async with session.get("/admin/v1/usage") as response:
                entries = (await response.json())["entries"]
            if entries and entries[0].get("request_count"):
                break
            await asyncio.sleep(0.02)
    names = {"character": "characters", "audio_second": "audio_seconds", "search": "searches"}
    units = {each["unit"]: int(each["count"]) for each in entries[0]["quantities"]}
    found = {names.get(unit, f"{unit}s"): count for unit, count in units.items()}
    return {**found, "micro_credits": int(entries[0]["micro_credits"])}

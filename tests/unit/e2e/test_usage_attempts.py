"""Attempts in usage records: each channel that a call tried, with the facts of the provider's answer."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import channel, running
from tests.support.serving import serving
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import AttemptRecord, CallDetails, UsageRecord, UsageRecords

ANSWER = {
    "id": "c",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}
STREAM = (
    'data: {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}\n\n'
    'data: {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)
UNPAID = {"error": {"message": "check your plan", "code": "insufficient_quota", "type": "insufficient_quota"}}


@pytest_asyncio.fixture
async def providers() -> AsyncGenerator[str, None]:
    """Yield the address of three accounts: `/unpaid/v1` refuses each call, `/paid/v1` answers it, `/slow/v1` never."""

    ended = asyncio.Event()

    async def refuse(request: web.Request) -> web.Response:
        return web.json_response(UNPAID, status=429, headers={"x-request-id": "req_unpaid"})

    async def answer(request: web.Request) -> web.Response:
        headers = {"x-request-id": "req_paid"}
        if (await request.json()).get("stream"):
            return web.Response(text=STREAM, content_type="text/event-stream", headers=headers)
        return web.json_response(ANSWER, headers=headers)

    async def stall(request: web.Request) -> web.Response:
        await ended.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/slow/v1/chat/completions", stall)
    app.router.add_post("/unpaid/v1/chat/completions", refuse)
    app.router.add_post("/paid/v1/chat/completions", answer)
    async with serving(app) as url:
        yield url
        ended.set()


async def records(data: Path, request_id: str) -> list[UsageRecord]:
    store = await open_store("sqlite", data)
    try:
        return await UsageRecords(store).find(request_id)
    finally:
        await store.aclose()


async def call(url: str, headers: dict[str, str], request_id: str, *, stream: bool) -> int:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{url}/v1/chat/completions", json=body, headers={**headers, "x-request-id": request_id}
        ) as answer,
    ):
        await answer.read()
        return answer.status


def details(record: UsageRecord) -> tuple[CallDetails, list[AttemptRecord]]:
    assert record.details is not None
    return record.details, record.details.attempts


@pytest.mark.parametrize("stream", [False, True])
async def test_a_record_has_each_attempt_with_the_answer_of_its_provider(
    providers: str, tmp_path: Path, stream: bool
) -> None:
    first = channel("unpaid", "chat", f"{providers}/unpaid/v1", "m", "real-1")
    second = channel("paid", "chat", f"{providers}/paid/v1", "m", "real-2").rstrip() + "\n    priority: 1\n"
    async with running(f"channels:\n{first}{second}", tmp_path) as gateway:
        assert await call(gateway.url, gateway.headers, "moved", stream=stream) == 200
    [record] = await records(tmp_path, "moved")
    found, (failed, answered) = details(record)
    assert (failed.channel, failed.model, failed.status, failed.request_id) == ("unpaid", "real-1", 429, "req_unpaid")
    assert (failed.kind, failed.code, failed.message) == ("unpaid", "insufficient_quota", "check your plan")
    assert failed.reason != ""
    assert (answered.channel, answered.model, answered.status, answered.request_id) == (
        "paid",
        "real-2",
        200,
        "req_paid",
    )
    assert (answered.reason, answered.kind, answered.message) == ("", "", "")
    assert 0 <= failed.start_micros <= answered.start_micros
    assert answered.start_micros + answered.duration_micros <= record.duration_micros
    assert (found.message, found.dropped, found.first_output_micros is not None) == ("", [], stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_hedged_call_has_both_attempts(providers: str, tmp_path: Path, stream: bool) -> None:
    first = channel("slow", "chat", f"{providers}/slow/v1", "m")
    second = channel("paid", "chat", f"{providers}/paid/v1", "m").rstrip() + "\n    priority: 1\n"
    config = f"channels:\n{first}{second}models: {{m: {{hedge: 0.05}}}}\n"
    async with running(config, tmp_path) as gateway:
        assert await call(gateway.url, gateway.headers, "hedged", stream=stream) == 200
    [record] = await records(tmp_path, "hedged")
    attempts = {attempt.channel: attempt for attempt in details(record)[1]}
    assert (record.channel, attempts.keys()) == ("paid", {"slow", "paid"})
    assert (attempts["paid"].status, attempts["paid"].request_id, attempts["paid"].reason) == (200, "req_paid", "")
    assert (attempts["slow"].status, attempts["slow"].kind) == (0, "slow")


async def test_the_record_of_a_failed_call_has_the_message_for_its_caller(providers: str, tmp_path: Path) -> None:
    async with running(f"channels:\n{channel('unpaid', 'chat', f'{providers}/unpaid/v1', 'm')}", tmp_path) as gateway:
        assert await call(gateway.url, gateway.headers, "failed", stream=False) >= 400
    [record] = await records(tmp_path, "failed")
    found, attempts = details(record)
    assert record.reason != ""
    assert found.message != ""
    assert {attempt.request_id for attempt in attempts} == {"req_unpaid"}
    assert len(attempts) == record.attempts

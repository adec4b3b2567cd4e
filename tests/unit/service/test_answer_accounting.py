"""Accounting of answers: generated tokens are settled, whichever side ends the response."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from aiohttp import web

from tests.support.gateways import KEY, Running, channel, running
from tests.support.providers.server import RecordingProvider, serve_provider
from tests.support.serving import serving
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FORMATS

WORDS = "one two three four five six seven eight nine ten "
METADATA = (("authorization", f"Bearer {KEY}"),)
TOKENS = re.compile(r'umg_tokens_total\{channel="(\w+)",direction="(\w+)",model="[^"]*"\} ([0-9.]+)')


def settled(gateway: Running) -> dict[str, float]:
    """Return the tokens of all calls until now, by their direction."""
    found = TOKENS.findall(gateway.service.metrics.exposition().decode())
    return {direction: float(count) for _, direction, count in found}


def make_request(model: str, text: str, source: str = "") -> pb.StreamGenerateRequest:
    request = pb.GenerateRequest(
        model=model, messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=text))])]
    )
    if source:
        encoded = TEXT_FORMATS[source].encode_request(request, model, True)
        request = TEXT_FORMATS[source].decode_request(encoded.body, {}).canonical
        request.model = model
    return pb.StreamGenerateRequest(request=request)


async def read_stream(
    gateway: Running, request: pb.StreamGenerateRequest, messages: int | None = None
) -> UmgError | None:
    """Read the given number of messages and leave, or read to the end. Return the error that ended the response, if any."""
    call = rpc.GenerationServiceStub(gateway.service.channel()).StreamGenerate(request, metadata=METADATA)
    received = 0
    try:
        async for _ in call:
            received += 1
            if received == messages:
                break
    except grpc.aio.AioRpcError as error:
        return from_rpc(error)
    finally:
        await call.aclose()
    return None


SANDBOX = "channels: [{name: sandbox, protocols: [sandbox], pace: 500, models: [famO-5]}]"


async def test_a_caller_that_disconnects_is_charged_for_the_streamed_output(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway:
        assert await read_stream(gateway, make_request("famO-5", WORDS), messages=4) is None
        part = settled(gateway)
        assert await read_stream(gateway, make_request("famO-5", WORDS)) is None
        whole = settled(gateway)
    assert part["input"] > 10
    assert 0 < part["output"] < (whole["output"] - part["output"]) / 2


async def test_a_broken_answer_is_charged_for_the_streamed_output(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway:
        error = await read_stream(gateway, make_request("famO-5", WORDS + "[[fail:mid]]"))
        assert error is not None
        assert error.reason == pb.ERROR_REASON_UPSTREAM_CUT
        assert settled(gateway)["output"] > 0


async def test_a_call_that_failed_before_its_answer_is_not_charged(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway:
        assert await read_stream(gateway, make_request("famO-5", "[[fail]]")) is not None
        assert not any(settled(gateway).values())


@asynccontextmanager
async def stalling(name: str, seen: list[str] | None = None) -> AsyncGenerator[str, None]:
    """Run a provider that sends ten words with the usage known until then, and stalls. Yield its base URL. `seen` gets
    "closed" for each connection that the gateway closes.
    """
    events = [
        pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m")),
        pb.GenerateEvent(usage=pb.Usage(input_tokens=7, output_tokens=1)),
        pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart())),
        pb.GenerateEvent(text_delta=WORDS),
    ]

    async def serve(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        encoder = TEXT_FORMATS[name].stream_encoder(pb.GenerateRequest(model="m"))
        await response.write(encoder.feed(pb.StreamGenerateResponse(events=events)))
        try:
            await asyncio.Event().wait()
        finally:
            if seen is not None:
                seen.append("closed")
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", serve)
    async with serving(app, handler_cancellation=True, shutdown_timeout=0) as url:
        yield url


@pytest.mark.parametrize("source", ["same", "other"])
@pytest.mark.parametrize("name", TEXT_FORMATS)
async def test_usage_of_a_stream_without_its_end_is_completed_by_an_estimate(
    name: str, source: str, tmp_path: Path
) -> None:
    async with (
        stalling(name) as url,
        running("channels:\n" + channel("main", name, url, "m"), tmp_path) as gateway,
    ):
        assert await read_stream(gateway, make_request("m", "Hi", name if source == "same" else ""), messages=1) is None
        used = settled(gateway)
    assert used["output"] == pytest.approx(10, abs=2)
    assert used["input"] > 0


async def test_callers_that_leave_at_once_close_their_connections_before_their_usage_is_estimated(
    tmp_path: Path,
) -> None:
    count, seen, leave = 30, list[str](), asyncio.Event()
    began = asyncio.Semaphore(0)

    async def call(gateway: Running) -> None:
        stub = rpc.GenerationServiceStub(gateway.service.channel())
        streamed = stub.StreamGenerate(make_request("m", "Hi"), metadata=METADATA)
        await anext(aiter(streamed))
        began.release()
        await leave.wait()
        await streamed.aclose()
        seen.append("estimated")

    async with (
        stalling("chat", seen) as url,
        running("channels:\n" + channel("main", "chat", url, "m"), tmp_path) as gateway,
        asyncio.TaskGroup() as group,
    ):
        assert await read_stream(gateway, make_request("m", "Hi"), messages=1) is None  # loads the vocabulary
        for _ in range(count):
            group.create_task(call(gateway))
            await began.acquire()
        leave.set()
    assert seen[-count // 2 :] == ["estimated"] * (count // 2)
    assert seen.count("closed") == count + 1


async def test_an_answer_that_the_service_cannot_decode_reaches_its_caller(tmp_path: Path) -> None:
    body = b'{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[{"type":"reasoning","summary":7}]}'
    async with (
        serve_provider(RecordingProvider(lambda _: body)) as provider,
        running("channels:\n" + channel("main", "responses", provider.url, "m"), tmp_path) as gateway,
    ):
        stub = rpc.GenerationServiceStub(gateway.service.channel())
        response = await stub.Generate(make_request("m", "Hi", "responses").request, metadata=METADATA)
    assert response.source.body == body

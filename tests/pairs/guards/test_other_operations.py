"""Guards of the other operations: vectors, rankings, images and videos, by every face."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import grpc
import pytest

from http_facade.routes import Shape
from tests.pairs.guards.table import IMAGE_QUESTIONS, OTHER_QUESTIONS, cells_of, config, problem
from tests.proofs.soak.callers import Callers, callers
from tests.proofs.soak.questions import Question, prompt
from tests.support.fake_video_upstream import PROTOCOL, FakeVideos
from tests.support.gateways import KEY, Running, running
from tests.support.guards import (
    HIDDEN,
    MASK,
    OTHER_IMAGE,
    PASS,
    REASON,
    REFUSE,
    SECRET,
    SLOW,
    GuardServers,
    guard_servers,
)
from tests.support.providers.faulty.server import faulty_upstream
from tests.support.video_calls import AUTHORIZED, request, stub_of
from tests.unit.e2e.authorisation import BODIES, KEYED_ROUTES, QUERIES
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

IMAGES = """
channels:
  - {{name: main, protocols: [umg_images], base_url: '{url}', api_key: k, models: [pass, mask, refuse, slow, open]}}
unpriced: free
guards:
  - {{name: pass, kind: grpc, target: '{target}', models: [pass], content: true, timeout: 60}}
  - {{name: mask, kind: grpc, target: '{target}', models: [mask], content: true, timeout: 60}}
  - {{name: refuse, kind: webhook, url: '{webhook}', models: [refuse], content: true, timeout: 60}}
  - {{name: slow, kind: grpc, target: '{target}', models: [slow], content: true, on: [response], timeout: 0.02}}
  - {{name: away, kind: webhook, url: '{away}', models: [open], content: true, on_failure: open}}
"""
VIDEOS = f"""
unpriced: free
channels:
  - {{name: first, protocols: [{PROTOCOL}], base_url: "https://first.example", api_key: k, models: [clips-1, clips-d]}}
models:
  clips-d: {{family: vidD}}
guards:
"""
MASKING = "  - {name: guard, kind: patterns, patterns: {hidden: Hi}, operations: [videos]}\n"
REFUSING = "  - {name: guard, kind: patterns, words: [Hi], action: refuse, on: [request]}\n"
AWAY = "http://127.0.0.1:9/"
OPEN = f"  - {{name: guard, kind: webhook, url: '{AWAY}', on: [request], on_failure: open}}\n"
CLOSED = f"  - {{name: guard, kind: webhook, url: '{AWAY}', on: [request]}}\n"
VIDEO_CASES = [
    pytest.param(MASKING, 200, "masked", id="mask"),
    pytest.param(REFUSING, 400, "refused", id="refuse"),
    pytest.param(OPEN, 200, "failed-open", id="away, open"),
    pytest.param(CLOSED, 503, "failed-closed", id="away, closed"),
]
VIDEO_ROUTES = [route for route in KEYED_ROUTES if route.shape is Shape.CREATE_VIDEO]


@asynccontextmanager
async def table_gateway(tmp_path: Path, *protocols: str) -> AsyncGenerator[tuple[Callers, GuardServers], None]:
    async with (
        faulty_upstream() as upstream,
        guard_servers() as servers,
        running(config(servers, upstream.url(), *protocols), tmp_path) as gateway,
        callers(gateway.url, gateway.grpc, KEY) as calling,
    ):
        yield calling, servers


async def test_each_guard_decides_for_vectors_and_rankings(tmp_path: Path) -> None:
    await check_table(OTHER_QUESTIONS, tmp_path, "embeddings", "rerank")


async def test_each_guard_decides_for_prompts_of_images(tmp_path: Path) -> None:
    await check_table(IMAGE_QUESTIONS, tmp_path, "umg_images")


async def check_table(selected: Sequence[Question], tmp_path: Path, *protocols: str) -> None:
    """Call every question with every guard."""
    async with table_gateway(tmp_path, *protocols) as (calling, _):
        found = []
        for cell in cells_of(selected):
            called = await calling.call_with_prompt(cell.question, cell.behaviour.id, prompt(SECRET), cell.right)
            found.append(problem(cell, called, called.headers))
    assert not any(found), "\n".join(filter(None, found))


@asynccontextmanager
async def image_gateway(tmp_path: Path) -> AsyncGenerator[tuple[Running, GuardServers], None]:
    """Run a gateway whose images are checked with their bytes."""
    async with faulty_upstream() as upstream, guard_servers() as servers:
        written = IMAGES.format(url=upstream.url(), target=servers.target, webhook=servers.url, away=AWAY)
        async with running(written, tmp_path) as gateway:
            yield gateway, servers


async def images(gateway: Running, model: str, text: str, *, stream: bool) -> list[bytes]:
    """Return the images of a call over gRPC."""
    made = pb.GenerateImageRequest(model=model, prompt=text, response_format=pb.IMAGE_RESPONSE_FORMAT_B64_JSON)
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        stub = rpc.ImageServiceStub(channel)
        if not stream:
            whole = await stub.GenerateImage(made, metadata=AUTHORIZED)
            return [image.data for image in whole.result.images]
        call = stub.StreamGenerateImage(pb.StreamGenerateImageRequest(request=made), metadata=AUTHORIZED)
        events = [event async for message in call for event in message.events]
        return [event.completed.image.data for event in events if event.HasField("completed")]


@pytest.mark.parametrize("stream", [False, True])
async def test_guards_see_and_change_the_bytes_of_images(stream: bool, tmp_path: Path) -> None:
    async with image_gateway(tmp_path) as (gateway, servers):
        [passed] = await images(gateway, PASS, "say nonce-abc again", stream=stream)
        [masked] = await images(gateway, MASK, "say nonce-abc again", stream=stream)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await images(gateway, REFUSE, "say nonce-abc again", stream=stream)
        [unchecked] = await images(gateway, "open", "say nonce-abc again", stream=stream)
        with pytest.raises(grpc.aio.AioRpcError) as late:
            await images(gateway, SLOW, "say nonce-abc again", stream=stream)
        requested, seen = servers.checks_of(PASS)
    assert masked == OTHER_IMAGE != passed == unchecked
    assert from_rpc(late.value).reason == pb.ERROR_REASON_UNAVAILABLE
    assert from_rpc(caught.value).reason == pb.ERROR_REASON_GUARD_REFUSED
    assert requested.content.image_request.prompt == requested.texts[0].text == "say nonce-abc again"
    assert [image.data for image in seen.content.image_response.result.images] == [passed]
    assert (requested.phase, seen.phase) == (pb.GUARD_PHASE_REQUEST, pb.GUARD_PHASE_RESPONSE)


async def test_a_prompt_of_an_image_is_masked_and_refused_in_the_shape_of_the_format(tmp_path: Path) -> None:
    async with image_gateway(tmp_path) as (gateway, servers), aiohttp.ClientSession(headers=gateway.headers) as session:
        url, body = (
            f"{gateway.url}/v1/images/generations",
            {"prompt": f"a nonce-{SECRET}", "response_format": "b64_json"},
        )
        async with session.post(url, json={"model": REFUSE, **body}) as got:
            refused = await got.json()
            assert (got.status, got.headers["x-umg-guards"]) == (400, "request:refuse=refused")
        async with session.post(url, json={"model": MASK, **body}) as got:
            assert (got.status, got.headers["x-umg-guards"]) == (200, "request:mask=masked, response:mask=masked")
        seen = servers.checks_of(MASK)[1].content.image_response
    assert refused["error"]["code"] == "content_policy_violation"
    assert REASON in refused["error"]["message"]
    assert f"nonce-{HIDDEN}".encode() in seen.result.images[0].data


@pytest.mark.parametrize(("row", "status", "decision"), VIDEO_CASES)
async def test_a_prompt_of_a_video_is_checked_at_every_face(
    row: str, status: int, decision: str, tmp_path: Path
) -> None:
    async with running(VIDEOS + row, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        gateway.service._channels.videos["first"] = videos = FakeVideos()
        async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
            for route in VIDEO_ROUTES:
                model, body = BODIES[route.format]
                path = re.sub(r"\{model(?::.+?)?\}(?=:|/|$)", model, route.path) + QUERIES.get(route.path, "")
                async with session.request(route.method, path, json=body) as got:
                    assert got.status == status, (path, await got.text())
                    assert got.headers["x-umg-guards"] == f"request:guard={decision}", path
                    assert status == 200 or "the guard `guard`" in await got.text()
        sent = [each.request.parameters.prompt for each in videos.requests]
        expected = "[HIDDEN]" if decision == "masked" else "Hi"
        assert sent == [expected] * (len(VIDEO_ROUTES) if status == 200 else 0)
        if status == 400:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub_of(channel).CreateVideoTask(request("Hi"), metadata=AUTHORIZED)
            assert from_rpc(caught.value).reason == pb.ERROR_REASON_GUARD_REFUSED

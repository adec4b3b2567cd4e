"""Memory of a real process with large answers, in sizes that take seconds. `make memory` has the full ones."""

import io
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import grpc
import pytest

from tests.pairs.table import TEXT_FACES
from tests.proofs.memory.callers import call, request, send
from tests.proofs.memory.cases import MEBIBYTE, PAIRS, SMALL, Run
from tests.proofs.memory.gateway import config, watched
from tests.proofs.memory.provider import provider
from tests.proofs.soak.gateway import KEY
from umg_grpc.v1 import pb, rpc

JSON = {"content-type": "application/json"}
STORED, TOO_LARGE = "stream-1-1000", "stream-3-1000"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncGenerator[Run, None]:
    """Run a gateway that has served one call in each format, so that its modules are loaded."""
    async with provider() as made:
        text = config(made, [*SMALL.models, STORED, TOO_LARGE], "responses: {max_bytes: 4MiB}")
        async with watched(text, tmp_path) as gateway:
            for face in TEXT_FACES:
                for upstream in TEXT_FACES:
                    caller = await call(gateway.url, face, f"{upstream}/{STORED}")
                    await caller.ended.wait()
                    assert caller.status == 200
            yield Run(made, gateway, SMALL)


async def test_whole_answers_that_are_too_large_take_no_memory_and_are_requested_once(run: Run) -> None:
    for kind in ("gzip", "plain"):
        measured, callers = await run.whole(kind)
        assert [caller.status for caller in callers] == [502] * 4
        assert b"larger than 64 MiB" in callers[0].head
        assert measured.calls == 4
        assert measured.peak < measured.base + 40 * MEBIBYTE, measured


async def test_an_answer_of_unknown_length_takes_its_limit_and_gives_it_back(run: Run) -> None:
    first, callers = await run.whole("chunked")
    assert [caller.status for caller in callers] == [502] * 4
    for _ in range(2):
        again, _ = await run.whole("chunked")
    assert again.peak < first.base + 4 * 80 * MEBIBYTE, again


async def test_streams_that_callers_do_not_read_pause_their_providers(run: Run) -> None:
    for face, upstream in PAIRS:
        measured, _ = await run.unread(face, upstream)
        assert measured.calls == SMALL.callers
        assert measured.peak < measured.base + 100 * MEBIBYTE, measured


async def test_a_stream_of_any_length_is_passed_on(run: Run) -> None:
    for face, upstream in PAIRS:
        if face == upstream or face != "responses":
            measured, [caller] = await run.read(face, upstream)
            assert caller.received > SMALL.read * MEBIBYTE, caller.head
            assert measured.peak < measured.base + 30 * MEBIBYTE, measured


async def test_responses_end_with_an_error_where_the_answer_is_too_large_to_be_repeated(run: Run) -> None:
    measured, [caller] = await run.read("responses", "chat")
    events = [json.loads(line[6:]) for line in caller.tail.split(b"\n") if re.match(rb"data: \{.*\}$", line)]
    assert events[-1]["type"] == "error"
    assert "more than 16 MiB" in events[-1]["message"]
    assert measured.peak < measured.base + 200 * MEBIBYTE, measured


async def test_streams_that_ended_with_an_error_leave_nothing(run: Run) -> None:
    for _ in range(2):
        await run.read("responses", "chat")
    early = run.gateway.resident_bytes()
    for _ in range(5):
        _, [caller] = await run.read("responses", "chat")
        assert b"more than 16 MiB" in caller.tail
    assert run.gateway.resident_bytes() < early + 80 * MEBIBYTE  # two copies of 16 MiB for each stream would be 160


@pytest.mark.parametrize("face", ["http", "grpc"])
async def test_calls_that_failed_leave_nothing_of_their_bodies(run: Run, face: str) -> None:
    text = "a word " * (MEBIBYTE // 2)  # 3.5 MiB
    async with (
        aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"}) as session,
        grpc.aio.insecure_channel(run.gateway.gateway.grpc) as channel,
    ):
        stub = rpc.GenerationServiceStub(channel)
        message = pb.GenerateRequest(model="unknown", messages=[pb.Message(role=pb.ROLE_USER)])
        message.messages[0].parts.add().text.text = text
        body = json.dumps({"model": "unknown", "messages": [{"role": "user", "content": text}]}).encode()

        url = f"{run.gateway.url}/v1/chat/completions"

        async def fail() -> None:
            if face == "http":
                async with session.post(url, data=io.BytesIO(body), headers=JSON) as answer:
                    assert answer.status == 404
                return
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await stub.Generate(message, metadata=[("authorization", f"Bearer {KEY}")])
            assert failure.value.code() is grpc.StatusCode.NOT_FOUND

        for _ in range(10):
            await fail()
        early = run.gateway.resident_bytes()
        for _ in range(40):
            await fail()
    assert run.gateway.resident_bytes() < early + 70 * MEBIBYTE  # the bodies of all calls would be 140 or more


async def test_an_answer_that_is_too_large_to_be_stored_is_passed_on_and_not_stored(run: Run) -> None:
    found = {}
    for model in (STORED, TOO_LARGE):
        payload = request("responses", f"chat/{model}", urlsplit(run.gateway.url).netloc, store=True)
        caller = await send(run.gateway.url, payload)
        await caller.ended.wait()
        named = re.search(rb'"id":"(resp_\w+)"', caller.head)
        assert named is not None
        assert b"response.completed" in caller.tail or caller.received > 4 * MEBIBYTE
        async with (
            aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"}) as session,
            session.get(f"{run.gateway.url}/v1/responses/{named[1].decode()}") as answer,
        ):
            found[model] = answer.status
    assert found == {STORED: 200, TOO_LARGE: 404}

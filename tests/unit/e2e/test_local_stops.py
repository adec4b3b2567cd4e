"""Stop sequences that a provider does not have: the gateway ends the text itself, and stops the provider."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.callers.http_caller import HttpCaller
from tests.support.callers.requests import Request
from tests.support.gateways import channel, running
from tests.support.providers.scripted import Scripted, chunk, scripted, start_stream
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

QUIRKS = "    quirks: {max_stop_sequences: 0}\n"
STOP = Request("Count.", stop="STOP")


async def count(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a response with the sequence, whose stream goes on until the connection is closed."""
    if not provider.calls[-1].body.get("stream"):
        message = {"role": "assistant", "content": "one two STOP three"}
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"id": "c", "model": "m", "choices": [choice], "usage": usage})
    response = await start_stream(request)
    for text in ("one ", "two ", "ST", "OP", " three"):
        await response.write(chunk({"content": text}))
    await provider.calls[-1].left.wait()
    return response


@dataclass
class Stage:
    """A caller of a gateway, and the provider, which has no stop sequences."""

    caller: HttpCaller
    provider: Scripted


@pytest_asyncio.fixture
async def stage(tmp_path: Path) -> AsyncGenerator[Stage, None]:
    async with scripted("main", count) as provider:
        config = "channels:\n" + channel("main", "chat", provider.url, "counting", "theirs") + QUIRKS
        async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
            yield Stage(HttpCaller(session, gateway.url, gateway.key), provider)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("face", ["chat", "messages", "native"])
async def test_the_text_ends_at_the_sequence(stage: Stage, face: str, stream: bool) -> None:
    got = await stage.caller.call(face, "counting", STOP, stream=stream)
    [candidate] = got.canonical.candidates
    assert "".join(part.text.text for part in candidate.message.parts) == "one two "
    if face == "messages":
        assert (candidate.finish_reason, candidate.stop_sequence) == (pb.FINISH_REASON_STOP_SEQUENCE, "STOP")
    else:  # these formats do not name it
        assert candidate.finish_reason == pb.FINISH_REASON_STOP
    assert got.headers["x-umg-dropped"] == TEXT_FORMATS[face].wire_path("stop_sequences") + "=by the gateway"
    assert "stop" not in stage.provider.calls[-1].body
    if stream:
        await stage.provider.calls[-1].left.wait()  # the gateway closed the connection
    assert got.canonical.usage.output_tokens == 4 if not stream else 0 < got.canonical.usage.output_tokens <= 4

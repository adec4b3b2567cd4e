"""Slow starts of streams as the official clients read them: heartbeats before the response, and errors after the headers."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from google import genai
from google.genai import errors as genai_errors
from openai import AsyncOpenAI

from tests.support.providers.scripted import status, succeed, waiting_for
from tests.unit.e2e.test_slow_starts import FACES, QUICK, SECONDS, USER, Gate, answer
from tests.unit.e2e.test_survival import World, world

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    pytest.mark.filterwarnings(
        r"ignore:Exception ignored in. <function Connection.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
]


CLOCK = {"clock": "models: [clock]"}


async def begin_late(made: World, gate: asyncio.Event) -> None:
    """Open the gate of a stream that was called before, once its headers were sent: those of a later one have come."""
    async with asyncio.timeout(SECONDS):
        await made["a"].arrived.get()
    body = {"model": "clock", "messages": [USER], "stream": True}
    async with made.session.post(made.gateway.url + FACES[0].path, json=body) as response:
        assert response.headers["x-umg-waiting"] == "true"
    gate.set()


async def read_openai(made: World) -> str:
    async with AsyncOpenAI(base_url=made.gateway.url + "/v1", api_key=made.gateway.key, max_retries=0) as client:
        chunks = await client.chat.completions.create(model="m", messages=[USER], stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices])


async def read_openai_responses(made: World) -> str:
    async with AsyncOpenAI(base_url=made.gateway.url + "/v1", api_key=made.gateway.key, max_retries=0) as client:
        events = await client.responses.create(model="m", input="Hi", stream=True)
        return "".join([event.delta async for event in events if event.type == "response.output_text.delta"])


async def read_anthropic(made: World) -> str:
    async with (
        AsyncAnthropic(base_url=made.gateway.url, api_key=made.gateway.key, max_retries=0) as client,
        client.messages.stream(model="m", messages=[USER], max_tokens=9) as stream,
    ):
        return "".join([text async for text in stream.text_stream])


async def read_genai(made: World) -> str:
    client = genai.Client(api_key=made.gateway.key, http_options={"base_url": made.gateway.url})
    async with client.aio as models:
        chunks = await models.models.generate_content_stream(model="m", contents="Hi")
        return "".join([chunk.text or "" async for chunk in chunks])


CLIENTS: dict[str, tuple[Callable[[World], Awaitable[str]], type[Exception]]] = {
    "openai chat": (read_openai, openai.APIError),
    "openai responses": (read_openai_responses, openai.APIError),
    "anthropic": (read_anthropic, anthropic.APIError),
    "google-genai": (read_genai, genai_errors.APIError),
}


@pytest.mark.parametrize("name", CLIENTS)
async def test_the_official_clients_read_a_slow_stream(name: str, tmp_path: Path) -> None:
    gate, (read, _) = asyncio.Event(), CLIENTS[name]
    async with world(tmp_path, {"a": [waiting_for(gate, succeed)], "clock": [Gate(answer)]}, CLOCK, QUICK) as made:
        reading = asyncio.create_task(read(made))
        await begin_late(made, gate)
        assert await reading == "a"


@pytest.mark.parametrize("name", CLIENTS)
async def test_the_official_clients_raise_an_error_after_a_slow_start(name: str, tmp_path: Path) -> None:
    gate, (read, raised) = asyncio.Event(), CLIENTS[name]
    refuse = waiting_for(gate, status(429, retry_after="7"))
    async with world(tmp_path, {"a": [refuse], "clock": [Gate(answer)]}, CLOCK, QUICK) as made:
        reading = asyncio.create_task(read(made))
        await begin_late(made, gate)
        with pytest.raises(raised, match="try again in 7 s"):
            await reading

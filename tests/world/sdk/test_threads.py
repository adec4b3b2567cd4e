"""The official anthropic SDK sends its conversations as message threads, which a tool runner does by default."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic, beta_async_tool
from anthropic.types.beta import BetaMessage

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.gateways import SANDBOX, Running, channel, running

RESULT = "18 degrees and a light breeze"
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@beta_async_tool
async def get_weather(city: str) -> str:
    """Return the weather.

    Args:
        city: Name of the city.
    """
    return f"{RESULT} in {city}"


@dataclass
class Recorded:
    sdk: AsyncAnthropic
    bodies: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def threads(self) -> list[str]:
        return [body.get("thread", {}).get("type", "none") for body in self.bodies]


@asynccontextmanager
async def recorded(gateway: Running) -> AsyncGenerator[Recorded, None]:
    async def sent(request: httpx2.Request) -> None:
        made.bodies.append(json.loads(request.content))

    async def got(response: httpx2.Response) -> None:
        made.statuses.append(response.status_code)

    http = anthropic.DefaultAsyncHttpxClient(event_hooks={"request": [sent], "response": [got]})
    async with AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0, http_client=http) as sdk:
        made = Recorded(sdk)
        yield made


@asynccontextmanager
async def chained(data: Path) -> AsyncGenerator[Recorded, None]:
    """Yield the SDK for a gateway that calls another gateway, with a channel of each format."""
    async with running(SANDBOX, data / "inner") as inner:
        config = "channels:\n" + "".join(
            channel(name, name, f"{inner.url}/v1", f"via-{name}", "famO-5", "famO") for name in TEXT_PROVIDERS
        )
        async with running(config, data / "outer") as outer, recorded(outer) as made:
            yield made


async def run_tools(sdk: AsyncAnthropic, model: str, stream: bool) -> list[BetaMessage]:
    runner = sdk.beta.messages.tool_runner(
        model=model,
        max_tokens=900,
        messages=[{"role": "user", "content": "Call get_weather with city Paris."}],
        tools=[get_weather],
        system="Be kind.",
        stream=stream,
    )
    if not stream:
        return [message async for message in runner]
    return [await events.get_final_message() async for events in runner]


def text_of(message: BetaMessage) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@both_ways
@pytest.mark.parametrize("upstream", TEXT_PROVIDERS)
async def test_a_tool_runner_sends_its_new_messages_alone(tmp_path: Path, upstream: str, stream: bool) -> None:
    async with chained(tmp_path) as made:
        called, answered = await run_tools(made.sdk, f"via-{upstream}", stream)
    assert (called.stop_reason, answered.stop_reason) == ("tool_use", "end_turn")
    assert f"{RESULT} in Paris" in text_of(answered)
    assert "Be kind." in text_of(answered)  # the sandbox repeats the system prompt
    assert (made.threads, made.statuses) == (["create", "continue"], [200, 200])
    assert [len(body["messages"]) for body in made.bodies] == [1, 1]
    assert made.bodies[1].keys().isdisjoint({"system", "tools"})


@both_ways
async def test_a_thread_is_continued_turn_by_turn(tmp_path: Path, stream: bool) -> None:
    async with chained(tmp_path) as made:
        thread = made.sdk.beta.messages.thread(model="via-chat", max_tokens=900, system="Be kind.")
        for question in ("What of the sea?", "What of the moon?", "What of the sun?"):
            turn = {"role": "user", "content": question}
            if stream:
                async with thread.stream(turn) as events:
                    message = await events.get_final_message()
            else:
                message = await thread.send(turn)
            assert "Be kind." in text_of(message)
        assert (made.threads, set(made.statuses)) == (["create", "continue", "continue"], {200})
        assert [body["messages"][0]["content"] for body in made.bodies][-1] == "What of the sun?"


async def test_a_thread_that_is_lost_begins_again(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path / "first") as first, recorded(first) as made:
        thread = made.sdk.beta.messages.thread(model="famO-5", max_tokens=900)
        await thread.send({"role": "user", "content": "What of the sea?"})
        async with running(SANDBOX, tmp_path / "second") as second:
            made.sdk.base_url = second.url
            await thread.send({"role": "user", "content": "What of the moon?"})
            await thread.send({"role": "user", "content": "What of the sun?"})
    assert made.threads == ["create", "continue", "create", "continue"]
    assert made.statuses == [200, 404, 200, 200]
    assert len(made.bodies[2]["messages"]) == 3


async def test_a_runner_continues_without_threads_where_none_are_stored(tmp_path: Path) -> None:
    async with running(SANDBOX + "responses: {enabled: false}\n", tmp_path) as gateway, recorded(gateway) as made:
        _, answered = await run_tools(made.sdk, "famO-5", stream=False)
    assert RESULT in text_of(answered)
    assert (made.threads, made.statuses) == (["create", "none", "none"], [400, 200, 200])

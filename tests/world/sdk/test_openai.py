"""The official openai SDK, unmodified, against the gateway."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.support.callers.transports import HttpTransport, open_transport
from tests.support.gateways import KEY
from tests.support.providers.chat_faults import Provider, provider
from tests.unit.e2e.test_table import config

QUESTION = [{"role": "user", "content": "Hi"}]


@pytest_asyncio.fixture
async def upstream() -> AsyncGenerator[Provider, None]:
    async with provider() as state:
        yield state


@pytest_asyncio.fixture(params=["http, in process", "http, apart"])
async def client(
    request: pytest.FixtureRequest, upstream: Provider, tmp_path: Path
) -> AsyncGenerator[AsyncOpenAI, None]:
    async with open_transport(request.param, config(upstream), tmp_path) as made:
        assert isinstance(made, HttpTransport)
        async with AsyncOpenAI(base_url=f"{made.url}/v1", api_key=KEY, max_retries=0) as sdk:
            yield sdk


async def test_a_stream_without_usage_has_none(client: AsyncOpenAI, upstream: Provider) -> None:
    stream = await client.chat.completions.create(model="plain", messages=QUESTION, stream=True)
    chunks = [chunk async for chunk in stream]
    assert all(chunk.usage is None for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)
    assert upstream.last["stream_options"] == {"include_usage": True}  # the gateway selects it, to compute the cost


@dataclass(frozen=True)
class Failure:
    id: str
    call: Callable[[AsyncOpenAI], Awaitable[object]]
    raises: type[openai.APIStatusError]
    expected_message: str


def _failing_call(model: str, **fields: object) -> Callable[[AsyncOpenAI], Awaitable[object]]:
    return lambda client: client.chat.completions.create(model=model, messages=QUESTION, extra_body=fields)


FAILURES = [
    Failure("an unknown model", _failing_call("nope"), openai.NotFoundError, "nope"),
    Failure("an unknown model's entry", lambda client: client.models.retrieve("nope"), openai.NotFoundError, "nope"),
    Failure("temperature 3", _failing_call("plain", temperature=3), openai.BadRequestError, "temperature"),
    Failure("no messages", _failing_call("plain", messages=[]), openai.BadRequestError, "messages"),
    Failure("a rate limit of the provider", _failing_call("busy-whole"), openai.RateLimitError, ""),
    Failure("a broken provider", _failing_call("broken-whole"), openai.InternalServerError, ""),
    Failure(
        "a wrong key",
        lambda client: client.with_options(api_key="sk-umg-wrong").models.list(),
        openai.AuthenticationError,
        "key",
    ),
    Failure(
        "an API that is not served",
        lambda client: client.batches.list(),
        openai.NotFoundError,
        "batches",
    ),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_a_failure_is_the_sdks_own_exception(case: Failure, client: AsyncOpenAI) -> None:
    with pytest.raises(case.raises) as caught:
        await case.call(client)
    assert case.expected_message in caught.value.message
    assert caught.value.request_id


@pytest.mark.parametrize("model", ["cut-streamed", "fails-streamed", "ends-early-streamed"])
async def test_a_stream_that_breaks_off_raises(model: str, client: AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(model=model, messages=QUESTION, stream=True)
    with pytest.raises(openai.APIError):
        async for _ in stream:
            pass

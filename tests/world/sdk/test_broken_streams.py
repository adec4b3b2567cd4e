"""A response whose stream breaks, as the official SDK of its format reads it: the failed response, then an error."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from openai import APIError, AsyncOpenAI
from openai.types.responses import ResponseFailedEvent

from tests.support.gateways import running
from tests.support.providers.scenarios import WORDS
from tests.support.providers.strict_providers import KEY, provider

CONFIG = """
channels:
  - {{name: main, protocols: [{format}], base_url: "{url}", api_key: {key}, models: [m]}}
"""
WORDED = {"error-mid": "the model fell over", "error-event": "the model fell over"}


@pytest_asyncio.fixture(params=["responses", "chat"], ids=["passed on", "translated"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[AsyncOpenAI, None]:
    async with provider(request.param) as server:
        config = CONFIG.format(format=request.param, url=server.base_url, key=KEY)
        async with (
            running(config, tmp_path) as gateway,
            AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk,
        ):
            yield sdk


@pytest.mark.parametrize("helper", [False, True], ids=["create", "stream"])
@pytest.mark.parametrize("scenario", ["error-mid", "error-event", "cut", "ends-early"])
async def test_the_response_fails_in_our_words_and_the_sdk_raises(
    scenario: str, helper: bool, client: AsyncOpenAI
) -> None:
    kinds, text, failed = list[str](), "", list[ResponseFailedEvent]()
    with pytest.raises(APIError) as caught:
        if helper:
            async with client.responses.stream(model="m", input=f"scenario: {scenario}") as stream:
                async for event in stream:
                    kinds.append(event.type)
                    if event.type == "response.failed":
                        failed.append(event)
        else:
            async for raw in await client.responses.create(model="m", input=f"scenario: {scenario}", stream=True):
                kinds.append(raw.type)
                if raw.type == "response.output_text.delta":
                    text += raw.delta
                if raw.type == "response.failed":
                    failed.append(raw)
    assert (kinds[0], kinds[-1]) == ("response.created", "response.failed")
    assert kinds.count("response.failed") == 1
    response = failed[0].response
    assert response.status == "failed"
    assert response.error is not None
    assert response.error.code == "server_error"
    assert response.error.message == caught.value.message
    assert WORDED.get(scenario, "provider") in caught.value.message
    assert helper or "".join(WORDS).startswith(text)

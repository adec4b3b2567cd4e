"""Models of a family behind a provider of another format: fields of the caller's format are translated to the
provider's.
"""

from collections.abc import AsyncGenerator

import aiohttp
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from google import genai
from google.genai import types

from tests.pairs.table import TEXT_FACES
from tests.support.gateways import SANDBOX, Running, channel, running

FAMILIES = {
    "famG-2.5-pro": "famG",
    "famG-3-pro": "famG",
    "famO-5": "famO",
    "famC-sonnet-4-5": "famC",
    "famQ-3-max": "famQ",
    "famR-1": "famR",
    "famX-4": "famX",
}
QUESTION = "Why is the sea salt?"

# the SDK uses a call that the newest aiohttp deprecates
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TEXT_FACES)
async def gateway(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Running, None]:
    """Run a gateway whose provider, of the parameter's format, is another gateway."""
    protocol, data = request.param, tmp_path_factory.mktemp("gateways")
    async with running(SANDBOX, data / "inner") as inner:
        config = "channels:\n" + "".join(
            channel(model.replace(".", "-"), protocol, f"{inner.url}/v1", model, model, family)
            for model, family in FAMILIES.items()
        )
        async with running(config, data / "outer") as outer:
            yield outer


@pytest.mark.parametrize("model", FAMILIES)
async def test_messages_callers_enable_reasoning_of_every_family(gateway: Running, model: str) -> None:
    async with AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0) as sdk:
        request_fields = {
            "model": model,
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": QUESTION}],
        }
        extra = {"temperature": 1}  # which older clients send
        async with sdk.messages.stream(
            **request_fields, extra_body=extra, thinking={"type": "enabled", "budget_tokens": 2048}
        ) as events:
            message = await events.get_final_message()
    kinds = [block.type for block in message.content]
    assert kinds[-1] == "text"
    assert "thinking" in kinds


@pytest.mark.parametrize("model", FAMILIES)
async def test_native_callers_reach_every_family_with_sampling(gateway: Running, model: str) -> None:
    with genai.Client(api_key=gateway.key, http_options=types.HttpOptions(base_url=gateway.url)) as sdk:
        config = types.GenerateContentConfig(temperature=0, top_p=1)
        answer = await sdk.aio.models.generate_content(model=model, contents=QUESTION, config=config)
        assert answer.text
        await sdk.aio.aclose()


@pytest.mark.parametrize(
    ("suffix", "thinks"),
    [("-thinking", True), ("-thinking-1024", True), ("-nothinking", False), ("-thinking-low", True)],
)
async def test_suffixes_of_chat_callers_work_through_every_format(gateway: Running, suffix: str, thinks: bool) -> None:
    body = {"model": f"famG-2.5-pro{suffix}", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    async with (
        aiohttp.ClientSession(headers=gateway.headers) as session,
        session.post(f"{gateway.url}/v1/chat/completions", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
        answer_text = await answer.text()
    assert ("reasoning_content" in answer_text) == thinks

"""Models of providers' lists as the official SDKs read them: over several pages, and with the properties of the lists."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import cohere
import pytest
import pytest_asyncio
from aiohttp import web
from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from openai import AsyncOpenAI

from tests.support.gateways import Running, running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider

# google-genai subclasses the session of aiohttp
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

COUNT = 30
"""Models of each vendor: all together have more pages than one in each SDK."""
CLAUDES, GEMINIS, GPTS = ([f"{name}-x{n:02}" for n in range(COUNT)] for name in ("claude", "gemini", "gpt"))
IDS = sorted([*CLAUDES, *GEMINIS, *GPTS])


class Lists(FakeProvider):
    """Three vendors at one address, each with a list in its own shape, in pages of a dozen models."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if "anthropic-version" in received.headers:
            start = CLAUDES.index(received.query["after_id"]) + 1 if "after_id" in received.query else 0
            page = CLAUDES[start : start + 12]
            rows = [
                {
                    "type": "model",
                    "id": each,
                    "display_name": f"Claude {each}",
                    "created_at": "2026-02-04T00:00:00Z",
                    "max_input_tokens": 1000000,
                    "max_tokens": 128000,
                }
                for each in page
            ]
            return web.json_response({"data": rows, "has_more": page[-1] != CLAUDES[-1], "last_id": page[-1]})
        if "x-goog-api-key" in received.headers:
            start = int(received.query.get("pageToken", 0))
            page = GEMINIS[start : start + 12]
            more = {"nextPageToken": str(start + 12)} if start + 12 < COUNT else {}
            methods = ["generateContent", "countTokens"]
            listed = [
                {"name": f"models/{each}", "inputTokenLimit": 1048576, "supportedGenerationMethods": methods}
                for each in page
            ]
            return web.json_response({"models": listed, **more})
        return web.json_response(
            {"object": "list", "data": [{"id": each, "object": "model", "created": 1754425777} for each in GPTS]}
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with serve_provider(Lists()) as vendors:
        channels = "".join(
            f"- {{provider: {name}, api_key: k, base_url: '{vendors.url}/{path}', models: discover}}\n"
            for name, path in (("openai", "v1"), ("anthropic", "v1"), ("gemini", "v1beta"))
        )
        config = f"discovery: {{wait: 60}}\nchannels:\n{channels}"
        async with running(config, tmp_path_factory.mktemp("gateway")) as made:
            yield made


async def test_openai_lists_the_models_of_all_lists(gateway: Running) -> None:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        assert [model.id async for model in sdk.models.list() if model.id != "chat-latest"] == IDS
        assert (await sdk.models.retrieve("gpt-x07")).created == 1754425777


async def test_anthropic_pages_through_the_models_of_all_lists(gateway: Running) -> None:
    async with AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0) as sdk:
        first = await sdk.models.list()
        assert (len(first.data), first.has_more) == (20, True)
        assert [model.id async for model in sdk.models.list() if model.id != "chat-latest"] == IDS
        claude = await sdk.models.retrieve("claude-x07")
    assert (claude.display_name, claude.created_at) == ("Claude claude-x07", datetime(2026, 2, 4, tzinfo=UTC))
    assert (claude.max_input_tokens, claude.max_tokens) == (1000000, 128000)


async def test_cohere_pages_through_the_models_of_all_lists(gateway: Running) -> None:
    async with cohere.AsyncClientV2(api_key=gateway.key, base_url=gateway.url) as sdk:
        pages = [await sdk.models.list()]
        assert len(pages[0].models) == 20
        while (token := pages[-1].next_page_token) is not None:
            pages.append(await sdk.models.list(page_token=token))
        names = [model.name for page in pages for model in page.models]
        assert [name for name in names if name != "chat-latest"] == IDS
        gemini = await sdk.models.get("gemini-x07")
        assert (gemini.name, gemini.endpoints, gemini.context_length) == ("gemini-x07", ["chat"], 1048576)
        assert len((await sdk.models.list(endpoint="chat", page_size=1000)).models) == len(names)
        assert (await sdk.models.list(endpoint="embed")).models == []
        with pytest.raises(cohere.NotFoundError) as unknown:
            await sdk.models.get("nobody")
        with pytest.raises(cohere.BadRequestError) as refused:
            await sdk.models.list(endpoint="chat", default_only=True)
    assert "nobody" in unknown.value.body["message"]
    assert "default_only" in refused.value.body["message"]


async def test_a_wrong_key_is_the_exception_of_coheres_sdk(gateway: Running) -> None:
    async with cohere.AsyncClientV2(api_key="wrong", base_url=gateway.url) as sdk:
        with pytest.raises(cohere.UnauthorizedError):
            await sdk.models.list()


@asynccontextmanager
async def native(gateway: Running) -> AsyncGenerator[genai.client.AsyncClient, None]:
    options = types.HttpOptions(base_url=gateway.url, api_version="v1beta")
    with genai.Client(api_key=gateway.key, http_options=options) as sdk:
        try:
            yield sdk.aio
        finally:
            await sdk.aio.aclose()


async def test_genai_pages_through_the_models_of_all_lists(gateway: Running) -> None:
    async with native(gateway) as sdk:
        pager = await sdk.models.list()
        assert len(pager.page) == 50
        names = [str(model.name).removeprefix("models/") async for model in pager]
        gemini = await sdk.models.get(model="gemini-x07")
    assert [name for name in names if name != "chat-latest"] == IDS
    assert gemini.input_token_limit == 1048576
    assert gemini.supported_actions == ["generateContent", "streamGenerateContent", "countTokens"]

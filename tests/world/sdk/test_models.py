"""The model list as the official SDKs read it, each in the shape of its own vendor."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime

import anthropic
import openai
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from google import genai
from google.genai import errors, types
from openai import AsyncOpenAI

from tests.support.gateways import Running, running
from umg_grpc.access.api_keys import ApiKeys

# google-genai subclasses the session of aiohttp
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

IDS = ["famG-2.5-flash", "famO-5", "famR-1", "text-embedding-3-small", "vendor/large"]
CONFIG = f"""
channels: [{{name: c, protocols: [chat, embeddings], base_url: "http://127.0.0.1:1", api_key: x, models: [{", ".join(IDS)}]}}]
models:
  vendor/large:
    {{owned_by: vendor, display_name: Large, created: 2025-06-15, lifecycle: deprecated, capabilities: {{input_tokens: 9000}}}}
"""
RELEASED = datetime(2025, 6, 15, tzinfo=UTC)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as state:
        yield state


@pytest_asyncio.fixture(loop_scope="module")
async def chat(gateway: Running) -> AsyncGenerator[AsyncOpenAI, None]:
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as sdk:
        yield sdk


@pytest_asyncio.fixture(loop_scope="module")
async def messages(gateway: Running) -> AsyncGenerator[AsyncAnthropic, None]:
    async with AsyncAnthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0) as sdk:
        yield sdk


def native_client(gateway: Running, version: str, key: str) -> genai.Client:
    return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=gateway.url, api_version=version))


@pytest_asyncio.fixture(loop_scope="module", params=["v1", "v1beta"])
async def native(request: pytest.FixtureRequest, gateway: Running) -> AsyncGenerator[genai.client.AsyncClient, None]:
    sdk = native_client(gateway, request.param, gateway.key)
    try:
        yield sdk.aio
    finally:
        await sdk.aio.aclose()
        sdk.close()


# --- openai


async def test_openai_lists_all_models_on_one_page(chat: AsyncOpenAI) -> None:
    page = await chat.models.list()
    assert [model.id for model in page.data] == IDS
    assert not page.has_next_page()
    assert [model.id async for model in chat.models.list()] == IDS
    large = page.data[-1]
    assert (large.object, large.owned_by, large.created) == ("model", "vendor", RELEASED.timestamp())


@pytest.mark.parametrize("model", [*IDS, "famG-2.5-flash-thinking"])
async def test_openai_finds_a_model(chat: AsyncOpenAI, model: str) -> None:
    assert (await chat.models.retrieve(model)).id == model


# --- anthropic


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 1000])
async def test_anthropic_pages_through_all_models(messages: AsyncAnthropic, limit: int) -> None:
    assert [model.id async for model in messages.models.list(limit=limit)] == IDS
    assert [model.id async for model in messages.beta.models.list(limit=limit)] == IDS
    assert [model.id async for model in messages.models.list(limit=limit, after_id="famO-5")] == IDS[2:]


async def test_anthropic_pages_backwards(messages: AsyncAnthropic) -> None:
    page = await messages.models.list(limit=2, before_id="vendor/large")
    assert [model.id for model in page.data] == IDS[2:4]
    page = await page.get_next_page()
    assert [model.id for model in page.data] == IDS[:2]
    assert not page.has_next_page()


async def test_anthropic_lists_twenty_by_default(messages: AsyncAnthropic) -> None:
    page = await messages.models.list()
    assert ([model.id for model in page.data], page.has_more) == (IDS, False)
    assert (page.first_id, page.last_id) == (IDS[0], IDS[-1])


async def test_anthropic_reads_the_capabilities_of_a_model(messages: AsyncAnthropic) -> None:
    large = await messages.models.retrieve("vendor/large")
    assert (large.type, large.id, large.display_name) == ("model", "vendor/large", "Large")
    assert (large.created_at, large.lifecycle, large.max_input_tokens) == (RELEASED, "deprecated", 9000)
    flash = await messages.models.retrieve("famG-2.5-flash-thinking")
    assert (flash.id, flash.lifecycle) == ("famG-2.5-flash-thinking", "active")
    assert flash.created_at == datetime(1970, 1, 1, tzinfo=UTC)  # stands for an unknown time
    assert flash.capabilities is not None
    assert flash.capabilities.thinking.types.enabled.supported
    assert flash.capabilities.image_input.supported
    embedding = await messages.models.retrieve("text-embedding-3-small")
    assert embedding.capabilities is not None
    assert not embedding.capabilities.thinking.types.disabled.supported


# --- google-genai


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
async def test_genai_pages_through_all_models(native: genai.client.AsyncClient, size: int) -> None:
    names = [f"models/{model}" for model in IDS]
    pager = await native.models.list(config={"page_size": size})
    assert len(pager.page) == min(size, len(IDS))
    assert [model.name async for model in pager] == names
    pager = await native.models.list(config={"page_size": size})
    seen = [model.name for model in pager.page]
    for _ in range(len(IDS)):
        try:
            seen += [model.name for model in await pager.next_page()]
        except IndexError:  # raised by the SDK at the end of the list
            break
    assert seen == names


async def test_genai_lists_fifty_by_default(native: genai.client.AsyncClient) -> None:
    assert [model.name for model in (await native.models.list()).page] == [f"models/{model}" for model in IDS]


async def test_genai_lists_nothing_for_a_key_that_may_use_nothing(
    gateway: Running, recwarn: pytest.WarningsRecorder
) -> None:
    _, secret = await ApiKeys(gateway.service.store).create("nothing", model_patterns=["nothing"])
    with native_client(gateway, "v1beta", secret) as sdk:
        pager = await sdk.aio.models.list()
        assert [model async for model in pager] == []
        await sdk.aio.aclose()


@pytest.mark.parametrize("prefix", ["", "models/"])
async def test_genai_finds_a_model(native: genai.client.AsyncClient, prefix: str) -> None:
    for model in [*IDS, "famG-2.5-flash-thinking"]:
        found = await native.models.get(model=f"{prefix}{model}")
        assert found.name == f"models/{model}"
    flash = await native.models.get(model=f"{prefix}famG-2.5-flash")
    assert flash.supported_actions == ["generateContent", "streamGenerateContent", "countTokens"]
    assert flash.input_token_limit
    assert flash.thinking
    large = await native.models.get(model=f"{prefix}vendor/large")
    assert (large.display_name, large.input_token_limit) == ("Large", 9000)


# --- failures, as the SDKs' own exceptions


async def test_openai_raises_the_errors_of_its_own_vendor(chat: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nope") as missing:
        await chat.models.retrieve("nope")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError) as refused:
        await chat.with_options(api_key="sk-umg-wrong").models.list()
    assert refused.value.code == "invalid_api_key"


FAILURES: dict[str, tuple[Callable[[AsyncAnthropic], Awaitable[object]], type[anthropic.APIStatusError], str]] = {
    "an unknown model": (lambda sdk: sdk.models.retrieve("nope"), anthropic.NotFoundError, "not_found_error"),
    "no page": (lambda sdk: sdk.models.list(limit=1001), anthropic.BadRequestError, "invalid_request_error"),
    "a wrong key": (
        lambda sdk: sdk.with_options(api_key="sk-umg-wrong").models.list(),
        anthropic.AuthenticationError,
        "authentication_error",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_anthropic_raises_the_errors_of_its_own_vendor(messages: AsyncAnthropic, case: str) -> None:
    call, raises, kind = FAILURES[case]
    with pytest.raises(raises) as caught:
        await call(messages)
    assert caught.value.type == kind
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["message"]
    assert caught.value.request_id


async def test_genai_raises_the_errors_of_its_own_vendor(native: genai.client.AsyncClient) -> None:
    refused: list[tuple[Awaitable[object], int, str, str]] = [
        (native.models.get(model="nope"), 404, "NOT_FOUND", "nope"),
        (native.models.list(config={"page_size": 1001}), 400, "INVALID_ARGUMENT", "pageSize"),
        (native.models.list(config={"page_token": "nonsense"}), 400, "INVALID_ARGUMENT", "pageToken"),
    ]
    for call, code, status, expected_message in refused:
        with pytest.raises(errors.ClientError) as caught:
            await call
        assert (caught.value.code, caught.value.status) == (code, status)
        assert expected_message in str(caught.value.message)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_genai_reports_a_wrong_key(gateway: Running, version: str) -> None:
    with native_client(gateway, version, "sk-umg-wrong") as sdk:
        with pytest.raises(errors.ClientError) as caught:
            await sdk.aio.models.list()
        assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")
        await sdk.aio.aclose()

"""`AzureOpenAI` of the official openai SDK, unmodified, against the gateway: each way to name the endpoint, the deployment
and the key.
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio
from openai import AsyncAzureOpenAI, AsyncOpenAI, AzureOpenAI

from tests.documents.spec.image_callers import PROMPT, WIDE, C, pixels_of
from tests.support.gateways import Running, running
from tests.world.sdk.cases import DESCRIPTION, RESULT, SCHEMA, WEATHER, WEATHER_QUESTION, check_arguments
from tests.world.sdk.vectors import TEXTS, check_vectors

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL, SLASHED, EMBEDDER = "famO-5-mini", "vendor/mini", "text-embedding-3-small"
VERSION = "2026-06-01"
CONFIG = f"""
channels:
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    models: [{MODEL}, {EMBEDDER}, {C}, {{id: {SLASHED}, upstream: {MODEL}}}]
"""
QUESTION: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {"type": "function", "function": {"name": WEATHER, "description": DESCRIPTION, "parameters": SCHEMA}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("azure")) as made:
        yield made


@dataclass(frozen=True)
class Way:
    """A way to configure the client. `options` returns its options by the gateway."""

    id: str
    options: Callable[[Running], Mapping[str, Any]]
    requested: str = MODEL
    """Model that the call names."""


def _endpoint(gateway: Running, **more: Any) -> Mapping[str, Any]:
    return {"azure_endpoint": gateway.url, "api_key": gateway.key, **more}


def _token(gateway: Running) -> Mapping[str, Any]:
    return {"azure_endpoint": gateway.url, "azure_ad_token_provider": lambda: gateway.key}


WAYS = [
    Way("the endpoint", _endpoint),
    Way("an endpoint with a slash", lambda gateway: _endpoint(gateway, azure_endpoint=f"{gateway.url}/")),
    Way("a deployment", lambda gateway: _endpoint(gateway, azure_deployment=MODEL), "ignored"),
    Way("an id with a slash", _endpoint, SLASHED),
    Way("a base URL", lambda gateway: {"base_url": f"{gateway.url}/openai", "api_key": gateway.key}),
    Way(
        "a base URL of a deployment",
        lambda gateway: {"base_url": f"{gateway.url}/openai/deployments/{MODEL}", "api_key": gateway.key},
        "ignored",
    ),
    Way("a token of Entra ID", _token),
]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)


def waiting(gateway: Running, way: Way = WAYS[0], **more: Any) -> AsyncAzureOpenAI:
    return AsyncAzureOpenAI(**{"api_version": VERSION, "max_retries": 0, **way.options(gateway), **more})


@every_way
async def test_an_answer_and_a_stream(way: Way, gateway: Running) -> None:
    async with waiting(gateway, way) as client:
        answer = await client.chat.completions.create(model=way.requested, messages=QUESTION)
        assert answer.choices[0].message.content
        assert answer.model == (MODEL if way.requested == "ignored" else way.requested)
        async with client.chat.completions.stream(model=way.requested, messages=QUESTION) as stream:
            final = await stream.get_final_completion()
        assert final.choices[0].message.content == answer.choices[0].message.content


@every_way
async def test_the_blocking_client(way: Way, gateway: Running) -> None:
    def answer() -> tuple[str | None, int]:
        with AzureOpenAI(**{"api_version": VERSION, "max_retries": 0, **way.options(gateway)}) as client:
            whole = client.chat.completions.create(model=way.requested, messages=QUESTION)
            stream = client.chat.completions.create(model=way.requested, messages=QUESTION, stream=True)
            return whole.choices[0].message.content, len(list(stream))

    text, chunks = await asyncio.to_thread(answer)
    assert text
    assert chunks > 1


async def test_a_round_of_tools(gateway: Running) -> None:
    async with waiting(gateway) as client:
        question: Any = [{"role": "user", "content": WEATHER_QUESTION}]
        answer = await client.chat.completions.create(model=MODEL, messages=question, tools=[TOOL])
        message = answer.choices[0].message
        assert message.tool_calls is not None
        [call] = message.tool_calls
        assert call.type == "function"
        check_arguments(json.loads(call.function.arguments))
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
        after = await client.chat.completions.create(
            model=MODEL, messages=[*question, message, result], tools=[TOOL], tool_choice="auto"
        )
        assert after.choices[0].finish_reason == "stop"
        assert RESULT in (after.choices[0].message.content or "")


@pytest.mark.parametrize("deployment", [None, MODEL])
async def test_responses_and_models_have_paths_without_a_deployment(deployment: str | None, gateway: Running) -> None:
    async with waiting(gateway, azure_deployment=deployment) as client:
        answer = await client.responses.create(model=MODEL, input="Hi")
        assert answer.output_text
        async with client.responses.stream(model=MODEL, input="Hi") as stream:
            assert (await stream.get_final_response()).output_text == answer.output_text
        assert MODEL in [each.id async for each in client.models.list()]
        assert (await client.models.retrieve(SLASHED)).id == SLASHED


async def test_texts_are_embedded(gateway: Running) -> None:
    async with waiting(gateway) as client:
        answer = await client.embeddings.create(model=EMBEDDER, input=list(TEXTS))
        check_vectors([each.embedding for each in answer.data], 1536)
        short = await client.embeddings.create(model=EMBEDDER, input="a", dimensions=128, encoding_format="float")
        assert len(short.data[0].embedding) == 128


async def test_images_are_made_and_edited(gateway: Running) -> None:
    async with waiting(gateway) as client:
        made = await client.images.generate(model=C, prompt=PROMPT, size="1536x1024")
        assert made.data is not None
        assert pixels_of(base64.b64decode(made.data[0].b64_json or "")) == (1536, 1024)
        edited = await client.images.edit(model=C, prompt=PROMPT, image=("a.png", WIDE, "image/png"))
        assert edited.data
    async with waiting(gateway, azure_deployment=C) as client:
        edited = await client.images.edit(prompt=PROMPT, image=("a.png", WIDE, "image/png"))
        assert edited.data


@pytest.mark.parametrize(("headers", "member"), [({}, "created"), ({"x-umg-shape": "documented"}, "code")])
async def test_a_client_without_an_sdk_reads_the_vendors_body_of_images(
    headers: dict[str, str], member: str, gateway: Running
) -> None:
    url = f"{gateway.url}/openai/deployments/{C}/images/generations?api-version={VERSION}"
    sent = {"api-key": gateway.key, **headers}
    async with aiohttp.ClientSession(headers=sent) as client, client.post(url, json={"prompt": PROMPT}) as answer:
        body = await answer.json()
    assert member in body
    assert (body["data"] if member == "created" else body["data"]["data"])[0]["b64_json"]


async def test_the_plain_client_calls_the_paths_of_the_new_api(gateway: Running) -> None:
    async with AsyncOpenAI(
        base_url=f"{gateway.url}/openai/v1/",
        api_key=gateway.key,
        default_query={"api-version": "preview"},
        max_retries=0,
    ) as client:
        assert (await client.responses.create(model=MODEL, input="Hi")).output_text
        answer = await client.chat.completions.create(model=MODEL, messages=QUESTION)
        assert answer.choices[0].message.content
        assert (await client.embeddings.create(model=EMBEDDER, input="a")).data
        assert MODEL in [each.id async for each in client.models.list()]


@dataclass(frozen=True)
class Failure:
    id: str
    call: Callable[[AsyncAzureOpenAI], Awaitable[object]]
    raises: type[openai.APIStatusError]
    message: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _chat(model: str, **fields: object) -> Callable[[AsyncAzureOpenAI], Awaitable[object]]:
    return lambda client: client.chat.completions.create(model=model, messages=QUESTION, extra_body=fields)


FAILURES = [
    Failure("an unknown deployment", _chat("nope"), openai.NotFoundError, "nope"),
    Failure("a wrong key", _chat(MODEL), openai.AuthenticationError, "key", {"api_key": "sk-umg-wrong"}),
    Failure(
        "a wrong token",
        _chat(MODEL),
        openai.AuthenticationError,
        "key",
        {"api_key": None, "azure_ad_token": "wrong"},
    ),
    Failure("temperature 3", _chat(MODEL, temperature=3), openai.BadRequestError, "temperature"),
    Failure(
        "text completions",
        lambda client: client.completions.create(model=MODEL, prompt="a"),
        openai.NotFoundError,
        "which this gateway does not serve",
    ),
    Failure(
        "files",
        lambda client: client.files.retrieve("file-1"),
        openai.NotFoundError,
        "which this gateway does not serve",
    ),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_a_failure_is_the_sdks_own_exception(case: Failure, gateway: Running) -> None:
    async with waiting(gateway, **case.options) as client:
        with pytest.raises(case.raises) as caught:
            await case.call(client)
    assert case.message in caught.value.message
    assert caught.value.request_id

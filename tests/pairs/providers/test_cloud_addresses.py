"""Calls of clouds: the gateway sends to a channel the path, query, headers and members of the vendor's own SDK."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import aiohttp
import anthropic
import openai
import pytest
import pytest_asyncio
from google import genai
from google.oauth2.credentials import Credentials

from tests.support.gateways import Running, running
from tests.support.providers.server import Json, ReceivedRequest, RecordingProvider, Written, serve_provider
from tests.support.recorded_gateway import event_stream
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.cloud_call_encoding import text_format_at

PROJECT, REGIONS = "my-project", ("global", "us", "eu", "europe-west4")
TOKEN = "t-0"
PLACE = f"/v1/projects/{PROJECT}/locations/eu"
CLAUDE, PICTURE = "claude-sonnet-4-5@20250929", "iVBORw0KGgo="
QUESTION = [{"role": "user", "content": "Hi"}]
MESSAGE: Json = {"model": CLAUDE, "max_tokens": 9, "messages": QUESTION}
EVENTS: list[Json] = [
    {"type": "message_start", "message": {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [],
     "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]  # fmt: skip
COMPLETE: Json = {
    "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
ANSWERS: dict[str, Written] = {
    ":streamRawPredict": event_stream(EVENTS),
    ":rawPredict": COMPLETE,
    "/messages": COMPLETE,
    "/completions": {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]},
    "/embeddings": {"object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}, "data": [
        {"object": "embedding", "index": 0, "embedding": [0.5]}]},
    "/generations": {"created": 1, "data": [{"b64_json": PICTURE}]},
}  # fmt: skip
"""End of a path -> answer."""


@dataclass(frozen=True)
class Case:
    """Call of an SDK, and the same call of the gateway's caller."""

    id: str
    call: Callable[[str], object]
    """Call of the SDK at a server with this URL."""
    base_url: str
    """Path of the channel's base URL."""
    protocol: str
    path: str
    """Path of the gateway's call."""
    body: Json
    model: str
    settings: str = "auth: {kind: bearer}"
    compared: tuple[str, ...] = ("authorization",)
    """Headers that both send."""
    unlike: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """Members of the gateway's body -> values that differ from those of the SDK."""


def vertex(url: str) -> anthropic.AnthropicVertex:
    return anthropic.AnthropicVertex(
        base_url=f"{url}/v1", region="eu", project_id=PROJECT, access_token=TOKEN, max_retries=0
    )


def azure(url: str) -> openai.AzureOpenAI:
    return openai.AzureOpenAI(azure_endpoint=url, api_key=TOKEN, api_version="2024-10-21", max_retries=0)


KEYED = "auth: {kind: header, header: api-key}\n    query: {api-version: 2024-10-21}"
OLDER = {"anthropic_version": "vertex-2023-10-16"}
CASES = [
    Case(
        "Claude on Vertex AI",
        lambda url: vertex(url).messages.create(**MESSAGE),
        f"{PLACE}/publishers/anthropic",
        "messages",
        "/v1/messages",
        MESSAGE,
        CLAUDE,
        unlike=OLDER,
    ),
    Case(
        "Claude on Vertex AI, streamed",
        lambda url: list(vertex(url).messages.create(**MESSAGE, stream=True)),
        f"{PLACE}/publishers/anthropic",
        "messages",
        "/v1/messages",
        MESSAGE | {"stream": True},
        CLAUDE,
        unlike=OLDER,
    ),
    Case(
        "Claude on Foundry",
        lambda url: anthropic.AnthropicFoundry(
            base_url=f"{url}/anthropic", api_key=TOKEN, max_retries=0
        ).messages.create(**MESSAGE),
        "/anthropic/v1",
        "messages",
        "/v1/messages",
        MESSAGE,
        CLAUDE,
        settings="heal: true",
        compared=("x-api-key",),
    ),
    Case(
        "a deployment of Azure",
        lambda url: azure(url).chat.completions.create(model="my-deployment.2", messages=QUESTION),
        "/openai/deployments",
        "chat",
        "/v1/chat/completions",
        {"messages": QUESTION},
        "my-deployment.2",
        settings=KEYED,
        compared=("api-key",),
    ),
    Case(
        "a deployment of Azure that embeds",
        lambda url: azure(url).embeddings.create(model="vectors", input="Hi", encoding_format="float"),
        "/openai/deployments",
        "embeddings",
        "/v1/embeddings",
        {"input": "Hi", "encoding_format": "float"},
        "vectors",
        settings=KEYED,
        compared=("api-key",),
    ),
    Case(
        "a deployment of Azure that makes images",
        lambda url: azure(url).images.generate(model="pictures", prompt="A cat"),
        "/openai/deployments",
        "images",
        "/v1/images/generations",
        {"prompt": "A cat"},
        "pictures",
        settings=KEYED,
        compared=("api-key",),
    ),
    Case(
        "Azure's address without a version",
        lambda url: openai.OpenAI(base_url=f"{url}/openai/v1", api_key=TOKEN, max_retries=0).chat.completions.create(
            model="my-deployment", messages=QUESTION
        ),
        "/openai/v1",
        "chat",
        "/v1/chat/completions",
        {"messages": QUESTION},
        "my-deployment",
    ),
]


def answer(received: ReceivedRequest) -> Written:
    return next(written for end, written in ANSWERS.items() if received.path.endswith(end))


def channel(number: int, case: Case, url: str) -> str:
    entry = json.dumps({"id": f"m{number}", "upstream": case.model})
    return (
        f"  - name: c{number}\n    protocols: [{case.protocol}]\n    base_url: {url}{case.base_url}\n"
        f"    api_key: {TOKEN}\n    models: [{entry}]\n    {case.settings}\n"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Running, RecordingProvider], None]:
    async with serve_provider(RecordingProvider(respond=answer)) as provider:
        config = "channels:\n" + "".join(channel(number, case, provider.url) for number, case in enumerate(CASES))
        async with running(config, tmp_path_factory.mktemp("data")) as gateway:
            yield gateway, provider


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_is_that_of_the_vendors_own_sdk(case: Case, world: tuple[Running, RecordingProvider]) -> None:
    gateway, provider = world
    await asyncio.to_thread(case.call, provider.url)
    theirs = provider.received[-1]
    body = {**case.body, "model": f"m{CASES.index(case)}"}
    async with (
        aiohttp.ClientSession(headers=gateway.headers) as session,
        session.post(gateway.url + case.path, json=body) as response,
    ):
        assert response.status == 200, await response.text()
        await response.read()
    ours = provider.received[-1]
    assert ours is not theirs
    assert (ours.path, ours.query) == (theirs.path, theirs.query)
    assert [ours.headers[name] for name in case.compared] == [theirs.headers[name] for name in case.compared]
    assert ours.json == theirs.json | dict(case.unlike)


@pytest.mark.parametrize("region", REGIONS)
def test_an_address_is_that_of_the_vendors_own_sdk(region: str) -> None:
    place = f"projects/{PROJECT}/locations/{region}"
    claude = anthropic.AnthropicVertex(region=region, project_id=PROJECT, access_token=TOKEN)
    address = PROVIDER_PRESETS["vertex-anthropic"].address(region, project=PROJECT)
    assert address == f"{str(claude.base_url).rstrip('/')}/{place}/publishers/anthropic"
    gemini = genai.Client(vertexai=True, project=PROJECT, location=region, credentials=Credentials(TOKEN))
    options = gemini._api_client._http_options
    for name, tail in (
        ("vertex", "publishers/google"),
        ("vertex-mistral", "publishers/mistralai"),
        ("vertex-open", "endpoints/openapi"),
    ):
        assert PROVIDER_PRESETS[name].address(region, project=PROJECT) == f"{options.base_url}v1/{place}/{tail}"


@pytest.mark.parametrize(
    ("version", "quirks", "sent"),
    [
        ("2023-06-01", NO_QUIRKS, "vertex-2023-10-16"),
        ("2026-10-21", Quirks(versions=("2023-06-01", "2026-10-21")), "2026-10-21"),
    ],
)
def test_claude_on_vertex_has_its_version_in_the_body(version: str, quirks: Quirks, sent: str) -> None:
    codec = text_format_at(
        f"https://aiplatform.eu.rep.googleapis.com{PLACE}/publishers/anthropic", TEXT_FORMATS["messages"]
    )
    request, _, notes = codec.decode_request(json.dumps(MESSAGE).encode(), {"anthropic-version": version})
    encoded = codec.encode_request(request, CLAUDE, False, quirks, notes)
    assert json.loads(encoded.body)["anthropic_version"] == sent

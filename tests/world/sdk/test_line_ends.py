"""Indented JSON inside streams, as the official Python SDKs read it: an echoed body, and the arguments of a call."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import httpx2
import openai
import pytest
import pytest_asyncio
from google import genai
from google.genai import types

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.sdk_callers import ResponsesCaller, sdk_caller
from tests.support.gateways import Running, running
from tests.support.providers.scenarios import INDENTED, TOOLS
from tests.support.providers.strict_providers import KEY, provider
from tests.support.scenario_cases import CASES

# the SDK subclasses the session of aiohttp
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

CONFIG = """
channels:
  - {{name: main, protocols: [chat], base_url: "{url}", api_key: {key}, models: [m]}}
"""
(CASE,) = [case for case in CASES if case.id == "indented"]


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running, None]:
    """Yield a gateway in front of a chat provider whose model indents the arguments of its calls."""
    async with provider("chat") as server, running(CONFIG.format(url=server.base_url, key=KEY), tmp_path) as made:
        yield made
        assert server.refusals == []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_an_sdk_reads_indented_arguments(name: str, streamed: bool, gateway: Running) -> None:
    async with sdk_caller(name, gateway.url, gateway.key) as sdk:
        call = sdk.stream if streamed else sdk.call
        answer = await call(CASE.request)
        assert answer == CASE.expected_by_sdk(name, "chat", stream=streamed)
        assert (await call(CASE.request, answer.turn)).text == CASE.after


async def test_the_synchronous_genai_client_reads_indented_arguments(gateway: Running) -> None:
    declared = [
        types.FunctionDeclaration(name=name, description=name, parameters_json_schema=TOOLS[name])
        for name in CASE.request.tools
    ]
    tools = [types.Tool(function_declarations=declared)]
    options = types.HttpOptions(base_url=gateway.url)
    with genai.Client(api_key=gateway.key, http_options=options) as sdk:
        config = types.GenerateContentConfig(tools=tools)
        stream = sdk.models.generate_content_stream(model="m", contents=CASE.request.text, config=config)
        chunks = await asyncio.to_thread(list, stream)
    calls = [call for chunk in chunks for call in chunk.function_calls or ()]
    assert [(call.name, call.args) for call in calls] == [(call.name, call.arguments) for call in INDENTED]


async def test_the_array_of_native_holds_indented_arguments(gateway: Running) -> None:
    declared = [{"name": name, "parametersJsonSchema": TOOLS[name]} for name in CASE.request.tools]
    contents = [{"role": "user", "parts": [{"text": CASE.request.text}]}]
    body = {"contents": contents, "tools": [{"functionDeclarations": declared}]}
    url = f"{gateway.url}/v1beta/models/m:streamGenerateContent"
    async with aiohttp.ClientSession(headers=gateway.headers) as session, session.post(url, json=body) as response:
        lines = json.loads(await response.read())
    parts = [part for line in lines for part in line["candidates"][0]["content"]["parts"]]
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    assert calls == [(call.name, call.arguments) for call in INDENTED]


class Indenting(httpx2.AsyncHTTPTransport):
    """Transport that sends JSON bodies indented."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.dumps(json.loads(await request.aread()), indent=2).encode()
        headers = [(name, value) for name, value in request.headers.items() if name.lower() != "content-length"]
        sent = httpx2.Request(request.method, request.url, headers=headers, content=body, extensions=request.extensions)
        return await super().handle_async_request(sent)


@pytest.mark.parametrize("name", ["tools", "structured"])
async def test_a_streamed_response_echoes_an_indented_body(name: str, gateway: Running) -> None:
    (case,) = [case for case in CASES if case.id == name]
    client = openai.DefaultAsyncHttpxClient(transport=Indenting())
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, http_client=client) as sdk:
        answer = await ResponsesCaller(sdk, "m").stream(case.request)
    assert answer == case.expected_by_sdk("responses", "chat", stream=True)
    response = answer.turn.content
    echoed = response["tools"] if case.request.tools else response["text"]["format"]
    assert echoed

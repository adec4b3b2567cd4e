"""The official ollama SDK for Python, unmodified, against the gateway: its blocking and its asynchronous client."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import ollama
import pytest
import pytest_asyncio
from pydantic import BaseModel

from tests.support.gateways import KEY, Running
from tests.support.images import PNG
from tests.support.providers.scenarios import CITY, CITY_SCHEMA, TEXT, THOUGHT
from tests.world.sdk.ollama_gateway import MODEL, SIMULATED, VECTORS, ollama_gateway
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with ollama_gateway(tmp_path_factory.mktemp("ollama")) as made:
        yield made


@dataclass(frozen=True)
class Client:
    """One of the SDK's clients: calls a method by its name, and collects a stream."""

    id: str
    call: Callable[..., Awaitable[Any]]


async def _blocking(gateway: Running, method: str, key: str = KEY, **options: Any) -> Any:
    def answer() -> Any:
        with ollama.Client(gateway.url, headers={"Authorization": f"Bearer {key}"} if key else {}) as client:
            found = getattr(client, method)(**options)
            return list(found) if options.get("stream") else found

    return await asyncio.to_thread(answer)


async def _waiting(gateway: Running, method: str, key: str = KEY, **options: Any) -> Any:
    async with ollama.AsyncClient(gateway.url, headers={"Authorization": f"Bearer {key}"} if key else {}) as client:
        found = await getattr(client, method)(**options)
        return [part async for part in found] if options.get("stream") else found


every_client = pytest.mark.parametrize(
    "client", [Client("blocking", _blocking), Client("async", _waiting)], ids=lambda client: client.id
)


def turn(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


@every_client
async def test_a_chat_is_answered_whole_and_streamed(client: Client, gateway: Running) -> None:
    question = {"model": MODEL, "messages": [turn("scenario: plain")], "options": {"temperature": 0.5, "num_ctx": 4096}}
    whole = await client.call(gateway, "chat", **question)
    parts = await client.call(gateway, "chat", stream=True, **question)
    assert whole.message.content == TEXT == "".join(part.message.content for part in parts)
    assert len(parts) > 2
    for last in (whole, parts[-1]):
        assert (last.done, last.done_reason, last.eval_count) == (True, "stop", 12)
        assert last.total_duration >= last.eval_duration > 0
    assert not any(part.done for part in parts[:-1])


@every_client
async def test_a_prompt_is_answered_whole_and_streamed(client: Client, gateway: Running) -> None:
    question = {"model": MODEL, "prompt": "scenario: plain", "system": "Be brief."}
    whole = await client.call(gateway, "generate", **question)
    parts = await client.call(gateway, "generate", stream=True, **question)
    assert whole.response == TEXT == "".join(part.response for part in parts)
    assert [part.done_reason for part in parts if part.done] == ["stop"]


def get_weather(city: str) -> str:
    """Get the weather of a city.

    Args:
        city: The name of the city.
    """
    return f"21 degrees in {city}"


@every_client
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_python_function_is_a_tool_and_its_result_is_read(
    client: Client, gateway: Running, stream: bool
) -> None:
    messages: list[Any] = [turn("What is the weather? Call get_weather with Oslo.")]
    first = await client.call(gateway, "chat", model=SIMULATED, messages=messages, tools=[get_weather], stream=stream)
    messages_of_model = [part.message for part in (first if stream else [first])]
    calls = [call for message in messages_of_model for call in message.tool_calls or ()]
    assert [call.function.name for call in calls] == ["get_weather"]
    assert isinstance(calls[0].function.arguments, dict)
    messages += [*(message for message in messages_of_model if message.tool_calls)]
    messages.append({"role": "tool", "tool_name": "get_weather", "content": get_weather("Oslo")})
    second = await client.call(gateway, "chat", model=SIMULATED, messages=messages, tools=[get_weather])
    assert "21 degrees in Oslo" in second.message.content


class City(BaseModel):
    """Answer in the schema of the scenario."""

    city: str
    people: int


@every_client
async def test_thoughts_images_and_schemas_are_understood(client: Client, gateway: Running, tmp_path: Path) -> None:
    thinking = await client.call(gateway, "chat", model=MODEL, messages=[turn("scenario: thinking")], think=True)
    assert (thinking.message.thinking, thinking.message.content) == (THOUGHT, TEXT)
    parts = await client.call(
        gateway, "chat", model=MODEL, messages=[turn("scenario: thinking")], think="high", stream=True
    )
    assert "".join(part.message.thinking or "" for part in parts) == THOUGHT
    (tmp_path / "a.png").write_bytes(PNG)
    for image in (PNG, str(tmp_path / "a.png")):
        seen = await client.call(gateway, "chat", model=MODEL, messages=[turn("scenario: image", images=[image])])
        assert "I saw" in seen.message.content
    built = await client.call(gateway, "chat", model=MODEL, messages=[turn("scenario: structured")], format=CITY_SCHEMA)
    assert City.model_validate_json(built.message.content).city == CITY["city"]


@every_client
async def test_texts_are_embedded_by_both_paths(client: Client, gateway: Running) -> None:
    found = await client.call(gateway, "embed", model=VECTORS, input=["one", "two words"], dimensions=64)
    assert [len(vector) for vector in found.embeddings] == [64, 64]
    assert sum(number**2 for number in found.embeddings[0]) == pytest.approx(1, abs=1e-3)
    assert found.prompt_eval_count > 0
    assert found.total_duration > 0
    older = await client.call(gateway, "embeddings", model=VECTORS, prompt="one")
    assert len(older.embedding) > 64


@every_client
async def test_models_are_listed_and_shown(client: Client, gateway: Running) -> None:
    listed = await client.call(gateway, "list")
    names = [model.model for model in listed.models]
    assert f"{SIMULATED}:latest" in names
    shown = await client.call(gateway, "show", model=f"{SIMULATED}:latest")
    assert {"completion", "tools"} <= set(shown.capabilities)
    assert (await client.call(gateway, "ps")).models == []
    chat = await client.call(gateway, "chat", model=f"{SIMULATED}:latest", messages=[turn("Hi")])
    assert chat.model == f"{SIMULATED}:latest"
    loaded = await client.call(gateway, "generate", model=SIMULATED)
    assert (loaded.done_reason, loaded.response) == ("load", "")


ERRORS = [
    ("an unknown model", "chat", {"model": "nope", "messages": [turn("Hi")]}, 404, "model 'nope' not found"),
    ("an unknown model to show", "show", {"model": "nope"}, 404, "model 'nope' not found"),
    ("an unknown model to load", "generate", {"model": "nope"}, 404, "model 'nope' not found"),
    ("a wrong role", "chat", {"model": MODEL, "messages": [{"role": "robot", "content": "Hi"}]}, 400, "messages[0].role"),
    ("a wrong option", "chat", {"model": MODEL, "messages": [turn("Hi")], "options": {"temperature": 9}}, 400, "options.temperature"),
    ("a rate limit", "chat", {"model": MODEL, "messages": [turn("scenario: error-429")]}, 429, ""),
    ("a rate limit before a stream", "chat", {"model": MODEL, "messages": [turn("scenario: error-429")], "stream": True}, 429, ""),
    ("a broken stream", "chat", {"model": MODEL, "messages": [turn("scenario: error-mid")], "stream": True}, -1, "fell over"),
    ("a model to pull", "pull", {"model": "llama3"}, 404, "does not serve"),
    ("a model to delete", "delete", {"model": "llama3"}, 404, "does not serve"),
]  # fmt: skip


@every_client
@pytest.mark.parametrize(
    ("method", "options", "status", "message"), [error[1:] for error in ERRORS], ids=[error[0] for error in ERRORS]
)
async def test_failures_are_errors_of_the_client(
    client: Client, gateway: Running, method: str, options: dict[str, Any], status: int, message: str
) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        await client.call(gateway, method, **options)
    assert caught.value.status_code == status
    assert message in caught.value.error


@every_client
async def test_a_missing_or_wrong_key_is_an_error_with_the_remedy(client: Client, gateway: Running) -> None:
    for key, message in (("", "OLLAMA_API_KEY"), ("sk-wrong", "key")):
        with pytest.raises(ollama.ResponseError) as caught:
            await client.call(gateway, "list", key=key)
        assert caught.value.status_code == 401
        assert message in caught.value.error


@every_client
async def test_the_variable_of_the_client_has_the_key(
    client: Client, gateway: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", gateway.key)
    assert (await client.call(gateway, "list", key="")).models


async def test_a_body_without_texts_is_refused_over_grpc(gateway: Running) -> None:
    source = pb.SourceDocument(format="ollama_embed", body=b'{"model":"%s","input":[]}' % VECTORS.encode())
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        stub = rpc.EmbeddingServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Embed(pb.EmbedRequest(source=source), metadata=(("authorization", f"Bearer {KEY}"),))
    assert from_rpc(refused.value).name == "MISSING_FIELD"

"""Ollama's client in JavaScript, unmodified, against the gateway in front of a strict provider."""

import base64
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from tests.support.gateways import Running
from tests.support.images import PNG
from tests.support.providers.scenarios import CITY, CITY_SCHEMA, TEXT, THOUGHT, TOOLS
from tests.world.sdk.node_runner import Node
from tests.world.sdk.ollama_gateway import MODEL, SIMULATED, VECTORS, ollama_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with ollama_gateway(tmp_path_factory.mktemp("ollama")) as made:
        yield made


@dataclass(frozen=True)
class Job:
    id: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    key: str | None = None

    @property
    def json(self) -> dict[str, Any]:
        return {"id": self.id, "method": self.method, "options": self.options, "key": self.key}


def chat(name: str, text: str = "", **options: Any) -> Job:
    messages = [{"role": "user", "content": text or f"scenario: {name}"}]
    return Job(name, "chat", {"model": MODEL, "messages": messages, **options})


TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "weather", "parameters": TOOLS["get_weather"]},
}


async def test_answers_are_read_whole_and_streamed(gateway: Running, node: Node) -> None:
    picture = {"role": "user", "content": "scenario: image", "images": [base64.b64encode(PNG).decode()]}
    jobs = [
        chat("plain"),
        chat("streamed", "scenario: plain", stream=True),
        chat("thinking", think=True),
        chat("structured", format=CITY_SCHEMA),
        Job("image", "chat", {"model": MODEL, "messages": [picture]}),
        Job("generate", "generate", {"model": MODEL, "prompt": "scenario: plain"}),
        Job("load", "generate", {"model": MODEL, "prompt": ""}),
    ]
    found = await node.run("ollama.mjs", jobs, root=gateway.url, key=gateway.key)
    parts = found["streamed"]["parts"]
    assert found["plain"]["message"]["content"] == TEXT == "".join(part["message"]["content"] for part in parts)
    assert [part["done"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert found["thinking"]["message"]["thinking"] == THOUGHT
    assert f'"{CITY["city"]}"' in found["structured"]["message"]["content"]
    assert "I saw" in found["image"]["message"]["content"]
    assert found["generate"]["response"] == TEXT
    assert found["load"]["done_reason"] == "load"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_tool_is_called_and_its_result_is_read(gateway: Running, node: Node, stream: bool) -> None:
    first = chat("tools", tools=[TOOL], stream=stream)
    found = (await node.run("ollama.mjs", [first], root=gateway.url, key=gateway.key))["tools"]
    [message] = [
        part["message"] for part in (found["parts"] if stream else [found]) if part["message"].get("tool_calls")
    ]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["get_weather"]
    result = {"role": "tool", "tool_name": "get_weather", "content": "21 degrees"}
    options = {**first.options, "messages": [*first.options["messages"], message, result], "stream": False}
    second = await node.run("ollama.mjs", [Job("second", "chat", options)], root=gateway.url, key=gateway.key)
    assert second["second"]["message"]["content"] == "The tools said: get_weather gave 21 degrees."


async def test_models_and_vectors_are_read(gateway: Running, node: Node) -> None:
    jobs = [
        Job("list", "list"),
        Job("ps", "ps"),
        Job("version", "version"),
        Job("show", "show", {"model": f"{SIMULATED}:latest"}),
        Job("embed", "embed", {"model": VECTORS, "input": ["one", "two"]}),
        Job("embeddings", "embeddings", {"model": VECTORS, "prompt": "one"}),
        Job("loaded", "embed", {"model": VECTORS, "input": ""}),
        Job("unknown", "embed", {"model": "nope", "input": []}),
    ]
    found = await node.run("ollama.mjs", jobs, root=gateway.url, key=gateway.key)
    assert f"{SIMULATED}:latest" in [model["name"] for model in found["list"]["models"]]
    assert found["ps"]["models"] == []
    assert [int(number) for number in found["version"]["version"].split(".")] >= [0, 6, 4]
    assert "tools" in found["show"]["capabilities"]
    assert len(found["embed"]["embeddings"]) == 2
    assert len(found["embeddings"]["embedding"]) > 64
    assert found["loaded"]["embeddings"] == []
    assert found["unknown"]["error"]["status"] == 404


async def test_failures_are_errors_of_the_client(gateway: Running, node: Node) -> None:
    jobs = [
        Job("unknown", "chat", {"model": "nope", "messages": []}),
        chat("error-429"),
        chat("error-429 streamed", "scenario: error-429", stream=True),
        chat("error-mid", stream=True),
        Job("pull", "pull", {"model": "nope"}),
        Job("key", "list", key="sk-wrong"),
    ]
    found = await node.run("ollama.mjs", jobs, root=gateway.url, key=gateway.key)
    errors = {name: (each["error"]["status"], each["error"]["message"]) for name, each in found.items()}
    assert errors["unknown"][0] == 404
    assert "model 'nope' not found" in errors["unknown"][1]
    assert (errors["error-429"][0], errors["error-429 streamed"][0]) == (429, 429)
    assert "the model fell over" in errors["error-mid"][1]
    assert errors["pull"][0] == 404
    assert errors["key"][0] == 401

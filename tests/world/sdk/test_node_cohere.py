"""The JavaScript clients of Cohere, unmodified, through the gateway: cohere-ai, and Vercel's `ai` with its provider."""

import base64
from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from tests.support.gateways import SANDBOX, Running, running
from tests.world.sdk.cases import RESULT, SCHEMA, WEATHER, WEATHER_QUESTION, check_arguments
from tests.world.sdk.node_runner import Node
from tests.world.sdk.ollama_gateway import MODEL as MESSAGES_MODEL
from tests.world.sdk.ollama_gateway import ollama_gateway
from tests.world.sdk.vectors import TEXTS, check_vectors

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL, EMBEDDER = "famO-5-mini", "text-embedding-3-small"
CONFIG = SANDBOX.replace("models: [", f"models: [{EMBEDDER}, ")
FINISHES = {"cohere-ai": ("COMPLETE", "TOOL_CALL"), "ai": ("stop", "stop")}
"""Client -> its finish reasons of a response, and of one with a call, which `ai` continues by itself."""
every_client = pytest.mark.parametrize("client", FINISHES)
streamed_or_not = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("cohere")) as made:
        yield made


@dataclass(frozen=True)
class Job:
    id: str
    question: str = "Hi"
    streamed: bool = False
    thinks: bool = False
    tool: dict[str, Any] | None = None
    texts: tuple[str, ...] | None = None
    endpoint: str | None = None
    model: str | None = None
    key: str | None = None
    result: str = RESULT

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)


async def run(node: Node, gateway: Running, client: str, *jobs: Job) -> dict[str, Any]:
    return await node.run("cohere.mjs", jobs, root=gateway.url, key=gateway.key, model=MODEL, sdk=client)


@streamed_or_not
@every_client
async def test_an_answer_with_thoughts(node: Node, gateway: Running, client: str, streamed: bool) -> None:
    found = await run(
        node, gateway, client, Job("plain", streamed=streamed), Job("thinks", streamed=streamed, thinks=True)
    )
    for name in ("plain", "thinks"):
        assert "simulated answer" in found[name]["text"], found
        assert found[name]["finish"] == FINISHES[client][0]
        assert bool(found[name]["reasoning"]) == (name == "thinks")


@streamed_or_not
@every_client
async def test_a_round_of_tools(node: Node, gateway: Running, client: str, streamed: bool) -> None:
    job = Job("tools", WEATHER_QUESTION, streamed, tool={"name": WEATHER, "parameters": SCHEMA})
    found = (await run(node, gateway, client, job))["tools"]
    [(name, arguments)] = found["calls"]
    assert name == WEATHER
    check_arguments(arguments)
    assert found["finish"] == FINISHES[client][1]
    if client == "ai":
        assert RESULT in found["text"]
    elif not streamed:
        assert RESULT in found["second"]


async def test_texts_are_embedded_in_each_type(node: Node, gateway: Running) -> None:
    found = (await run(node, gateway, "cohere-ai", Job("embed", texts=TEXTS, model=EMBEDDER)))["embed"]["vectors"]
    check_vectors(found["float"], 1536)
    floats = np.asarray(found["float"], "<f4")
    assert [base64.b64decode(each) for each in found["base64"]] == [vector.tobytes() for vector in floats]
    assert found["ubinary"] == np.packbits(floats > 0, axis=1).tolist()
    assert found["binary"] == (np.packbits(floats > 0, axis=1).astype(int) - 128).tolist()


@every_client
async def test_a_failure_is_the_clients_own_error(node: Node, gateway: Running, client: str) -> None:
    jobs = [Job("model", model="nope"), Job("key", key="sk-umg-wrong")]
    found = await run(node, gateway, client, *jobs)
    for name, status, error in (("model", 404, "NotFoundError"), ("key", 401, "UnauthorizedError")):
        expected = "APICallError" if client == "ai" else error
        assert (found[name]["error"]["status"], found[name]["error"]["class"]) == (status, expected), found


async def test_a_stream_that_breaks_off_is_an_error_with_the_reason(
    node: Node, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with ollama_gateway(tmp_path_factory.mktemp("broken")) as broken:
        job = Job("broken", "scenario: error-mid", streamed=True, model=MESSAGES_MODEL)
        found = (await run(node, broken, "ai", job))["broken"]
    assert found["finish"] == "error"
    assert "the model fell over" in found["errors"][0]


async def test_models_are_listed_by_their_endpoint(node: Node, gateway: Running) -> None:
    found = await run(node, gateway, "cohere-ai", Job("vectors", endpoint="embed"))
    assert found["vectors"] == {"listed": [[EMBEDDER, ["embed"]]], "first": EMBEDDER}

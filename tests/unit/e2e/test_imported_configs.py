"""Config of LiteLLM, converted: calls reach the providers at their paths, with their headers of keys and their ids."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml
from aiohttp import ClientSession, web

from tests.support.gateways import running
from tests.support.providers.every_operation import CHAT, EMBEDDING
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from tests.support.providers.short_responses import MESSAGE
from umg_grpc.config.importers.from_litellm import from_litellm

CHAT_PATH, EMBEDDINGS_PATH = "/v1/chat/completions", "/v1/embeddings"


@dataclass
class Recorder(FakeProvider):
    """Provider of three formats that records the path, the header of the key, and the model of each call."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        header = next(name for name in ("api-key", "x-api-key", "authorization") if name in received.headers)
        self.calls.append((received.path, header, str(received.json["model"])))
        by_end = {"/chat/completions": CHAT, "/messages": MESSAGE, "/embeddings": EMBEDDING}
        return web.json_response(next(body for end, body in by_end.items() if received.path.endswith(end)))


@dataclass(frozen=True)
class Deployment:
    """Deployment of LiteLLM with the call of its provider that follows from one of the gateway."""

    model: str
    path: str
    """Path behind the address of the provider in `api_base`."""
    received: tuple[str, str, str]
    call: str = CHAT_PATH


DEPLOYMENTS = [
    Deployment("azure/o_series/x", "", ("/openai/v1/chat/completions", "api-key", "x")),
    Deployment("azure/", "/openai/deployments/d", ("/openai/v1/chat/completions", "api-key", "d")),
    Deployment("anthropic/claude-opus-4-5", "", ("/v1/messages", "x-api-key", "claude-opus-4-5")),
    Deployment("azure_ai/claude-opus-4-5", "", ("/anthropic/v1/messages", "api-key", "claude-opus-4-5")),
    Deployment("huggingface/together/a/b", "/v1", ("/v1/chat/completions", "authorization", "a/b:together")),
    Deployment("openai/x", "/v1/chat/completions", ("/v1/chat/completions", "authorization", "x")),
    Deployment("openai/BAAI/bge-m3", "/v1", ("/v1/embeddings", "authorization", "BAAI/bge-m3"), EMBEDDINGS_PATH),
    Deployment("ollama_chat/llama3", "", ("/v1/chat/completions", "authorization", "llama3")),
    Deployment(
        "databricks/dbrx", "/serving-endpoints", ("/serving-endpoints/chat/completions", "authorization", "dbrx")
    ),
]


async def test_calls_of_an_imported_config_reach_the_providers(tmp_path: Path) -> None:
    async with serve_provider(Recorder()) as provider:
        entries = [
            {
                "model_name": f"m{position}",
                "litellm_params": {"model": each.model, "api_base": f"{provider.url}{each.path}", "api_key": "k"},
            }
            for position, each in enumerate(DEPLOYMENTS)
        ]
        config = from_litellm(yaml.safe_dump({"model_list": entries})).text()
        async with running(config, tmp_path) as made, ClientSession(headers=made.headers) as session:
            for position, each in enumerate(DEPLOYMENTS):
                content = (
                    {"input": "a"} if each.call == EMBEDDINGS_PATH else {"messages": [{"role": "user", "content": "a"}]}
                )
                async with session.post(
                    f"{made.url}{each.call}", json={"model": f"m{position}", **content}
                ) as response:
                    assert response.status == 200, (each, await response.text())
    assert provider.calls == [each.received for each in DEPLOYMENTS]

"""Requests without content, by which clients of Ollama load a model, with keys that may not list models."""

from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.support.gateways import running
from umg_grpc.access.api_keys import ApiKeys

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5, text-embedding-3-small]}
"""


@dataclass(frozen=True)
class Load:
    path: str
    operation: str
    """The only operation that the key may use."""
    body: dict[str, object]
    member: str


LOADS = [
    Load("/api/chat", "generate", {"model": "famO-5", "messages": []}, "done_reason"),
    Load("/api/generate", "generate", {"model": "famO-5"}, "done_reason"),
    Load("/api/embed", "embed", {"model": "text-embedding-3-small", "input": []}, "embeddings"),
    Load("/api/embeddings", "embed", {"model": "text-embedding-3-small", "prompt": ""}, "embedding"),
]


@pytest.mark.parametrize("case", LOADS, ids=lambda case: case.path)
async def test_a_key_that_may_call_a_model_may_load_it(case: Load, tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession() as session:
        _, secret = await ApiKeys(gateway.service.store).create("calls", operations=[case.operation])
        headers = {"authorization": f"Bearer {secret}"}
        async with session.post(gateway.url + case.path, json=case.body, headers=headers) as got:
            assert got.status == 200, await got.text()
            assert case.member in await got.json()


@pytest.mark.parametrize("case", LOADS, ids=lambda case: case.path)
async def test_an_unknown_model_cannot_be_loaded(case: Load, tmp_path: Path) -> None:
    body = {**case.body, "model": "nope"}
    async with (
        running(CONFIG, tmp_path) as gateway,
        aiohttp.ClientSession(headers=gateway.headers) as session,
        session.post(gateway.url + case.path, json=body) as got,
    ):
        assert got.status == 404
        assert "model 'nope' not found" in (await got.json())["error"]

"""Operations of a key: the others are refused on every face, and models that offer no other do not exist for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from tests.support.gateways import running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5, famC-sonnet-4-5, famG-2.5-pro, text-embedding-3-small]}
overload: {lag: 10}
"""
HI = [{"role": "user", "content": "Hi"}]
EMBEDDING = "text-embedding-3-small"


@dataclass(frozen=True)
class Denied:
    id: str
    path: str
    body: dict[str, Any]
    error: dict[str, Any]
    """Members of the error in the format's own body."""


DENIED = [
    Denied("chat", "/v1/chat/completions", {"model": "famO-5", "messages": HI}, {"code": "permission_denied"}),
    Denied("responses", "/v1/responses", {"model": "famO-5", "input": "Hi"}, {"code": "permission_denied"}),
    Denied(
        "messages",
        "/v1/messages",
        {"model": "famC-sonnet-4-5", "max_tokens": 9, "messages": HI},
        {"type": "permission_error"},
    ),
    Denied(
        "native",
        "/v1beta/models/famG-2.5-pro:generateContent",
        {"contents": [{"parts": [{"text": "Hi"}]}]},
        {"code": 403, "status": "PERMISSION_DENIED"},
    ),
    Denied("a model that does not exist", "/v1/chat/completions", {"model": "absent", "messages": HI}, {}),
]


async def test_an_operation_that_a_key_does_not_have_is_denied_in_the_body_of_the_format(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession(gateway.url) as session:
        _, secret = await ApiKeys(gateway.service.store).create("embeds", operations=["embed", "models"])
        headers = {"authorization": f"Bearer {secret}"}
        for case in DENIED:
            async with session.post(case.path, json=case.body, headers=headers) as answer:
                error = (await answer.json())["error"]
                assert answer.status == 403, (case.id, error)
            assert "may not use the operation `generate`; it may use embed, models" in error["message"], case.id
            assert case.error.items() <= error.items(), case.id
        body = {"model": EMBEDDING, "input": "Hi"}
        async with session.post("/v1/embeddings", json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        async with grpc.aio.insecure_channel(gateway.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await rpc.GenerationServiceStub(channel).Generate(
                    pb.GenerateRequest(model="famO-5"), metadata=[("authorization", f"Bearer {secret}")]
                )
            denied = from_rpc(caught.value)
            assert (denied.reason, denied.metadata["operation"]) == (pb.ERROR_REASON_PERMISSION_DENIED, "generate")


async def test_a_model_without_an_operation_of_the_key_does_not_exist_for_it(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession(gateway.url) as session:
        _, secret = await ApiKeys(gateway.service.store).create("embeds", operations=["embed", "models"])
        headers = {"authorization": f"Bearer {secret}"}
        async with session.get("/v1/models", headers=headers) as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == [EMBEDDING]
        for path, status in (("/v1/models/famO-5", 404), (f"/v1/models/{EMBEDDING}", 200)):
            async with session.get(path, headers=headers) as answer:
                assert answer.status == status, path
        async with session.post("/v1/embeddings", json={"model": "famO-5", "input": "Hi"}, headers=headers) as answer:
            assert answer.status == 404, await answer.text()


async def test_a_key_that_may_not_list_models_is_no_invalid_key(tmp_path: Path) -> None:
    """The face checks a key that it does not know before it reads the body, by a call of the service."""
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession(gateway.url) as session:
        _, secret = await ApiKeys(gateway.service.store).create("embeds", operations=["embed"])
        headers = {"authorization": f"Bearer {secret}"}
        async with session.post("/v1/embeddings", json={"model": EMBEDDING, "input": "Hi"}, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
        async with session.get("/v1/models", headers=headers) as answer:
            assert answer.status == 403
            assert "operation `models`" in (await answer.json())["error"]["message"]

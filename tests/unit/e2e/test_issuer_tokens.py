"""Tokens of an issuer as credentials of calls, on both faces of a gateway."""

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio

from tests.support.gateways import SANDBOX, Running, running
from tests.support.issuers import AUDIENCE, TestIssuer, serving_issuer
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = {"model": "famO-5", "messages": [{"role": "user", "content": "hello"}]}


def config_of(issuer: TestIssuer) -> str:
    return f"""{SANDBOX}
sign_on:
  issuers:
    - name: main
      issuer: {issuer.url}
      callers: {{audiences: [{AUDIENCE}], models_claim: models, models: ["famO-*"], rpm: 1000}}
"""


@dataclass(frozen=True)
class Setting:
    gateway: Running
    issuer: TestIssuer

    def headers(self, **changes: object) -> dict[str, str]:
        return {"authorization": f"Bearer {self.issuer.token(time.time(), **changes)}"}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def setting(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Setting]:
    async with serving_issuer() as issuer:
        data: Path = tmp_path_factory.mktemp("gateway")
        async with running(config_of(issuer), data) as gateway:
            yield Setting(gateway, issuer)


async def post(setting: Setting, headers: dict[str, str], times: int = 1, path: str = "/v1/chat/completions") -> int:
    async with aiohttp.ClientSession(setting.gateway.url) as session:
        for _ in range(times):  # one connection, so that the later calls find the token of the first one
            async with session.post(path, json=QUESTION, headers=headers) as response:
                await response.read()
        return response.status


async def test_a_token_calls_over_http(setting: Setting) -> None:
    assert await post(setting, setting.headers(), times=3) == 200


async def test_a_token_is_read_where_keys_of_a_format_are(setting: Setting) -> None:
    token = setting.headers()["authorization"].removeprefix("Bearer ")
    body = {"model": "famO-5", "max_tokens": 100, "messages": QUESTION["messages"]}
    async with (
        aiohttp.ClientSession(setting.gateway.url) as session,
        session.post("/v1/messages", json=body, headers={"x-api-key": token}) as response,
    ):
        assert response.status == 200, await response.text()


async def test_a_token_calls_over_grpc(setting: Setting) -> None:
    async with grpc.aio.insecure_channel(setting.gateway.grpc) as channel:
        stub = rpc.ModelServiceStub(channel)
        for _ in range(2):
            response = await stub.ListModels(pb.ListModelsRequest(), metadata=tuple(setting.headers().items()))
    assert {model.id for model in response.models} == {"famO-5", "famO-5-mini"}


async def test_models_outside_of_a_token_do_not_exist_for_it(setting: Setting) -> None:
    assert await post(setting, setting.headers(models=["famG-*"])) == 404


@pytest.mark.parametrize(("changes", "status"), [({"aud": "another"}, 401), ({"exp": 1_000}, 401)])
async def test_an_invalid_token_is_refused_on_both_faces(
    setting: Setting, changes: dict[str, object], status: int
) -> None:
    headers = setting.headers(**changes)
    assert await post(setting, headers) == status
    async with grpc.aio.insecure_channel(setting.gateway.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.ModelServiceStub(channel).ListModels(pb.ListModelsRequest(), metadata=tuple(headers.items()))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_administers_nothing(setting: Setting) -> None:
    async with (
        aiohttp.ClientSession(setting.gateway.url, headers=setting.headers()) as session,
        session.post("/admin/v1/keys", json={"settings": {"name": "another"}}) as response,
    ):
        assert response.status == 403


async def test_usage_names_the_subject(tmp_path: Path) -> None:
    async with serving_issuer() as issuer:
        async with running(config_of(issuer), tmp_path) as gateway:
            setting = Setting(gateway, issuer)
            headers = setting.headers(sub="ben", preferred_username="Ben")
            assert await post(setting, {**headers, "x-request-id": "of-ben"}) == 200
        store = await open_store("sqlite", tmp_path)
        try:
            keys = {key.name: key for key in await ApiKeys(store).list()}
            [record] = await UsageRecords(store).find("of-ben")
        finally:
            await store.aclose()
    assert (keys["main:ben"].owner, record.key_id) == ("Ben", keys["main:ben"].key_id)

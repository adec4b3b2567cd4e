"""Calls that are refused before their admission: they have records with their reason, and are in no usage."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio

from tests.support.gateways import KEY, Running, running
from tests.unit.e2e.authorisation import USER
from umg_grpc.v1 import pb, rpc

CONFIG = """
channels: [{name: main, protocols: [sandbox], pace: 0, models: [famO-5]}]
models: {famO-5: {price: {input: 1, output: 1}}}
body_limit: 4096
"""
CHAT = "/v1/chat/completions"
HELLO = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Gateway:
    running: Running
    session: aiohttp.ClientSession

    async def key(self, **settings: object) -> tuple[str, str]:
        """Create a key. Return its id and its secret."""
        body = {"settings": settings}
        async with self.session.post("/admin/v1/keys", json=body, headers=bearer(KEY)) as answer:
            made = await answer.json()
        return made["key"]["key_id"], made["secret"]

    async def records(self, query: str, count: int) -> list[dict[str, Any]]:
        """Return the records of a query, once there are as many as expected: they are written in the background."""
        async with asyncio.timeout(60):
            while len(found := await self.listed(query)) < count:  # noqa: ASYNC110  no event reports the write
                await asyncio.sleep(0.05)
        return found

    async def listed(self, query: str) -> list[dict[str, Any]]:
        async with self.session.get(f"/admin/v1/requests?{query}", headers=bearer(KEY)) as answer:
            found: list[dict[str, Any]] = (await answer.json())["records"]
        return found

    async def post(self, request_id: str, secret: str | None, body: object = None, **headers: str) -> int:
        sent = {"x-request-id": request_id, **headers, **(bearer(secret) if secret is not None else {})}
        async with self.session.post(CHAT, json=HELLO if body is None else body, headers=sent) as answer:
            return answer.status


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Gateway, None]:
    async with running(CONFIG, folder) as gateway, aiohttp.ClientSession(gateway.url) as session:
        yield Gateway(gateway, session)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway, None]:
    async with opened(tmp_path_factory.mktemp("refused")) as found:
        yield found


async def test_each_reason_before_the_admission_has_a_record(gateway: Gateway) -> None:
    limited_id, limited = await gateway.key(name="limited", requests_per_minute=1)
    narrow_id, narrow = await gateway.key(name="narrow", operations=["embed"])
    poor_id, poor = await gateway.key(name="poor", budget_micro_credits=0)
    ended_id, ended = await gateway.key(name="ended")
    async with gateway.session.post(f"/admin/v1/keys/{ended_id}/revoke", headers=bearer(KEY)) as answer:
        assert answer.status == 200
    assert await gateway.post("served", limited) == 200
    unknown = {**HELLO, "model": "famZ-" + "9" * 300}
    statuses = [
        await gateway.post("limit", limited),
        await gateway.post("permission", narrow),
        await gateway.post("budget", poor),
        await gateway.post("no-key", None),
        await gateway.post("wrong-key", "sk-umg-" + "0" * 40),
        await gateway.post("revoked", ended),
        await gateway.post("model", KEY, unknown),
        await gateway.post("field", KEY, {**HELLO, "temperature": "warm"}),
        await gateway.post("large", KEY, {**HELLO, "user": "x" * 5000}),
        await gateway.post("type", KEY, **{"content-type": "text/plain"}),
    ]
    assert statuses == [429, 403, 429, 401, 401, 401, 404, 400, 413, 415]
    found = {each["request_id"]: each for each in await gateway.records("failed_only=true", len(statuses))}
    assert {name: (each["reason"], each["key_id"]) for name, each in found.items()} == {
        "limit": ("rate_limited", limited_id),
        "permission": ("permission_denied", narrow_id),
        "budget": ("quota_exhausted", poor_id),
        "no-key": ("missing_key", ""),
        "wrong-key": ("invalid_key", ""),
        "revoked": ("invalid_key", ended_id),
        "model": ("model_not_found", found["model"]["key_id"]),
        "field": ("invalid_field", found["field"]["key_id"]),
        "large": ("body_too_large", found["large"]["key_id"]),
        "type": ("unsupported_media_type", found["type"]["key_id"]),
    }
    for each in found.values():
        assert (each["refused_calls"], each["face"], each["attempts"], each["micro_credits"]) == (1, "chat", [], 0)
        assert each["message"]
        assert each["start_time"]
    assert found["field"]["model"] == "famO-5"
    assert found["model"]["model"].startswith("famZ-999")
    assert len(found["model"]["model"]) == 64


async def test_refused_calls_are_in_no_usage_and_their_records_are_found_by_id(gateway: Gateway) -> None:
    key_id, secret = await gateway.key(name="mixed")
    assert await gateway.post("good", secret) == 200
    assert await gateway.post("bad", secret, {**HELLO, "model": "none"}) == 404
    records = await gateway.records(f"key_ids={key_id}", 2)
    assert [(each["request_id"], each["refused_calls"]) for each in records] == [("bad", 1), ("good", 0)]
    for request_id, refused in (("bad", 1), ("good", 0)):
        async with gateway.session.get(f"/admin/v1/requests/{request_id}", headers=bearer(secret)) as answer:
            assert (answer.status, (await answer.json())["record"]["refused_calls"]) == (200, refused)
    page, token = [], ""
    for _ in range(2):
        query = f"/admin/v1/requests?key_ids={key_id}&page_size=1&page_token={token}"
        async with gateway.session.get(query, headers=bearer(KEY)) as answer:
            body = await answer.json()
        page += [each["request_id"] for each in body["records"]]
        token = body["next_page_token"]
    assert (page, token) == (["bad", "good"], "")
    assert await gateway.listed(f"key_ids={key_id}&channels=main&failed_only=true") == []
    for query in (f"/admin/v1/usage?key_ids={key_id}&bucket=day", f"/admin/v1/usage?key_ids={key_id}&group_by=model"):
        async with gateway.session.get(query, headers=bearer(KEY)) as answer:
            [entry] = (await answer.json())["entries"]
        assert (entry["request_count"], entry["failed_request_count"]) == (1, 0)


async def test_a_refused_call_over_grpc_has_a_record(gateway: Gateway) -> None:
    async with grpc.aio.insecure_channel(gateway.running.grpc) as channel:
        for request_id, secret in (("grpc-key", "sk-umg-none"), ("grpc-model", KEY)):
            metadata = [("authorization", f"Bearer {secret}"), ("x-request-id", request_id)]
            with suppress(grpc.aio.AioRpcError):
                await rpc.GenerationServiceStub(channel).Generate(
                    pb.GenerateRequest(model="nothing", messages=[USER]), metadata=metadata
                )
    async with asyncio.timeout(60):
        while not (found := await gateway.listed("models=nothing")):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    [model] = found
    assert (model["face"], model["method"], model["operation"]) == (
        "grpc", "/umg.v1.GenerationService/Generate", "generate",
    )  # fmt: skip
    refused = {each["request_id"]: each["reason"] for each in await gateway.listed("failed_only=true")}
    assert refused["grpc-key"] == "invalid_key"


async def test_refused_calls_of_administrative_services_have_no_record(gateway: Gateway) -> None:
    key_id, secret = await gateway.key(name="holder")
    metadata = [("authorization", f"Bearer {secret}")]
    async with grpc.aio.insecure_channel(gateway.running.grpc) as channel:
        for call, request in (
            (rpc.AdminServiceStub(channel).ListChannels, pb.ListChannelsRequest()),
            (rpc.AlertServiceStub(channel).ListAlerts, pb.ListAlertsRequest()),
            (rpc.AccountServiceStub(channel).ListAccounts, pb.ListAccountsRequest()),
            (rpc.UserServiceStub(channel).ListUsers, pb.ListUsersRequest()),
            (rpc.AuditServiceStub(channel).ListAuditEvents, pb.ListAuditEventsRequest()),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(request, metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with suppress(grpc.aio.AioRpcError):
            request = pb.GenerateRequest(model="absent", messages=[USER])
            await rpc.GenerationServiceStub(channel).Generate(request, metadata=metadata)
    records = await gateway.records(f"key_ids={key_id}", 1)  # written in the order of the calls
    assert [record["reason"] for record in records] == ["model_not_found"]


async def test_a_flood_of_refused_calls_makes_few_records(tmp_path: Path) -> None:
    async with opened(tmp_path) as gateway:
        for _ in range(40):
            assert await gateway.post("flood", "sk-umg-" + "1" * 40) == 401
        await gateway.records("failed_only=true", 10)
    async with opened(tmp_path) as again:  # all records are written at the end
        assert len(await again.listed("failed_only=true")) <= 20  # of two minutes, where one began meanwhile


async def test_calls_beyond_the_capacity_have_records(tmp_path: Path) -> None:
    slow = CONFIG.replace("pace: 0", "pace: 5") + "overload: {calls: 1, queue: 0}\n"
    async with running(slow, tmp_path) as running_, aiohttp.ClientSession(running_.url) as session:
        gateway = Gateway(running_, session)
        async with session.post(CHAT, json={**HELLO, "stream": True}, headers=bearer(KEY)) as streamed:
            assert streamed.status == 200
            assert await gateway.post("shed", KEY) == 503
            [record] = await gateway.records("failed_only=true", 1)
    assert (record["request_id"], record["reason"], record["refused_calls"]) == ("shed", "unavailable", 1)

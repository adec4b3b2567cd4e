"""Video tasks at relays, over HTTP: tasks end by the words and shapes that relays pass on from other makers, with their
file or reason, and are charged at their success alone.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import ClientSession, web

from tests.support.gateways import Running, running
from tests.support.serving import serving
from tests.support.video_calls import eventually
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, BudgetAccounts
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb, rpc

FILE = b"\x00\x00\x00\x18ftypmp42" + bytes(2000)
CREDIT = 1_000_000
Body = Mapping[str, object]
Answer = tuple[int, Body]
"""HTTP status and body."""


@dataclass(frozen=True)
class Case:
    """Task at a relay. In bodies `URL` is the address of a public file."""

    id: str
    """With the source of the responses."""
    created: Body
    polls: Sequence[Answer]
    protocol: str = "vidA"
    base: str = "/v1"
    has_content: bool = True
    """Whether the relay has the path of the file that its key can read."""


def ok(**body: object) -> Answer:
    return 200, body


def new_api(**task: object) -> Answer:
    return ok(code="success", message="", data={"id": 7, "task_id": "t-1", "progress": "100%", "data": {}, **task})


QUEUED: Body = {"id": "t-1", "object": "video", "model": "sora-2", "created_at": 1, "status": "queued"}
DONE = (
    Case("the word of another maker (ArcReel/ArcReel#1888)", QUEUED, [ok(id="t-1", status="succeeded", progress=100)]),
    Case(
        "SUCCESS without an address (QuantumNous/new-api#7194)",
        QUEUED,
        [ok(task_id="t-1", status="SUCCESS", fail_reason="")],
    ),
    Case(
        "an id of a request, and a path (tigerowo/infinite-canvas#39)",
        {"request_id": "t-1"},
        [ok(status="done", progress=100, video={"duration": 10, "url": "/v1/videos/t-1/content"})],
    ),
    Case(
        "a public file and no path of the key",
        QUEUED,
        [ok(id="t-1", status="COMPLETED", metadata={"url": "URL"})],
        has_content=False,
    ),
    Case(
        "a task that is not known at once, then busy servers",
        QUEUED,
        [
            *[(404, {"error": {"message": "Video not found"}})] * 2,
            (400, {"code": "task_not_exist", "message": "task_not_exist", "data": None}),
            (429, {"error": {"message": "slow down"}}),
            (502, {}),
            ok(id="t-1", status="NOT_START"),
            ok(id="t-1", status="Success"),
        ],
    ),
    Case(
        "the maker's task in an envelope (QuantumNous/new-api dto/task.go)",
        {"code": "success", "data": {"task_id": "t-1", "status": "SUBMITTED"}},
        [new_api(status="IN_PROGRESS"), new_api(status="SUCCESS", result_url="URL")],
        "vidD",
        "/api/v3",
    ),
    Case(
        "the old place of the address (QuantumNous/new-api model/task.go)",
        {"code": "success", "data": {"task_id": "t-1"}},
        [new_api(status="SUCCESS", fail_reason="URL")],
        "vidC",
        "",
    ),
)
FAILED = (
    Case("FAILURE (ArcReel/ArcReel#1889)", QUEUED, [ok(id="t-1", status="FAILURE", fail_reason="bad prompt")]),
    Case("a reason as text", QUEUED, [ok(id="t-1", status="error", error="bad prompt")]),
    Case(
        "a failure in an envelope",
        {"code": "success", "data": {"task_id": "t-1"}},
        [new_api(status="FAILURE", fail_reason='{"error":{"message":"bad prompt","code":"x"}}')],
        "vidD",
        "/api/v3",
    ),
)


@dataclass
class Relay:
    """Relay that answers each query with the next answer of its case; the last one remains."""

    case: Case
    url: str = ""
    queries: int = 0
    reads: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path == "/file.mp4" or (path.endswith("/content") and self.case.has_content):
            self.reads.append(path)
            return web.Response(body=FILE, content_type="video/mp4")
        if path.endswith("/content"):
            return web.json_response({"error": {"message": "no route"}}, status=404)
        if request.method == "POST":
            await request.read()
            return web.json_response(self.case.created)
        status, body = self.case.polls[min(self.queries, len(self.case.polls) - 1)]
        self.queries += 1
        return web.json_response(self._filled(body), status=status)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        return f"{self.url}/file.mp4" if value == "URL" else value


@dataclass(frozen=True)
class Caller:
    gateway: Running
    relay: Relay
    key_id: str
    headers: Mapping[str, str]

    async def balance(self) -> Balance:
        """Return the balance after the process has returned its unused lease."""
        accounts = BudgetAccounts(self.gateway.service.store)

        async def read() -> Balance:
            return (await accounts.balances({self.key_id: 0})).get(self.key_id, NO_BALANCE)

        return await eventually(read, lambda balance: not balance.held)


@asynccontextmanager
async def caller(case: Case, data: Path) -> AsyncGenerator[Caller, None]:
    relay, app = Relay(case), web.Application()
    app.router.add_route("*", "/{path:.*}", relay.answer)
    async with serving(app) as relay.url:
        config = (
            "egress: {allow: [127.0.0.1], http: true}\n"
            f"channels:\n- {{name: relay, protocols: [{case.protocol}], base_url: '{relay.url}{case.base}', api_key: k,\n"
            "   models: [clips-1]}\nmodels: {clips-1: {price: {video: 2}}}\n"
        )
        async with running(config, data) as gateway:
            videos = gateway.service._channels.videos["relay"]
            assert isinstance(videos, HttpVideo)
            videos._protocol = replace(videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
            key, secret = await ApiKeys(gateway.service.store).create("caller", budget_micro_credits=10 * CREDIT)
            yield Caller(gateway, relay, key.key_id, {"authorization": f"Bearer {secret}"})


async def made(session: ClientSession, one: Caller) -> str:
    """Submit a task by the unified API, and wait for its end. Return its id."""
    body = {"model": "clips-1", "prompt": "a cat", "seconds": "4"}
    async with session.post(f"{one.gateway.url}/v1/videos", json=body) as response:
        task_id = str((await response.json())["id"])
    async with grpc.aio.insecure_channel(one.gateway.grpc) as channel, asyncio.timeout(30):
        stub: Any = rpc.VideoServiceStub(channel)
        watched = stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task_id), metadata=tuple(one.headers.items()))
        async for _ in watched:
            pass
    return task_id


@pytest.mark.parametrize("case", DONE, ids=lambda case: case.id)
async def test_a_task_at_a_relay_ends_with_its_file_and_is_charged(case: Case, tmp_path: Path) -> None:
    async with caller(case, tmp_path) as one, ClientSession(headers=one.headers) as session:
        task_id = await made(session, one)
        async with session.get(f"{one.gateway.url}/v1/videos/{task_id}") as response:
            video = await response.json()
        assert (video["status"], video["progress"]) == ("completed", 100)
        async with session.get(f"{one.gateway.url}/v1/videos/{task_id}/content") as response:
            assert (response.status, await response.read()) == (200, FILE)
        assert len(set(one.relay.reads)) == 1
        assert await one.balance() == Balance(2 * CREDIT, 0)


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
async def test_a_task_that_fails_at_a_relay_has_its_reason_and_costs_nothing(case: Case, tmp_path: Path) -> None:
    async with caller(case, tmp_path) as one, ClientSession(headers=one.headers) as session:
        task_id = await made(session, one)
        async with session.get(f"{one.gateway.url}/v1/videos/{task_id}") as response:
            video = await response.json()
        assert (video["status"], video["error"]["message"].partition(" (")[0]) == ("failed", "bad prompt")
        assert one.relay.queries == len(case.polls)
        assert await one.balance() == Balance(0, 0)


REFUSED = (
    Case("failed", {**QUEUED, "status": "failed", "error": {"message": "bad prompt", "code": "x"}}, []),
    Case("FAILURE", {**QUEUED, "status": "FAILURE", "fail_reason": "bad prompt"}, []),
    Case(
        "a failure in an envelope",
        {"code": "success", "data": {"task_id": "t-1", "status": "FAILURE", "fail_reason": "bad prompt"}},
        [],
        "vidD",
        "/api/v3",
    ),
    Case("the words of a failed server", {**QUEUED, "status": "error", "error": "internal error: bad prompt"}, []),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_task_that_fails_at_its_creation_is_refused_at_once(case: Case, tmp_path: Path) -> None:
    async with caller(case, tmp_path) as one, ClientSession(headers=one.headers) as session:
        body = {"model": "clips-1", "prompt": "a cat", "seconds": "4"}
        async with session.post(f"{one.gateway.url}/v1/videos", json=body) as response:
            error = (await response.json())["error"]
            assert response.status == (502 if case.id == "the words of a failed server" else 400)
        assert "bad prompt" in error["message"]
        assert one.relay.queries == 0
        assert await one.balance() == Balance(0, 0)

"""Fallbacks of video tasks: by every face and cause, before a provider may have accepted the task, and charged once."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from http_facade.routes import Shape
from tests.support.databases import Database
from tests.support.fake_video_upstream import PROTOCOL, FakeVideos
from tests.support.gateways import KEY, Running, running
from tests.support.processes import run
from tests.support.video_calls import AUTHORIZED, Stub, ended, stub_of, until
from tests.unit.e2e.authorisation import BODIES, KEYED_ROUTES, QUERIES
from tests.unit.e2e.test_budgets import spent
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.cli.admin_client import ADMIN_KEY_VARIABLE
from umg_grpc.store.budget_accounts import Balance
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb

CREDIT = 1_000_000
CONFIG = f"""
database: DATABASE
retries: {{repeats: 0}}
channels:
  - {{name: first, protocols: [{PROTOCOL}], base_url: "https://first.example", api_key: k, models: [clips-1, clips-d]}}
  - {{name: second, protocols: [{PROTOCOL}], base_url: "https://second.example", api_key: k, models: [clips-2]}}
models:
  clips-1: {{price: {{video: 3}}}}
  clips-d: {{price: {{video: 3}}, family: vidD}}
  clips-2: {{price: {{video: 2}}}}
fallbacks: {{"clips-*": [clips-2]}}
"""
CAUSES = {
    "context": UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, "too long").with_failure(Failure.CONTEXT),
    "content": UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, "refused").with_failure(Failure.CALLER),
    "unavailable": UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "broken").with_failure(Failure.TRANSIENT),
    "quota": UmgError(pb.ERROR_REASON_UPSTREAM_UNPAID, "no credit").with_failure(Failure.DOWN),
}
ROUTES = [route for route in KEYED_ROUTES if route.shape is Shape.CREATE_VIDEO]


@dataclass
class Videos:
    """Gateway with two providers of videos, of which a test lets the first fail."""

    gateway: Running
    session: aiohttp.ClientSession
    stub: Stub
    first: FakeVideos = field(default_factory=FakeVideos)
    second: FakeVideos = field(default_factory=FakeVideos)

    @property
    def submitted(self) -> tuple[int, int]:
        """Numbers of submissions at both providers."""
        return sum(self.first.submitted.values()), sum(self.second.submitted.values())


@asynccontextmanager
async def videos(data: Path, database: str = "sqlite") -> AsyncGenerator[Videos, None]:
    async with (
        running(CONFIG.replace("DATABASE", database), data) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        made = Videos(gateway, session, stub_of(channel))
        gateway.service._channels.videos |= {"first": made.first, "second": made.second}
        yield made


def request(**fields: Any) -> pb.CreateVideoTaskRequest:
    parameters = pb.VideoParameters(prompt="a cat", duration_seconds=5)
    return pb.CreateVideoTaskRequest(model="clips-1", parameters=parameters, **fields)


@pytest.mark.parametrize("cause", CAUSES)
async def test_a_fallback_makes_the_video_of_every_face(cause: str, tmp_path: Path) -> None:
    async with videos(tmp_path) as here:
        for number, route in enumerate(ROUTES, start=1):
            model, body = BODIES[route.format]
            path = re.sub(r"\{model(?::.+?)?\}(?=:|/|$)", model, route.path) + QUERIES.get(route.path, "")
            here.first.refusals = [CAUSES[cause]]
            async with here.session.request(route.method, path, json=body) as got:
                assert got.status == 200, (path, await got.text())
                shown = got.headers["x-umg-route"]
            assert shown.startswith(f"fallback=clips-2; cause={cause}; channel=second; attempts=2;"), (path, shown)
            assert here.submitted == (number, number), path
            assert here.second.requests[-1].model == "clips-2"
        here.first.refusals = [CAUSES[cause]]
        task = (await here.stub.CreateVideoTask(request(), metadata=AUTHORIZED)).task
        assert task.model == "clips-2"


async def test_the_record_names_the_requested_model_the_cause_and_all_attempts(prepared_database: Database) -> None:
    async with videos(prepared_database.data_dir, prepared_database.url) as here:
        here.first.refusals = [CAUSES["unavailable"]]
        metadata = (*AUTHORIZED, ("x-request-id", "video-1"))
        task = (await here.stub.CreateVideoTask(request(), metadata=metadata)).task
        await ended(here.stub, task.task_id)
        [record] = await UsageRecords(here.gateway.service.store).find("video-1")
        code, shown, message = await run(
            "requests", "show", "video-1", "--gateway", here.gateway.url, environment={ADMIN_KEY_VARIABLE: KEY}
        )
    assert (record.model, record.channel, record.status, record.attempts) == ("clips-2", "second", "OK", 2)
    assert record.details is not None
    assert (record.details.requested_model, record.details.fallback_cause) == ("clips-1", "unavailable")
    failed, answered = record.details.attempts
    assert (failed.channel, failed.model, failed.reason) == ("first", "clips-1", "UPSTREAM_FAILED")
    assert (answered.channel, answered.model, answered.reason) == ("second", "clips-2", "")
    assert 0 < failed.start_micros < answered.start_micros < record.duration_micros
    assert code == 0, message
    assert re.search(rf"^task +{task.task_id}$", shown, re.MULTILINE)
    assert "fallback of        clips-1 (unavailable)" in shown
    lines = [line.split()[:2] for line in shown.partition("attempts:")[2].splitlines()]
    assert lines[-2:] == [["first", "clips-1"], ["second", "clips-2"]]


async def test_a_task_that_a_provider_may_have_accepted_is_not_submitted_again(tmp_path: Path) -> None:
    async with videos(tmp_path) as here:
        here.first.refusals = [UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "cut").with_failure(Failure.AMBIGUOUS)]
        here.first.accepts_before_refusal = True
        metadata = (*AUTHORIZED, ("x-request-id", "unknown-1"))
        task = (await here.stub.CreateVideoTask(request(), metadata=metadata)).task
        done = await ended(here.stub, task.task_id)
        assert (done.model, done.state) == ("clips-1", pb.VIDEO_TASK_STATE_SUCCEEDED)
        assert here.submitted == (1, 0)
        [record] = await UsageRecords(here.gateway.service.store).find("unknown-1")
    assert record.details is not None
    assert [(each.channel, each.reason) for each in record.details.attempts] == [("first", "UPSTREAM_CUT")]


async def test_a_repeated_submission_finds_the_task_of_the_fallback(tmp_path: Path) -> None:
    async with videos(tmp_path) as here:
        here.first.refusals = [CAUSES["unavailable"]]
        made = [
            (await here.stub.CreateVideoTask(request(idempotency_key="once"), metadata=AUTHORIZED)).task
            for _ in range(2)
        ]
        assert made[0].task_id == made[1].task_id
        assert here.submitted == (1, 1)


async def test_a_task_of_a_fallback_is_charged_at_its_price_alone(tmp_path: Path) -> None:
    async with videos(tmp_path) as here:
        key, secret = await ApiKeys(here.gateway.service.store).create("budget", budget_micro_credits=4 * CREDIT)
        metadata = (("authorization", f"Bearer {secret}"),)
        here.first.refusals = [CAUSES["unavailable"]]
        task = (await here.stub.CreateVideoTask(request(), metadata=metadata)).task
        here.first.refusals = [CAUSES["unavailable"]]
        with pytest.raises(grpc.aio.AioRpcError) as caught:  # two credits are reserved, and `clips-1` costs three
            await here.stub.CreateVideoTask(request(), metadata=metadata)
        assert from_rpc(caught.value).name == "QUOTA_EXHAUSTED"
        assert here.submitted == (1, 1)
        await until(lambda: here.second.polled[f"up-{task.task_id}"] >= 3)
        async for message in here.stub.WatchVideoTask(
            pb.WatchVideoTaskRequest(task_id=task.task_id), metadata=metadata
        ):
            last = message.task
        assert last.state == pb.VIDEO_TASK_STATE_SUCCEEDED
    assert await spent("sqlite", tmp_path, key.key_id) == Balance(2 * CREDIT, 0)


async def test_the_error_of_the_requested_model_is_sent_if_both_refuse(tmp_path: Path) -> None:
    async with videos(tmp_path) as here:
        here.first.refusals, here.second.refusals = [CAUSES["quota"]], [CAUSES["content"]]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await here.stub.CreateVideoTask(request(), metadata=AUTHORIZED)
        assert from_rpc(caught.value).name == "UPSTREAM_UNPAID"
        assert here.submitted == (1, 1)

"""Notifications of several keys, of which some have receivers that do not answer."""

import asyncio
from collections import Counter
from pathlib import Path

import grpc
import pytest
from aiohttp import web

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import SUCCEEDED, FakeVideos
from tests.support.gateways import running
from tests.support.providers.raw import Link, provider
from tests.support.serving import serving
from tests.support.video_calls import MODEL, eventually, request, stub_of, until
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.service.video_tasks import caller_notifier
from umg_grpc.service.video_tasks.callback_receivers import FIRST_PAUSE_SECONDS, MAX_PAUSED, RECEIVER_SHARE, Receivers
from umg_grpc.store.callback_outbox import OutgoingCallback

CONFIG = fake_video_upstream.config(MODEL) + "egress: {allow: [127.0.0.1], http: true, timeout: 600}\n"
TASKS = 4 * RECEIVER_SHARE


async def test_a_receiver_that_never_answers_delays_no_other_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_notifier, "SENDING_SLOTS", 3 * RECEIVER_SHARE)
    monkeypatch.setattr(caller_notifier, "POST_SECONDS", 600.0)  # no attempt ends, and is repeated, during the test
    monkeypatch.setattr(caller_notifier, "LEASE_SECONDS", 1200.0)
    received = Counter[str]()
    released = asyncio.Event()

    async def receive(call: web.Request) -> web.Response:
        received[call.path] += 1
        return web.Response(status=500 if call.path == "/broken" else 200)

    async def hang(link: Link) -> None:
        await link.request()
        received["hanging"] += 1
        await released.wait()

    app = web.Application()
    app.router.add_post("/{name}", receive)
    async with (
        serving(app) as url,
        provider(hang) as hanging,
        running(CONFIG, tmp_path) as gateway,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        fake = FakeVideos()
        gateway.service._channels.videos["videos"] = fake
        fake.script = [SUCCEEDED]

        async def submit(name: str, callback_url: str, tasks: int) -> None:
            _, secret = await ApiKeys(gateway.service.store).create(name)
            for _ in range(tasks):
                await stub_of(channel).CreateVideoTask(
                    request(callback_url=callback_url), metadata=[("authorization", f"Bearer {secret}")]
                )

        try:
            await submit("hanging", hanging.url, TASKS)
            await until(lambda: received["hanging"] >= RECEIVER_SHARE)
            await submit("broken", f"{url}/broken", RECEIVER_SHARE)
            await submit("refused", "http://127.0.0.1:1/hook", RECEIVER_SHARE)
            await submit("good", f"{url}/good", TASKS)
            await until(lambda: received["/good"] == TASKS and received["/broken"] >= RECEIVER_SHARE)
            assert received["hanging"] < 2 * RECEIVER_SHARE
            backlog = await gateway.service.tasks.context.callbacks.backlog()
            assert backlog.waiting >= TASKS + 2 * RECEIVER_SHARE
        finally:
            released.set()


async def test_notifications_wait_for_a_receiver_that_is_back(tmp_path: Path) -> None:
    received = list[str]()

    async def receive(call: web.Request) -> web.Response:
        received.append(call.headers["webhook-id"])
        if len(received) == 1:
            assert call.transport is not None
            call.transport.abort()
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", receive)
    async with (
        serving(app) as url,
        running(CONFIG, tmp_path) as gateway,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        fake = FakeVideos()
        gateway.service._channels.videos["videos"] = fake
        fake.script = [SUCCEEDED]
        metadata = tuple(gateway.headers.items())
        await stub_of(channel).CreateVideoTask(request(callback_url=f"{url}/hook"), metadata=metadata)
        await until(lambda: len(received) == 1)
        await stub_of(channel).CreateVideoTask(request(callback_url=f"{url}/hook"), metadata=metadata)
        await until(lambda: len(received) == 2)
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: backlog.waiting == 1)


def sent(owner: str, url: str) -> OutgoingCallback:
    return OutgoingCallback("msg_1", "task_1", owner, url, b"", 0)


def test_a_pause_grows_with_each_failure_and_ends_with_a_response() -> None:
    time = 0.0
    receivers = Receivers(lambda: time)
    one = sent("a", "https://x/1")
    for expected in (1.0, 2.0, 4.0):
        receivers.begin(one)
        receivers.end(one, answered=False)
        time += expected * FIRST_PAUSE_SECONDS - 0.1
        assert receivers.excluded.receivers == ["https://x"]
        time += 0.1
        assert receivers.excluded.receivers == []
    receivers.begin(one)
    assert receivers.excluded.receivers == ["https://x"]  # one attempt shows whether it is back
    receivers.end(one, answered=True)
    assert receivers.excluded.receivers == []


def test_a_resumed_receiver_is_called_at_once() -> None:
    receivers = Receivers(lambda: 0.0)
    one = sent("a", "https://x/1")
    receivers.begin(one)
    receivers.end(one, answered=False)
    receivers.resume("https://x/another?path")
    assert receivers.excluded.receivers == []


def test_calls_that_fail_together_count_as_one_failure() -> None:
    time = 0.0
    receivers = Receivers(lambda: time)
    calls = [sent("a", f"https://x/{number}") for number in range(RECEIVER_SHARE)]
    for call in calls:
        receivers.begin(call)
    assert receivers.excluded == (["a"], ["https://x"])
    for call in calls:
        receivers.end(call, answered=False)
    time = FIRST_PAUSE_SECONDS
    assert receivers.excluded == ([], [])


def test_the_number_of_pauses_is_limited() -> None:
    receivers = Receivers(lambda: 0.0)
    for number in range(2 * MAX_PAUSED):
        call = sent("a", f"https://host-{number}/")
        receivers.begin(call)
        receivers.end(call, answered=False)
    assert len(receivers.excluded.receivers) == MAX_PAUSED

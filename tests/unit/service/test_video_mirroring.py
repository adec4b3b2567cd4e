"""Copies of results with short-lived addresses, and the content of videos through a running gateway."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import aiohttp
import av
import grpc
import pytest
import pytest_asyncio
from aiohttp import web
from PIL import Image

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import SUCCEEDED, FakeVideos
from tests.support.gateways import Running, running
from tests.support.serving import serving
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus

AUTHORIZED = (("authorization", "Bearer sk-umg-end-to-end"),)
DATA = b"a video" * 1000
SECONDS = 60.0


@dataclass
class Storage:
    """Storage whose first answers fail."""

    failures: int = 0
    url: str = ""
    requests: int = field(default=0)

    async def answer(self, request: web.Request) -> web.Response:
        self.requests += 1
        if self.requests <= self.failures:
            return web.Response(status=503)
        return web.Response(body=DATA, content_type="video/mp4")


@pytest_asyncio.fixture
async def storage() -> AsyncGenerator[Storage, None]:
    made, app = Storage(), web.Application()
    app.router.add_get("/video.mp4", made.answer)
    async with serving(app) as url:
        made.url = f"{url}/video.mp4"
        yield made


@pytest.fixture
def fake() -> FakeVideos:
    return FakeVideos()


def config(storage: Storage, extra: str = "") -> str:
    place = storage.url.removeprefix("http://").removesuffix("/video.mp4")
    sandbox = "  - {name: sandbox, protocols: [sandbox], models: [vidA-2, vidD-2-0-260128]}\n"
    return f"{fake_video_upstream.config('clips-1')}{sandbox}egress: {{allow: ['{place}']}}\n{extra}"


@pytest_asyncio.fixture
async def gateway(tmp_path: Path, storage: Storage, fake: FakeVideos) -> AsyncGenerator[Running, None]:
    async with running(config(storage), tmp_path) as made:
        made.service._channels.videos["videos"] = fake
        yield made


class Caller:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = rpc.VideoServiceStub(channel)

    async def create(self, model: str = "clips-1", **fields: object) -> pb.VideoTask:
        wanted = pb.CreateVideoTaskRequest(model=model, **fields)  # type: ignore[arg-type]
        return (await self._stub.CreateVideoTask(wanted, metadata=AUTHORIZED)).task

    async def get(self, task_id: str) -> pb.VideoTask:
        return (await self._stub.GetVideoTask(pb.GetVideoTaskRequest(task_id=task_id), metadata=AUTHORIZED)).task

    async def until(self, task_id: str, is_reached: Callable[[pb.VideoTask], bool]) -> pb.VideoTask:
        end = time.monotonic() + SECONDS
        while not is_reached(task := await self.get(task_id)):
            assert time.monotonic() < end, task
            await asyncio.sleep(0.05)
        return task

    async def finished(self, task_id: str) -> list[pb.VideoTask]:
        call = self._stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task_id), metadata=AUTHORIZED)
        return [message.task async for message in call]

    async def download(self, task_id: str, **fields: object) -> tuple[pb.ContentHead, bytes]:
        wanted = pb.DownloadVideoRequest(task_id=task_id, **fields)  # type: ignore[arg-type]
        messages = [message async for message in self._stub.DownloadVideo(wanted, metadata=AUTHORIZED)]
        return messages[0].head, b"".join(message.chunk for message in messages[1:])

    async def refusal(self, work: Awaitable[object]) -> UmgError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await work
        return from_rpc(caught.value)


@pytest_asyncio.fixture
async def caller(gateway: Running) -> AsyncGenerator[Caller, None]:
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        yield Caller(channel)


def succeeded(url: str, hours: float | None) -> ProviderStatus:
    until = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
    return replace(SUCCEEDED, results=[ProviderResult(url=url, url_expire_time=until)])


async def test_a_short_lived_result_is_copied_and_has_a_link_of_the_gateway(
    caller: Caller, storage: Storage, fake: FakeVideos, gateway: Running
) -> None:
    storage.failures = 1
    fake.script = [succeeded(storage.url, 1)]
    task = await caller.create()
    task = await caller.until(task.task_id, lambda task: bool(task.results) and task.results[0].HasField("blob_id"))
    [result] = task.results
    assert result.url.startswith(f"{gateway.url}/files/")
    assert (result.size_bytes, storage.requests) == (len(DATA), 2)
    async with aiohttp.ClientSession() as session, session.get(result.url) as answer:
        assert (answer.status, await answer.read()) == (200, DATA)
    assert (await caller.download(task.task_id))[1] == DATA
    assert storage.requests == 2


@pytest.mark.parametrize("hours", [None, 24 * 30])
async def test_a_lasting_result_stays_at_the_provider(
    caller: Caller, storage: Storage, fake: FakeVideos, hours: float | None
) -> None:
    fake.script = [succeeded(storage.url, hours)]
    task = (await caller.finished((await caller.create()).task_id))[-1]
    assert task.results[0].url == storage.url
    assert (await caller.download(task.task_id, range=pb.ByteRange(offset=7)))[1] == DATA[7:]
    assert storage.requests == 1
    assert not (await caller.get(task.task_id)).results[0].HasField("blob_id")


async def test_a_copy_that_was_not_made_is_made_after_a_restart(
    tmp_path: Path, storage: Storage, fake: FakeVideos
) -> None:
    storage.failures = 10**6
    fake.script = [succeeded(storage.url, 2)]
    async with running(config(storage), tmp_path) as made, grpc.aio.insecure_channel(made.grpc) as channel:
        made.service._channels.videos["videos"] = fake
        task = (await Caller(channel).finished((await Caller(channel).create()).task_id))[-1]
        assert task.results[0].url == storage.url
    storage.failures = 0
    async with running(config(storage), tmp_path) as made, grpc.aio.insecure_channel(made.grpc) as channel:
        await Caller(channel).until(task.task_id, lambda task: task.results[0].HasField("blob_id"))


async def test_inline_data_has_a_link_and_without_a_store_it_is_read_at_the_provider(
    tmp_path: Path, storage: Storage, fake: FakeVideos
) -> None:
    fake.script = [replace(SUCCEEDED, results=[ProviderResult(data=DATA)])]
    for extra, has_link in (("", True), ("blobs: {enabled: false}\n", False)):
        folder = tmp_path / str(has_link)
        async with running(config(storage, extra), folder) as made, grpc.aio.insecure_channel(made.grpc) as channel:
            made.service._channels.videos["videos"] = fake
            task = (await Caller(channel).finished((await Caller(channel).create()).task_id))[-1]
            assert task.state == pb.VIDEO_TASK_STATE_SUCCEEDED
            assert task.results[0].HasField("url") == has_link
            assert (await Caller(channel).download(task.task_id))[1] == DATA


# --- the simulated provider


async def test_a_simulated_video_without_a_blob_store_is_encoded_for_each_download(
    tmp_path: Path, storage: Storage
) -> None:
    extra = "blobs: {enabled: false}\n"
    async with running(config(storage, extra), tmp_path) as made, grpc.aio.insecure_channel(made.grpc) as channel:
        parameters = pb.VideoParameters(prompt="a fox", duration_seconds=4, size="1280x720")
        task = (
            await Caller(channel).finished((await Caller(channel).create("vidA-2", parameters=parameters)).task_id)
        )[-1]
        assert not task.results[0].HasField("url")
        first, second = [(await Caller(channel).download(task.task_id))[1] for _ in range(2)]
        assert first == second
        assert first[4:8] == b"ftyp"


async def test_a_simulated_video_passes_through_its_states_and_is_playable(caller: Caller) -> None:
    parameters = pb.VideoParameters(prompt="a fox reads", duration_seconds=4, size="720x1280")
    task = await caller.create("vidA-2", parameters=parameters)
    assert (await caller.refusal(caller.download(task.task_id))).reason == pb.ERROR_REASON_WRONG_STATE
    changes = await caller.finished(task.task_id)
    assert {change.state for change in changes} >= {pb.VIDEO_TASK_STATE_RUNNING, pb.VIDEO_TASK_STATE_SUCCEEDED}
    progress = [change.progress_percent for change in changes]
    assert progress == sorted(progress)
    assert progress[-1] == 100
    head, data = await caller.download(task.task_id)
    assert (head.mime_type, head.total_bytes) == ("video/mp4", len(data))
    with av.open(BytesIO(data)) as file:
        assert (file.streams.video[0].width, file.streams.video[0].height) == (720, 1280)
        assert (file.duration or 0) / 1e6 == pytest.approx(4, abs=0.05)
    url = changes[-1].results[0].url
    async with aiohttp.ClientSession() as session, session.get(url, headers={"range": "bytes=4-7"}) as answer:
        assert (answer.status, await answer.read()) == (206, b"ftyp")
    head, sheet = await caller.download(task.task_id, variant=pb.VIDEO_VARIANT_SPRITESHEET)
    assert Image.open(BytesIO(sheet)).get_format_mimetype() == head.mime_type == "image/jpeg"


async def test_a_refused_submission_is_a_rate_limit(caller: Caller) -> None:
    refused = await caller.refusal(caller.create("vidA-2", parameters=pb.VideoParameters(prompt="[[fail:429]]")))
    assert refused.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED


async def test_a_remix_is_a_video_of_its_source(caller: Caller, gateway: Running) -> None:
    source = await caller.create("vidA-2", parameters=pb.VideoParameters(prompt="a fox", duration_seconds=4))
    await caller.finished(source.task_id)
    request = pb.RemixVideoTaskRequest(task_id=source.task_id, prompt="at night")
    remix = (await caller._stub.RemixVideoTask(request, metadata=AUTHORIZED)).task
    done = (await caller.finished(remix.task_id))[-1]
    assert (done.state, done.remixed_from_task_id) == (pb.VIDEO_TASK_STATE_SUCCEEDED, source.task_id)
    assert (await caller.download(remix.task_id))[1] != (await caller.download(source.task_id))[1]

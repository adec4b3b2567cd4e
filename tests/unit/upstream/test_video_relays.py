"""Channel of videos at relays that answer one task at a time, and that write paths of their own host."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from tests.support.serving import serving
from tests.support.videos import opened_videos
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D

SECONDS = 60.0
TASKS = [ProviderTask(id=f"t-{number}", model="m") for number in range(3)]
LIST = "/contents/generations/tasks"
FILE = b"\x00\x00\x00\x18ftypmp42"


@dataclass
class Relay:
    """Relay whose list of tasks has a status and a body. It has a path for one task, and one for its file."""

    status: int = 200
    body: object = None
    paths: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path)
        if request.path.endswith("/content"):
            return web.Response(body=FILE, content_type="video/mp4")
        name = request.path.rpartition("/")[2]
        if name == "tasks":
            return web.json_response(self.body, status=self.status)
        if name == "t-2":
            return web.json_response({"error": {"message": "no such task"}}, status=404)
        return web.json_response({"id": name, "status": "running"})


@asynccontextmanager
async def opened(relay: Relay, protocol: VideoProtocol, base: str) -> AsyncGenerator[HttpVideo, None]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", relay.answer)
    async with serving(app) as url, opened_videos(url + base, protocol) as videos:
        yield videos


@pytest.mark.parametrize(
    "relay", [Relay(404, {}), Relay(405, {}), Relay(200, {"items": []})], ids=["404", "405", "none"]
)
async def test_tasks_are_queried_one_by_one_at_a_relay_without_a_list(relay: Relay) -> None:
    async with opened(relay, VID_D, "/api/v3") as videos:
        assert videos.max_batch > 1
        found = await videos.poll(TASKS, SECONDS)
        assert videos.max_batch == 1
    states = [status.state if isinstance(status, ProviderStatus) else None for status in found.values()]
    assert states == [pb.VIDEO_TASK_STATE_RUNNING, pb.VIDEO_TASK_STATE_RUNNING, None]
    assert isinstance(found["t-2"], UmgError)
    assert found["t-2"].name == "OBJECT_NOT_FOUND"


async def test_a_task_that_a_list_lacks_is_queried_alone() -> None:
    listed = {"items": [{"id": "t-0", "status": "queued"}, {"id": "t-9", "status": "failed"}]}
    relay = Relay(body=listed)
    async with opened(relay, VID_D, "/api/v3") as videos:
        found = await videos.poll(TASKS[:2], SECONDS)
        assert videos.max_batch > 1
    assert relay.paths == [f"/api/v3{LIST}", f"/api/v3{LIST}/t-1"]
    assert [status.state for status in found.values() if isinstance(status, ProviderStatus)] == [
        pb.VIDEO_TASK_STATE_QUEUED,
        pb.VIDEO_TASK_STATE_RUNNING,
    ]


@pytest.mark.parametrize("status", [429, 500])
async def test_a_busy_relay_gets_no_further_query_for_each_task(status: int) -> None:
    relay = Relay(status, {"error": {"message": "busy"}})
    async with opened(relay, VID_D, "/api/v3") as videos:
        with pytest.raises(UmgError):
            await videos.poll(TASKS, SECONDS)
    assert len(relay.paths) == 1


@dataclass(frozen=True)
class Path:
    """Path of a file, at a relay whose base URL has a path."""

    id: str
    path: str
    base: str = "/v1"
    requested: str = "/v1/videos/t-0/content"


PATHS = [
    Path("of the host", "/v1/videos/t-0/content"),
    Path("below the base URL", "/videos/t-0/content"),
    Path("of another version", "/v1/videos/t-0/content", "/api/v3"),
    Path("below a base URL without a version", "/v1/videos/t-0/content", "/relay", "/relay/v1/videos/t-0/content"),
]


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
async def test_a_path_of_a_file_is_that_of_the_host_if_its_version_or_its_begin_is(case: Path) -> None:
    relay = Relay()
    async with (
        opened(relay, VID_A, case.base) as videos,
        videos.content(TASKS[0], ProviderResult(needs_key=case.path), {}) as part,
    ):
        assert b"".join([chunk async for chunk in part.chunks()]) == FILE
    assert relay.paths == [case.requested]

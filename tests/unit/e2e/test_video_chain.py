"""A gateway behind a gateway: each entry's tasks are submitted to, and read from, a second gateway over HTTP."""

import asyncio
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.support.gateways import KEY, running
from tests.support.videos import image, opened_videos, submission
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.umg_gateway_protocol import UMG_VIDEO
from umg_grpc.wire.video.video_request_checks import check

MODELS = (
    *("vidA-2", "vidB-3.0-generate-preview", "vidD-1-0-lite-t2v-250428", "vidD-2-0-260128", "vidE-v2-6", "vidE-3.0"),
    *("vidF_vgfm_t2v_l20", "vidG-H3"),
)
CONFIG = f"channels: [{{name: sandbox, protocols: [sandbox], pace: 0, models: [{', '.join(MODELS)}]}}]\n"
SECONDS = 60.0


def picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (720, 1280), "navy").save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True)
class Case:
    entry: "pb.VideoEntry.ValueType"
    model: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def submission(self, number: int) -> Submission:
        media = [image("first_frame", data=picture())] if self.model == "vidA-2" else []
        made = submission(self.model, *media, **self.parameters).request
        made.entry = self.entry
        return Submission(task_id=f"task_{number:032}", model=self.model, request=check(made))


CASES = [
    Case(pb.VIDEO_ENTRY_UNIFIED, "vidB-3.0-generate-preview", {"resolution": "720p"}),
    Case(pb.VIDEO_ENTRY_UNIFIED, "vidD-1-0-lite-t2v-250428", {"resolution": "480p", "duration_seconds": 2}),
    Case(pb.VIDEO_ENTRY_VIDEO_OBJECT, "vidA-2"),
    Case(pb.VIDEO_ENTRY_D, "vidD-2-0-260128", {"resolution": "480p", "duration_seconds": 4}),
    Case(pb.VIDEO_ENTRY_E_V1, "vidE-v2-6"),
    Case(pb.VIDEO_ENTRY_E_3, "vidE-3.0", {"duration_seconds": 3}),
    Case(pb.VIDEO_ENTRY_F, "vidF_vgfm_t2v_l20", {"frames": 25}),
    Case(pb.VIDEO_ENTRY_G, "vidG-H3", {"resolution": "768P", "duration_seconds": 4}),
]


async def ended(videos: HttpVideo, task: ProviderTask) -> ProviderStatus:
    async with asyncio.timeout(120):
        while True:
            status = (await videos.poll([task], SECONDS))[task.id]
            assert isinstance(status, ProviderStatus), status
            assert not status.unknown_word
            if status.state not in (pb.VIDEO_TASK_STATE_QUEUED, pb.VIDEO_TASK_STATE_RUNNING):
                return status
            await asyncio.sleep(0.2)  # the second gateway makes the video meanwhile


@pytest.fixture
def tasks() -> list[Submission]:
    return [case.submission(number) for number, case in enumerate(CASES)]


async def test_a_task_of_each_entry_is_made_by_the_second_gateway(tmp_path: Path, tasks: list[Submission]) -> None:
    async with (
        running(CONFIG, tmp_path) as second,
        opened_videos(second.url, UMG_VIDEO, keys=[KEY]) as videos,
    ):
        made = [(await videos.submit(each, SECONDS))[0] for each in tasks]
        again, _ = await videos.submit(tasks[0], SECONDS)  # with the same idempotency key
        assert again.id == made[0].id
        for task, status in zip(made, await asyncio.gather(*(ended(videos, task) for task in made)), strict=True):
            assert status.state == pb.VIDEO_TASK_STATE_SUCCEEDED, status
            assert status.results[0].url or status.results[0].needs_key
            key_only = status.results[0].needs_key or f"/v1/videos/{task.id}/content"
            result = type(status.results[0])(needs_key=key_only)
            async with videos.content(task, result, {}) as part:
                assert (await anext(part.chunks()))[4:8] == b"ftyp"
        found = await videos.find(tasks[5], SECONDS)
        assert found is not None
        assert found.id == made[5].id
        remix = Submission(task_id="task_remix", model="vidA-2", request=tasks[2].request, source=made[2])
        changed, _ = await videos.submit(remix, SECONDS)
        assert (await ended(videos, changed)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
        assert not await videos.cancel(ProviderTask(id="task_unknown", model="m", key_id=changed.key_id), SECONDS)

"""Videos of the vendor's models over HTTP by several entries, at a provider with the rules of its SDK."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from aiohttp import ClientSession

from tests.support.gateways import Running, running
from tests.support.providers.server import KEY as PROVIDER_KEY
from tests.support.providers.server import serve_provider
from tests.support.providers.video_c import TaskApiProvider
from tests.support.providers.video_server import FILE
from tests.support.video_calls import ended, stub_of
from umg_grpc.upstream.http.video_generation import HttpVideo

IMAGE, CLIP = "https://example.com/a.png", "https://example.com/a.mp4"


@dataclass(frozen=True)
class Call:
    id: str
    path: str
    body: Mapping[str, Any]
    source: Mapping[str, Any]
    parameters: Mapping[str, Any]
    dropped: str = ""
    task: tuple[str | int, ...] = ("id",)
    """Path of the task's id in the response."""


def media(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"media": [{"type": kind, "url": url} for kind, url in pairs]}


D_CONTENT = [
    {"type": "text", "text": "a cat"},
    {"type": "image_url", "image_url": {"url": IMAGE}, "role": "reference_image"},
    {"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"},
]
CALLS = [
    Call(
        "the unified entry, bare",
        "/v1/video/generations",
        {"model": "wan2.7-t2v", "prompt": "a cat"},
        {},
        {},
        task=("task_id",),
    ),
    Call(
        "the unified entry, with every parameter",
        "/v1/video/generations",
        {
            "model": "wan3.0-video",
            "prompt": "a cat",
            "image": IMAGE,
            "duration": 12,
            "resolution": "720p",
            "aspectRatio": "9:16",
            "generateAudio": False,
            "seed": 7,
            "watermark": False,
            "metadata": {"negative_prompt": "rain", "prompt_extend": False},
        },
        {"negative_prompt": "rain", **media(("first_frame", IMAGE))},
        {
            "duration": 12,
            "resolution": "720P",
            "ratio": "9:16",
            "audio": False,
            "seed": 7,
            "watermark": False,
            "prompt_extend": False,
        },
        task=("task_id",),
    ),
    Call(
        "the video-object entry",
        "/v1/videos",
        {
            "model": "happyhorse-1.1-i2v",
            "prompt": "a cat",
            "seconds": "8",
            "size": "1280x720",
            "input_reference": IMAGE,
        },
        media(("first_frame", IMAGE)),
        {"duration": 8, "resolution": "720P"},
        "parameters.size",
    ),
    Call(
        "Entry D",
        "/vidD/api/v3/contents/generations/tasks",
        {
            "model": "wan2.7-r2v",
            "content": D_CONTENT,
            "resolution": "1080p",
            "ratio": "16:9",
            "duration": 7,
            "generate_audio": True,
            "watermark": True,
            "return_last_frame": True,
        },
        media(("reference_image", IMAGE), ("reference_video", CLIP)),
        {"resolution": "1080P", "ratio": "16:9", "duration": 7, "watermark": True},
        "parameters.return_last_frame",
    ),
    Call(
        "Entry E 3.0",
        "/vidE/image-to-video/wan2.7-i2v",
        {"prompt": "a cat", "image": IMAGE, "settings": {"resolution": "720p", "duration": 5, "multi_shot": True}},
        media(("first_frame", IMAGE)),
        {"resolution": "720P", "duration": 5},
        "parameters.extra_json.settings",
        task=("data", 0, "id"),
    ),
]
ID = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
CONFIG = """
egress: {{allow: [127.0.0.1], http: true}}
channels:
- {{provider: dashscope-media, base_url: '{url}', api_key: {key}}}
"""


@dataclass(frozen=True)
class Made:
    gateway: Running
    provider: TaskApiProvider
    session: ClientSession

    async def submit(self, call: Call) -> tuple[str, Mapping[str, str]]:
        """Return the id of a new task, and the headers of the response."""
        async with self.session.post(self.gateway.url + call.path, json=call.body) as response:
            body = await response.json()
            assert response.status == 200, (body, self.provider.refusals)
            for name in call.task:
                body = body[name]
            return str(body), response.headers


@asynccontextmanager
async def made(data: Path, **settings: Any) -> AsyncGenerator[Made, None]:
    async with serve_provider(TaskApiProvider(**settings)) as provider:
        config = CONFIG.format(url=provider.url, key=PROVIDER_KEY)
        async with running(config, data) as gateway, ClientSession(headers=gateway.headers) as session:
            [videos] = gateway.service._channels.videos.values()
            assert isinstance(videos, HttpVideo)
            videos._protocol = replace(videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
            yield Made(gateway, provider, session)


@ID
async def test_a_call_of_any_entry_is_one_that_the_vendor_accepts(call: Call, tmp_path: Path) -> None:
    async with made(tmp_path) as one:
        task_id, headers = await one.submit(call)
        async with grpc.aio.insecure_channel(one.gateway.grpc) as channel:
            task = await ended(stub_of(channel), task_id)
        async with one.session.get(f"{one.gateway.url}/v1/videos/{task_id}/content") as response:
            assert (response.status, await response.read()) == (200, FILE)
    [sent] = [task.body for task in one.provider.tasks.values()]
    assert sent["input"] == {"prompt": "a cat", **call.source}
    assert sent["parameters"] == call.parameters
    assert headers.get("x-umg-dropped", "") == call.dropped
    assert not one.provider.refusals
    assert task.usage.output_seconds == 5


@pytest.mark.parametrize(
    ("word", "code", "expected"),
    [
        ("FAILED", "InternalError.Timeout", "task_failed"),
        ("FAILED", "DataInspectionFailed", "content_policy_violation"),
        ("FAILED", "IPInfringementSuspect", "content_policy_violation"),
        ("CANCELED", "", "task_cancelled"),
        ("UNKNOWN", "", "task_expired"),
    ],
)
async def test_each_word_of_failure_ends_the_task(word: str, code: str, expected: str, tmp_path: Path) -> None:
    async with made(tmp_path, plan=["SUSPENDED", "running", word], failure=(code, "it broke")) as one:
        task_id, _ = await one.submit(CALLS[0])
        async with grpc.aio.insecure_channel(one.gateway.grpc) as channel:
            task = await ended(stub_of(channel), task_id)
    assert task.error.code == expected

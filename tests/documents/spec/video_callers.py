"""A caller of the video paths over plain HTTP, and the finished tasks that several tests read."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from io import BytesIO
from typing import Any

import av
import grpc

from tests.support.callers.api import ApiClient, Reply
from tests.support.gateways import KEY, Running
from tests.support.images import picture
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS
from umg_grpc.v1 import pb, rpc

CHANNEL = f"""
  - name: videos
    protocols: [sandbox]
    models: [{", ".join(sorted(DOCUMENTED_MODELS))}]
"""
"""Channel of the config with the simulated video models."""

A, B_3, B_3_FAST, B_31 = (
    "vidA-2",
    "vidB-3.0-generate-preview",
    "vidB-3.0-fast-generate-001",
    "vidB-3.1-generate-preview",
)
C_TEXT, C_IMAGE = "vidC2.5-t2v-preview", "vidC2.5-i2v-preview"
D_1, D_1_5, D_SILENT = "vidD-1-0-pro-250528", "vidD-1-5-pro-251215", "vidD-1-5-pro-251215-noAudio"
D_2, D_2_FAST = "vidD-2-0-260128", "vidD-2-0-fast-260128"
E_MODEL, F_MODEL, G_MODEL = "vidE-v2-6", "vidF_vgfm_t2v_l20", "vidG-H3"

UNIFIED, OBJECT, D_PATH = "/v1/video/generations", "/v1/videos", "/vidD/api/v3/contents/generations/tasks"
TEXT_2, IMAGE_2 = "/vidE/v1/videos/text2video", "/vidE/v1/videos/image2video"
TEXT_3, IMAGE_3, OMNI = "/vidE/text-to-video", "/vidE/image-to-video", "/vidE/omni-video/vidE-3.0-omni"
F_SUBMIT = "/vidF?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
F_QUERY = "/vidF?Action=CVSync2AsyncGetResult&Version=2022-08-31"
G_SUBMIT, G_QUERY = "/vidG/v2/video_generation", "/vidG/v2/query/video_generation"
FINAL = frozenset({"succeeded", "completed", "failed", "SUCCESS", "FAILED", "cancelled"})
STALLED = "a boat [[slow]]"
"""Prompt of tasks that never end, whose videos are never encoded."""
PNG = picture("PNG", (320, 320))
ADDRESS = "https://example.com/boat.png"
WAIT_SECONDS = 120
POLL_SECONDS = 0.25


def data_url(data: bytes = PNG) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def words(prompt: str = STALLED) -> dict[str, object]:
    return {"type": "text", "text": prompt}


def shown(role: str | None = None, url: str = ADDRESS) -> dict[str, object]:
    item: dict[str, object] = {"type": "image_url", "image_url": {"url": url}}
    return item | ({"role": role} if role else {})


def d_1(prompt: str, model: str = D_1, *items: dict[str, object], **metadata: object) -> dict[str, Any]:
    """Return a body of family D 1.x."""
    return {"model": model, "metadata": {"content": [words(prompt), *items], **metadata}}


def d_2(*items: dict[str, object], prompt: str = STALLED, **fields: object) -> dict[str, Any]:
    return {"model": D_2, "content": [words(prompt), *items], **fields}


def g(*items: dict[str, object], prompt: str = STALLED, **fields: object) -> dict[str, Any]:
    return {"model": G_MODEL, "content": [words(prompt), *items], "resolution": "768P", "duration": 4, **fields}


@dataclass(frozen=True)
class Run:
    """Task to be run to its end."""

    submit: str
    body: dict[str, object]
    query: str
    """Path of the query, in which `{}` is the id of the task."""
    posted: dict[str, object] = field(default_factory=dict)
    """Body of the query, without the id; a query with GET has none."""


@dataclass(frozen=True)
class Ended:
    """Task that was run to its end."""

    task_id: str
    created: Reply
    views: list[Reply]
    """Answers of the queries, those with another state than the one before."""

    @property
    def states(self) -> list[str]:
        return [status_of(reply.body) for reply in self.views]

    @property
    def last(self) -> Any:
        return self.views[-1].body


def task_id_of(body: Any) -> str:
    """Return the id of a new task, from the response of any entry."""
    if isinstance(body.get("data"), list):
        return str(body["data"][0]["id"])
    return str(body.get("task_id") or body.get("id") or body["data"]["task_id"])


def status_of(body: Any) -> str:
    """Return the state in the response of a query of any entry."""
    if isinstance(body.get("data"), list):
        return str(body["data"][0]["status"])
    return str((body.get("data") or body.get("task") or body)["status"])


@dataclass(frozen=True)
class Film:
    """Measured file."""

    seconds: float
    width: int
    height: int
    has_sound: bool


def film_of(data: bytes) -> Film:
    with av.open(BytesIO(data)) as container:
        stream = container.streams.video[0]
        seconds = float((stream.duration or 0) * (stream.time_base or Fraction(1)))
        return Film(seconds, stream.width, stream.height, bool(container.streams.audio))


@dataclass(frozen=True)
class Videos:
    """Caller of all entries."""

    gateway: ApiClient
    running: Running
    channel: grpc.aio.Channel

    def signature(self, task_id: str) -> str:
        """Return the signature of the path at which a provider notifies the gateway of a task."""
        path = self.running.service.tasks.context.signatures.path_of(task_id)
        return path.rpartition("/")[2]

    async def other_key(self) -> str:
        """Return another valid key."""
        return (await ApiKeys(self.running.service.store).create("another caller"))[1]

    async def run_to_end(self, path: str) -> None:
        """Query a task until its end."""
        async with asyncio.timeout(WAIT_SECONDS):
            while status_of((await self.gateway.get(path)).body) not in FINAL:  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)  # pause of a poller

    async def submit(self, path: str, body: object, **headers: str) -> Reply:
        """Submit a task, which must be accepted."""
        reply = await self.gateway(path, body, **headers)
        assert reply.status == 200, reply.text
        return reply

    async def refuse(self, path: str, body: object, status: int = 400) -> Any:
        """Submit a task, which must be refused. Return the error."""
        reply = await self.gateway(path, body)
        assert reply.status == status, reply.text
        error = reply.body["error"]
        assert error["message"]
        return error

    async def task(self, task_id: str) -> pb.VideoTask:
        """Return the canonical task, over gRPC."""
        stub: rpc.VideoServiceAsyncStub = rpc.VideoServiceStub(self.channel)  # type: ignore[assignment]
        metadata = (("authorization", f"Bearer {KEY}"),)
        return (await stub.GetVideoTask(pb.GetVideoTaskRequest(task_id=task_id), metadata=metadata)).task

    async def parameters(self, path: str, body: object) -> pb.VideoParameters:
        """Submit a task. Return its canonical parameters."""
        return (await self.task(task_id_of((await self.submit(path, body)).body))).parameters

    async def query(self, run: Run, task_id: str) -> Reply:
        posted = {**run.posted, "task_id": task_id} if run.posted else None
        return await self.gateway(run.query.format(task_id), posted)

    async def run(self, run: Run) -> Ended:
        """Submit a task, and query it until its end."""
        created = await self.submit(run.submit, run.body)
        task_id, views = task_id_of(created.body), list[Reply]()
        async with asyncio.timeout(WAIT_SECONDS):
            while not views or status_of(views[-1].body) not in FINAL:
                reply = await self.query(run, task_id)
                assert reply.status == 200, reply.text
                if not views or status_of(views[-1].body) != status_of(reply.body):
                    views.append(reply)
                await asyncio.sleep(POLL_SECONDS)  # pause of a poller
        return Ended(task_id, created, views)

    async def content(
        self, task_id: str, query: str = "", method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and bytes of the content."""
        url = f"{self.gateway.server.url}/v1/videos/{task_id}/content{query}"
        sent = {**self.gateway.server.headers, **(headers or {})}
        async with self.gateway.session.request(method, url, headers=sent) as answer:
            return answer.status, answer.headers, await answer.read()

    async def fetch(self, url: str) -> bytes:
        """Return the bytes of a result link, without credentials."""
        async with self.gateway.session.get(url) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()


F_POSTED: dict[str, object] = {"req_key": F_MODEL}
RUNS = {
    "A": Run(UNIFIED, {"model": A, "prompt": "a boat", "size": "1280x720"}, f"{UNIFIED}/{{}}"),
    "B": Run(
        UNIFIED,
        {"model": B_3_FAST, "prompt": "a boat", "resolution": "720p", "aspectRatio": "9:16", "sampleCount": 2},
        f"{UNIFIED}/{{}}",
    ),
    "C": Run(
        UNIFIED,
        {"model": C_TEXT, "prompt": "a boat", "size": "832*480", "generate_audio": True},
        f"{UNIFIED}/{{}}",
    ),
    "D 1.x": Run(UNIFIED, d_1("a boat --rs 480p --ratio 1:1 --dur 4", D_SILENT), f"{UNIFIED}/{{}}"),
    "video-object": Run(
        OBJECT, {"model": A, "prompt": "a boat", "seconds": "4", "input_reference": data_url()}, f"{OBJECT}/{{}}"
    ),
    "D": Run(
        D_PATH,
        d_2(prompt="a boat", resolution="480p", duration=4, generate_audio=False, return_last_frame=True),
        f"{D_PATH}/{{}}",
    ),
    "E v1": Run(
        TEXT_2,
        {"model": E_MODEL, "prompt": "a boat", "size": "1024x1024", "metadata": {"sound": True}},
        f"{TEXT_2}/{{}}",
    ),
    "E 3.0": Run(
        f"{TEXT_3}/vidE-3.0",
        {"prompt": "a boat", "duration": 3, "options": {"external_task_id": "spec-1"}},
        "/vidE/tasks?task_ids={}",
    ),
    "F": Run(F_SUBMIT, {"req_key": F_MODEL, "prompt": "a boat", "frames": 121}, F_QUERY, F_POSTED),
    "G": Run(G_SUBMIT, g(prompt="a boat", ratio="4:3"), f"{G_QUERY}/{{}}"),
}
"""Tasks that succeed, by the family or the entry."""
FAILING = {
    "A": Run(UNIFIED, {"model": A, "prompt": "[[fail]]"}, f"{UNIFIED}/{{}}"),
    "video-object": Run(OBJECT, {"model": A, "prompt": "[[fail]]"}, f"{OBJECT}/{{}}"),
    "D": Run(D_PATH, d_2(prompt="[[fail]]"), f"{D_PATH}/{{}}"),
    "E v1": Run(TEXT_2, {"model": E_MODEL, "prompt": "[[fail]]"}, f"{TEXT_2}/{{}}"),
    "E 3.0": Run(f"{TEXT_3}/vidE-3.0", {"prompt": "[[fail]]"}, "/vidE/tasks?task_ids={}"),
    "F": Run(F_SUBMIT, {"req_key": F_MODEL, "prompt": "[[fail]]"}, F_QUERY, F_POSTED),
    "G": Run(G_SUBMIT, g(prompt="[[fail]]"), f"{G_QUERY}/{{}}"),
}

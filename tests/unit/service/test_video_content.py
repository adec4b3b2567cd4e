"""Content of video tasks: the same bytes, ranges and errors from each place that may have them."""

import resource
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.refused_urls import resolve
from tests.support.serving import serving
from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.errors import UmgError
from umg_grpc.base.host_list_entries import parse_place
from umg_grpc.config import built_in
from umg_grpc.routing import Router
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.result_download import MAX_CHUNK, TaskContent, range_header
from umg_grpc.store.blob_folder import BlobFolder
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import TaskResult, results_text
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission

DATA = bytes(range(256)) * 10_240  # 2.5 MiB: more than a chunk
NOW = 1_000_000_000
TASK = "task_1"


@dataclass(frozen=True)
class Body:
    data: bytes
    status: int
    headers: Mapping[str, str]

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for begin in range(0, len(self.data), 65_536):
            yield self.data[begin : begin + 65_536]


class FakeVideos:
    """Channel whose results and answers to polls a test sets."""

    max_batch, first_poll_seconds, poll_seconds, deadline_seconds = 1, 1.0, 1.0, 60.0

    def __init__(self) -> None:
        self.body = Body(DATA, 200, {"content-type": "video/mp4", "content-length": str(len(DATA))})
        self.answer: ProviderStatus | UmgError = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider is down")
        self.opened: list[tuple[str, Mapping[str, str]]] = []
        self.polls = 0

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        raise NotImplementedError

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        raise NotImplementedError

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        self.polls += 1
        return {task.id: self.answer for task in tasks}

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        raise NotImplementedError

    @asynccontextmanager
    async def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AsyncGenerator[ContentPart, None]:
        self.opened.append((result.needs_key, headers))
        yield self.body


class Storage:
    """Storage of a provider: answers with the bytes, in ways that storages do."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[web.Request] = []

    def at(self, kind: str) -> str:
        return f"{self.url}/{kind}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        headers = {"content-type": "video/mp4", "etag": 'W/"abc"', "set-cookie": "a=b"}
        match request.match_info["kind"]:
            case "ranges":
                part, status = DATA, 200
                if (found := request.http_range) and "range" in request.headers:
                    begin, stop, _ = slice(found.start, found.stop).indices(len(DATA))
                    if begin >= len(DATA):
                        return web.Response(status=416, headers={"content-range": f"bytes */{len(DATA)}"})
                    part, status = DATA[begin:stop], 206
                    headers["content-range"] = f"bytes {begin}-{begin + len(part) - 1}/{len(DATA)}"
                return web.Response(status=status, body=part, headers=headers)
            case "whole":
                return web.Response(body=DATA, headers=headers)
            case "unknown-length":
                response = web.StreamResponse(headers=headers)
                await response.prepare(request)
                for begin in range(0, len(DATA), 100_000):
                    await response.write(DATA[begin : begin + 100_000])
                return response
            case "short":
                response = web.StreamResponse(headers={**headers, "content-length": str(len(DATA))})
                await response.prepare(request)
                await response.write(DATA[:1000])
                assert request.transport is not None
                request.transport.close()
                return response
            case "page":
                return web.Response(text="<html>sign in</html>", content_type="text/html")
            case "huge":
                response = web.StreamResponse(headers={**headers, "content-length": str(200 << 20)})
                await response.prepare(request)
                for _ in range(200):
                    await response.write(bytes(1 << 20))
                return response
            case status:
                return web.Response(status=int(status), text="no")


@dataclass
class World:
    content: TaskContent
    blobs: BlobStore
    fake: FakeVideos
    storage: Storage

    async def read(
        self, result: TaskResult | Sequence[TaskResult], wanted: pb.ByteRange | None = None, **request: int
    ) -> tuple[pb.ContentHead, bytes]:
        results = [result] if isinstance(result, TaskResult) else result
        return await self.download(row(results), pb.DownloadVideoRequest(task_id=TASK, range=wanted, **request))

    async def download(self, task: MediaTask, request: pb.DownloadVideoRequest) -> tuple[pb.ContentHead, bytes]:
        messages = [message async for message in self.content.open(task, request)]
        assert [message.WhichOneof("kind") for message in messages] == ["head"] + ["chunk"] * (len(messages) - 1)
        assert all(0 < len(message.chunk) <= MAX_CHUNK for message in messages[1:])
        return messages[0].head, b"".join(message.chunk for message in messages[1:])

    async def refusal(self, result: TaskResult | Sequence[TaskResult], **request: int) -> UmgError:
        with pytest.raises(UmgError) as caught:
            await self.read(result, **request)
        return caught.value


def row(results: Sequence[TaskResult], state: int = pb.VIDEO_TASK_STATE_SUCCEEDED) -> MediaTask:
    return MediaTask(
        task_id=TASK,
        owner="key",
        state=state,
        results=results_text(results),
        channel="videos",
        upstream_task_id="theirs",
        upstream_model="m",
        upstream_key_id="k",
        upstream_facts="",
    )


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World, None]:
    storage, fake = Storage(), FakeVideos()
    app = web.Application()
    app.router.add_get("/{kind}", storage.answer)
    channels = Channels(Router(built_in()), videos={"videos": fake})
    blobs = BlobStore(BlobFolder(tmp_path), ttl=3600, max_bytes=1 << 30)
    async with serving(app) as url:
        storage.url = url
        rules = EgressRules((parse_place(url.removeprefix("http://")),))
        async with Fetcher.opened(rules, lookup=resolve) as fetcher:
            yield World(TaskContent(channels, fetcher, blobs, lambda: NOW), blobs, fake, storage)


Place = Callable[[World], TaskResult]
PLACES: dict[str, Place] = {
    "a storage": lambda world: TaskResult(url=world.storage.at("ranges")),
    "a storage without ranges": lambda world: TaskResult(url=world.storage.at("whole")),
    "a channel without ranges": lambda world: TaskResult(needs_key="/videos/1/content"),
}


@dataclass(frozen=True)
class Range:
    id: str
    wanted: pb.ByteRange
    offset: int
    end: int


RANGES = [
    Range("all", pb.ByteRange(), 0, len(DATA)),
    Range("from a byte", pb.ByteRange(offset=1000), 1000, len(DATA)),
    Range("a part", pb.ByteRange(offset=1000, limit=70_000), 1000, 71_000),
    Range("a part beyond the end", pb.ByteRange(offset=len(DATA) - 5, limit=10), len(DATA) - 5, len(DATA)),
    Range("the last bytes", pb.ByteRange(limit=10), len(DATA) - 10, len(DATA)),
]


@pytest.mark.parametrize("case", RANGES, ids=lambda case: case.id)
@pytest.mark.parametrize("place", [*PLACES, "the blob store"])
async def test_a_range_has_the_same_bytes_from_each_place(world: World, place: str, case: Range) -> None:
    if place == "the blob store":
        blob = await world.blobs.put(DATA, "video/mp4")
        result = TaskResult(blob_id=blob.id, url="https://unused.example/")
    else:
        result = PLACES[place](world)
    head, data = await world.read(result, case.wanted)
    assert (head.mime_type, head.total_bytes, head.offset) == ("video/mp4", len(DATA), case.offset)
    assert head.length_bytes == case.end - case.offset
    assert data == DATA[case.offset : case.end]
    assert head.etag == {"the blob store": head.etag, "a channel without ranges": ""}.get(place, "abc")


@pytest.mark.parametrize("place", [*PLACES, "the blob store"])
async def test_only_the_head_is_sent_and_a_range_after_the_end_is_refused(world: World, place: str) -> None:
    blob = await world.blobs.put(DATA, "video/mp4")
    result = TaskResult(blob_id=blob.id) if place == "the blob store" else PLACES[place](world)
    head, data = await world.read(result, pb.ByteRange(limit=0))
    assert (head.total_bytes, data) == (len(DATA), b"")
    with pytest.raises(UmgError) as caught:
        await world.read(result, pb.ByteRange(offset=len(DATA)))
    assert caught.value.reason == pb.ERROR_REASON_RANGE_NOT_SATISFIABLE
    assert caught.value.metadata["total_bytes"] == str(len(DATA))


async def test_a_storage_without_a_length_is_read_to_its_end(world: World) -> None:
    result = TaskResult(url=world.storage.at("unknown-length"))
    head, data = await world.read(result)
    assert (head.HasField("total_bytes"), data) == (False, DATA)
    head, data = await world.read(result, pb.ByteRange(offset=5, limit=20))
    assert (head.offset, data) == (5, DATA[5:25])


async def test_only_the_range_is_sent_to_a_storage(world: World) -> None:
    await world.read(TaskResult(url=world.storage.at("ranges")), pb.ByteRange(offset=3))
    sent = {name.lower(): value for name, value in world.storage.requests[0].headers.items()}
    assert sent["range"] == "bytes=3-"
    assert not {"authorization", "cookie", "referer"} & sent.keys()
    await world.read(TaskResult(needs_key="/a"), pb.ByteRange(offset=3))
    assert world.fake.opened == [("/a", {"range": "bytes=3-"})]


@pytest.mark.parametrize(
    ("wanted", "header"),
    [
        (pb.ByteRange(), {}),
        (pb.ByteRange(offset=0), {}),
        (pb.ByteRange(offset=0, limit=5), {"range": "bytes=0-4"}),
        (pb.ByteRange(limit=5), {"range": "bytes=-5"}),
        (pb.ByteRange(offset=7, limit=0), {}),
    ],
)
def test_a_range_as_a_header(wanted: pb.ByteRange, header: dict[str, str]) -> None:
    assert range_header(wanted) == header


async def test_a_storage_that_breaks_off_is_an_error_and_no_short_video(world: World) -> None:
    error = await world.refusal(TaskResult(url=world.storage.at("short")))
    assert error.reason in {pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_CUT}


# --- states and results


@pytest.mark.parametrize(
    ("state", "reason", "text"),
    [
        (pb.VIDEO_TASK_STATE_SUBMITTING, pb.ERROR_REASON_WRONG_STATE, "current status: queued"),
        (pb.VIDEO_TASK_STATE_QUEUED, pb.ERROR_REASON_WRONG_STATE, "current status: queued"),
        (pb.VIDEO_TASK_STATE_RUNNING, pb.ERROR_REASON_WRONG_STATE, "current status: in_progress"),
        (pb.VIDEO_TASK_STATE_FAILED, pb.ERROR_REASON_OBJECT_NOT_FOUND, "failed"),
        (pb.VIDEO_TASK_STATE_CANCELLED, pb.ERROR_REASON_OBJECT_NOT_FOUND, "failed"),
    ],
)
async def test_a_task_without_content_is_refused_by_its_state(world: World, state: int, reason: int, text: str) -> None:
    with pytest.raises(UmgError, match=text) as caught:
        await world.download(row([], state), pb.DownloadVideoRequest(task_id=TASK))
    assert caught.value.reason == reason


async def test_a_result_is_selected_by_its_variant_and_index(world: World) -> None:
    blobs = [await world.blobs.put(each, kind) for each, kind in ((b"1", "video/mp4"), (b"2", "video/mp4"))]
    picture = await world.blobs.put(b"3", "image/png")
    last = pb.VIDEO_VARIANT_LAST_FRAME
    results = [*(TaskResult(blob_id=blob.id) for blob in blobs), TaskResult(blob_id=picture.id, variant=last)]
    assert (await world.read(results))[1] == b"1"
    assert (await world.read(results, index=1))[1] == b"2"
    head, data = await world.read(results, variant=last)
    assert (head.mime_type, data) == ("image/png", b"3")
    assert (await world.refusal(results, index=2)).reason == pb.ERROR_REASON_OBJECT_NOT_FOUND
    wrong = await world.refusal(results, variant=pb.VIDEO_VARIANT_SPRITESHEET)
    assert (wrong.reason, wrong.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "variant")


# --- places that have it no more


async def test_a_deleted_blob_is_read_at_the_provider(world: World) -> None:
    blob = await world.blobs.put(DATA, "video/mp4")
    await world.blobs.delete(blob.id)
    head, data = await world.read(TaskResult(blob_id=blob.id, url=world.storage.at("ranges")))
    assert (head.total_bytes, data) == (len(DATA), DATA)


def answer(**result: object) -> ProviderStatus:
    found = [replace(ProviderResult(url="x"), **{"url": "", **result})]  # type: ignore[arg-type]
    return ProviderStatus(state=pb.VIDEO_TASK_STATE_SUCCEEDED, results=found)


async def test_another_poll_gets_a_new_address_or_the_data(world: World) -> None:
    world.fake.answer = answer(url=world.storage.at("ranges"))
    for result in (TaskResult(url=world.storage.at("403")), TaskResult(url="https://a.example/", url_expire_micros=1)):
        assert (await world.read(result, pb.ByteRange(offset=5)))[1] == DATA[5:]
    world.fake.answer = answer(data=DATA)
    assert (await world.read(TaskResult(), pb.ByteRange(limit=5)))[1] == DATA[-5:]
    assert world.fake.polls == 3


async def test_a_storage_that_fails_is_a_failure_of_the_provider(world: World) -> None:
    error = await world.refusal(TaskResult(url=world.storage.at("500")))
    assert error.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    refused = await world.refusal(TaskResult(url="http://127.0.0.1:1/secret"))
    assert refused.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    assert "127.0.0.1" not in refused.message


@pytest.mark.parametrize("declared", ["text/html; charset=utf-8", "application/json"])
async def test_a_page_in_place_of_a_file_is_a_failure_of_the_provider(world: World, declared: str) -> None:
    world.fake.body = Body(b"<html>sign in</html>", 200, {"content-type": declared})
    error = await world.refusal(TaskResult(needs_key="/a"))
    assert error.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    assert declared.partition(";")[0] in error.message


async def test_a_page_in_place_of_a_file_is_read_at_a_new_address(world: World) -> None:
    world.fake.answer = answer(url=world.storage.at("whole"))
    assert (await world.read(TaskResult(url=world.storage.at("page"))))[1] == DATA


async def test_content_that_is_gone_everywhere_has_expired(world: World) -> None:
    blob = await world.blobs.put(DATA, "video/mp4")
    await world.blobs.delete(blob.id)
    for result in (TaskResult(blob_id=blob.id), TaskResult(url=world.storage.at("403"), url_expire_micros=NOW)):
        error = await world.refusal(result)
        assert (error.reason, "expired" in error.message) == (pb.ERROR_REASON_OBJECT_NOT_FOUND, True)


async def test_the_type_of_a_provider_is_used_for_media_alone(world: World) -> None:
    for declared, used in (("video/webm", "video/webm"), ("text/javascript", "video/mp4")):
        world.fake.body = Body(DATA, 200, {"content-type": declared})
        assert (await world.read(TaskResult(needs_key="/a")))[0].mime_type == used


# --- memory


@pytest.mark.parametrize("place", ["a storage", "the blob store"])
async def test_200_mb_take_little_memory(world: World, place: str) -> None:
    result = TaskResult(url=world.storage.at("huge"))
    if place == "the blob store":

        async def chunks() -> AsyncGenerator[bytes, None]:
            for _ in range(200):
                yield bytes(1 << 20)

        result = TaskResult(blob_id=(await world.blobs.put_stream(chunks(), "video/mp4")).id)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    received = 0
    async for message in world.content.open(row([result]), pb.DownloadVideoRequest(task_id=TASK)):
        received += len(message.chunk)
    assert received == 200 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10

"""Channel of videos over HTTP: at most one submission, the key of a task, files by key, media by the guard."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest
from aiohttp import web

from tests.support.providers.raw import Link, provider, sized
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.video_a import VideoObjectProvider
from tests.support.providers.video_c import TaskApiProvider
from tests.support.providers.video_server import FILE, Accepted, page
from tests.support.videos import IMAGE, PNG, image, opened_videos, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C

SECONDS = 60.0
SUCCEEDED, RUNNING = pb.VIDEO_TASK_STATE_SUCCEEDED, pb.VIDEO_TASK_STATE_RUNNING


async def polled(videos: HttpVideo, task: ProviderTask) -> ProviderStatus:
    status = (await videos.poll([task], SECONDS))[task.id]
    assert isinstance(status, ProviderStatus)
    return status


async def refused(videos: HttpVideo) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await videos.submit(submission("sora-2"), SECONDS)
    return caught.value


async def read(
    videos: HttpVideo, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    async with videos.content(task, result, headers or {}) as part:
        return part.status, part.headers, b"".join([chunk async for chunk in part.chunks()])


async def test_a_task_is_submitted_polled_and_read() -> None:
    async with serve_provider(VideoObjectProvider()) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        task, report = await videos.submit(submission("sora-2", image()), SECONDS)
        states = [(await polled(videos, task)).state for _ in range(3)]
        done = await polled(videos, task)
        status, headers, body = await read(videos, task, done.results[0])
    assert (made.submissions, report.dropped, task.model) == (1, {}, "sora-2")
    assert states == [pb.VIDEO_TASK_STATE_QUEUED, RUNNING, SUCCEEDED]
    assert (status, body) == (200, FILE)
    assert dict(headers) == {"content-type": "video/mp4", "content-length": str(len(FILE)), "etag": '"1"'}
    assert KEY not in str(task)


async def test_a_strict_submission_with_an_unsupported_part_is_not_sent() -> None:
    async with serve_provider(VideoObjectProvider()) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        given = submission("sora-2", size="720x1280", aspect_ratio="16:9")
        with pytest.raises(UmgError) as caught:
            await videos.submit(replace(given, strict=True), SECONDS)
        _, report = await videos.submit(given, SECONDS)
    field = "parameters.aspect_ratio"
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_UNTRANSLATABLE, field)
    assert caught.value.failure is None  # another channel may be tried
    assert (made.submissions, list(report.dropped)) == (1, [field])


async def test_a_part_of_a_file_is_read() -> None:
    async with serve_provider(VideoObjectProvider()) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        result = ProviderResult(needs_key=f"/videos/{task.id}/content")
        status, headers, body = await read(videos, task, result, {"Range": "bytes=2-5", "cookie": "a"})
    assert (status, body, headers["content-range"]) == (206, FILE[2:6], f"bytes 2-5/{len(FILE)}")


async def test_the_key_is_not_sent_to_another_host() -> None:
    """Redirect a download to another server, which must get neither the key nor the other headers."""
    heads: list[bytes] = []

    async def storage(link: Link) -> None:
        head, _ = await link.request()
        heads.append(head)
        await link.send(sized(FILE))

    async with (
        provider(storage) as elsewhere,
        serve_provider(VideoObjectProvider(moved_to=elsewhere.url)) as made,
        opened_videos(f"{made.url}/v1", VID_A, allow=[elsewhere.url.split("/")[2]]) as videos,
    ):
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        status, _, body = await read(videos, task, ProviderResult(needs_key=f"/videos/{task.id}/content"))
        direct = await read(videos, task, ProviderResult(needs_key=elsewhere.url))
    assert (status, body, direct[2]) == (200, FILE, FILE)
    assert len(heads) == 2
    assert not any(b"uthorization" in head or KEY.encode() in head for head in heads)


async def test_a_redirect_to_a_private_host_is_refused() -> None:
    provider_ = VideoObjectProvider(moved_to="http://127.0.0.1:9/secret")
    async with serve_provider(provider_) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        with pytest.raises(UmgError) as caught:
            await read(videos, task, ProviderResult(needs_key=f"/videos/{task.id}/content"))
    assert caught.value.name == "UPSTREAM_FAILED"


@pytest.mark.parametrize(
    ("fault", "failure", "accepted"),
    [
        (page(404), Failure.AMBIGUOUS, 0),
        (web.Response(status=500, text='{"error":{"message":"x"}}'), Failure.AMBIGUOUS, 0),
        (web.Response(status=503, text='{"error":{"message":"x"}}'), Failure.TRANSIENT, 0),
        (web.Response(status=400, text='{"error":{"message":"x"}}'), Failure.CALLER, 0),
        (web.Response(status=401, text='{"error":{"message":"x"}}'), Failure.DOWN, 0),
        (web.Response(status=429, text='{"error":{"message":"x"}}'), Failure.OVERLOADED, 0),
        (web.Response(status=307, headers={"location": "/v1/videos"}), Failure.DOWN, 0),
    ],
)
async def test_a_submission_is_sent_once_in_spite_of_faults(
    fault: Accepted | web.Response, failure: Failure, accepted: int
) -> None:
    async with (
        serve_provider(VideoObjectProvider(faults=[fault])) as made,
        opened_videos(f"{made.url}/v1", VID_A) as videos,
    ):
        error = await refused(videos)
    assert (error.failure, made.submissions, len(made.tasks)) == (failure, 1, accepted)


async def test_a_submission_on_a_connection_that_the_provider_closed_is_sent_once() -> None:
    """Close the connection after each answer, without announcing it: an idle connection would break the next
    submission.
    """
    received = list[bytes]()

    async def handle(link: Link) -> None:
        received.append((await link.request())[1])
        await link.send(sized(b'{"id":"video_1","status":"queued"}'))

    async with provider(handle) as made, opened_videos(made.url.removesuffix("/x"), VID_A) as videos:
        for _ in range(2):
            await videos.submit(submission("sora-2"), SECONDS)
    assert len(received) == 2


@pytest.mark.parametrize(("seconds", "reason"), [(0.2, "DEADLINE_EXCEEDED"), (SECONDS, "UPSTREAM_TIMEOUT")])
async def test_a_submission_without_an_answer_in_time_is_ambiguous(seconds: float, reason: str) -> None:
    """Let the deadline of the caller, or that of the channel, end the wait."""

    async def silent(link: Link) -> None:
        await link.request()
        await link.left()

    deadlines = Deadlines(connect=5, first_byte=5, idle=5, total=1)
    async with provider(silent) as made, opened_videos(made.url, VID_A, deadlines=deadlines) as videos:
        with pytest.raises(UmgError) as caught:
            await videos.submit(submission("sora-2"), seconds)
    assert (caught.value.name, caught.value.failure) == (reason, Failure.AMBIGUOUS)


async def test_a_submission_that_was_not_sent_is_not_ambiguous() -> None:
    async with opened_videos("http://127.0.0.1:9/v1", VID_A) as videos:
        error = await refused(videos)
    assert error.failure is Failure.NOT_SENT


async def test_a_task_is_polled_with_its_own_key_also_while_that_is_suspended() -> None:
    keys = ("sk-first-0001", "sk-second-0002")
    made = VideoObjectProvider(keys=keys)
    async with serve_provider(made), opened_videos(f"{made.url}/v1", VID_A, keys=keys) as videos:
        tasks = [(await videos.submit(submission("sora-2"), SECONDS))[0] for _ in range(2)]
        made.keys = keys[1:]
        with pytest.raises(UmgError):  # the provider refuses the first key, which is suspended
            await videos.poll([tasks[0]], SECONDS)
        made.keys = keys
        assert [(await polled(videos, task)).state for task in tasks] == [pb.VIDEO_TASK_STATE_QUEUED] * 2
    assert [made.tasks[task.id].key for task in tasks] == list(keys)
    assert tasks[0].key_id != tasks[1].key_id


async def test_a_remix_has_the_key_of_its_source() -> None:
    keys = ("sk-first-0001", "sk-second-0002")
    made = VideoObjectProvider(keys=keys)
    async with serve_provider(made), opened_videos(f"{made.url}/v1", VID_A, keys=keys) as videos:
        source, _ = await videos.submit(submission("sora-2"), SECONDS)
        for _ in range(2):
            remix, _ = await videos.submit(submission("sora-2", source=source), SECONDS)
            assert remix.key_id == source.key_id


async def test_a_key_that_was_replaced_is_no_end_of_its_tasks() -> None:
    async with serve_provider(VideoObjectProvider()) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        old = ProviderTask(id=task.id, model=task.model, key_id="0" * 16)
        assert (await polled(videos, old)).state == pb.VIDEO_TASK_STATE_QUEUED


async def test_a_success_without_a_file_has_no_results() -> None:
    done = {"output": {"task_id": "t", "task_status": "SUCCEEDED"}}
    made = TaskApiProvider(query_faults=[web.json_response(done)])
    async with serve_provider(made), opened_videos(made.url, VID_C) as videos:
        task, _ = await videos.submit(submission("wan", duration_seconds=5), SECONDS)
        status = await polled(videos, task)
    assert (status.state, status.results) == (SUCCEEDED, ())


async def test_a_failed_query_leaves_the_task_as_it_is() -> None:
    faults = [page(502), web.Response(status=429, text="{}", headers={"retry-after": "7"})]
    async with (
        serve_provider(VideoObjectProvider(query_faults=faults)) as made,
        opened_videos(f"{made.url}/v1", VID_A) as videos,
    ):
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        with pytest.raises(UmgError):
            await videos.poll([task], SECONDS)
        with pytest.raises(UmgError) as limited:
            await videos.poll([task], SECONDS)
        assert (await polled(videos, task)).state == pb.VIDEO_TASK_STATE_QUEUED
    assert limited.value.retry_after == 7


async def test_a_queued_task_is_cancelled() -> None:
    async with serve_provider(VideoObjectProvider()) as made, opened_videos(f"{made.url}/v1", VID_A) as videos:
        task, _ = await videos.submit(submission("sora-2"), SECONDS)
        assert await videos.cancel(task, SECONDS)
        assert not await videos.cancel(ProviderTask(id="video_0", model="m"), SECONDS)
    assert made.cancelled == [task.id]


async def test_media_at_addresses_are_fetched_under_the_guard() -> None:
    async def files(link: Link) -> None:
        head, _ = await link.request()
        await link.send(sized(PNG if b"a.png" in head else b"<html>no image at all</html>"))

    async with (
        provider(files) as storage,
        serve_provider(VideoObjectProvider()) as made,
        opened_videos(f"{made.url}/v1", VID_A, allow=[storage.url.split("/")[2]]) as videos,
    ):
        wanted = submission("sora-2", pb.VideoMedia(kind=IMAGE, url=f"{storage.url}/a.png"))
        await videos.submit(wanted, SECONDS)
        for url in (f"{storage.url}/b.html", "https://127.0.0.1/a.png", "http://example.com/a.png"):
            with pytest.raises(UmgError) as caught:
                await videos.submit(submission("sora-2", pb.VideoMedia(kind=IMAGE, url=url)), SECONDS)
            assert (caught.value.name, caught.value.metadata) == ("INVALID_FIELD", {"field": "parameters.media[0].url"})
    assert made.forms[0]["input_reference"].content == PNG
    assert (made.submissions, wanted.request.parameters.media[0].url) == (1, f"{storage.url}/a.png")


async def test_a_file_that_is_gone_and_a_message_instead_of_it_are_errors() -> None:
    bodies = [
        b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 9\r\n\r\nhalf",
    ]

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(bodies[0])

    names = []
    async with provider(handle) as made, opened_videos(made.url, VID_A) as videos:
        while bodies:
            with pytest.raises(UmgError) as caught:
                await read(videos, ProviderTask(id="v", model="m"), ProviderResult(needs_key="/videos/v/content"))
            names.append(caught.value.name)
            bodies.pop(0)
    assert names == ["OBJECT_NOT_FOUND", "UPSTREAM_FAILED", "UPSTREAM_FAILED", "UPSTREAM_CUT"]


async def test_only_the_idle_deadline_ends_a_download() -> None:
    """Send a file for longer than the total deadline of the channel, then stall."""
    proceed = asyncio.Event()

    async def slow(link: Link) -> None:
        await link.request()
        await link.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        for _ in range(4):
            await link.send(b"x")
            await asyncio.sleep(0.1)
        proceed.set()
        await link.left()

    deadlines = Deadlines(connect=5, first_byte=5, idle=0.5, total=0.2)
    received = bytearray()
    async with provider(slow) as made, opened_videos(made.url, VID_A, deadlines=deadlines) as videos:
        with pytest.raises(UmgError) as caught:
            async with videos.content(ProviderTask(id="v", model="m"), ProviderResult(needs_key="/v"), {}) as part:
                async for chunk in part.chunks():
                    received += chunk
    assert (bytes(received), caught.value.metadata["deadline"]) == (b"xxxx", "idle")


async def test_the_times_of_a_channel_are_those_of_its_protocol() -> None:
    async with opened_videos("http://127.0.0.1:9/v1", VID_A) as videos:
        assert (videos.max_batch, videos.first_poll_seconds, videos.poll_seconds) == (1, 5, 5)
        assert videos.deadline_seconds == 1800

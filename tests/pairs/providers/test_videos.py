"""Video protocols against strict providers: each task is submitted once, polled to its end, and read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.pairs.table import strict_fake
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.video_b import FILTERED, GEMINI, VERTEX, OperationProvider
from tests.support.providers.video_d import ContentTaskProvider
from tests.support.providers.video_e import FamilyEProvider
from tests.support.providers.video_server import FILE, GONE, Accepted, VideoProvider, page
from tests.support.providers.video_xai import RequestProvider
from tests.support.videos import TASK_ID, image, opened_videos, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http.signing.access_key import AccessKeySigner
from umg_grpc.upstream.http.signing.jwt_by_secret import ShortTokenSigner
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B_GEMINI
from umg_grpc.wire.video.providers.xai_videos import VID_A_XAI

SECONDS = 60.0
QUEUED, RUNNING = pb.VIDEO_TASK_STATE_QUEUED, pb.VIDEO_TASK_STATE_RUNNING
SUCCEEDED, FAILED = pb.VIDEO_TASK_STATE_SUCCEEDED, pb.VIDEO_TASK_STATE_FAILED
SECRET = "s" * 32


def hmac_signer() -> Signer:
    return AccessKeySigner("AKEXAMPLE0001", "c2VjcmV0LWV4YW1wbGU=", region="cn-north-1", service="cv")


def jwt_signer() -> Signer:
    return ShortTokenSigner("ak-1", SECRET)


@dataclass(frozen=True)
class Case:
    """A protocol with its provider."""

    id: str
    name: str
    """Row of the provider in the table."""
    model: str
    base: str = ""
    """Path of the base URL."""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"duration_seconds": 5})
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the provider."""
    signer: Signer | None = None
    moderation: str = ""
    """Code of a failure by the content; "" for the words of a message."""

    codec: VideoProtocol | None = None
    """Codec in place of that of the protocol, for an address with other paths."""
    simulation: type[VideoProvider] | None = None
    """Provider in place of that of the row."""

    @property
    def protocol(self) -> VideoProtocol:
        return self.codec or VIDEO_PROTOCOLS[self.name]

    @property
    def provider(self) -> Callable[..., VideoProvider]:
        return self.simulation or strict_fake(self.name)

    def submission(self, **more: Any) -> Submission:
        return submission(self.model, **{**self.parameters, **more})


B = {"duration_seconds": 8, "aspect_ratio": "16:9", "resolution": "1080p", "generate_audio": False}
CASES = [
    Case("vidA", "vidA", "sora-2", "/v1", {}, moderation="moderation_blocked"),
    Case(
        *("vidA at xAI", "vidA", "grok-imagine-video-1.5", "/v1"),
        parameters={"duration_seconds": 5, "aspect_ratio": "16:9", "resolution": "720p"},
        codec=VID_A_XAI,
        simulation=RequestProvider,
    ),
    Case("vidB on Vertex", "vidB", "veo-3.1", VERTEX, B),
    Case("vidB on Gemini", "vidB", "veo-3.1", GEMINI, B, codec=VID_B_GEMINI),
    Case("vidC", "vidC", "wan2.5-i2v", moderation="DataInspectionFailed"),
    Case(
        "vidD",
        "vidD",
        "doubao-seedance-2-0-260128",
        "/api/v3",
        moderation="OutputVideoSensitiveContentDetected",
    ),
    Case("vidE, old API", "vidE", "kling-v2-6"),
    Case(
        "vidE, old API with a token",
        "vidE",
        "kling-v2-6",
        settings={"pairs": {"ak-1": SECRET}},
        signer=jwt_signer(),
    ),
    Case("vidE, new API", "vidE", "kling-3.0"),
    Case("vidF", "vidF", "jimeng_vgfm_t2v_l20", signer=hmac_signer(), moderation="50511"),
    Case("vidG v2", "vidG", "MiniMax-H3", moderation="1027"),
    Case(
        *("vidG v1", "vidG", "MiniMax-Hailuo-02"),
        parameters={"duration_seconds": 6, "resolution": "768P"},
        moderation="1027",
    ),
]
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


@asynccontextmanager
async def opened(case: Case, **settings: Any) -> AsyncGenerator[tuple[VideoProvider, HttpVideo], None]:
    made = case.provider(**{**case.settings, **settings})
    async with (
        serve_provider(made),
        opened_videos(made.url + case.base, case.protocol, signer=case.signer) as videos,
    ):
        yield made, videos


async def polled(videos: HttpVideo, task: ProviderTask) -> ProviderStatus:
    status = (await videos.poll([task], SECONDS))[task.id]
    assert isinstance(status, ProviderStatus), status
    return status


async def content(videos: HttpVideo, task: ProviderTask, result: ProviderResult) -> bytes:
    """Return the file of a result: inline, or read by the key. An address is only compared by the tests."""
    if not result.needs_key:
        return result.data
    async with videos.content(task, result, {}) as part:
        return b"".join([chunk async for chunk in part.chunks()])


@EACH
async def test_a_task_passes_through_its_states_to_a_readable_file(case: Case) -> None:
    async with opened(case) as (made, videos):
        task, report = await videos.submit(case.submission(), SECONDS)
        states = [(await polled(videos, task)).state for _ in range(2)]
        done = await polled(videos, task)
        [result] = done.results
        if result.url:
            assert result.url == f"{made.url}/files/{task.id}.mp4"
            assert result.url_expire_time is not None
        else:
            assert await content(videos, task, result) == FILE
    assert not made.refusals
    assert states in ([QUEUED, RUNNING], [RUNNING, RUNNING])  # long-running operations have no queue
    assert (done.state, made.submissions, len(made.tasks)) == (SUCCEEDED, 1, 1)
    assert report.dropped == {}
    assert done.usage is not None
    assert done.usage.video_count == 1


@EACH
async def test_an_image_is_accepted(case: Case) -> None:
    async with opened(case) as (made, videos):
        picture = submission(case.model, image("first_frame"), **{"resolution": "720p", **case.parameters})
        if case.id == "vidE, new API":
            picture.request.kind = pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO
        task, _ = await videos.submit(picture, SECONDS)
        assert (await polled(videos, task)).state in (QUEUED, RUNNING)
    assert not made.refusals


@EACH
async def test_a_failed_task_has_its_reason_and_a_moderated_one_its_code(case: Case) -> None:
    for failure, expected in (
        (("", "the render broke"), "task_failed"),
        ((case.moderation, "it failed the content moderation"), "content_policy_violation"),
    ):
        async with opened(case, plan=["failed"], failure=failure) as (_, videos):
            task, _ = await videos.submit(case.submission(), SECONDS)
            status = await polled(videos, task)
        assert status.error is not None
        assert (status.state, status.error.code) == (FAILED, expected)
        assert failure[1] in status.error.message


@EACH
async def test_an_unknown_word_means_running(case: Case) -> None:
    async with opened(case, plan=["reviewing", "succeeded"]) as (_, videos):
        task, _ = await videos.submit(case.submission(), SECONDS)
        status = await polled(videos, task)
        assert status.state == RUNNING
        assert status.unknown_word == ("" if "vidB" in case.id else "reviewing")
        assert (await polled(videos, task)).state == SUCCEEDED


@EACH
async def test_a_task_that_vanishes_is_not_found_or_has_expired(case: Case) -> None:
    async with opened(case, plan=["running", GONE]) as (_, videos):
        task, _ = await videos.submit(case.submission(), SECONDS)
        await polled(videos, task)
        found = (await videos.poll([task], SECONDS))[task.id]
    if isinstance(found, UmgError):
        assert found.name == "OBJECT_NOT_FOUND"
    else:  # the provider states that it has removed the task
        assert found.error is not None
        assert (found.state, found.error.code) == (FAILED, "task_expired")


@EACH
@pytest.mark.parametrize(
    ("fault", "failure", "made_tasks"),
    [
        (Accepted(), Failure.AMBIGUOUS, 1),
        (Accepted(page(504)), Failure.AMBIGUOUS, 1),
        (page(502), Failure.AMBIGUOUS, 0),
        (Accepted(page(200)), Failure.AMBIGUOUS, 1),
        (web.Response(status=500, text="{}"), Failure.AMBIGUOUS, 0),
        (web.Response(status=429, text="{}"), Failure.OVERLOADED, 0),
    ],
    ids=["a broken connection", "a page with 504", "a page with 502", "a page with 200", "500", "429"],
)
async def test_a_submission_is_sent_once(
    case: Case, fault: Accepted | web.Response, failure: Failure, made_tasks: int
) -> None:
    async with opened(case, faults=[fault]) as (made, videos):
        with pytest.raises(UmgError) as caught:
            await videos.submit(case.submission(), SECONDS)
    assert (caught.value.failure, made.submissions, len(made.tasks)) == (failure, 1, made_tasks)


@EACH
async def test_a_wrong_key_is_an_error_of_the_channel(case: Case) -> None:
    settings: dict[str, Any] = {"pairs": {"other": SECRET}} if case.signer is not None else {"keys": ["sk-other"]}
    async with opened(case, **settings) as (_, videos):
        with pytest.raises(UmgError) as caught:
            await videos.submit(case.submission(), SECONDS)
    assert caught.value.failure is Failure.DOWN
    assert KEY not in caught.value.message


@EACH
async def test_a_task_without_a_start_is_cancelled_where_the_provider_can(case: Case) -> None:
    async with opened(case) as (made, videos):
        task, _ = await videos.submit(case.submission(), SECONDS)
        assert await videos.cancel(task, SECONDS) is bool(made.cancelled)
        assert (case.protocol.encode_cancel is not None) is bool(made.cancelled)


@EACH
async def test_a_lost_submission_is_found_where_the_provider_stores_the_id_of_the_gateway(case: Case) -> None:
    async with opened(case, faults=[Accepted()]) as (made, videos):
        assert await videos.find(case.submission(), SECONDS) is None
        with pytest.raises(UmgError):
            await videos.submit(case.submission(), SECONDS)
        found = await videos.find(case.submission(), SECONDS)
        if case.protocol.encode_find is None:
            assert found is None
            return
        assert found is not None
        assert [(found.id, task.external_id) for task in made.tasks.values()] == [(found.id, TASK_ID)]
        assert (await polled(videos, found)).state == RUNNING  # the look-up was the first query
    assert (made.submissions, found.key_id != "") == (1, True)


async def test_the_content_filter_of_operations_is_a_failure() -> None:
    for case in CASES:
        if case.provider is OperationProvider:
            async with opened(case, plan=[FILTERED]) as (_, videos):
                task, _ = await videos.submit(case.submission(), SECONDS)
                status = await polled(videos, task)
            assert status.error is not None
            assert status.error.code == "content_policy_violation"


async def test_several_videos_of_an_operation_are_all_results() -> None:
    for case in CASES:
        if case.provider is OperationProvider:
            async with opened(case, plan=["succeeded"]) as (_, videos):
                task, _ = await videos.submit(case.submission(sample_count=3), SECONDS)
                done = await polled(videos, task)
                assert [await content(videos, task, result) for result in done.results] == [FILE] * 3


async def test_open_tasks_are_queried_together_where_the_provider_can() -> None:
    tasks: list[ProviderTask]
    [ark] = [case for case in CASES if case.id == "vidD"]
    async with opened(ark) as (made, videos):
        assert isinstance(made, ContentTaskProvider)
        tasks = [(await videos.submit(ark.submission(), SECONDS))[0] for _ in range(5)]
        found = await videos.poll(tasks, SECONDS)
        assert ({status.state for status in found.values() if isinstance(status, ProviderStatus)}, made.pages) == (
            {QUEUED},
            1,
        )
    [new] = [case for case in CASES if case.id == "vidE, new API"]
    async with opened(new) as (made, videos):
        assert isinstance(made, FamilyEProvider)
        tasks = []
        for number, model in enumerate(["kling-3.0", "kling-v2-6", "kling-3.0-turbo"]):
            base = submission(model, duration_seconds=5)
            tasks.append((await videos.submit(replaced(base, f"task_{number}"), SECONDS))[0])
        found = await videos.poll(tasks, SECONDS)
        assert len([status for status in found.values() if isinstance(status, ProviderStatus)]) == 3
        assert made.lists == [[tasks[0].id, tasks[2].id]]


def replaced(base: Submission, task_id: str) -> Submission:
    return Submission(task_id=task_id, model=base.model, request=base.request)


async def test_a_failed_query_of_one_task_is_that_of_the_remaining_ones() -> None:
    [old] = [case for case in CASES if case.id == "vidE, old API"]
    async with opened(old) as (made, videos):
        tasks = []
        for number in range(3):
            base = replaced(old.submission(), f"task_{number}")
            tasks.append((await videos.submit(base, SECONDS))[0])
        made.query_faults = [web.Response(status=503, text="{}")]
        found = await videos.poll(tasks, SECONDS)
        assert [isinstance(found[task.id], UmgError) for task in tasks] == [True, True, True]
        assert made.queries == 1


async def test_concurrent_submissions_are_independent() -> None:
    [case] = [case for case in CASES if case.id == "vidD"]
    async with opened(case) as (made, videos):
        submitted = await asyncio.gather(*(videos.submit(case.submission(), SECONDS) for _ in range(10)))
    assert (made.submissions, len({task.id for task, _ in submitted})) == (10, 10)

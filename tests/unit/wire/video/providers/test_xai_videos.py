"""Codec of xAI's video tasks against a table of the members that @ai-sdk/xai 3.0.138 sends (read 2026-11-29)."""

from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.providers.server import serve_provider
from tests.support.providers.video_xai import RequestProvider
from tests.support.videos import VIDEO, image, opened_videos, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video import video_protocol
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.xai_videos import VID_A_XAI
from umg_grpc.wire.video.submission_encoding import encode_submission

MODEL = "grok-imagine-video-1.5"
TASK = ProviderTask(id="req-1", model=MODEL)
FILM = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4")
GENERATION = {
    "model": str,
    "prompt": str,
    "duration": int,
    "aspect_ratio": str,
    "resolution": str,
    "image": dict,
    "reference_images": list,
    "reference_audios": list,
}
"""Member of `/videos/generations` -> its type."""
EDIT = {"model": str, "prompt": str, "video": dict}
RESOLUTIONS = ("480p", "720p", "1080p")


def sent(*media: pb.VideoMedia, **values: Any) -> tuple[dict[str, Any], ProviderRequest]:
    """Return the body of a submission, which the strict provider accepts, and the request."""
    request = encode_submission(VID_A_XAI, submission(MODEL, *media, public="film", **values))
    body: dict[str, Any] = msgspec.json.decode(request.body)
    known = {"/videos/generations": GENERATION, "/videos/edits": EDIT}[request.path]
    for name, value in body.items():
        assert isinstance(value, known[name]), name
    assert body.get("resolution", "720p") in RESOLUTIONS
    return body, request


def status(code: int = 200, **task: Any) -> ProviderStatus:
    body = msgspec.json.encode(task) if task else b""
    found = VID_A_XAI.decode_status(code, {}, body, [TASK])[TASK.id]
    assert isinstance(found, ProviderStatus)
    return found


def test_the_variant_follows_from_the_address() -> None:
    assert video_protocol("vidA", "https://api.x.ai/v1") is VID_A_XAI
    assert video_protocol("vidA", "https://relay.example/v1") is VID_A


def test_a_bare_submission_has_the_prompt_alone() -> None:
    body, request = sent()
    assert body == {"model": MODEL, "prompt": "a paper boat"}
    assert not request.report.dropped


def test_a_full_submission_has_each_member() -> None:
    body, request = sent(image("first_frame"), duration_seconds=6, aspect_ratio="16:9", resolution="1080P", seed=1)
    assert body.pop("image")["url"].startswith("data:image/png;base64,")
    assert body == {
        "model": MODEL,
        "prompt": "a paper boat",
        "duration": 6,
        "aspect_ratio": "16:9",
        "resolution": "1080p",
    }
    assert list(request.report.dropped) == ["parameters.seed"]


def test_a_size_in_pixels_is_a_ratio_and_a_resolution() -> None:
    body, _ = sent(size="720x1280")
    assert (body["aspect_ratio"], body["resolution"]) == ("9:16", "720p")


def test_reference_images_have_720p_at_most() -> None:
    body, request = sent(image("reference_image"), image("reference_image"), resolution="1080p")
    assert (len(body["reference_images"]), body["resolution"]) == (2, "720p")
    assert list(request.report.dropped) == ["parameters.resolution"]


def test_a_video_is_changed_by_its_address() -> None:
    film = pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_VIDEO, url="https://files.example/a.mp4")
    body, request = sent(film, duration_seconds=6)
    assert (request.path, body["video"]) == ("/videos/edits", {"url": "https://files.example/a.mp4"})
    assert list(request.report.dropped) == ["parameters.duration_seconds"]


def test_a_last_frame_and_a_resolution_of_another_model_are_refused() -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE):
        sent(image("first_frame"), image("last_frame"))
    with pytest.raises(UmgError, match="'1080p' is not one of its values"):
        encode_submission(VID_A_XAI, submission("grok-imagine-video", public="film", resolution="1080p"))


def test_the_id_of_a_task_is_that_of_its_request() -> None:
    created = VID_A_XAI.decode_created(200, {}, b'{"request_id":"req-1"}', submission(MODEL))
    assert (created.id, VID_A_XAI.encode_query([created]).path) == ("req-1", "/videos/req-1")
    with raises_error(failure=Failure.AMBIGUOUS):
        VID_A_XAI.decode_created(200, {}, b"{}", submission(MODEL))


def test_a_task_runs_until_it_has_a_file() -> None:
    assert status(202).state == pb.VIDEO_TASK_STATE_RUNNING
    assert status(202, status="pending", progress=40).state == pb.VIDEO_TASK_STATE_RUNNING
    video = {"url": "https://vidgen.x.ai/a.mp4", "duration": 6, "respect_moderation": True}
    for task in ({"status": "done", "video": video}, {"video": video}):
        done = status(**task)
        assert (done.state, [(each.url, each.duration_seconds) for each in done.results]) == (
            pb.VIDEO_TASK_STATE_SUCCEEDED,
            [("https://vidgen.x.ai/a.mp4", 6.0)],
        )


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ({"status": "failed", "error": {"code": "internal_error", "message": "render failed"}}, "task_failed"),
        ({"status": "expired"}, "task_expired"),
        ({"status": "done", "video": {"url": "", "respect_moderation": False}}, "content_policy_violation"),
    ],
)
def test_a_task_that_ended_without_a_video_has_its_reason(task: dict[str, Any], code: str) -> None:
    found = status(**task)
    assert found.error is not None
    assert (found.state, found.error.code) == (pb.VIDEO_TASK_STATE_FAILED, code)


def test_a_refusal_has_the_text_of_both_forms_of_errors() -> None:
    for body in (b'{"code":"invalid-argument","error":"bad prompt"}', b'{"error":{"message":"bad prompt"}}'):
        with pytest.raises(UmgError, match="bad prompt"):
            VID_A_XAI.decode_created(400, {}, body, submission(MODEL))


async def test_a_video_that_the_content_filter_removed_is_a_failure() -> None:
    async with (
        serve_provider(RequestProvider(filters=True, plan=["succeeded"])) as xai,
        opened_videos(f"{xai.url}/v1", VID_A_XAI) as videos,
    ):
        task, _ = await videos.submit(submission(MODEL, FILM, public=MODEL), 10)
        found = (await videos.poll([task], 10))[task.id]
    assert isinstance(found, ProviderStatus)
    assert found.error is not None
    assert found.error.code == "content_policy_violation"
    assert xai.received[0].path == "/v1/videos/edits"

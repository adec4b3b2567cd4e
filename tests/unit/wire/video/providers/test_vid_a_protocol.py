"""Codec of the protocol `vidA`."""

from datetime import UTC, datetime

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import IMAGE, PNG, image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A

TASK = ProviderTask(id="video_7f", model="sora-2")


def status(body: object, http_status: int = 200) -> ProviderStatus:
    found = VID_A.decode_status(http_status, {}, msgspec.json.encode(body), [TASK])["video_7f"]
    assert isinstance(found, ProviderStatus)
    return found


def test_a_submission_is_a_form_with_explicit_values() -> None:
    request = VID_A.encode_create(submission("sora-2", image(), seed=7, extra_json='{"style":{"a":[1,true]}}'))
    boundary = request.headers["Content-Type"].partition("boundary=")[2]
    assert request.path == "/videos"
    assert request.body.decode("latin-1").split(f"--{boundary}\r\n")[1:-1] == [
        'Content-Disposition: form-data; name="model"\r\n\r\nsora-2\r\n',
        'Content-Disposition: form-data; name="prompt"\r\n\r\na paper boat\r\n',
        'Content-Disposition: form-data; name="seconds"\r\n\r\n4\r\n',
        'Content-Disposition: form-data; name="size"\r\n\r\n720x1280\r\n',
        'Content-Disposition: form-data; name="input_reference"; filename="image.png"\r\n'
        f"Content-Type: image/png\r\n\r\n{PNG.decode('latin-1')}\r\n",
        'Content-Disposition: form-data; name="style[a][]"\r\n\r\n1\r\n',
    ]
    assert request.body.endswith(f'name="style[a][]"\r\n\r\ntrue\r\n--{boundary}--\r\n'.encode())
    assert request.report.dropped == {"parameters.seed": None}


def test_a_form_has_the_prompt_alone_for_the_model_of_a_vendor() -> None:
    body = VID_A.encode_create(submission("sora-2", public="sora-2")).body
    assert [part.partition(b'"')[0] for part in body.split(b'name="')[1:]] == [b"model", b"prompt"]


@pytest.mark.parametrize(
    ("parameters", "size", "dropped"),
    [
        ({"size": "1280x720"}, b"1280x720", {}),
        ({"aspect_ratio": "16:9"}, b"1280x720", {}),
        ({"aspect_ratio": "1:1"}, b"720x1280", {"parameters.aspect_ratio": None}),
    ],
)
def test_the_size_is_the_callers_or_that_of_the_ratio(
    parameters: dict[str, str], size: bytes, dropped: dict[str, None]
) -> None:
    request = VID_A.encode_create(submission("sora-2", **parameters))
    assert b'name="size"\r\n\r\n' + size in request.body
    assert request.report.dropped == dropped


def test_a_remix_has_only_the_prompt() -> None:
    request = VID_A.encode_create(submission("sora-2", source=TASK, prompt="in blue"))
    assert (request.path, request.body) == ("/videos/video_7f/remix", b'{"prompt":"in blue"}')


@pytest.mark.parametrize(
    "media", [[image(), image()], [image("last_frame")], [pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_VIDEO, data=b"x")]]
)
def test_more_than_one_image_is_refused(media: list[pb.VideoMedia]) -> None:
    with raises_error(name="UNTRANSLATABLE"):
        VID_A.encode_create(submission("sora-2", *media))


def test_an_address_is_never_sent() -> None:
    with pytest.raises(UmgError):
        VID_A.encode_create(submission("sora-2", pb.VideoMedia(kind=IMAGE, url="https://example.com/a.png")))


def test_a_task_is_queued_then_runs_then_has_a_file_that_needs_the_key() -> None:
    assert status({"id": "video_7f", "status": "queued", "progress": 0}).state == pb.VIDEO_TASK_STATE_QUEUED
    running = status({"id": "video_7f", "status": "in_progress", "progress": 35.0})
    assert (running.state, running.progress_percent) == (pb.VIDEO_TASK_STATE_RUNNING, 35)
    done = status({"status": "completed", "seconds": "8", "size": "1280x720", "expires_at": 1767409545})
    [result] = done.results
    assert (result.needs_key, result.url) == ("/videos/video_7f/content", "")
    assert (result.duration_seconds, result.width, result.height) == (8, 1280, 720)
    assert result.url_expire_time == datetime.fromtimestamp(1767409545, UTC)
    assert done.usage == pb.VideoUsage(video_count=1, output_seconds=8)


def test_a_failed_task_has_the_reason_of_the_provider() -> None:
    failed = status({"status": "failed", "error": {"code": "moderation_blocked", "message": "Not allowed"}})
    assert failed.error == pb.VideoTaskError(
        code="content_policy_violation", status_code=400, message="Not allowed (moderation_blocked)"
    )
    assert status({"status": "failed", "error": None}).error.code == "task_failed"  # type: ignore[union-attr]


def test_a_moderated_prompt_is_blocked_on_every_channel() -> None:
    body = b'{"error":{"message":"no","code":"moderation_blocked","type":"invalid_request_error"}}'
    with raises_error(name="CONTENT_BLOCKED", failure=Failure.CALLER):
        VID_A.decode_created(400, {}, body, submission())


def test_an_id_cannot_change_the_path() -> None:
    assert VID_A.encode_query([ProviderTask(id="../x?y", model="m")]).path == "/videos/..%2Fx%3Fy"
    with pytest.raises(UmgError):
        VID_A.encode_query([ProviderTask(id="..", model="m")])

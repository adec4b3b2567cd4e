"""Codec of the protocol `vidC`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.support.videos import AUDIO, image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C

TASK = ProviderTask(id="8f1c", model="wan2.5-t2v-preview")
HTTP = "https://example.com/a.png"


def created(*media: pb.VideoMedia, **parameters: Any) -> dict[str, Any]:
    request = VID_C.encode_create(submission("wan2.5", *media, **parameters))
    assert request.headers["X-DashScope-Async"] == "enable"
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return decoded


def status(output: dict[str, Any], **more: Any) -> ProviderStatus:
    found = VID_C.decode_status(200, {}, msgspec.json.encode({"output": output, **more}), [TASK])["8f1c"]
    assert isinstance(found, ProviderStatus)
    return found


def test_text_to_video_has_a_size_and_explicit_values() -> None:
    assert created(resolution="720p", duration_seconds=5, negative_prompt="rain", seed=7) == {
        "model": "wan2.5",
        "input": {"prompt": "a paper boat", "negative_prompt": "rain"},
        "parameters": {
            "prompt_extend": False,
            "watermark": False,
            "size": "1280*720",
            "duration": 5,
            "audio": False,
            "seed": 7,
        },
    }


@pytest.mark.parametrize(
    ("parameters", "size"),
    [
        ({"size": "1920*1080", "resolution": "720p"}, "1920*1080"),
        ({"size": "1080x1920"}, "1080*1920"),
        ({"resolution": "480p", "aspect_ratio": "9:16"}, "480*832"),
        ({}, "1280*720"),
    ],
)
def test_the_size_follows_from_resolution_and_ratio(parameters: dict[str, str], size: str) -> None:
    assert created(**parameters)["parameters"]["size"] == size


def test_image_to_video_has_a_resolution_in_capitals() -> None:
    body = created(image(url=HTTP), resolution="1080p", duration_seconds=10, generate_audio=True)
    assert body["input"] == {"prompt": "a paper boat", "img_url": HTTP}
    assert body["parameters"]["resolution"] == "1080P"
    assert "size" not in body["parameters"]
    assert body["parameters"]["audio"] is True


def test_bytes_are_a_data_url_and_two_images_are_the_frames() -> None:
    request = VID_C.encode_create(submission("wan2.1-kf2v", image(), image(url=HTTP)))
    body = msgspec.json.decode(request.body)
    assert request.path == "/api/v1/services/aigc/image2video/video-synthesis"
    assert body["input"]["first_frame_url"].startswith("data:image/png;base64,")
    assert body["input"]["last_frame_url"] == HTTP


def test_audio_and_fields_that_pass_through_are_at_their_places() -> None:
    sound = pb.VideoMedia(kind=AUDIO, url="https://example.com/a.mp3")
    body = created(sound, extra_json='{"template":"t","shot_type":"multi","watermark":true,"parameters":{"x":1}}')
    assert body["input"] == {"prompt": "a paper boat", "audio_url": "https://example.com/a.mp3", "template": "t"}
    assert body["parameters"]["shot_type"] == "multi"
    assert (body["parameters"]["x"], body["parameters"]["watermark"]) == (1, False)


def test_the_states_of_a_task() -> None:
    assert status({"task_status": "SUSPENDED"}).state == pb.VIDEO_TASK_STATE_QUEUED
    assert status({"task_status": "RUNNING"}).state == pb.VIDEO_TASK_STATE_RUNNING
    done = status(
        {"task_status": "SUCCEEDED", "video_url": "https://x/a.mp4", "end_time": "2026-01-02 11:06:10.001"},
        usage={"duration": 5, "video_count": 1},
    )
    [result] = done.results
    assert result.url_expire_time == datetime(2026, 1, 3, 3, 6, 10, 1000, tzinfo=UTC)
    assert done.usage == pb.VideoUsage(video_count=1, output_seconds=5)
    moderated = status({"task_status": "FAILED", "code": "DataInspectionFailed", "message": "no"})
    assert moderated.error is not None
    assert moderated.error.code == "content_policy_violation"
    gone = status({"task_status": "UNKNOWN"})
    assert gone.error is not None
    assert (gone.error.code, gone.error.status_code) == ("task_expired", 504)
    assert not status({"task_status": "SUCCEEDED"}).results


@dataclass(frozen=True)
class Usage:
    """Member `usage` of a finished task, and the seconds in it."""

    id: str
    usage: dict[str, Any]
    output_seconds: int
    input_seconds: int | None = None


USAGES = [
    Usage("Wan 2.5", {"duration": 5, "video_count": 1, "SR": 720}, 5),
    Usage("Wan 2.1", {"video_duration": 5, "video_ratio": "1280*720", "video_count": 1}, 5),
    Usage("Wan 2.7 with an input video", {"duration": 9, "output_video_duration": 5, "SR": 720}, 5, 4),
    Usage(
        "Wan 3.0",
        {"duration": 12.3, "output_video_duration": 7.2, "input_video_duration": 5.1, "fps": 24, "ratio": "16:9"},
        8,
        6,
    ),
    Usage("Wan 3.0 without an input", {"duration": 7, "output_video_duration": 7, "input_video_duration": 0}, 7, 0),
    Usage("the input alone", {"duration": 12, "input_video_duration": 5}, 7, 5),
]


@pytest.mark.parametrize("case", USAGES, ids=lambda case: case.id)
def test_seconds_of_the_output_and_of_billed_inputs_are_apart(case: Usage) -> None:
    done = status({"task_status": "SUCCEEDED", "video_url": "https://x/a.mp4"}, usage=case.usage)
    assert done.usage == pb.VideoUsage(
        video_count=1, output_seconds=case.output_seconds, input_seconds=case.input_seconds
    )


def test_a_result_has_the_size_that_the_provider_states() -> None:
    [result] = status({"task_status": "SUCCEEDED", "video_url": "https://x/a.mp4"}, usage={"size": "1280*720"}).results
    assert (result.width, result.height) == (1280, 720)


@pytest.mark.parametrize(
    ("http_status", "code", "failure"),
    [
        (200, "InvalidParameter", Failure.CALLER),
        (200, "Throttling.RateQuota", Failure.OVERLOADED),
        (429, "Throttling.AllocationQuota", Failure.OVERLOADED),
        (400, "Arrearage", Failure.DOWN),
        (403, "AccessDenied.Unpurchased", Failure.DOWN),
        (403, "AllocationQuota.FreeTierOnly", Failure.DOWN),
        (401, "InvalidApiKey", Failure.DOWN),
        (404, "ModelNotFound", Failure.DOWN),
        (400, "DataInspectionFailed", Failure.CALLER),
        (500, "InternalError.Timeout", Failure.AMBIGUOUS),
        (200, "SystemError", Failure.AMBIGUOUS),
    ],
)
def test_errors_are_classified_by_their_code(http_status: int, code: str, failure: Failure) -> None:
    body = msgspec.json.encode({"code": code, "message": "see dashscope.aliyuncs.com", "request_id": "r"})
    with pytest.raises(UmgError) as caught:
        VID_C.decode_created(http_status, {}, body, submission())
    assert caught.value.failure is failure
    assert "aliyun" not in caught.value.message

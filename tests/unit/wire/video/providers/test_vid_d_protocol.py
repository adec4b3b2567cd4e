"""Codec of the protocol `vidD`."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from tests.support.error_checks import raises_error
from tests.support.videos import AUDIO, IMAGE, VIDEO, image, submission
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.submission_encoding import encode_submission

TASK, OTHER = ProviderTask(id="cgt-1", model="m"), ProviderTask(id="cgt-2", model="m")
HTTP = "https://example.com/a.png"
SECOND, FIRST = "doubao-seedance-2-0-260128", "doubao-seedance-1-0-pro-250528"


def created(*media: pb.VideoMedia, model: str = SECOND, **parameters: Any) -> tuple[dict[str, Any], Report]:
    request = encode_submission(VID_D, submission(model, *media, **parameters))
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return decoded, request.report


def status(**task: Any) -> ProviderStatus:
    found = VID_D.decode_status(200, {}, msgspec.json.encode({"id": "cgt-1", **task}), [TASK])["cgt-1"]
    assert isinstance(found, ProviderStatus)
    return found


def test_a_submission_has_the_prompt_the_media_and_explicit_values() -> None:
    media = [
        image("first_frame", url=HTTP),
        pb.VideoMedia(kind=IMAGE, url="asset://face-1", role=pb.VIDEO_MEDIA_ROLE_LAST_FRAME),
    ]
    body, report = created(
        *media, resolution="720p", aspect_ratio="16:9", duration_seconds=5, generate_audio=False, watermark=True
    )
    assert body == {
        "model": SECOND,
        "content": [
            {"type": "text", "text": "a paper boat"},
            {"type": "image_url", "image_url": {"url": HTTP}, "role": "first_frame"},
            {"type": "image_url", "image_url": {"url": "asset://face-1"}, "role": "last_frame"},
        ],
        "watermark": True,
        "resolution": "720p",
        "ratio": "16:9",
        "duration": 5,
        "generate_audio": False,
    }
    assert not report.dropped


def test_an_unset_sound_is_left_to_the_provider_and_a_silent_model_has_none() -> None:
    assert "generate_audio" not in created()[0]
    body, _ = created(model="vidD-1-5-pro-251215-noAudio")
    assert (body["model"], body["generate_audio"]) == ("vidD-1-5-pro-251215", False)
    request = VID_D.encode_create(submission("doubao-1-5", public="vidD-1-5-pro-251215-noAudio"))
    assert msgspec.json.decode(request.body)["generate_audio"] is False


def test_parameters_of_the_first_generation_are_not_sent_to_the_second() -> None:
    values = {"camera_fixed": True, "frames": 29, "frames_per_second": 24, "duration_seconds": 5, "seed": 7}
    for model in (SECOND, "dreamina-seedance-2-0-mini-260615", "seedance-3-0-pro"):
        body, report = created(model=model, **values)
        assert {"camera_fixed", "frames"}.isdisjoint(body)
        assert (body["duration"], body["seed"], body["content"][0]["text"]) == (5, 7, "a paper boat")
        assert set(report.dropped) == {f"parameters.{name}" for name in ("camera_fixed", "frames", "frames_per_second")}
    body, report = created(model=FIRST, **values)
    assert (body["seed"], body["camera_fixed"], body["frames"]) == (7, True, 29)
    assert "duration" not in body
    assert body["content"][0]["text"] == "a paper boat --fps 24"
    assert not report.dropped


def test_reference_media_have_their_roles_and_bytes_are_data_urls() -> None:
    sound = pb.VideoMedia(kind=AUDIO, data=b"ID3", mime_type="audio/mpeg")
    film = pb.VideoMedia(kind=VIDEO, url="https://example.com/a.mp4")
    body, _ = created(image(), film, sound)
    assert [item.get("role") for item in body["content"]] == [
        None,
        "reference_image",
        "reference_video",
        "reference_audio",
    ]
    assert body["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    with raises_error(field="parameters.media[0]"):
        created(pb.VideoMedia(kind=VIDEO, data=b"x"))


def test_fields_that_pass_through_do_not_replace_ours() -> None:
    body, _ = created(resolution="720p", extra_json='{"resolution":"4k","service_tier":"flex","callback_url":"x"}')
    assert (body["resolution"], body["service_tier"]) == ("720p", "flex")
    assert "callback_url" not in body
    callback = VID_D.encode_create(submission("m", callback_url="https://gateway/cb"))
    assert msgspec.json.decode(callback.body)["callback_url"] == "https://gateway/cb"


def test_a_draft_is_named_by_the_id_of_its_provider() -> None:
    draft = {"type": "draft_task", "draft_task": {"id": "cgt-1"}}
    given = submission(SECOND, source=TASK, prompt="", draft_task_id="task_1", resolution="1080p")
    request = encode_submission(VID_D, given)
    assert msgspec.json.decode(request.body)["content"] == [draft]
    assert not request.report.dropped
    described = encode_submission(VID_D, submission(SECOND, source=TASK, draft_task_id="task_1"))
    assert msgspec.json.decode(described.body)["content"] == [draft, {"type": "text", "text": "a paper boat"}]


def test_one_task_is_queried_and_several_are_listed() -> None:
    assert VID_D.encode_query([TASK]).path == "/contents/generations/tasks/cgt-1"
    assert VID_D.encode_query([TASK, OTHER]).path == (
        "/contents/generations/tasks?page_num=1&page_size=2&filter.task_ids=cgt-1&filter.task_ids=cgt-2"
    )
    listed = b'{"items":[{"id":"cgt-2","status":"queued"}],"total":1}'
    found = VID_D.decode_status(200, {}, listed, [TASK, OTHER])
    assert list(found) == ["cgt-2"]


def test_an_expired_task_has_its_code_and_a_finished_one_its_files_and_usage() -> None:
    expired = status(status="expired")
    assert expired.error is not None
    assert expired.error.code == "task_expired"
    done = status(
        status="succeeded",
        content={"video_url": "https://x/v.mp4", "last_frame_url": "https://x/l.png"},
        usage={"completion_tokens": 108900, "total_tokens": 108900},
        duration=5,
        updated_at=1767323190,
    )
    assert [(result.variant, result.url) for result in done.results] == [
        (pb.VIDEO_VARIANT_VIDEO, "https://x/v.mp4"),
        (pb.VIDEO_VARIANT_LAST_FRAME, "https://x/l.png"),
    ]
    assert done.results[0].url_expire_time == datetime.fromtimestamp(1767323190 + 86400, UTC)
    assert done.usage == pb.VideoUsage(video_count=1, output_seconds=5, total_tokens=108900)

"""Codec of the protocol `vidE`, with both APIs."""

from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import PNG, TASK_ID, VIDEO, image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_e_protocol import VID_E
from umg_grpc.wire.video.submission_encoding import encode_submission

OLD, NEW = "kling-v2-6", "kling-3.0"
HTTP = "https://example.com/a.png"
OLD_TASK = ProviderTask(id="867", model=OLD, facts="/v1/videos/text2video")
NEW_TASK = ProviderTask(id="8901", model=NEW)


def created(model: str, *media: pb.VideoMedia, **parameters: Any) -> tuple[ProviderRequest, dict[str, Any]]:
    request = VID_E.encode_create(submission(model, *media, **parameters))
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return request, decoded


def test_the_old_api_has_texts_where_others_have_numbers() -> None:
    request, body = created(
        OLD,
        duration_seconds=10,
        size="1280x720",
        mode="pro",
        negative_prompt="rain",
        cfg_scale=0.5,
        camera_control_json='{"type":"simple"}',
        seed=7,
        extra_json='{"external_task_id":"theirs","watermark_info":{"enabled":true}}',
    )
    assert request.path == "/v1/videos/text2video"
    assert body == {
        "model_name": OLD,
        "prompt": "a paper boat",
        "duration": "10",
        "external_task_id": TASK_ID,
        "negative_prompt": "rain",
        "mode": "pro",
        "aspect_ratio": "16:9",
        "sound": "off",
        "cfg_scale": 0.5,
        "camera_control": {"type": "simple"},
        "watermark_info": {"enabled": True},
    }
    assert set(request.report.dropped) == {"parameters.seed", "parameters.extra_json.external_task_id"}


def test_images_of_the_old_api_are_addresses_or_bare_base64() -> None:
    given = submission("kling-v1", image(url=HTTP), image(), generate_audio=True, aspect_ratio="1:1")
    request = encode_submission(VID_E, given)
    body = msgspec.json.decode(request.body)
    assert request.path == "/v1/videos/image2video"
    assert (body["image"], body["image_tail"][:8]) == (HTTP, "iVBORw0K")
    assert {"sound", "aspect_ratio"}.isdisjoint(body)
    assert set(request.report.dropped) == {"parameters.generate_audio", "parameters.aspect_ratio"}
    masked = created(OLD, image("first_frame"), image("static_mask"))[1]
    assert masked["static_mask"] == masked["image"]


def test_the_new_api_has_settings_and_options_of_the_gateway() -> None:
    kind = pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO
    request, body = created(NEW, kind=kind, duration_seconds=7, resolution="1080p", generate_audio=True)
    assert request.path == "/text-to-video/kling-3.0"
    assert body == {
        "prompt": "a paper boat",
        "settings": {
            "resolution": "1080p",
            "duration": 7,
            "audio": "native",
            "multi_shot": False,
            "aspect_ratio": "16:9",
        },
        "options": {"watermark_info": {"enabled": False}, "external_task_id": TASK_ID},
    }


def test_the_new_api_passes_the_callers_objects_through_but_not_their_callback() -> None:
    extra = (
        '{"settings":{"multi_shot":true},"options":{"callback_url":"https://evil","external_task_id":"x","cfg":1},'
        '"shots":[1]}'
    )
    request = VID_E.encode_create(submission(NEW, extra_json=extra, callback_url="https://gateway/cb"))
    body = msgspec.json.decode(request.body)
    assert body["settings"]["multi_shot"] is True
    assert body["options"] == {
        "watermark_info": {"enabled": False},
        "cfg": 1,
        "external_task_id": TASK_ID,
        "callback_url": "https://gateway/cb",
    }
    assert body["shots"] == [1]


def test_images_of_the_new_api_are_contents() -> None:
    request, body = created("kling-3.0-turbo", image(url=HTTP))
    assert request.path == "/image-to-video/kling-3.0-turbo"
    assert body["contents"] == [{"type": "prompt", "text": "a paper boat"}, {"type": "first_frame", "url": HTTP}]
    assert "aspect_ratio" not in body["settings"]
    film = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4")
    request, body = created("kling-3.0-omni", image("reference_image"), film)
    assert request.path == "/omni-video/kling-3.0-omni"
    assert [item["type"] for item in body["contents"]] == ["prompt", "refer_image", "feature_video"]
    with pytest.raises(UmgError):
        created("kling-3.0-omni", pb.VideoMedia(kind=VIDEO, data=PNG))
    with pytest.raises(UmgError):
        created(NEW, film)


def test_a_task_is_queried_by_its_api() -> None:
    other = ProviderTask(id="8902", model=NEW)
    assert VID_E.encode_query([OLD_TASK]).path == "/v1/videos/text2video/867"
    assert VID_E.encode_query([NEW_TASK, other]).path == "/tasks?task_ids=8901,8902"
    assert VID_E.batch_of is not None
    assert VID_E.batch_of(NEW_TASK) == VID_E.batch_of(other) != VID_E.batch_of(OLD_TASK)


def status(task: ProviderTask, data: Any, http_status: int = 200, **envelope: Any) -> ProviderStatus:
    body = msgspec.json.encode({"code": 0, "message": "SUCCEED", "data": data, **envelope})
    found = VID_E.decode_status(http_status, {}, body, [task])[task.id]
    assert isinstance(found, ProviderStatus)
    return found


def test_the_states_of_both_apis() -> None:
    old = status(
        OLD_TASK,
        {
            "task_id": "867",
            "task_status": "succeed",
            "task_result": {"videos": [{"id": "v", "url": "https://x/v.mp4", "duration": "5.1"}]},
        },
    )
    new = status(
        NEW_TASK,
        [
            {
                "id": "8901",
                "status": "succeeded",
                "outputs": [{"type": "video", "url": "https://x/v.mp4", "duration": "5.1"}],
            }
        ],
    )
    for done in (old, new):
        assert done.state == pb.VIDEO_TASK_STATE_SUCCEEDED
        assert [(result.url, result.duration_seconds) for result in done.results] == [("https://x/v.mp4", 5.1)]
    assert status(NEW_TASK, [{"id": 8901, "status": "submitted"}]).state == pb.VIDEO_TASK_STATE_QUEUED
    assert status(OLD_TASK, {"task_status": "processing"}).state == pb.VIDEO_TASK_STATE_RUNNING
    assert status(OLD_TASK, {"task_status": "reviewing"}).unknown_word == "reviewing"
    moderated = status(NEW_TASK, [{"id": "8901", "status": "failed", "message": "Failure to pass the risk control"}])
    assert moderated.error is not None
    assert moderated.error.code == "content_policy_violation"


def test_an_unknown_id_is_missing_in_the_list_and_an_error_of_the_old_api() -> None:
    assert VID_E.decode_status(200, {}, b'{"code":0,"data":[]}', [NEW_TASK]) == {}
    found = VID_E.decode_status(404, {}, b'{"code":1203,"message":"task not found"}', [OLD_TASK])
    error = found["867"]
    assert isinstance(error, UmgError)
    assert error.name == "OBJECT_NOT_FOUND"


def test_a_task_is_found_by_the_id_of_the_gateway() -> None:
    assert VID_E.encode_find is not None
    assert VID_E.decode_found is not None
    assert VID_E.encode_find(submission(NEW)).path == f"/tasks?external_task_ids={TASK_ID}"
    assert VID_E.encode_find(submission(OLD, image())).path == f"/v1/videos/image2video/{TASK_ID}"
    found = VID_E.decode_found(200, {}, b'{"code":0,"data":[{"id":"8901"}]}', submission(NEW))
    assert found == NEW_TASK
    old = VID_E.decode_found(200, {}, b'{"code":0,"data":{"task_id":"867"}}', submission(OLD))
    assert old == OLD_TASK
    assert VID_E.decode_found(200, {}, b'{"code":0,"data":[]}', submission(NEW)) is None
    assert VID_E.decode_found(404, {}, b'{"code":1203,"message":"no"}', submission(OLD)) is None
    with pytest.raises(UmgError):
        VID_E.decode_found(503, {}, b'{"code":5001,"message":"maintenance"}', submission(NEW))


@pytest.mark.parametrize(
    ("http_status", "code", "failure", "name"),
    [
        (401, 1002, Failure.DOWN, "UPSTREAM_FAILED"),
        (429, 1101, Failure.DOWN, "UPSTREAM_FAILED"),
        (429, 1304, Failure.DOWN, "UPSTREAM_FAILED"),
        (429, 1302, Failure.OVERLOADED, "UPSTREAM_RATE_LIMITED"),
        (429, 1303, Failure.OVERLOADED, "UPSTREAM_RATE_LIMITED"),
        (403, 1103, Failure.DOWN, "UPSTREAM_FAILED"),
        (400, 1201, Failure.CALLER, "UPSTREAM_REJECTED"),
        (400, 1301, Failure.CALLER, "CONTENT_BLOCKED"),
        (404, 1203, Failure.DOWN, "UPSTREAM_FAILED"),
        (500, 5000, Failure.AMBIGUOUS, "UPSTREAM_FAILED"),
        (503, 5001, Failure.AMBIGUOUS, "UPSTREAM_FAILED"),
        (504, 5002, Failure.AMBIGUOUS, "UPSTREAM_FAILED"),
    ],
)
@pytest.mark.parametrize("inside", [False, True], ids=["with its status", "in a response with status 200"])
def test_errors_are_classified_by_their_code(
    http_status: int, code: int, failure: Failure, name: str, inside: bool
) -> None:
    body = msgspec.json.encode({"code": code, "message": "no", "request_id": "r"})
    with raises_error(failure=failure, name=name):
        VID_E.decode_created(200 if inside else http_status, {}, body, submission(NEW))

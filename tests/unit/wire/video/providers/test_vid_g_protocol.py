"""Codec of the protocol `vidG`, with both versions."""

from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_g_protocol import V1_STATE, VID_G

NEW, OLD = "MiniMax-H3", "MiniMax-Hailuo-02"
HTTP = "https://example.com/a.png"
TASK, OLD_TASK = ProviderTask(id="3851", model=NEW), ProviderTask(id="176", model=OLD, facts=V1_STATE)


def created(model: str, *media: pb.VideoMedia, **parameters: Any) -> tuple[str, dict[str, Any]]:
    request = VID_G.encode_create(submission(model, *media, **parameters))
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return request.path, decoded


def status(task: ProviderTask, body: Any) -> ProviderStatus:
    found = VID_G.decode_status(200, {}, msgspec.json.encode(body), [task])[task.id]
    assert isinstance(found, ProviderStatus)
    return found


def test_a_submission_of_v2_has_explicit_values() -> None:
    path, body = created(NEW, resolution="2K", duration_seconds=6)
    assert path == "/v2/video_generation"
    assert body == {
        "model": NEW,
        "content": [{"type": "text", "text": "a paper boat"}],
        "resolution": "2K",
        "duration": 6,
        "aigc_watermark": False,
        "ratio": "16:9",
    }
    _, body = created(NEW, image("first_frame", url=HTTP), resolution="768P", duration_seconds=6)
    assert body["content"][1] == {"type": "image_url", "image_url": {"url": HTTP}, "role": "first_frame"}
    assert "ratio" not in body
    _, body = created(NEW, aspect_ratio="adaptive", extra_json='{"callback_url":"https://x"}')
    assert (body["ratio"], "callback_url" in body) == ("16:9", False)


def test_no_callback_is_requested() -> None:
    request = VID_G.encode_create(submission(NEW, callback_url="https://gateway/cb"))
    assert b"callback" not in request.body


def test_a_submission_of_v1_has_frames_and_no_optimizer() -> None:
    path, body = created(OLD, image(url=HTTP), image(), resolution="768p", duration_seconds=6)
    assert path == "/v1/video_generation"
    assert body["last_frame_image"].startswith("data:image/png;base64,")
    assert {name: value for name, value in body.items() if name != "last_frame_image"} == {
        "model": OLD,
        "prompt": "a paper boat",
        "prompt_optimizer": False,
        "duration": 6,
        "resolution": "768P",
        "first_frame_image": HTTP,
    }


def test_the_states_of_v2() -> None:
    assert status(TASK, {"task": {"status": "queued"}}).state == pb.VIDEO_TASK_STATE_QUEUED
    assert status(TASK, {"task": {"status": "cancelled"}}).state == pb.VIDEO_TASK_STATE_CANCELLED
    done = status(
        TASK,
        {
            "task": {
                "status": "succeeded",
                "content": {"url": "https://x/v.mp4"},
                "duration": 6,
                "usage": {"output_seconds": 6, "input_seconds": 0, "input_image_count": 1},
            }
        },
    )
    assert done.usage == pb.VideoUsage(video_count=1, output_seconds=6, input_seconds=0, input_image_count=1)
    failed = status(TASK, {"task": {"status": "failed", "error": {"code": "1027", "message": "sensitive output"}}})
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == ("content_policy_violation", "sensitive output (1027)")
    expired = status(TASK, {"task": {"status": "expired"}})
    assert expired.error is not None
    assert expired.error.code == "task_expired"


def test_the_file_of_v1_is_looked_up_by_a_further_request() -> None:
    ok = {"status_code": 0, "status_msg": "success"}
    assert VID_G.encode_query([OLD_TASK]).path == "/v1/query/video_generation?task_id=176"
    assert status(OLD_TASK, {"status": "Queueing", "base_resp": ok}).state == pb.VIDEO_TASK_STATE_QUEUED
    body = msgspec.json.encode({"status": "Success", "file_id": "205", "base_resp": ok})
    further = VID_G.decode_status(200, {}, body, [OLD_TASK])["176"]
    assert isinstance(further, ProviderRequest)
    assert (further.method, further.path) == ("GET", "/v1/files/retrieve?file_id=205")
    done = status(OLD_TASK, {"file": {"file_id": 205, "download_url": "https://x/v.mp4"}, "base_resp": ok})
    assert [result.url for result in done.results] == ["https://x/v.mp4"]
    blocked = {"status_code": 1027, "status_msg": "output new_sensitive"}
    failed = status(OLD_TASK, {"status": "Fail", "base_resp": blocked})
    assert failed.error is not None
    assert failed.error.code == "content_policy_violation"


def test_a_task_that_is_not_found_has_status_500() -> None:
    body = b'{"type":"error","error":{"type":"server_error","message":"record not found (1000)","http_code":"500"}}'
    error = VID_G.decode_status(500, {}, body, [TASK])["3851"]
    assert isinstance(error, UmgError)
    assert error.name == "OBJECT_NOT_FOUND"


@pytest.mark.parametrize(
    ("http_status", "kind", "code", "failure"),
    [
        (400, "bad_request_error", 2013, Failure.CALLER),
        (401, "authorized_error", 1004, Failure.DOWN),
        (402, "insufficient_balance_error", 1008, Failure.DOWN),
        (422, "unprocessable_entity_error", 1026, Failure.CALLER),
        (429, "rate_limit_error", 1002, Failure.OVERLOADED),
        (500, "server_error", 1000, Failure.AMBIGUOUS),
    ],
)
def test_errors_are_classified_by_their_code(http_status: int, kind: str, code: int, failure: Failure) -> None:
    error = {"type": kind, "message": f"no ({code})", "http_code": str(http_status)}
    with raises_error(failure=failure):
        VID_G.decode_created(http_status, {}, msgspec.json.encode({"type": "error", "error": error}), submission(NEW))
    body = msgspec.json.encode({"task_id": "", "base_resp": {"status_code": code, "status_msg": "no"}})
    with raises_error(failure=failure):
        VID_G.decode_created(200, {}, body, submission(OLD))

"""Codec of the protocol `vidF`."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import PNG, VIDEO, image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_f_protocol import VID_F

KEY = "jimeng_vgfm_t2v_l20"
TASK = ProviderTask(id="7392", model=KEY)
HTTP = "https://example.com/a.png"


def created(*media: pb.VideoMedia, **parameters: Any) -> dict[str, Any]:
    request = VID_F.encode_create(submission(KEY, *media, **parameters))
    assert request.path == "/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return decoded


def decoded(http_status: int = 200, **body: Any) -> ProviderStatus | UmgError:
    found = VID_F.decode_status(http_status, {}, msgspec.json.encode(body), [TASK])[TASK.id]
    assert isinstance(found, ProviderStatus | UmgError)
    return found


def status(http_status: int = 200, **body: Any) -> ProviderStatus:
    found = decoded(http_status, **body)
    assert isinstance(found, ProviderStatus)
    return found


def test_a_submission_has_the_key_of_the_model_and_frames() -> None:
    assert created(duration_seconds=5, aspect_ratio="16:9") == {
        "req_key": KEY,
        "prompt": "a paper boat",
        "seed": -1,
        "frames": 121,
        "aspect_ratio": "16:9",
    }
    assert created(frames=241, seed=7, size="720x1280") == {
        "req_key": KEY,
        "prompt": "a paper boat",
        "seed": 7,
        "frames": 241,
        "aspect_ratio": "9:16",
    }


def test_images_are_all_addresses_or_all_base64() -> None:
    assert created(image(url=HTTP))["image_urls"] == [HTTP]
    assert created(image(), image())["binary_data_base64"] == [b64encode(PNG).decode()] * 2
    for media in ([image(), image(url=HTTP)], [pb.VideoMedia(kind=VIDEO, url=HTTP)]):
        with pytest.raises(UmgError):
            created(*media)


def test_the_query_repeats_the_key_of_the_model() -> None:
    request = VID_F.encode_query([TASK])
    assert request.path == "/?Action=CVSync2AsyncGetResult&Version=2022-08-31"
    assert msgspec.json.decode(request.body) == {
        "req_key": KEY,
        "task_id": "7392",
        "req_json": '{"return_url":true}',
    }


def test_the_states_of_a_task() -> None:
    assert status(code=10000, data={"status": "in_queue"}).state == pb.VIDEO_TASK_STATE_QUEUED
    assert status(code=10000, data={"status": "generating"}).state == pb.VIDEO_TASK_STATE_RUNNING
    assert status(code=10000, data={"status": "auditing"}).unknown_word == "auditing"
    done = status(code=10000, data={"status": "done", "video_url": "https://x/v.mp4"})
    assert [result.url for result in done.results] == ["https://x/v.mp4"]
    empty = status(code=10000, data={"status": "done", "video_url": ""})
    assert (empty.state, empty.results) == (pb.VIDEO_TASK_STATE_SUCCEEDED, ())
    expired = status(code=10000, data={"status": "expired"})
    assert expired.error is not None
    assert expired.error.code == "task_expired"
    gone = decoded(code=10000, data={"status": "not_found"})
    assert isinstance(gone, UmgError)
    assert gone.name == "OBJECT_NOT_FOUND"


@pytest.mark.parametrize(
    ("http_status", "code", "expected"),
    [(400, 50511, "content_policy_violation"), (200, 50412, "content_policy_violation"), (400, 50400, "task_failed")],
)
def test_the_outer_code_is_the_verdict(http_status: int, code: int, expected: str) -> None:
    failed = status(http_status, code=code, message="no", data=None)
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == (expected, f"no ({code})")


@pytest.mark.parametrize("code", [50429, 50430, 50500, 50501])
def test_a_query_that_failed_is_no_end_of_the_task(code: int) -> None:
    with pytest.raises(UmgError) as caught:
        decoded(200, code=code, message="busy", data=None)
    assert caught.value.failure in {Failure.OVERLOADED, Failure.TRANSIENT}


@pytest.mark.parametrize(
    ("http_status", "code", "failure"),
    [
        (400, 50411, Failure.CALLER),
        (200, 50413, Failure.CALLER),
        (429, 50429, Failure.OVERLOADED),
        (200, 50430, Failure.OVERLOADED),
        (500, 50500, Failure.AMBIGUOUS),
        (200, 50501, Failure.AMBIGUOUS),
    ],
)
def test_errors_are_classified_by_their_code(http_status: int, code: int, failure: Failure) -> None:
    body = msgspec.json.encode({"code": code, "message": "no", "data": None, "request_id": "r"})
    with raises_error(failure=failure):
        VID_F.decode_created(http_status, {}, body, submission())


@pytest.mark.parametrize(
    ("http_status", "code"), [(401, "SignatureDoesNotMatch"), (400, "InvalidTimestamp"), (403, "LackPolicy")]
)
def test_errors_of_the_gateway_of_the_provider_are_down(http_status: int, code: str) -> None:
    fault = {"CodeN": 100010, "Code": code, "Message": "no"}
    body = msgspec.json.encode({"ResponseMetadata": {"RequestId": "r", "Error": fault}})
    with raises_error(failure=Failure.DOWN):
        VID_F.decode_created(http_status, {}, body, submission())
    with pytest.raises(UmgError):
        VID_F.decode_status(http_status, {}, body, [TASK])


def test_a_cancellation_may_be_refused() -> None:
    assert VID_F.decode_cancelled is not None
    assert VID_F.decode_cancelled(200, {}, b'{"code":10000,"message":"Success"}')
    assert not VID_F.decode_cancelled(400, {}, b'{"code":50400,"message":"running"}')
    with pytest.raises(UmgError):
        VID_F.decode_cancelled(429, {}, b'{"code":50429,"message":"slow down"}')

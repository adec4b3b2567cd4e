"""Codec of the protocol `vidB`, with both surfaces."""

from base64 import b64encode
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import PNG, image, submission
from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS, video_protocol
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B, VID_B_GEMINI

VERTEX_NAME = "projects/p/locations/us-central1/publishers/google/models/veo-3.1/operations/3f2a-1"
VERTEX = ProviderTask(id=VERTEX_NAME, model="veo-3.1")
GEMINI = ProviderTask(id="models/veo-3.1/operations/abc", model="veo-3.1")
FILM = b"\x00\x00\x00\x18ftypmp42"
ENCODED = b64encode(FILM).decode()
DEFAULTS = {"duration_seconds": 4, "aspect_ratio": "16:9", "resolution": "1080p", "generate_audio": False}


def created(protocol: VideoProtocol, *media: pb.VideoMedia, model: str = "veo-3.1", **values: Any) -> dict[str, Any]:
    request = protocol.encode_create(submission(model, *media, **values))
    assert request.path == f"/models/{model}:predictLongRunning"
    decoded: dict[str, Any] = msgspec.json.decode(request.body)
    return decoded


def status(task: ProviderTask, **operation: Any) -> ProviderStatus:
    found = VID_B.decode_status(200, {}, msgspec.json.encode({"name": task.id, **operation}), [task])[task.id]
    assert isinstance(found, ProviderStatus)
    return found


def test_the_surface_follows_from_the_base_url() -> None:
    vertex = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google"
    assert video_protocol("vidB", vertex) is VID_B
    assert video_protocol("vidB", "https://generativelanguage.googleapis.com/v1beta") is VID_B_GEMINI
    assert video_protocol("vidC", "https://x") is VIDEO_PROTOCOLS["vidC"]


def test_a_submission_has_images_inline_and_explicit_values() -> None:
    body = created(VID_B, image("first_frame"), image("last_frame"), seed=42, watermark=False, **DEFAULTS)
    encoded = {"bytesBase64Encoded": b64encode(PNG).decode(), "mimeType": "image/png"}
    assert body == {
        "instances": [{"prompt": "a paper boat", "image": encoded, "lastFrame": encoded}],
        "parameters": {
            "sampleCount": 1,
            "durationSeconds": 4,
            "aspectRatio": "16:9",
            "resolution": "1080p",
            "seed": 42,
            "addWatermark": False,
            "generateAudio": False,
        },
    }


@pytest.mark.parametrize("has_sound", [True, False])
def test_a_fast_model_is_sent_the_stated_sound(has_sound: bool) -> None:
    parameters = created(VID_B, model="veo-3.1-fast-generate-001", generate_audio=has_sound)["parameters"]
    assert parameters["generateAudio"] is has_sound


def test_the_gemini_surface_has_fewer_parameters() -> None:
    values: dict[str, Any] = {**DEFAULTS, "seed": 1, "prompt_extend": True, "negative_prompt": "rain"}
    request = VID_B_GEMINI.encode_create(submission("veo-3.1", public="film", sample_count=1, **values))
    parameters = msgspec.json.decode(request.body)["parameters"]
    assert parameters == {
        "sampleCount": 1,
        "durationSeconds": 4,
        "aspectRatio": "16:9",
        "resolution": "1080p",
        "negativePrompt": "rain",
        "seed": 1,
    }
    assert set(request.report.dropped) == {"parameters.generate_audio", "parameters.prompt_extend"}


@pytest.mark.parametrize(
    ("size", "ratio", "resolution"),
    [("1280x720", "16:9", "720p"), ("1080x1920", "9:16", "1080p"), ("3840x2160", "16:9", "4k")],
)
def test_a_size_in_pixels_is_a_ratio_and_a_resolution(size: str, ratio: str, resolution: str) -> None:
    parameters = created(VID_B, size=size)["parameters"]
    assert (parameters["aspectRatio"], parameters["resolution"]) == (ratio, resolution)


def test_reference_images_and_fields_that_pass_through() -> None:
    extra = {
        "resizeMode": "crop",
        "storageUri": "gs://theirs/x",
        "compressionQuality": "lossless",
        "labels": {"a": "b"},
    }
    extra |= {"mask": {"maskMode": "insert"}}
    body = created(VID_B, image("reference_image"), extra_json=msgspec.json.encode(extra).decode())
    assert (body["instances"][0]["mask"], body["labels"]) == ({"maskMode": "insert"}, {"a": "b"})
    assert body["parameters"]["compressionQuality"] == "lossless"
    assert body["instances"][0]["referenceImages"][0]["referenceType"] == "asset"
    assert body["parameters"]["resizeMode"] == "crop"
    assert "storageUri" not in body["parameters"]


def test_an_operation_is_queried_on_its_surface() -> None:
    vertex, gemini = VID_B.encode_query([VERTEX]), VID_B.encode_query([GEMINI])
    assert (vertex.method, vertex.path) == ("POST", "/models/veo-3.1:fetchPredictOperation")
    assert msgspec.json.decode(vertex.body) == {"operationName": VERTEX_NAME}
    assert (gemini.method, gemini.path) == ("GET", "/models/veo-3.1/operations/abc")


@pytest.mark.parametrize("name", ["", "../x", "models/../../x", "a?b", "//host/x"])
def test_a_name_that_is_no_operation_is_not_used_as_a_path(name: str) -> None:
    with raises_error(failure=Failure.AMBIGUOUS):
        VID_B.decode_created(200, {}, msgspec.json.encode({"name": name}), submission())


def test_results_are_inline_or_files_that_need_the_key() -> None:
    assert status(VERTEX).state == status(VERTEX, done=False).state == pb.VIDEO_TASK_STATE_RUNNING
    inline = status(VERTEX, done=True, response={"videos": [{"bytesBase64Encoded": ENCODED, "mimeType": "video/mp4"}]})
    assert [result.data for result in inline.results] == [FILM]
    uri = "https://generativelanguage.googleapis.com/v1beta/files/x:download?alt=media"
    sampled = {"generatedSamples": [{"video": {"uri": uri}}, {"video": {"encodedVideo": ENCODED}}]}
    files = status(GEMINI, done=True, response={"generateVideoResponse": sampled})
    assert [(result.needs_key, result.data) for result in files.results] == [(uri, b""), ("", FILM)]
    assert files.usage is not None
    assert files.usage.video_count == 2


@pytest.mark.parametrize(
    "response",
    [
        {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["Blocked. Support codes: 1"]},
        {"generateVideoResponse": {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["Blocked."]}},
        {"videos": []},
        {},
    ],
)
def test_an_end_without_a_video_is_a_failure_by_the_content_filter(response: dict[str, Any]) -> None:
    filtered = status(VERTEX, done=True, response=response)
    assert filtered.error is not None
    assert (filtered.state, filtered.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "content_policy_violation")


def test_a_video_in_a_bucket_is_no_success_without_a_file() -> None:
    stored = status(VERTEX, done=True, response={"videos": [{"gcsUri": "gs://b/x.mp4", "mimeType": "video/mp4"}]})
    assert stored.error is not None
    assert (stored.state, stored.error.code) == (pb.VIDEO_TASK_STATE_FAILED, "task_failed")
    assert "bucket" in stored.error.message


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (3, "bad duration", "invalid_request"),
        (3, "violates our safety policy", "content_policy_violation"),
        (13, "internal", "task_failed"),
        (8, "exhausted", "task_failed"),
    ],
)
def test_a_failed_operation_has_its_reason(code: int, message: str, expected: str) -> None:
    failed = status(VERTEX, done=True, error={"code": code, "message": message})
    assert failed.error is not None
    assert (failed.error.code, failed.error.message) == (expected, message)


def test_errors_are_classified_by_their_status() -> None:
    body = b'{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[]}}'
    with raises_error(failure=Failure.OVERLOADED):
        VID_B.decode_created(429, {}, body, submission())
    body = b'{"error":{"code":400,"message":"the prompt was moderated","status":"INVALID_ARGUMENT"}}'
    with raises_error(failure=Failure.CALLER):
        VID_B.decode_created(400, {}, body, submission())

"""Seedance of Ark and ModelArk, from the entries for videos: bare and full submissions against the rules of its SDK,
and each of its words and codes.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.providers import ark_sdk
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.video import ENTRY_FORMATS
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.submission_encoding import encode_submission
from umg_grpc.wire.video.video_request_checks import check

MODELS = [
    "doubao-seedance-1-0-pro-250528",
    "doubao-seedance-1-5-pro-251215",
    "doubao-seedance-2-0-260128",
    "doubao-seedance-2-0-fast-260128",
    "doubao-seedance-2-5-260628",
    "dreamina-seedance-2-0-260128",
    "dreamina-seedance-2-0-mini-260615",
    "seedance-1-5-pro-251215",
    "ep-20260101-abcde",
]
UNIFIED, OBJECT, D, E_3, G = (
    pb.VIDEO_ENTRY_UNIFIED,
    pb.VIDEO_ENTRY_VIDEO_OBJECT,
    pb.VIDEO_ENTRY_D,
    pb.VIDEO_ENTRY_E_3,
    pb.VIDEO_ENTRY_G,
)
TEXT = {"type": "text", "text": "a boat"}
FRAME = "https://files.example/a.png"
TASK = ProviderTask(id="cgt-1", model="m")


def submitted(
    entry: "pb.VideoEntry.ValueType", model: str, body: dict[str, Any]
) -> tuple[dict[str, Any], ProviderRequest]:
    """Return the body that the provider gets of a caller's body, and the whole request."""
    path = {"model": model, "kind": "text-to-video"}
    given = ENTRY_FORMATS[entry].decode_create(msgspec.json.encode({"model": model, **body}), path)
    schema_validation.check(given)
    checked = check(given, "vidD", model)
    sent = encode_submission(VID_D, Submission(task_id="task_1", model=model, request=checked, family="vidD"))
    return msgspec.json.decode(sent.body), sent


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("entry", "body"),
    [
        pytest.param(UNIFIED, {"prompt": "a boat"}, id="unified"),
        pytest.param(UNIFIED, {"metadata": {"content": [TEXT]}}, id="unified, content"),
        pytest.param(OBJECT, {"prompt": "a boat"}, id="video object"),
        pytest.param(D, {"content": [TEXT]}, id="D"),
        pytest.param(G, {"content": [TEXT]}, id="G"),
    ],
)
def test_a_bare_submission_is_the_prompt_alone(
    entry: "pb.VideoEntry.ValueType", body: dict[str, Any], model: str
) -> None:
    sent, request = submitted(entry, model, body)
    assert sent == {"model": model, "content": [TEXT]}
    assert ark_sdk.task_problem(request.path, sent) == ""
    assert not request.report.dropped


FULL_D: dict[str, Any] = {
    "content": [
        TEXT,
        {"type": "image_url", "image_url": {"url": FRAME}, "role": "first_frame"},
        {"type": "image_url", "image_url": {"url": FRAME}, "role": "last_frame"},
    ],
    "resolution": "720p",
    "ratio": "16:9",
    "duration": 5,
    "generate_audio": False,
    "return_last_frame": True,
    "seed": 7,
    "watermark": False,
    "draft": True,
    "priority": 3,
    "tools": [{"type": "web_search"}],
    "service_tier": "flex",
    "execution_expires_after": 7200,
    "safety_identifier": "user-1",
    "output_format": "mp4",
}


def test_every_member_of_the_sdk_reaches_the_vendor_from_its_own_entry() -> None:
    sent, request = submitted(D, "doubao-seedance-2-0-260128", FULL_D)
    assert sent == {"model": "doubao-seedance-2-0-260128", **FULL_D}
    assert ark_sdk.task_problem(request.path, sent) == ""
    assert not request.report.dropped
    first = {**FULL_D, "camera_fixed": True, "frames": 57}
    sent, request = submitted(D, "doubao-seedance-1-5-pro-251215", first)
    assert (sent["camera_fixed"], sent["frames"]) == (True, 57)
    assert ark_sdk.task_problem(request.path, sent) == ""


@dataclass(frozen=True)
class Full:
    id: str
    entry: "pb.VideoEntry.ValueType"
    body: dict[str, Any]
    sent: dict[str, Any]
    dropped: dict[str, str | None]


FULL = [
    Full(
        id="unified",
        entry=UNIFIED,
        body={
            "prompt": "a boat",
            "size": "1280x720",
            "duration": 6,
            "negative_prompt": "rain",
            "generate_audio": True,
            "seed": 7,
            "watermark": True,
            "fps": 24,
            "camera_fixed": False,
            "sampleCount": 2,
            "personGeneration": "allow_all",
            "mode": "pro",
            "image": FRAME,
            "metadata": {"service_tier": "flex"},
        },
        sent={
            "resolution": "720p",
            "ratio": "16:9",
            "duration": 6,
            "generate_audio": True,
            "seed": 7,
            "watermark": True,
            "service_tier": "flex",
        },
        dropped=dict.fromkeys(
            f"parameters.{name}"
            for name in ("frames_per_second", "mode", "negative_prompt", "person_generation", "sample_count")
        ),
    ),
    Full(
        id="video object",
        entry=OBJECT,
        body={"prompt": "a boat", "seconds": "8", "size": "720x1280"},
        sent={"resolution": "720p", "ratio": "9:16", "duration": 8},
        dropped={},
    ),
    Full(
        id="D, size",
        entry=D,
        body={"content": [TEXT], "size": "864x496"},
        sent={"resolution": "480p", "ratio": "16:9"},
        dropped={"parameters.size": "480p 16:9"},
    ),
    Full(
        id="D, a length of the model",
        entry=D,
        body={"content": [TEXT], "duration": -1},
        sent={"duration": -1},
        dropped={},
    ),
    Full(
        id="G",
        entry=G,
        body={
            "content": [TEXT],
            "resolution": "720p",
            "duration": 6,
            "ratio": "1:1",
            "aigc_watermark": True,
            "other": 1,
        },
        sent={"resolution": "720p", "duration": 6, "ratio": "1:1", "watermark": True},
        dropped={"parameters.extra_json.other": None},
    ),
]


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.id)
def test_a_full_submission_of_an_entry_is_sent_or_reported(case: Full) -> None:
    sent, request = submitted(case.entry, "doubao-seedance-2-0-260128", case.body)
    assert {name: value for name, value in sent.items() if name not in ("model", "content")} == case.sent
    assert ark_sdk.task_problem(request.path, sent) == ""
    assert request.report.dropped == case.dropped


def test_an_item_of_a_draft_names_the_task_of_the_caller() -> None:
    item = {"type": "draft_task", "draft_task": {"id": "task_1"}}
    body = {"model": "doubao-seedance-1-5-pro-251215", "content": [item]}
    given = ENTRY_FORMATS[D].decode_create(msgspec.json.encode(body), {})
    assert check(given, "vidD", "doubao-seedance-1-5-pro-251215").parameters.draft_task_id == "task_1"
    neutral = {"model": "vidD-2-0-260128", "content": [item]}
    with pytest.raises(UmgError, match="draft_task is not one of its values"):
        ENTRY_FORMATS[D].decode_create(msgspec.json.encode(neutral), {})


# --- words and codes of the vendor


@dataclass(frozen=True)
class Word:
    id: str
    state: "pb.VideoTaskState.ValueType"


WORDS = [
    Word(id="queued", state=pb.VIDEO_TASK_STATE_QUEUED),
    Word(id="running", state=pb.VIDEO_TASK_STATE_RUNNING),
    Word(id="succeeded", state=pb.VIDEO_TASK_STATE_SUCCEEDED),
    Word(id="failed", state=pb.VIDEO_TASK_STATE_FAILED),
    Word(id="expired", state=pb.VIDEO_TASK_STATE_FAILED),
    Word(id="cancelled", state=pb.VIDEO_TASK_STATE_CANCELLED),
]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.id)
def test_each_status_of_the_sdk_is_read(word: Word) -> None:
    task: dict[str, Any] = {"id": "cgt-1", "model": "m", "status": word.id, "draft": False, "priority": 0}
    if word.id == "succeeded":
        task["content"] = {"video_url": "https://files.example/v.mp4", "file_url": "", "last_frame_url": ""}
        task["usage"] = {"completion_tokens": 900, "total_tokens": 900}
    found = VID_D.decode_status(200, {}, msgspec.json.encode(task), [TASK])["cgt-1"]
    assert isinstance(found, ProviderStatus)
    assert found.state == word.state


@dataclass(frozen=True)
class Code:
    id: str
    status: int
    failure: Failure
    reason: "pb.ErrorReason.ValueType"


BLOCKED, LIMITED = pb.ERROR_REASON_CONTENT_BLOCKED, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED
FAILED, REJECTED = pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_REJECTED
CODES = [
    Code(id="InputTextSensitiveContentDetected", status=400, failure=Failure.CALLER, reason=BLOCKED),
    Code(
        id="InputImageSensitiveContentDetected.PrivacyInformation", status=400, failure=Failure.CALLER, reason=BLOCKED
    ),
    Code(id="InvalidParameter.TaskTypeConstraint", status=400, failure=Failure.CALLER, reason=REJECTED),
    Code(id="InvalidParameter", status=400, failure=Failure.CALLER, reason=REJECTED),
    Code(id="MissingParameter", status=400, failure=Failure.CALLER, reason=REJECTED),
    Code(id="AuthenticationError", status=401, failure=Failure.DOWN, reason=FAILED),
    Code(id="AccountOverdueError", status=403, failure=Failure.DOWN, reason=FAILED),
    Code(id="AccessDenied", status=403, failure=Failure.DOWN, reason=FAILED),
    Code(id="OperationDenied", status=403, failure=Failure.DOWN, reason=FAILED),
    Code(id="ModelNotOpen", status=404, failure=Failure.DOWN, reason=FAILED),
    Code(id="InvalidEndpointOrModel.NotFound", status=404, failure=Failure.DOWN, reason=FAILED),
    Code(id="RateLimitExceeded.EndpointRPMExceeded", status=429, failure=Failure.OVERLOADED, reason=LIMITED),
    Code(id="ModelAccountRpmRateLimitExceeded", status=429, failure=Failure.OVERLOADED, reason=LIMITED),
    Code(id="QuotaExceeded", status=429, failure=Failure.OVERLOADED, reason=LIMITED),
    Code(id="ServerOverloaded", status=429, failure=Failure.OVERLOADED, reason=LIMITED),
    Code(id="InternalServiceError", status=500, failure=Failure.AMBIGUOUS, reason=FAILED),
]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.id)
def test_each_error_code_is_classified(code: Code) -> None:
    error = {"code": code.id, "message": "no", "param": "", "type": "BadRequest"}
    body = msgspec.json.encode({"error": error})
    given = Submission(task_id="task_1", model="m", request=pb.CreateVideoTaskRequest(model="m"))
    with raises_error(failure=code.failure, reason=code.reason):
        VID_D.decode_created(code.status, {}, body, given)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("OutputVideoSensitiveContentDetected.PolicyViolation", "content_policy_violation"),
        ("OutputAudioSensitiveContentDetected", "content_policy_violation"),
        ("InternalServiceError", "task_failed"),
    ],
)
def test_the_code_of_a_failed_task_is_read(code: str, expected: str) -> None:
    task = {"id": "cgt-1", "status": "failed", "error": {"code": code, "message": "no"}}
    found = VID_D.decode_status(200, {}, msgspec.json.encode(task), [TASK])["cgt-1"]
    assert isinstance(found, ProviderStatus)
    assert found.error is not None
    assert found.error.code == expected

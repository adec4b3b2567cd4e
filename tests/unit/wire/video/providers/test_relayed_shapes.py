"""Shapes of relays' answers: every member of the table is found, in every protocol, and real answers are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.error_checks import raises_error
from tests.support.videos import submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.task_response_members import EACH_ITEM, EVERY_PROTOCOL, TASK_MEMBERS, Path, paths_of
from umg_grpc.v1 import pb
from umg_grpc.wire.relay_task_responses import read_relayed
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask
from umg_grpc.wire.video.providers.task_states import files_of, percent_of

URL, REASON = "https://files.example/video.mp4", "the prompt names a person"
PROTOCOLS = ("vidA", "vidB", "vidC", "vidD", "vidE", "vidF", "vidG")
MODELS = {"vidA": "sora-2", "vidB": "veo-3", "vidC": "wan2.5-t2v", "vidE": "kling-3.0", "vidG": "MiniMax-H3"}
FILE_PATHS = [path for path in paths_of("file", "vidA") if path[0] != EACH_ITEM]
SHARED_IDS = [row.path for row in TASK_MEMBERS["id"] if EVERY_PROTOCOL in row.protocols]


def placed(path: Path, value: object) -> object:
    """Return the value at a path, within objects and lists of one item."""
    if not path:
        return value
    inner = placed(path[1:], value)
    return [inner] if path[0] == EACH_ITEM else {path[0]: inner}


def answer(word: str, path: Path, value: object) -> Mapping[str, object]:
    inner = placed(path, value)
    assert isinstance(inner, dict)
    return {"code": "success", "data": {"task_id": "t-1", "status": word, **inner}}


def decoded(protocol: str, body: object) -> ProviderStatus:
    task = ProviderTask(id="t-1", model="m")
    status = VIDEO_PROTOCOLS[protocol].decode_status(200, {}, msgspec.json.encode(body), [task])["t-1"]
    assert isinstance(status, ProviderStatus), status
    return status


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_file_is_found_at_every_path(protocol: str) -> None:
    for path in FILE_PATHS:
        assert [result.url for result in decoded(protocol, answer("SUCCESS", path, URL)).results] == [URL], path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_file_inside_the_answer_is_decoded(protocol: str) -> None:
    for path in paths_of("bytes", protocol):
        assert [result.data for result in decoded(protocol, answer("done", path, "AAAA")).results] == [bytes(3)], path
    [result] = decoded(protocol, answer("done", ("url",), "data:video/webm;base64,AAAA")).results
    assert (result.data, result.mime_type) == (bytes(3), "video/webm")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reason_is_found_at_every_path(protocol: str) -> None:
    for path in paths_of("reason", protocol):
        status = decoded(protocol, answer("FAILURE", path, REASON))
        assert status.error is not None
        assert REASON in status.error.message, path


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_code_of_moderation_is_that_of_the_failure(protocol: str) -> None:
    for path in paths_of("code", protocol):
        status = decoded(protocol, answer("failed", path, "OutputVideoSensitiveContentDetected"))
        assert status.error is not None
        assert status.error.code == "content_policy_violation", path


@pytest.mark.parametrize("path", SHARED_IDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_id_of_a_new_task_is_found_in_every_member(protocol: str, path: str) -> None:
    codec, made = VIDEO_PROTOCOLS[protocol], submission(MODELS.get(protocol, "m"))
    for body in ({path: "t-1"}, {"code": 0, "data": {path: "t-1"}}, {"success": True, "data": [{path: "t-1"}]}):
        assert codec.decode_created(200, {}, msgspec.json.encode(body), made).id == "t-1", body


def test_the_id_of_a_request_is_that_of_the_task_unless_there_is_an_error() -> None:
    """Source: docs.x.ai, video generation; tigerowo/infinite-canvas handler/video_task.go."""
    codec, made = VIDEO_PROTOCOLS["vidA"], submission("sora-2")
    assert codec.decode_created(200, {}, b'{"request_id":"r-1"}', made).id == "r-1"
    with raises_error(failure=Failure.CALLER):
        codec.decode_created(200, {}, b'{"request_id":"r-1","code":"invalid","message":"no"}', made)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_with_a_successful_status_refuses_the_submission(protocol: str) -> None:
    body = msgspec.json.encode({"code": "quota_not_enough", "message": "no quota", "data": None})
    with pytest.raises(UmgError) as caught:
        VIDEO_PROTOCOLS[protocol].decode_created(200, {}, body, submission(MODELS.get(protocol, "m")))
    # vidE looks a task up by its external id after a code that its maker does not document
    assert (caught.value.failure is Failure.AMBIGUOUS) == (protocol == "vidE")


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"error": {"message": REASON}}, Failure.CALLER),
        ({"error": {"message": "internal error, try again"}}, Failure.TRANSIENT),
        ({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, Failure.OVERLOADED),
    ],
    ids=["a refusal", "a failed server", "a rate limit"],
)
@pytest.mark.parametrize("protocol", ["vidA", "vidB", "vidD", "vidF"])
def test_an_error_without_a_state_is_a_refusal_unless_it_is_that_of_a_server(
    protocol: str, error: Mapping[str, object], failure: Failure
) -> None:
    task = ProviderTask(id="t-1", model="m")
    found = VIDEO_PROTOCOLS[protocol].decode_status(200, {}, msgspec.json.encode(error), [task])["t-1"]
    assert isinstance(found, UmgError)
    assert found.failure is failure
    assert (REASON in found.message) == (failure is Failure.CALLER)


@dataclass(frozen=True)
class Real:
    """Answer of a relay, from a public source."""

    id: str
    """With the source."""
    body: object
    results: Sequence[ProviderResult] = ()
    state: "pb.VideoTaskState.ValueType" = pb.VIDEO_TASK_STATE_SUCCEEDED


REAL = [
    Real(
        "grok2api (tigerowo/infinite-canvas#39)",
        {
            "model": "grok-imagine-video-1.5",
            "progress": 100,
            "status": "done",
            "usage": {"cost_in_usd_ticks": 14400000000},
            "video": {"duration": 10, "respect_moderation": True, "url": "/v1/videos/r-1/content"},
        },
        [ProviderResult(needs_key="/v1/videos/r-1/content", duration_seconds=10)],
    ),
    Real(
        "Together (docs.together.ai/reference/queue-status)",
        {
            "request_id": "019ba379",
            "model": "my-org/video-generator",
            "status": "done",
            "outputs": {"video_url": URL},
            "info": {"user_id": "user_123", "progress": 1},
            "priority": 1,
            "created_at": "2026-02-07T10:30:00Z",
        },
        [ProviderResult(url=URL)],
    ),
    Real(
        "PPInfra (caiwenhao/one-hub providers/minimaxi/video.go)",
        {
            "task": {"task_id": "t", "status": "TASK_STATUS_SUCCEED", "reason": "", "progress_percent": 100},
            "videos": [{"video_url": URL, "video_url_ttl": "3600", "video_type": "mp4"}],
            "images": [],
        },
        [ProviderResult(url=URL)],
    ),
    Real(
        "Vidu (QuantumNous/new-api relay/channel/task/vidu/adaptor.go)",
        {
            "id": "t",
            "state": "success",
            "err_code": "",
            "credits": 4,
            "creations": [{"id": "c", "url": URL, "cover_url": "x"}],
        },
        [ProviderResult(url=URL)],
    ),
    Real(
        "APIMart (QuantumNous/new-api relay/channel/task/apimartvideo/adaptor.go)",
        {
            "code": 200,
            "data": {"id": "t", "status": "completed", "progress": 100, "result": {"videos": [{"url": [URL]}]}},
        },
        [ProviderResult(url=URL)],
    ),
    Real(
        "KIE (KIE API, GET /api/v1/jobs/recordInfo)",
        {
            "code": 200,
            "msg": "success",
            "data": {"taskId": "t", "state": "success", "resultJson": f'{{"resultUrls":["{URL}"]}}', "failMsg": None},
        },
        [ProviderResult(url=URL)],
    ),
    Real(
        "Runway (Runway API, GET /v1/tasks/{id})",
        {"id": "t", "status": "SUCCEEDED", "createdAt": "2026-01-01T00:00:00Z", "output": [URL]},
        [ProviderResult(url=URL)],
    ),
    Real("a queue at Runway", {"id": "t", "status": "THROTTLED"}, state=pb.VIDEO_TASK_STATE_QUEUED),
    Real(
        "a maker's answer behind two relays (QuantumNous/new-api service/task_polling.go)",
        {
            "code": "success",
            "data": {
                "task_id": "task_x",
                "status": "SUCCESS",
                "progress": "100%",
                "data": {
                    "code": 0,
                    "message": "SUCCEED",
                    "data": {
                        "task_id": "867",
                        "task_status": "succeed",
                        "task_result": {"videos": [{"id": "v", "url": URL, "duration": "5.1"}]},
                    },
                },
            },
        },
        [ProviderResult(url=URL, duration_seconds=5.1)],
    ),
    Real(
        "a status of the outer relay that differs from the stale inner one (QuantumNous/new-api#5715)",
        {
            "code": "success",
            "data": {"task_id": "x", "status": "FAILURE", "data": {"id": "cgt-1", "status": "running"}},
        },
        state=pb.VIDEO_TASK_STATE_FAILED,
    ),
    Real(
        "a task without a state yet (QuantumNous/new-api#5045)",
        {"id": "task_x", "object": "video", "status": "unknown", "progress": 0},
        state=pb.VIDEO_TASK_STATE_QUEUED,
    ),
]


@pytest.mark.parametrize("real", REAL, ids=lambda real: real.id)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_real_answers_are_read_in_every_protocol(protocol: str, real: Real) -> None:
    status = decoded(protocol, real.body)
    state = real.state
    if protocol == "vidC" and "#5045" in real.id:
        state = pb.VIDEO_TASK_STATE_FAILED  # its maker's own meaning of the word
    assert status.state == state
    if protocol == "vidA" and real.results:  # which reads the file with the key, and falls back to the address
        assert (status.results[0].url, status.results[0].needs_key) == (real.results[0].url, "/videos/t-1/content")
    else:
        assert list(status.results) == list(real.results)


@pytest.mark.parametrize(
    ("written", "percent"),
    [("57%", 57), ("57", 57), (0.57, 57), (57.0, 57), (0, 0), (1, 1), ("half", None), (None, None)],
)
def test_a_progress_is_read_in_every_form(written: str | float | None, percent: float | None) -> None:
    assert percent_of(written) == pytest.approx(percent)
    body = {"data": {"task_id": "t-1", "status": "IN_PROGRESS", "progress": written}}
    assert decoded("vidA", body).progress_percent == percent


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "failed", URL, "t-1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "output", "task", "status", "state", "id", "task_id", "url", "error", "videos", "code"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(value=JSON)
def test_any_json_is_an_answer(value: object) -> None:
    task = read_relayed(msgspec.json.encode(value), "vidA", "t-1")
    assert all(file.url or file.needs_key or file.data is not None for file in files_of(task))


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"\xff", b"[" * 5000])
def test_a_body_without_json_is_an_error(body: bytes) -> None:
    with raises_error(name="UPSTREAM_FAILED"):
        read_relayed(body, "vidA")

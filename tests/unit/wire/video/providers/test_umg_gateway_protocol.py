"""Codec of the protocol `umg_video`, tested by the codecs of the entries: a second gateway reads the same request."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.error_checks import raises_error
from tests.support.videos import TASK_ID, VIDEO, image, submission
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video import ENTRY_FORMATS
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.umg_gateway_protocol import UMG_VIDEO
from umg_grpc.wire.video.task_error_codes import task_error
from umg_grpc.wire.video.video_request_checks import check

HTTP = "https://example.com/a.png"
TEXT, IMAGES, OMNI = (
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
    pb.VIDEO_TASK_KIND_OMNI,
)


@dataclass(frozen=True)
class Case:
    """A submission by an entry."""

    id: str
    entry: "pb.VideoEntry.ValueType"
    model: str
    media: tuple[pb.VideoMedia, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_UNSPECIFIED

    @property
    def submission(self) -> Submission:
        made = submission(self.model, *self.media, kind=self.kind, **self.parameters)
        made.request.entry = self.entry
        return Submission(task_id=made.task_id, model=made.model, request=check(made.request))


FILM = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4", role=pb.VIDEO_MEDIA_ROLE_REFERENCE_VIDEO)
CASES = [
    Case("unified A", pb.VIDEO_ENTRY_UNIFIED, "vidA-2", (image("first_frame", url=HTTP),), {"duration_seconds": 8}),
    Case(
        "unified B", pb.VIDEO_ENTRY_UNIFIED, "vidB-3.1-generate-preview",
        (image("first_frame", url=HTTP), image("last_frame")),
        {"sample_count": 2, "generate_audio": True, "seed": 4294967295, "person_generation": "allow_adult"},
    ),
    Case("unified B, fast", pb.VIDEO_ENTRY_UNIFIED, "vidB-3.0-fast-generate-001"),
    Case("unified C", pb.VIDEO_ENTRY_UNIFIED, "vidC2.5-t2v-preview", (), {"size": "1920*1080", "prompt_extend": True}),
    Case(
        "unified D", pb.VIDEO_ENTRY_UNIFIED, "vidD-1-0-pro-250528",
        (image("first_frame", url=HTTP), image("last_frame", url=HTTP)),
        {"aspect_ratio": "adaptive", "camera_fixed": False, "frames_per_second": 24, "extra_json": '{"x":[1]}'},
    ),
    Case("unified D without sound", pb.VIDEO_ENTRY_UNIFIED, "vidD-1-5-pro-251215-noAudio"),
    Case("video object", pb.VIDEO_ENTRY_VIDEO_OBJECT, "vidA-2", (image("first_frame"),), {"size": "1280x720"}),
    Case(
        "D", pb.VIDEO_ENTRY_D, "vidD-2-0-260128", (image("reference_image", url=HTTP), FILM),
        {"generate_audio": False, "watermark": True, "resolution": "1080p", "duration_seconds": 15},
    ),
    Case(
        "E v1", pb.VIDEO_ENTRY_E_V1, "vidE-v2-6", (image("first_frame", url=HTTP), image("static_mask")),
        {"mode": "pro", "cfg_scale": 0.5, "camera_control_json": '{"type":"simple"}', "generate_audio": True},
        IMAGES,
    ),
    Case("E v1, text", pb.VIDEO_ENTRY_E_V1, "vidE-v1", (), {"size": "1280x720", "seed": 3}, TEXT),
    Case(
        "E 3.0", pb.VIDEO_ENTRY_E_3, "vidE-3.0", (image("first_frame", url=HTTP),),
        {"resolution": "1080p", "duration_seconds": 3, "extra_json": '{"options":{"x":1}}'}, IMAGES,
    ),
    Case(
        "E 3.0, omni", pb.VIDEO_ENTRY_E_3, "vidE-3.0-omni",
        (image("reference_image", url=HTTP), image("reference_image"), FILM), {}, OMNI,
    ),
    Case("F", pb.VIDEO_ENTRY_F, "vidF_vgfm_t2v_l20", (), {"frames": 121, "seed": -1, "aspect_ratio": "16:9"}),
    Case(
        "G", pb.VIDEO_ENTRY_G, "vidG-H3", (image("first_frame"),),
        {"resolution": "2K", "duration_seconds": 4, "aspect_ratio": "21:9", "watermark": False},
    ),
]  # fmt: skip
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


def received(request: ProviderRequest, entry: "pb.VideoEntry.ValueType") -> pb.CreateVideoTaskRequest:
    """Return the request as the second gateway reads it."""
    path, _, query = request.path.partition("?")
    parameters = dict(part.split("=") for part in query.split("&") if part)
    if found := re.fullmatch(r"/vidE/v1/videos/(\w+)", path):
        parameters["kind"] = found[1]
    elif found := re.fullmatch(r"/vidE/([\w-]+)/([\w.-]+)", path):
        parameters |= {"kind": found[1], "model": found[2]}
    return ENTRY_FORMATS[entry].decode_create(request.body, parameters)


@EACH
def test_the_second_gateway_reads_the_same_request(case: Case) -> None:
    sent = case.submission
    request = UMG_VIDEO.encode_create(sent)
    read = check(received(request, case.entry))
    assert request.headers["Idempotency-Key"] == TASK_ID
    assert not request.report.dropped
    if case.entry == pb.VIDEO_ENTRY_E_3:
        assert read.external_task_id == TASK_ID
        read.ClearField("external_task_id")
    for one, other in zip(read.parameters.media, sent.request.parameters.media, strict=True):
        one.ClearField("mime_type")
        if case.id not in {"D", "unified D", "G"}:  # an entry without roles has them by the position
            assert one.kind == other.kind
            one.role = other.role
    assert read == sent.request


STATING = [case for case in CASES if case.entry not in {pb.VIDEO_ENTRY_D, pb.VIDEO_ENTRY_F, pb.VIDEO_ENTRY_G}]
"""Cases of the APIs whose answers to a submission have a state."""


def task(case: Case, state: "pb.VideoTaskState.ValueType", **more: Any) -> pb.VideoTask:
    time = Timestamp(seconds=1767323045)
    parameters = case.submission.request.parameters
    return pb.VideoTask(
        task_id="task_theirs", entry=case.entry, model=case.model, state=state, parameters=parameters, kind=case.kind,
        create_time=time, update_time=time, complete_time=time, progress_percent=40, **more,
    )  # fmt: skip


def status(case: Case, found: pb.VideoTask) -> ProviderStatus:
    codec = ENTRY_FORMATS[case.entry]
    new = task(case, pb.VIDEO_TASK_STATE_QUEUED)
    created = UMG_VIDEO.decode_created(200, {}, codec.encode_created(new, "r"), case.submission)
    assert (created.id, created.model) == ("task_theirs", case.model)
    decoded = UMG_VIDEO.decode_status(200, {}, codec.encode_task(found, "r"), [created])[created.id]
    assert isinstance(decoded, ProviderStatus)
    return decoded


@EACH
def test_the_states_are_those_of_the_second_gateway(case: Case) -> None:
    assert status(case, task(case, pb.VIDEO_TASK_STATE_SUBMITTING)).state == pb.VIDEO_TASK_STATE_QUEUED
    assert status(case, task(case, pb.VIDEO_TASK_STATE_RUNNING)).state == pb.VIDEO_TASK_STATE_RUNNING
    for code in ("content_policy_violation", "task_expired", "invalid_request"):
        found = status(case, task(case, pb.VIDEO_TASK_STATE_FAILED, error=task_error(code, "no")))
        assert found.error is not None
        same = {code} if case.entry != pb.VIDEO_ENTRY_UNIFIED else {code, "invalid_request"}  # both are 400 there
        assert (found.state, found.error.code in same) == (pb.VIDEO_TASK_STATE_FAILED, True)


@pytest.mark.parametrize("case", STATING, ids=lambda case: case.id)
def test_a_new_task_that_has_failed_is_refused_with_its_reason(case: Case) -> None:
    failed = task(case, pb.VIDEO_TASK_STATE_FAILED, error=task_error("content_policy_violation", "no"))
    with pytest.raises(UmgError) as caught:
        UMG_VIDEO.decode_created(200, {}, ENTRY_FORMATS[case.entry].encode_created(failed, "r"), case.submission)
    assert caught.value.failure is Failure.CALLER
    assert caught.value.message in {"no", "the task failed at its creation, without a reason"}


@EACH
def test_a_result_has_its_address_or_is_read_by_the_key(case: Case) -> None:
    result = pb.VideoResult(variant=pb.VIDEO_VARIANT_VIDEO, url="https://gateway/files/t", duration_seconds=5)
    done = status(case, task(case, pb.VIDEO_TASK_STATE_SUCCEEDED, results=[result]))
    by_key = status(case, task(case, pb.VIDEO_TASK_STATE_SUCCEEDED, results=[pb.VideoResult(variant=1, blob_id="b")]))
    [found], [kept] = done.results, by_key.results
    expected = "" if case.entry == pb.VIDEO_ENTRY_VIDEO_OBJECT else "https://gateway/files/t"
    assert (found.url, kept.needs_key) == (expected, "/v1/videos/task_theirs/content")


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("Completed", pb.VIDEO_TASK_STATE_SUCCEEDED), ("EXPIRED", pb.VIDEO_TASK_STATE_FAILED),
        ("canceled", pb.VIDEO_TASK_STATE_CANCELLED), ("rendering2", pb.VIDEO_TASK_STATE_RUNNING),
    ],
)  # fmt: skip
def test_words_of_a_relay_have_the_meaning_of_the_shared_table(word: str, state: "pb.VideoTaskState.ValueType") -> None:
    created = ProviderTask(id="t", model="m", facts='{"entry":"unified","path":"/v1/video/generations"}')
    found = UMG_VIDEO.decode_status(200, {}, msgspec.json.encode({"status": word}), [created])["t"]
    assert isinstance(found, ProviderStatus)
    assert found.state == state


def test_a_data_url_is_the_file() -> None:
    created = ProviderTask(id="t", model="m", facts='{"entry":"unified","path":"/v1/video/generations"}')
    body = b'{"status":"succeeded","url":"data:video/mp4;base64,AAAA"}'
    done = UMG_VIDEO.decode_status(200, {}, body, [created])["t"]
    assert isinstance(done, ProviderStatus)
    assert done.results[0].data == b"\0\0\0"


@pytest.mark.parametrize(("family", "place"), [("vidD", "metadata"), ("vidA", "prompt"), ("", "prompt")])
def test_the_family_of_the_config_decides_the_place_of_the_prompt_of_an_alias(family: str, place: str) -> None:
    request = pb.CreateVideoTaskRequest(model="film", entry=pb.VIDEO_ENTRY_UNIFIED)
    request.parameters.prompt = "a lake"
    sent = UMG_VIDEO.encode_create(Submission(task_id=TASK_ID, model="m", request=request, family=family))
    assert set(msgspec.json.decode(sent.body)) == {"model", place}


def test_a_remix_is_one_of_video_objects() -> None:
    source = ProviderTask(id="task_source", model="vidA-2")
    remix = submission("vidA-2", source=source, prompt="in blue")
    request = UMG_VIDEO.encode_create(remix)
    assert (request.path, request.body) == ("/v1/videos/task_source/remix", b'{"prompt":"in blue"}')
    created = UMG_VIDEO.decode_created(200, {}, b'{"id":"task_remix","status":"queued"}', remix)
    assert UMG_VIDEO.encode_query([created]).path == "/v1/videos/task_remix"


def test_a_task_of_entry_e_3_is_found_by_its_external_id() -> None:
    [case] = [case for case in CASES if case.id == "E 3.0"]
    assert UMG_VIDEO.encode_find is not None
    assert UMG_VIDEO.decode_found is not None
    assert UMG_VIDEO.encode_find(case.submission).path == f"/vidE/tasks?external_task_ids={TASK_ID}"
    body = ENTRY_FORMATS[case.entry].encode_task(task(case, pb.VIDEO_TASK_STATE_RUNNING), "r")
    found = UMG_VIDEO.decode_found(200, {}, body, case.submission)
    assert found is not None
    assert found.id == "task_theirs"
    assert UMG_VIDEO.decode_found(404, {}, b'{"code":1203,"message":"no"}', case.submission) is None
    assert UMG_VIDEO.decode_found(200, {}, body, CASES[0].submission) is None


@pytest.mark.parametrize(
    ("status_code", "failure"),
    [(400, Failure.CALLER), (401, Failure.DOWN), (404, Failure.DOWN), (429, Failure.OVERLOADED), (502, Failure.TRANSIENT), (504, Failure.AMBIGUOUS)],
)  # fmt: skip
@EACH
def test_an_error_of_the_second_gateway_is_definite_unless_it_is_a_timeout(
    case: Case, status_code: int, failure: Failure
) -> None:
    body = ENTRY_FORMATS[case.entry].encode_error(UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no"), status_code)
    with raises_error(failure=failure):
        UMG_VIDEO.decode_created(status_code, {"content-type": "application/json"}, body, case.submission)

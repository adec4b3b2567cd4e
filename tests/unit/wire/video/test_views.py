"""Views of one task in each entry's vocabulary, its queries, lists and error bodies."""

from dataclasses import dataclass

import msgspec
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.video import ENTRY_FORMATS, video_object_caller_api

UNIFIED, OBJECT, D, E_V1, E_3, F, G = sorted(ENTRY_FORMATS)
QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = (
    pb.VIDEO_TASK_STATE_QUEUED,
    pb.VIDEO_TASK_STATE_RUNNING,
    pb.VIDEO_TASK_STATE_SUCCEEDED,
    pb.VIDEO_TASK_STATE_FAILED,
    pb.VIDEO_TASK_STATE_CANCELLED,
)
ID = "task_0123456789abcdef0123456789abcdef"
VIDEO_URL, FRAME_URL = "https://files.example/a.mp4", "https://files.example/a.png"
ERROR = {"code": "task_failed", "message": "the sandbox was told to fail"}
WORDS = {
    UNIFIED: ("queued", "queued", "in_progress", "succeeded", "failed", "failed"),
    OBJECT: ("queued", "queued", "in_progress", "completed", "failed", "failed"),
    D: ("queued", "queued", "processing", "succeeded", "failed", "failed"),
    E_V1: ("queued", "queued", "processing", "succeeded", "failed", "failed"),
    E_3: ("submitted", "submitted", "processing", "succeeded", "failed", "failed"),
    F: ("PENDING", "PENDING", "RUNNING", "SUCCESS", "FAILED", "FAILED"),
    G: ("queued", "queued", "running", "succeeded", "failed", "cancelled"),
}
"""Words of the states, in the order of the enum."""


def task(entry: "pb.VideoEntry.ValueType", state: "pb.VideoTaskState.ValueType", videos: int = 1) -> pb.VideoTask:
    made = pb.VideoTask(
        task_id=ID,
        entry=entry,
        model="vidX",
        state=state,
        progress_percent=40,
        parameters=pb.VideoParameters(duration_seconds=5, size="720x1280"),
        create_time=Timestamp(seconds=100, nanos=5_000_000),
        update_time=Timestamp(seconds=110),
    )
    if state == SUCCEEDED:
        made.complete_time.seconds, made.expire_time.seconds = 110, 200
        made.results.extend(
            pb.VideoResult(variant=pb.VIDEO_VARIANT_VIDEO, url=f"{VIDEO_URL}?{index}", duration_seconds=5.04)
            for index in range(videos)
        )
        made.results.append(pb.VideoResult(variant=pb.VIDEO_VARIANT_LAST_FRAME, url=FRAME_URL))
    if state in (FAILED, CANCELLED):
        made.error.code, made.error.status_code, made.error.message = ERROR["code"], 500, ERROR["message"]
    return made


def view(entry: "pb.VideoEntry.ValueType", state: "pb.VideoTaskState.ValueType") -> dict[str, object]:
    return msgspec.json.decode(ENTRY_FORMATS[entry].encode_task(task(entry, state), "req-1"), type=dict[str, object])


TIMES = {"created_at": 100, "updated_at": 110}
HEAD = {"id": ID, "task_id": ID, "object": "video", "model": "vidX"}
E_V1_HEAD = {**HEAD, "created_at": 100, "progress": 40}
OBJECT_HEAD = {**E_V1_HEAD, "seconds": "5", "size": "720x1280"}
E_ITEM = {"id": ID, "create_time": 100005, "update_time": 110000, "external_id": ""}
E_HEAD = {"code": 0, "message": "success", "request_id": "req-1"}
F_HEAD = {"code": 10000, "message": "Success", "request_id": "req-1"}
ANSWERS = {
    (UNIFIED, RUNNING): {"task_id": ID, "status": "in_progress", "format": "mp4"},
    (UNIFIED, SUCCEEDED): {"task_id": ID, "status": "succeeded", "format": "mp4", "url": f"{VIDEO_URL}?0"},
    (UNIFIED, FAILED): {
        "task_id": ID,
        "status": "failed",
        "format": "mp4",
        "error": {"code": 500, "message": ERROR["message"]},
        "fail_reason": ERROR["message"],
    },
    (OBJECT, RUNNING): {**OBJECT_HEAD, "status": "in_progress"},
    (OBJECT, SUCCEEDED): OBJECT_HEAD | {"status": "completed", "progress": 100, "completed_at": 110, "expires_at": 200},
    (OBJECT, FAILED): {**OBJECT_HEAD, "status": "failed", "error": ERROR},
    (D, RUNNING): {"id": ID, "model": "vidX", "status": "processing", **TIMES},
    (D, SUCCEEDED): {
        "id": ID,
        "model": "vidX",
        "status": "succeeded",
        "content": {"video_url": f"{VIDEO_URL}?0", "last_frame_url": FRAME_URL},
        **TIMES,
    },
    (D, FAILED): {"id": ID, "model": "vidX", "status": "failed", **TIMES, "error": ERROR},
    (E_V1, RUNNING): {**E_V1_HEAD, "status": "processing"},
    (E_V1, SUCCEEDED): E_V1_HEAD
    | {"status": "succeeded", "progress": 100, "completed_at": 110, "url": f"{VIDEO_URL}?0"},
    (E_V1, FAILED): {**E_V1_HEAD, "status": "failed", "error": ERROR},
    (E_3, RUNNING): {**E_HEAD, "data": [{**E_ITEM, "status": "processing"}]},
    (E_3, SUCCEEDED): {
        **E_HEAD,
        "data": [{**E_ITEM, "status": "succeeded", "outputs": [{"url": f"{VIDEO_URL}?0", "duration": 5}]}],
    },
    (E_3, FAILED): {**E_HEAD, "data": [{**E_ITEM, "status": "failed", "error": ERROR}]},
    (F, RUNNING): {**F_HEAD, "data": {"status": "RUNNING"}},
    (F, SUCCEEDED): {**F_HEAD, "data": {"status": "SUCCESS", "video_url": f"{VIDEO_URL}?0"}},
    (F, FAILED): {**F_HEAD, "message": ERROR["message"], "data": {"status": "FAILED", "error": ERROR}},
    (G, RUNNING): {"task": {"id": ID, "model": "vidX", "status": "running", **TIMES}},
    (G, SUCCEEDED): {
        "task": {"id": ID, "model": "vidX", "status": "succeeded", "content": {"url": f"{VIDEO_URL}?0"}, **TIMES}
    },
    (G, CANCELLED): {"task": {"id": ID, "model": "vidX", "status": "cancelled", **TIMES, "error": ERROR}},
}
CREATED = {
    UNIFIED: {"task_id": ID, "status": "queued", "format": "mp4"},
    OBJECT: {**OBJECT_HEAD, "status": "queued", "progress": 0},
    D: {"id": ID},
    E_V1: {**HEAD, "status": "queued", "created_at": 100},
    E_3: {**E_HEAD, "data": [{**E_ITEM, "status": "submitted"}]},
    F: {**F_HEAD, "data": {"task_id": ID}},
    G: {"task_id": ID},
}


@pytest.mark.parametrize(("entry", "state"), ANSWERS)
def test_a_task_in_the_vocabulary_of_its_entry(
    entry: "pb.VideoEntry.ValueType", state: "pb.VideoTaskState.ValueType"
) -> None:
    assert view(entry, state) == ANSWERS[entry, state]


@pytest.mark.parametrize("entry", CREATED)
def test_the_answer_of_a_submission(entry: "pb.VideoEntry.ValueType") -> None:
    made = task(entry, pb.VIDEO_TASK_STATE_SUBMITTING)
    made.progress_percent = 0
    assert msgspec.json.decode(ENTRY_FORMATS[entry].encode_created(made, "req-1")) == CREATED[entry]


@pytest.mark.parametrize("entry", ENTRY_FORMATS)
def test_every_state_has_a_word_in_every_entry(entry: "pb.VideoEntry.ValueType") -> None:
    states = [state for state in pb.VideoTaskState.values() if state]
    bodies = [ENTRY_FORMATS[entry].encode_task(task(entry, state)).decode() for state in states]
    assert all(f'"status":"{word}"' in body for word, body in zip(WORDS[entry], bodies, strict=True))


def test_several_videos_are_listed_beside_the_first() -> None:
    body = msgspec.json.decode(ENTRY_FORMATS[UNIFIED].encode_task(task(UNIFIED, SUCCEEDED, videos=2)))
    assert (body["url"], body["urls"]) == (f"{VIDEO_URL}?0", [f"{VIDEO_URL}?0", f"{VIDEO_URL}?1"])


def test_a_remix_names_its_source() -> None:
    made = task(OBJECT, QUEUED)
    made.remixed_from_task_id = "task_source"
    assert video_object_caller_api.video_object(made)["remixed_from_video_id"] == "task_source"


def test_a_notification_has_an_id_where_a_query_has_its_request_id() -> None:
    assert msgspec.json.decode(ENTRY_FORMATS[E_3].encode_task(task(E_3, QUEUED)))["request_id"] == ID


# --- queries


def test_a_query_names_its_entry_and_kind() -> None:
    for entry in (UNIFIED, OBJECT, D, G):
        assert ENTRY_FORMATS[entry].decode_query({"task_id": ID}) == pb.GetVideoTaskRequest(task_id=ID, entry=entry)
    query = ENTRY_FORMATS[E_V1].decode_query({"task_id": ID, "kind": "image2video"})
    assert query == pb.GetVideoTaskRequest(task_id=ID, entry=E_V1, kind=pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO)


def test_entry_e_3_queries_one_task_by_either_id() -> None:
    decode = ENTRY_FORMATS[E_3].decode_query
    assert decode({"task_ids": ID}) == pb.GetVideoTaskRequest(task_id=ID, entry=E_3)
    assert decode({"external_task_ids": "mine"}) == pb.GetVideoTaskRequest(external_task_id="mine", entry=E_3)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"task_ids": ""},
        {"task_ids": "a,b"},
        {"external_task_ids": "a,b"},
        {"task_ids": "a", "external_task_ids": "b"},
    ],
)
def test_entry_e_3_refuses_no_and_several_ids(query: dict[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        ENTRY_FORMATS[E_3].decode_query(query)
    assert HTTP_STATUS[caught.value.reason] == 400


def test_entry_f_queries_by_its_action() -> None:
    decode, query = ENTRY_FORMATS[F].decode_posted_query, {"Action": "CVSync2AsyncGetResult", "Version": "2022-08-31"}
    assert decode is not None
    body = msgspec.json.encode({"req_key": "vidF_vgfm_t2v_l20", "task_id": ID})
    assert decode(body, query) == pb.GetVideoTaskRequest(task_id=ID, entry=F, model="vidF_vgfm_t2v_l20")
    assert decode(body, {"Action": "CVSync2AsyncSubmitTask"}) is None
    with pytest.raises(UmgError):
        decode(b'{"req_key":"vidF_vgfm_t2v_l20"}', query)


# --- remix, list, removal


def test_a_remix_needs_a_prompt_and_no_model() -> None:
    request = video_object_caller_api.decode_remix(b'{"prompt":"at night","x":1}', {"video_id": ID})
    assert request == pb.RemixVideoTaskRequest(task_id=ID, prompt="at night", extra_json='{"x":1}')
    assert video_object_caller_api.decode_remix(b'{"prompt":"p","model":"vidA-2"}', {"video_id": ID}).model == "vidA-2"
    for body in (b"{}", b'{"prompt":""}', b'{"prompt":" "}'):
        with raises_error(metadata={"field": "prompt"}):
            video_object_caller_api.decode_remix(body, {"video_id": ID})


def test_a_list_of_the_sdk() -> None:
    query = video_object_caller_api.decode_list({"limit": "2", "after": ID, "order": "asc"})
    assert query == pb.ListVideoTasksRequest(
        page_size=2, page_token=ID, order=pb.VIDEO_TASK_ORDER_OLDEST_FIRST, entry=OBJECT
    )
    page = pb.ListVideoTasksResponse(tasks=[task(OBJECT, QUEUED)], next_page_token="t")
    body = msgspec.json.decode(video_object_caller_api.encode_list(page))
    assert (body["object"], body["first_id"], body["last_id"], body["has_more"]) == ("list", ID, ID, True)
    empty = msgspec.json.decode(video_object_caller_api.encode_list(pb.ListVideoTasksResponse()))
    assert empty == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "101"}, {"limit": "x"}, {"order": "newest"}])
def test_a_list_refuses_other_values(query: dict[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        video_object_caller_api.decode_list(query)
    assert caught.value.metadata == {"field": next(iter(query))}


def test_the_confirmation_of_a_removal() -> None:
    body = msgspec.json.decode(video_object_caller_api.encode_deleted(task(OBJECT, SUCCEEDED)))
    assert body == {"id": ID, "object": "video.deleted", "deleted": True}


# --- errors


@dataclass(frozen=True)
class Shape:
    members: set[str]
    error: set[str]


CHAT = Shape({"error"}, {"message", "type", "param", "code"})
SHAPES = {
    UNIFIED: CHAT,
    OBJECT: CHAT,
    D: Shape({"error"}, {"code", "message"}),
    E_V1: Shape({"code", "message", "request_id", "error"}, CHAT.error),
    E_3: Shape({"code", "message", "request_id", "error"}, CHAT.error),
    F: Shape({"code", "message", "request_id", "data", "error"}, CHAT.error),
    G: Shape({"type", "error", "request_id"}, {"type", "message", "http_code"}),
}


@pytest.mark.parametrize("entry", SHAPES)
def test_every_reason_has_an_error_body_of_the_entry(entry: "pb.VideoEntry.ValueType") -> None:
    for reason, status in HTTP_STATUS.items():
        error = UmgError(reason, "why", field="model", request_id="req-1")
        body = msgspec.json.decode(ENTRY_FORMATS[entry].encode_error(error, status))
        assert (set(body), set(body["error"])) == (SHAPES[entry].members, SHAPES[entry].error)
        assert body["error"]["message"].endswith("why")
        assert body.get("code") not in {0, 10000}
        assert body.get("request_id", "req-1") == "req-1"


def test_entry_d_names_a_model_without_a_channel() -> None:
    error = UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, "unknown model vidD-9", model="vidD-9")
    assert msgspec.json.decode(ENTRY_FORMATS[D].encode_error(error, 404))["error"]["code"] == "ModelNotOpen"


def test_names_of_the_entries_are_unique_and_paths_of_fields_are_theirs() -> None:
    assert len({row.name for row in ENTRY_FORMATS.values()}) == len(ENTRY_FORMATS)
    wired = {entry: row.wire_path("parameters.duration_seconds") for entry, row in ENTRY_FORMATS.items()}
    assert wired == {
        UNIFIED: "duration",
        OBJECT: "seconds",
        D: "duration",
        E_V1: "duration",
        E_3: "duration",
        F: "duration_seconds",
        G: "duration",
    }

"""Responses about video tasks, as their APIs encode them, for the OpenAPI document."""

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1 import pb
from umg_grpc.wire.openapi_schemas.encoded_bodies import SAMPLE_TEXT, EncodedBody
from umg_grpc.wire.video import VIDEO_FACES
from umg_grpc.wire.video.caller_api_interface import TaskEncoder
from umg_grpc.wire.video.video_object_caller_api import encode_deleted, encode_list

_RESULTS = [
    pb.VideoResult(variant=variant, url=SAMPLE_TEXT, duration_seconds=1)
    for variant in (pb.VIDEO_VARIANT_VIDEO, pb.VIDEO_VARIANT_VIDEO, pb.VIDEO_VARIANT_LAST_FRAME)
]
_FACTS = pb.VideoTask(
    external_task_id=SAMPLE_TEXT,
    remixed_from_task_id=SAMPLE_TEXT,
    parameters=pb.VideoParameters(duration_seconds=1, size=SAMPLE_TEXT),
    expire_time=Timestamp(seconds=1),
    results=_RESULTS,
)
_STATES = [state for state in pb.VideoTaskState.values() if state != pb.VIDEO_TASK_STATE_UNSPECIFIED]


def _tasks() -> Iterable[pb.VideoTask]:
    """Yield tasks of every state: without optional facts, with one result only, and with all facts."""
    for state in _STATES:
        for facts in (pb.VideoTask(), pb.VideoTask(results=_RESULTS[:1]), _FACTS):
            task = pb.VideoTask(task_id=SAMPLE_TEXT, state=state)
            task.MergeFrom(facts)
            yield task


def _task_body(name: str, description: str, encode: TaskEncoder) -> EncodedBody:
    return EncodedBody(name, description, lambda: [encode(task) for task in _tasks()])


def queried_task(face: str) -> EncodedBody:
    """Return the response to the query of a task by the HTTP API `face` for videos."""
    return _task_body(f"{face}.Task", f"Task in the responses of the API `{face}`.", VIDEO_FACES[face].encode_task)


def created_task(face: str) -> object:
    """Return the response to a submission by the API `face`; one of several if queries have the same path."""
    codec = VIDEO_FACES[face]
    if codec.encode_created is codec.encode_task:
        return queried_task(face)
    created = _task_body(f"{face}.Created", f"Response to a submission by the API `{face}`.", codec.encode_created)
    return (created, queried_task(face)) if codec.decode_posted_query is not None else created


def _pages() -> Iterable[bytes]:
    yield encode_list(pb.ListVideoTasksResponse())
    yield encode_list(pb.ListVideoTasksResponse(tasks=_tasks()))


VIDEO_PAGE = EncodedBody("video_object.Page", "Page of the caller's video objects.", _pages)
VIDEO_DELETED = EncodedBody(
    "video_object.Deleted", "Confirmation that a video was deleted.", lambda: map(encode_deleted, _tasks())
)

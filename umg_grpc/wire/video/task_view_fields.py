"""Values of video tasks that the answers of several entries (the HTTP APIs for callers) share: words of the states,
times, addresses of the results, reasons of failures.
"""

from collections.abc import Mapping
from typing import TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject, missing

States: TypeAlias = "Mapping[pb.VideoTaskState.ValueType, str]"

VIDEO_FORMAT = "mp4"


def states(queued: str, running: str, succeeded: str, failed: str, cancelled: str = "") -> States:
    """Return the table of an entry's words for the states of a task. Without a word for it, a cancelled task counts as
    failed.
    """
    return {
        pb.VIDEO_TASK_STATE_UNSPECIFIED: queued,
        pb.VIDEO_TASK_STATE_SUBMITTING: queued,
        pb.VIDEO_TASK_STATE_QUEUED: queued,
        pb.VIDEO_TASK_STATE_RUNNING: running,
        pb.VIDEO_TASK_STATE_SUCCEEDED: succeeded,
        pb.VIDEO_TASK_STATE_FAILED: failed,
        pb.VIDEO_TASK_STATE_CANCELLED: cancelled or failed,
    }


FAILED = frozenset({pb.VIDEO_TASK_STATE_FAILED, pb.VIDEO_TASK_STATE_CANCELLED})
SUCCEEDED = pb.VIDEO_TASK_STATE_SUCCEEDED


def videos(task: pb.VideoTask) -> list[pb.VideoResult]:
    """Return the videos of a task that succeeded; none of any other."""
    if task.state != SUCCEEDED:
        return []
    return [result for result in task.results if result.variant == pb.VIDEO_VARIANT_VIDEO]


def urls(task: pb.VideoTask) -> list[str]:
    """Return the addresses of the videos of a task that succeeded."""
    return [result.url for result in videos(task) if result.url]


def last_frame_url(task: pb.VideoTask) -> str:
    """Return the address of the last frame; "" for none."""
    frames = (result.url for result in task.results if result.variant == pb.VIDEO_VARIANT_LAST_FRAME)
    return next(frames, "") if task.state == SUCCEEDED else ""


def code_and_message(task: pb.VideoTask) -> JsonObject:
    """Return the reason why a task failed, with its code as a word."""
    return {"code": task.error.code or "task_failed", "message": failure_message(task)}


def failure_message(task: pb.VideoTask) -> str:
    """Return the description of a task's failure, never empty."""
    return task.error.message or ("the task was cancelled" if task.state not in FAILED else "the task failed")


def seconds(time: Timestamp) -> int:
    """Return a time in Unix seconds."""
    return time.seconds


def milliseconds(time: Timestamp) -> int:
    """Return a time in Unix milliseconds."""
    return time.seconds * 1000 + time.nanos // 1_000_000


def task_query(
    entry: "pb.VideoEntry.ValueType",
    parameters: Mapping[str, str],
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_UNSPECIFIED,
) -> pb.GetVideoTaskRequest:
    """Decode a query for the task whose id is in the path."""
    if not (task_id := parameters.get("task_id", "")):
        raise missing("task_id")
    return pb.GetVideoTaskRequest(task_id=task_id, entry=entry, kind=kind)

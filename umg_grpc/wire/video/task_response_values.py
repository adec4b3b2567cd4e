"""Values of a video task in responses of several HTTP APIs: names of states, times, URLs of results, failures."""

from collections.abc import Mapping
from typing import TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, missing

States: TypeAlias = "Mapping[pb.VideoTaskState.ValueType, str]"

VIDEO_FORMAT = "mp4"


def states(queued: str, running: str, succeeded: str, failed: str, cancelled: str = "") -> States:
    """Return task state -> its name in one HTTP API. Cancelled tasks are named as failed ones if `cancelled` is ""."""
    return {
        pb.VIDEO_TASK_STATE_UNSPECIFIED: queued,
        pb.VIDEO_TASK_STATE_SUBMITTING: queued,
        pb.VIDEO_TASK_STATE_QUEUED: queued,
        pb.VIDEO_TASK_STATE_RUNNING: running,
        pb.VIDEO_TASK_STATE_SUCCEEDED: succeeded,
        pb.VIDEO_TASK_STATE_FAILED: failed,
        pb.VIDEO_TASK_STATE_CANCELLED: cancelled or failed,
    }


FAILED_STATES = frozenset({pb.VIDEO_TASK_STATE_FAILED, pb.VIDEO_TASK_STATE_CANCELLED})
SUCCEEDED_STATE = pb.VIDEO_TASK_STATE_SUCCEEDED


def videos(task: pb.VideoTask) -> list[pb.VideoResult]:
    """Return the videos of a task that succeeded; an empty list for a task in any other state."""
    if task.state != SUCCEEDED_STATE:
        return []
    return [result for result in task.results if result.variant == pb.VIDEO_VARIANT_VIDEO]


def urls(task: pb.VideoTask) -> list[str]:
    """Return the URLs of the videos of a task that succeeded; an empty list for a task in any other state."""
    return [result.url for result in videos(task) if result.url]


def last_frame_url(task: pb.VideoTask) -> str:
    """Return the URL of the picture of a task's last frame; "" if there is none."""
    frames = (result.url for result in task.results if result.variant == pb.VIDEO_VARIANT_LAST_FRAME)
    return next(frames, "") if task.state == SUCCEEDED_STATE else ""


def code_and_message(task: pb.VideoTask) -> JsonObject:
    """Return `{code, message}` with the reason of a task's failure; the code is a word, for example `task_failed`."""
    return {"code": task.error.code or "task_failed", "message": failure_message(task)}


def failure_message(task: pb.VideoTask) -> str:
    """Return the description of a task's failure; a general text if the provider sent none."""
    return task.error.message or ("the task was cancelled" if task.state not in FAILED_STATES else "the task failed")


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
    """Return the request that looks up the task whose id is in the path. `entry`: HTTP API of the call; `parameters`:
    of path and query; `kind`: kind that the task must have, unspecified for any.
    """
    if not (task_id := parameters.get("task_id", "")):
        raise missing("task_id")
    return pb.GetVideoTaskRequest(task_id=task_id, entry=entry, kind=kind)

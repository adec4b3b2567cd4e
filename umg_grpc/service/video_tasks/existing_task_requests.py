"""Requests about existing video tasks: the request of a remix, and errors about tasks."""

from umg_grpc.base.errors import UmgError
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import SUCCEEDED_STATE
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid


def check_remix(source: MediaTask, given: pb.RemixVideoTaskRequest) -> None:
    """Raise UmgError if the task `source` cannot be changed by the remix `given`."""
    if given.HasField("model") and given.model != source.model:
        raise invalid("model", f"a remix has the model of its source, `{source.model}`; send that or none")
    if source.state != SUCCEEDED_STATE:
        raise wrong_state(source, "only a task that has succeeded can be changed")


def check_draft(source: MediaTask) -> None:
    """Raise UmgError if the task `source` has no draft that can be made into a video."""
    if source.state != SUCCEEDED_STATE:
        raise wrong_state(source, "only the draft of a task that has succeeded can be made into a video")


def remix_request(source: MediaTask, given: pb.RemixVideoTaskRequest) -> pb.CreateVideoTaskRequest:
    """Return the request of a remix: the task's parameters with the prompt of `given`, without media."""
    remix = pb.CreateVideoTaskRequest(
        model=source.model,
        entry=pb.VIDEO_ENTRY_VIDEO_OBJECT,
        parameters=pb.CreateVideoTaskRequest.FromString(source.request).parameters,
        idempotency_key=given.idempotency_key if given.HasField("idempotency_key") else None,
    )
    remix.parameters.ClearField("media")
    remix.parameters.prompt, remix.parameters.extra_json = given.prompt, given.extra_json
    return remix


def not_found(task_id: str) -> UmgError:
    """Return the error for a task that does not exist or belongs to another caller, with one message for both."""
    named = task_id[:64]
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, f"the task `{named}` does not exist", id=named)


def wrong_state(row: MediaTask, advice: str) -> UmgError:
    """Return the error for a task in a state in which the request is not possible. `advice`: end of its message."""
    state = pb.VideoTaskState.Name(pb.VideoTaskState.ValueType(row.state)).removeprefix("VIDEO_TASK_STATE_").lower()
    return UmgError(pb.ERROR_REASON_WRONG_STATE, f"the task is {state}: {advice}", state=state)

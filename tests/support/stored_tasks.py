"""Rows of video tasks and their notifications, for tests that need no provider."""

from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.v1 import pb

SECOND = 10**6
SUCCEEDED, RUNNING = pb.VIDEO_TASK_STATE_SUCCEEDED, pb.VIDEO_TASK_STATE_RUNNING


def media_task(task_id: str, owner: str, created: int = SECOND, **columns: object) -> MediaTask:
    """Return a task that succeeded a second after its creation, but for the given columns."""
    ended = {"start_micros": created, "complete_micros": created + SECOND, "update_micros": created + SECOND}
    columns = {"state": SUCCEEDED, "channel": "main", "model": "clips-1", **ended, **columns}
    return MediaTask(
        task_id=task_id, owner=owner, entry=pb.VIDEO_ENTRY_UNIFIED, kind=pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
        public_model="clips-1", body_hash=task_id, request_id=f"req_of_{task_id}", face="grpc", agent="", prices=b"",
        micro_credits=250_000, upstream_task_id=f"up-{task_id}", upstream_model="clips-1-provider", upstream_key_id="k",
        upstream_facts="", lease_owner="", poll_failures=0, deadline_micros=created + 3600 * SECOND,
        create_micros=created, request=b"", **columns,
    )  # fmt: skip


def task_callback(callback_id: str, task: MediaTask, **columns: object) -> TaskCallback:
    """Return a notification of a task that was given up, but for the given columns."""
    columns = {
        "url": "https://a:b@caller.example/hook?token=c",
        "attempts": 10,
        "error": "the receiver answered with status 500",
        "status": 500,
        "state": task.state,
        "create_micros": task.create_micros,
        **columns,
    }
    return TaskCallback(
        callback_id=callback_id, task_id=task.task_id, owner=task.owner,
        lease_owner="", body=b"{}", **columns,
    )  # fmt: skip

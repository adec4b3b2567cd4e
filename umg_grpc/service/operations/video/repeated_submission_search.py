"""Search for existing tasks: if a call repeats an earlier submission, no second task is submitted."""

import hashlib

from umg_grpc.base.errors import UmgError
from umg_grpc.service.operations.video.new_task_call import NewTask
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.v1 import pb

RETRY_COUNT = "x-stainless-retry-count"
"""Header of SDKs that repeat failed requests by themselves: the number of the repetition, 0 for the first request."""
RETRY_SECONDS = 120.0
"""Seconds within which an equal request that an SDK repeats is taken for the same submission."""


class RepeatedSubmissions:
    """Search for the existing tasks that submissions repeat."""

    def __init__(self, tasks: TaskContext) -> None:
        self._tasks = tasks

    async def find(self, new: NewTask) -> None:
        """Find the existing task that the submission repeats. Both have the same idempotency key or external id, or the
        submission is an SDK's automatic retry without any id. Raise UmgError(ALREADY_EXISTS) for a key or id that was
        used with another request.
        """
        request, owner, rows = new.request, new.access.caller.key_id, self._tasks.rows
        new.body_hash = body_hash(request, new.source_task_id)
        retries = new.call.arrival.metadata.get(RETRY_COUNT, "")
        if not request.HasField("idempotency_key") and retries.isdecimal() and int(retries):
            new.known = await rows.find_repeated(owner, new.body_hash, self._tasks.now() - int(RETRY_SECONDS * 1e6))
            return
        wanted = MediaTask(
            owner=owner,
            body_hash=new.body_hash,
            idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
            external_task_id=request.external_task_id if request.HasField("external_task_id") else None,
        )
        if wanted.idempotency_key is None and wanted.external_task_id is None:
            return
        existing = await rows.find_conflict(wanted)
        new.known = same_task(wanted, existing) if existing is not None else None


def body_hash(request: pb.CreateVideoTaskRequest, source_task_id: str | None) -> str:
    """Return a fingerprint of a request without its idempotency key. `source_task_id`: for a remix, else None."""
    content = pb.CreateVideoTaskRequest()
    content.CopyFrom(request)
    content.ClearField("idempotency_key")
    digest = hashlib.sha256(content.SerializeToString(deterministic=True))
    digest.update((source_task_id or "").encode())
    return digest.hexdigest()


def same_task(wanted: MediaTask, existing: MediaTask) -> MediaTask:
    """Return `existing` if `wanted` repeats it. Raise UmgError(ALREADY_EXISTS) if only its key or id is equal."""
    if wanted.idempotency_key is not None and wanted.idempotency_key == existing.idempotency_key:
        if wanted.body_hash == existing.body_hash:
            return existing
        raise _already_exists("the idempotency key was used for a task with other content; send another key")
    named = wanted.external_task_id
    raise _already_exists(f"external_task_id: you have a task with the id `{named}`; send another id")


def _already_exists(message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_ALREADY_EXISTS, message)

"""Database row of a new video task."""

import secrets

from umg_grpc.service.operations.video.new_task import NewTask
from umg_grpc.service.pipeline.usage_recording import GRPC_FACE, MAX_FACE_CHARACTERS
from umg_grpc.store.tables import MediaTask
from umg_grpc.store.video_task_table import SUBMITTING
from umg_grpc.v1 import pb

TASK_PREFIX = "task_"


def new_row(new: NewTask, process: str, now_micros: int) -> MediaTask:
    """Return the database row of a new task, which this process (`process`: its unique name) submits next. The channel
    and its prices are set when the task is sent. `now_micros`: current time in microseconds since 1970.
    """
    call, request = new.call, new.request
    return MediaTask(
        task_id=_new_task_id(),
        owner=new.access.caller.key_id,
        entry=int(request.entry),
        kind=int(new.kind),
        model=request.model,
        public_model=new.model.id,
        source_task_id=new.source_task_id,
        external_task_id=request.external_task_id if request.HasField("external_task_id") else None,
        idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
        body_hash=new.body_hash,
        callback_url=request.callback_url if request.HasField("callback_url") else None,
        request_id=call.arrival.request_id,
        face=call.arrival.metadata.get("x-umg-face", GRPC_FACE)[:MAX_FACE_CHARACTERS],
        prices=b"",
        micro_credits=0,
        state=SUBMITTING,
        channel="",
        upstream_task_id="",
        upstream_model="",
        upstream_key_id="",
        upstream_facts="",
        lease_owner=process,
        poll_failures=0,
        create_micros=now_micros,
        update_micros=now_micros,
        request=_without_data(request),
    )


def _new_task_id() -> str:
    """Return a random id for a video task, which cannot be guessed."""
    return TASK_PREFIX + secrets.token_urlsafe(24)


def _without_data(request: pb.CreateVideoTaskRequest) -> bytes:
    """Return the request in the form in which it is stored with its task, serialized: without the bytes of its media,
    which only the provider gets.
    """
    stored = pb.CreateVideoTaskRequest()
    stored.CopyFrom(request)
    for medium in stored.parameters.media:
        if medium.HasField("data"):
            medium.data = b""
    return stored.SerializeToString()

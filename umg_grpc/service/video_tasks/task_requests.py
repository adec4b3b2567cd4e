"""Checks of the requests for new video tasks, fingerprints by which repeated requests are found, and rows of
new tasks.
"""

import hashlib
import secrets
from collections.abc import Callable

from umg_grpc.access.caller import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.routing import PublicModel
from umg_grpc.service.pipeline.call import Call
from umg_grpc.service.pipeline.usage_recording import GRPC_FACE, MAX_FACE_CHARACTERS
from umg_grpc.store.tables import MediaTask
from umg_grpc.store.video_task_table import SUBMITTING, SUCCEEDED
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import invalid
from umg_grpc.wire.core.media import is_data_url, parse_data_url

ASSET = "asset://"
"""Prefix of addresses in a provider's own library of media, which only the provider can read."""
TASK_PREFIX = "task_"


def new_task_id() -> str:
    """Return a random id for a video task, which cannot be guessed."""
    return TASK_PREFIX + secrets.token_urlsafe(24)


def body_hash(request: pb.CreateVideoTaskRequest, source_task_id: str | None) -> str:
    """Return a fingerprint of a request, the same for every repetition, also with another idempotency key or none.
    `source_task_id`: for a remix, the task that it changes, else None.
    """
    content = pb.CreateVideoTaskRequest()
    content.CopyFrom(request)
    content.ClearField("idempotency_key")
    digest = hashlib.sha256(content.SerializeToString(deterministic=True))
    digest.update((source_task_id or "").encode())
    return digest.hexdigest()


def decode_data_urls(request: pb.CreateVideoTaskRequest) -> None:
    """Replace the `data:` URLs of media in the request by their bytes. Raise UmgError(INVALID_FIELD) for an invalid
    one.
    """
    for position, medium in enumerate(request.parameters.media):
        if medium.HasField("url") and is_data_url(medium.url):
            mime_type, data = parse_data_url(medium.url, f"parameters.media[{position}].url")
            medium.data = data
            medium.mime_type = medium.mime_type or mime_type


def check_urls(request: pb.CreateVideoTaskRequest, check: Callable[..., None]) -> None:
    """Check the URLs of media and of notifications in the request. `check`: the method of `Fetcher` that raises
    UmgError for a URL that the rules of the config refuse.
    """
    if request.HasField("callback_url"):
        check(request.callback_url, field="callback_url")
    for position, medium in enumerate(request.parameters.media):
        if medium.HasField("url") and not medium.url.startswith(ASSET):
            check(medium.url, field=f"parameters.media[{position}].url")


def without_data(request: pb.CreateVideoTaskRequest) -> bytes:
    """Return the request in the form in which it is stored with its task, serialized: without the bytes of its media,
    which only the provider gets.
    """
    stored = pb.CreateVideoTaskRequest()
    stored.CopyFrom(request)
    for medium in stored.parameters.media:
        if medium.HasField("data"):
            medium.data = b""
    return stored.SerializeToString()


def new_row(
    call: Call,
    request: pb.CreateVideoTaskRequest,
    model: PublicModel,
    process: str,
    now_micros: int,
    *,
    kind: "pb.VideoTaskKind.ValueType",
    source_task_id: str | None = None,
) -> MediaTask:
    """Return the database row of a new task, which this process (`process`: its unique name) submits next. The channel
    and its prices are set when the task is sent. `now_micros`: current time in microseconds since 1970.
    `source_task_id`: for a remix, the task that it changes, else None.
    """
    caller: Caller = call.caller
    return MediaTask(
        task_id=new_task_id(),
        owner=caller.key_id,
        entry=int(request.entry),
        kind=int(kind),
        model=request.model,
        public_model=model.id,
        source_task_id=source_task_id,
        external_task_id=request.external_task_id if request.HasField("external_task_id") else None,
        idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
        body_hash=body_hash(request, source_task_id),
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
        request=without_data(request),
    )


def check_remix(source: MediaTask, given: pb.RemixVideoTaskRequest) -> None:
    """Raise UmgError if the task `source` cannot be changed by the remix `given`."""
    if given.HasField("model") and given.model != source.model:
        raise invalid("model", f"a remix has the model of its source, `{source.model}`; send that or none")
    if source.state != SUCCEEDED:
        raise wrong_state(source, "only a task that has succeeded can be changed")


def remix_request(source: MediaTask, given: pb.RemixVideoTaskRequest) -> pb.CreateVideoTaskRequest:
    """Return the request of a remix: the parameters of the task `source` with the prompt of `given`, and without
    media.
    """
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

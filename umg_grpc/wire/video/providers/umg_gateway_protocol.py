"""Protocol `umg_video`: the provider is another Unified Model Gateway, called by the HTTP API that the caller used.

Each submission has this gateway's id of the task as idempotency key. A result without a URL is downloaded from the
other gateway with the key.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.task_state_words import meaning_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import is_data_url, parse_data_url
from umg_grpc.wire.errors.provider_errors import as_error, read_error, unreadable
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import failed_call, is_page, is_unknown, refused, refused_submission
from umg_grpc.wire.video.providers.request_encoding import get_request, json_request, path_id
from umg_grpc.wire.video.providers.response_decoding import (
    QUEUED_STATE,
    RUNNING_STATE,
    Text,
    cancelled,
    error_of,
    failed,
    number,
    progressing,
    read,
    succeeded,
    text,
    unknown_state,
    unknown_task,
)
from umg_grpc.wire.video.providers.task_states import failed_at_creation, is_failure
from umg_grpc.wire.video.providers.umg_gateway_requests import (
    E_3,
    E_V1,
    ENTRY_D,
    ENTRY_F,
    ENTRY_G,
    QUERY_F,
    UNIFIED_ENTRY,
    VIDEO_OBJECT,
    encode_create,
    entry_of,
    query_path,
)
from umg_grpc.wire.video.task_error_codes import (
    CONTENT_POLICY_VIOLATION,
    INVALID_REQUEST,
    STATUS_CODES,
    TASK_CANCELLED,
    TASK_EXPIRED,
)

PROTOCOL_NAME = "umg_video"
CONTENT_PATH = "/v1/videos/{id}/content"
UNDECIDED_STATUSES = frozenset({500, 504})
"""HTTP statuses after which the other gateway may nevertheless have submitted the task to its provider."""
RESULT_SECONDS = 3600
"""Minimum seconds for which result URLs of the other gateway are expected to be valid."""
FAILURE_CODES = {400: INVALID_REQUEST, 499: TASK_CANCELLED, 504: TASK_EXPIRED}
"""Numeric code of a failed task of `/v1/video/generations` -> failure code as a word."""


class Content(Struct):
    """Member `content` of a task of Entries D and G (the HTTP APIs of families `vidD` and `vidG`)."""

    url: str | None = None
    video_url: str | None = None
    last_frame_url: str | None = None


class Output(Struct):
    """Item of `outputs` of a task of Entry E 3.0 (an HTTP API of family `vidE`)."""

    url: str | None = None
    duration: Text = None


class Task(Struct):
    """Task in a response of the other gateway, with the members of all its HTTP APIs for videos."""

    id: Text = None
    task_id: Text = None
    status: str = ""
    progress: Text = None
    url: str | None = None
    urls: list[str] | None = None
    video_url: str | None = None
    content: Content | None = None
    outputs: list[Output] | None = None
    seconds: Text = None
    error: Raw = Raw()
    fail_reason: str | None = None


class Enveloped(Struct):
    """Response of the other gateway by the HTTP APIs in which the task is in a member `data` or `task`."""

    data: Raw = Raw()
    task: Task | None = None


def _plain(body: bytes) -> Task:
    return read(Task, body)


def _first(body: bytes) -> Task:
    return next(iter(read(list[Task], read(Enveloped, body).data or Raw(b"[]"))), Task())


def _data(body: bytes) -> Task:
    return read(Task, read(Enveloped, body).data or Raw(b"{}"))


def _inner(body: bytes) -> Task:
    return read(Enveloped, body).task or read(Task, body)


TASK_OF: Mapping[str, Callable[[bytes], Task]] = {
    UNIFIED_ENTRY: _plain,
    VIDEO_OBJECT: _plain,
    ENTRY_D: _plain,
    E_V1: _plain,
    E_3: _first,
    ENTRY_F: _data,
    ENTRY_G: _inner,
}


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`).

    Status 502 is a definite failure, because the other gateway keeps a task whose outcome it does not know. After a
    timeout, and after an HTML page of a proxy, the outcome is unknown.
    """
    _check(status, headers, body)
    task = TASK_OF[entry_of(submission)](body)
    if is_failure(task.status):
        stated = as_error(error_of(task.error))
        stated.message = stated.message or task.fail_reason or ""
        raise failed_at_creation(headers, stated)
    return _identity(task, submission)


def _check(status: int, headers: Mapping[str, str], body: bytes) -> None:
    if status >= 400:
        error = read_error(body)
        if status not in UNDECIDED_STATUSES and error.message and not is_page(headers, body):
            raise _definite(refused(status, headers, error))
        raise refused_submission(status, headers, body, error)


def _identity(task: Task, submission: Submission) -> ProviderTask:
    entry = entry_of(submission)
    if not (task_id := text(task.id) or text(task.task_id)):
        raise unreadable()
    facts = msgspec.json.encode({"entry": entry, "path": query_path(submission)}).decode()
    return ProviderTask(id=task_id, model=submission.model, facts=facts)


def _definite(error: UmgError) -> UmgError:
    return error.with_failure(Failure.TRANSIENT) if error.failure is Failure.AMBIGUOUS else error


class Facts(Struct):
    """Facts that are stored with a task for its queries, as JSON."""

    entry: str
    path: str


def _facts(task: ProviderTask) -> Facts:
    return msgspec.json.decode(task.facts, type=Facts)


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`, by the HTTP API by which it was submitted."""
    [task] = tasks
    facts = _facts(task)
    if facts.entry == ENTRY_F:
        return json_request(QUERY_F, {"req_key": task.model, "task_id": task.id})
    if facts.entry == E_3:
        return get_request(f"{facts.path}?task_ids={quote(task.id, safe='')}")
    return get_request(f"{facts.path}/{path_id(task.id)}")


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    [task] = tasks
    if is_unknown(status, headers, body):
        return {task.id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body))
    return {task.id: _status(TASK_OF[_facts(task).entry](body), task)}


def _status(found: Task, task: ProviderTask) -> ProviderStatus | UmgError:
    if not found.status:
        return unreadable()
    match meaning_of(found.status, PROTOCOL_NAME):
        case "queued":
            return progressing(QUEUED_STATE, number(found.progress))
        case "running":
            return progressing(RUNNING_STATE, number(found.progress))
        case "done":
            return succeeded(_results(found, task))
        case "failed" | "expired":
            return _failed(found)
        case "cancelled":
            return cancelled()
        case "lost":
            return unknown_task()
        case None:
            return unknown_state(found.status, number(found.progress))
        case unhandled:
            assert_never(unhandled)


def _failed(found: Task) -> ProviderStatus:
    error = as_error(error_of(found.error))
    message = error.message or found.fail_reason or ""
    if isinstance(error.code, str) and error.code in STATUS_CODES:
        return failed(message, kind=error.code)
    status = failed(message)
    is_blocked = status.error is not None and status.error.code == CONTENT_POLICY_VIOLATION
    if is_blocked or not isinstance(error.code, int) or error.code not in FAILURE_CODES:
        return status
    return failed(message, kind=FAILURE_CODES[error.code])


def _results(found: Task, task: ProviderTask) -> list[ProviderResult]:
    content = found.content or Content()
    lengths = [number(output.duration) for output in found.outputs or []]
    seconds = lengths[0] if lengths else number(found.seconds)
    stated = [found.url, found.video_url, content.url, content.video_url]
    stated += [output.url or None for output in found.outputs or ()]
    addresses = found.urls or [url for url in stated if url is not None]
    results = [_result(url, seconds) for url in addresses]
    if not results:
        path = CONTENT_PATH.format(id=path_id(task.id))
        results = [ProviderResult(needs_key=path, duration_seconds=seconds)]
    if content.last_frame_url:
        variant = pb.VIDEO_VARIANT_LAST_FRAME
        results.append(ProviderResult(variant=variant, url=content.last_frame_url, mime_type="image/png"))
    return results


def _result(url: str, seconds: float | None) -> ProviderResult:
    if not is_data_url(url):
        return ProviderResult(url=url, duration_seconds=seconds)
    try:
        mime_type, data = parse_data_url(url, "url")
    except UmgError:
        raise unreadable() from None
    return ProviderResult(data=data, mime_type=mime_type or "video/mp4", duration_seconds=seconds)


def encode_find(submission: Submission) -> ProviderRequest:
    """Encode the look-up of a task by this gateway's id, stored only for tasks of Entry E 3.0 (an API of `vidE`)."""
    return get_request(f"/vidE/tasks?external_task_ids={quote(submission.task_id, safe='')}")


def decode_found(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask | None:
    """Decode the response to a look-up by this gateway's id (`VideoProtocol.decode_found`). None for a task of another
    HTTP API than Entry E 3.0, which does not store the id.
    """
    if entry_of(submission) != E_3 or is_unknown(status, headers, body):
        return None
    _check(status, headers, body)
    return _identity(TASK_OF[E_3](body), submission)


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the deletion of a task, which the other gateway offers for tasks of `/v1/videos` only."""
    return ProviderRequest(method="DELETE", path=f"/v1/videos/{path_id(task.id)}")


UMG_VIDEO = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    takes_open_length=True,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=failed_call,
    encode_find=encode_find,
    decode_found=decode_found,
    encode_cancel=encode_cancel,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=5,
    poll_seconds=5,
    deadline_seconds=49 * 3600,
)

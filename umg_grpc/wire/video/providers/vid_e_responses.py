"""Decoding of the responses of the protocol `vidE`: one envelope with a `code` in the old and the new API."""

import re
from collections.abc import Mapping, Sequence

from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.task_state_words import meaning_of
from umg_grpc.wire.core.json_decoding import is_present
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import is_ok, read_error
from umg_grpc.wire.video.provider_protocol_interface import Statuses
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import (
    BLOCKED_REASON,
    FAILED_REASON,
    LIMITED_REASON,
    REJECTED_REASON,
    is_page,
    refused,
    refused_submission,
    rows,
)
from umg_grpc.wire.video.providers.response_decoding import Text, number, read, read_or, text, unknown_task
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost_code, refuse_failed, status_of
from umg_grpc.wire.video.providers.vid_e_apis import PROTOCOL_NAME

NOT_FOUND = re.compile(r"not (?:found|exist)|does not exist|no such", re.IGNORECASE)
CODE_STATUSES = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), 401),
    **dict.fromkeys(("1100", "1101", "1102", "1302", "1303", "1304"), 429),
    **dict.fromkeys(("1103",), 403),
    **dict.fromkeys(("1200", "1201", "1300", "1301"), 400),
    **dict.fromkeys(("1202", "1203"), 404),
    **dict.fromkeys(("5000",), 500),
    **dict.fromkeys(("5001",), 503),
    **dict.fromkeys(("5002",), 504),
}
"""Code of an error in a response with HTTP status 200 -> the HTTP status by which the error is classified."""
ERROR_TABLE = (
    rows(FAILED_REASON, Failure.DOWN, r"100[0-4]", "1103", r"120[23]"),
    # status 429, but permanent: the account, its packs, its addresses
    rows(FAILED_REASON, Failure.DOWN, r"110[0-2]", "1304"),
    rows(BLOCKED_REASON, Failure.CALLER, r"130[01]"),
    rows(REJECTED_REASON, Failure.CALLER, r"120[01]"),
    rows(LIMITED_REASON, Failure.OVERLOADED, r"130[23]"),
    rows(FAILED_REASON, Failure.AMBIGUOUS, r"500[0-2]"),  # the task may exist, also at status 503
)


class Video(Struct):
    """Video of a task of the old API."""

    url: str | None = None
    duration: Text = None


class OldResult(Struct):
    """Member `task_result` of the old API."""

    videos: list[Video] | None = None


class Output(Struct):
    """Item of `outputs` of the new API."""

    type: str = "video"
    url: str | None = None
    duration: Text = None


class Task(Struct):
    """Task as the provider returns it, of the old API (`task_*`) or of the new one."""

    id: Text = None
    task_id: Text = None
    status: str | None = None
    task_status: str | None = None
    message: str | None = None
    task_status_msg: str | None = None
    task_result: OldResult | None = None
    outputs: list[Output] | None = None


class Envelope(Struct):
    """Response of every call."""

    code: Text = None
    message: str | None = None
    data: Raw = Raw()


def created_task(status: int, headers: Mapping[str, str], body: bytes, model: str, facts: str) -> ProviderTask:
    """Return the task that a submission created; raise UmgError if the submission failed. `model`: provider's model id;
    `facts`: JSON to be stored with the task for its queries.
    """
    if status >= 400 and is_page(headers, body):
        raise refused_submission(status, headers, body, ProviderError(page=True), ERROR_TABLE)
    if status < 400:
        refuse_failed(PROTOCOL_NAME, body, headers, ERROR_TABLE)
    envelope, error = _read(status, body)
    if error is not None:
        raise refused_submission(_status_of(status, error), headers, body, error, ERROR_TABLE)
    task = _task(envelope.data)
    task_id = created_id(PROTOCOL_NAME, body, _id(task), headers, ERROR_TABLE)
    return ProviderTask(id=task_id, model=model, facts=facts)


def statuses_of_task(status: int, headers: Mapping[str, str], body: bytes, task: ProviderTask) -> Statuses:
    """Return {id: status} of an old-API task from the response to its query. Raise UmgError if the query failed."""
    envelope, error = _read(status, body)
    if error is not None:
        if _is_unknown(status, error):
            return {task.id: unknown_task()}
        raise refused(_status_of(status, error), headers, error, ERROR_TABLE)
    return {task.id: _status(_task(envelope.data), body, task.id)}


def statuses_of_list(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Return {id: status} of new-API tasks; unknown tasks are left out. Raise UmgError if the query failed."""
    if len(tasks) == 1 and is_lost_code(PROTOCOL_NAME, status, body):
        return {}
    data = _list(status, headers, body)
    found = [(_task(item), bytes(item)) for item in data or []]
    statuses: dict[str, ProviderStatus | UmgError] = {
        task_id: _status(task, item, task_id) for task, item in found if (task_id := _id(task))
    }
    if len(tasks) == 1 and tasks[0].id not in statuses and (found or data is None):
        statuses[tasks[0].id] = status_of(
            PROTOCOL_NAME, body, tasks[0].id
        )  # of a relay, with ids or members of its own
    return statuses


def found_task(
    status: int, headers: Mapping[str, str], body: bytes, submission: Submission, facts: str
) -> ProviderTask | None:
    """Return the task from the response to a look-up by external id; None if there is none. Raise UmgError if the
    look-up failed. `facts`: JSON to be stored with the task for its queries.
    """
    if not facts:
        tasks = [_task(item) for item in _list(status, headers, body) or []]
    else:
        envelope, error = _read(status, body)
        if error is not None:
            if _is_unknown(status, error):
                return None
            raise refused(_status_of(status, error), headers, error, ERROR_TABLE)
        tasks = [_task(envelope.data)]
    ids = [task_id for task in tasks if (task_id := _id(task))]
    return ProviderTask(id=ids[0], model=submission.model, facts=facts) if ids else None


def _list(status: int, headers: Mapping[str, str], body: bytes) -> Sequence[Raw] | None:
    """Return the tasks in the response to a query of the new API; None for a response without the member `data`."""
    envelope, error = _read(status, body)
    if error is not None:
        raise refused(_status_of(status, error), headers, error, ERROR_TABLE)
    if not is_present(envelope.data):
        return [] if envelope.data else None
    return read(list[Raw], envelope.data) if bytes(envelope.data)[:1] == b"[" else [envelope.data]


def _task(data: Raw) -> Task:
    return read_or(Task(), data) if is_present(data) else Task()


def _id(task: Task) -> str:
    return text(task.id) or text(task.task_id)


def _status(task: Task, body: bytes, task_id: str) -> ProviderStatus | UmgError:
    results = [
        ProviderResult(url=video.url, duration_seconds=number(video.duration)) for video in _videos(task) if video.url
    ]
    word = task.status or task.task_status or ""
    own = OwnTask(word=word, results=results, message=task.message or task.task_status_msg or "")
    return status_of(PROTOCOL_NAME, body, task_id, own)


def _videos(task: Task) -> list[Video | Output]:
    old = task.task_result.videos if task.task_result is not None else None
    return [*(old or []), *(output for output in task.outputs or [] if output.type == "video")]


def _read(status: int, body: bytes) -> tuple[Envelope, ProviderError | None]:
    """Return (envelope of a response, error by the envelope's code or the HTTP status; None for a success)."""
    if status >= 400:
        return Envelope(), read_error(body)
    envelope = read_or(Envelope(), body)
    if not is_ok(envelope.code):
        return envelope, ProviderError(message=envelope.message or "", code=text(envelope.code))
    return envelope, None


def _is_unknown(status: int, error: ProviderError) -> bool:
    if str(error.code) == "1202" or error.page:
        return False
    if meaning_of(text(error.code), PROTOCOL_NAME) == "lost":
        return True
    return status == 404 or NOT_FOUND.search(error.message) is not None


def _status_of(status: int, error: ProviderError) -> int:
    return status if status >= 400 else CODE_STATUSES.get(str(error.code), 500)

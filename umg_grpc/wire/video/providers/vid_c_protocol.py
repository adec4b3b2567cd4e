"""Protocol `vidC` of video providers: the task API of DashScope. Tasks and URLs of results are valid for 24 hours."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

from msgspec import Struct

from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import is_ok, read_error
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import (
    BLOCKED_REASON,
    FAILED_REASON,
    LIMITED_REASON,
    REJECTED_REASON,
    failed_call,
    refused,
    refused_submission,
    rows,
)
from umg_grpc.wire.video.providers.request_encoding import JSON_HEADERS, get_request, path_id, pixels
from umg_grpc.wire.video.providers.response_decoding import Text, number, read_or, text, unknown_task
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, refuse_failed, status_of
from umg_grpc.wire.video.providers.vid_c_requests import PROTOCOL_NAME, encode_create

TASKS_PATH = "/api/v1/tasks"
LOCAL_TIME = timezone(timedelta(hours=8))
"""Time zone of times in responses, which are written without an offset."""
RESULT_SECONDS = 86_400
ERROR_TABLE = (
    rows(BLOCKED_REASON, Failure.CALLER, "DataInspectionFailed", "IPInfringementSuspect"),
    rows(FAILED_REASON, Failure.DOWN, "Arrearage", r"AccessDenied\.Unpurchased", r"AllocationQuota\.FreeTierOnly"),
    rows(FAILED_REASON, Failure.DOWN, "InvalidApiKey", r"Model\.AccessDenied", "ModelNotFound", r"AccessDenied[\w.]*"),
    rows(LIMITED_REASON, Failure.OVERLOADED, r"Throttling[\w.]*"),
    rows(REJECTED_REASON, Failure.CALLER, r"Invalid(?:Parameter|Image|URL|File)[\w.]*"),
    rows(FAILED_REASON, Failure.TRANSIENT, r"InternalError[\w.]*", "SystemError"),
)
CODE_STATUSES = (
    (re.compile(r"InvalidApiKey"), 401),
    (re.compile(r"Throttling"), 429),
    (re.compile(r"Internal|System"), 500),
    (re.compile(r"AccessDenied|Arrearage|AllocationQuota"), 403),
)
"""(pattern of an error code in a response with status 200, HTTP status to classify the error by); others: 400."""


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    return get_request(f"{TASKS_PATH}/{path_id(tasks[0].id)}")


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the cancellation of a task, which the provider accepts while it is pending."""
    return ProviderRequest(method="POST", path=f"{TASKS_PATH}/{path_id(task.id)}/cancel", headers=JSON_HEADERS)


# --- responses


class Output(Struct):
    """Member `output` of a response."""

    task_id: str = ""
    task_status: str = ""
    video_url: str | None = None
    end_time: str | None = None
    code: Text = None
    message: str | None = None


class Usage(Struct):
    """Member `usage` of a query's response."""

    duration: Text = None
    """Seconds that are billed: for some models those of input videos are among them."""
    video_duration: Text = None
    output_video_duration: Text = None
    input_video_duration: Text = None
    size: str | None = None


class ResponseBody(Struct):
    """Response of every call: an error if it has a `code`, with any HTTP status."""

    code: Text = None
    message: str | None = None
    output: Output | None = None
    usage: Usage | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), ERROR_TABLE)
    refuse_failed(PROTOCOL_NAME, body, headers, ERROR_TABLE)
    response = read_or(ResponseBody(), body)
    if not is_ok(response.code):
        error = _error_of(response)
        raise refused_submission(_status_of(error), headers, body, error, ERROR_TABLE)
    own = response.output.task_id if response.output is not None else ""
    return ProviderTask(id=created_id(PROTOCOL_NAME, body, own, headers, ERROR_TABLE), model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    [task] = tasks
    if is_lost(PROTOCOL_NAME, status, headers, body):
        return {task.id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), ERROR_TABLE)
    response = read_or(ResponseBody(), body)
    if not is_ok(response.code):
        error = _error_of(response)
        raise refused(_status_of(error), headers, error, ERROR_TABLE)
    return {
        task.id: status_of(PROTOCOL_NAME, body, task.id, _own(response.output or Output(), response.usage or Usage()))
    }


def _own(output: Output, usage: Usage) -> OwnTask:
    billed, from_input = number(usage.duration), number(usage.input_video_duration)
    length = number(usage.output_video_duration) or number(usage.video_duration)
    if length is None and billed is not None:
        length = billed - (from_input or 0)
    results = []
    if output.video_url:
        width, height = pixels(usage.size or "") or (None, None)
        until = _end(output.end_time)
        results.append(
            ProviderResult(
                url=output.video_url, duration_seconds=length, url_expire_time=until, width=width, height=height
            )
        )
    if from_input is None and billed is not None and length is not None and billed > length:
        from_input = billed - length
    used = pb.VideoUsage(input_seconds=None if from_input is None else math.ceil(round(from_input, 1)))
    return OwnTask(
        word=output.task_status, results=results, usage=used, message=output.message or "", code=text(output.code)
    )


def _end(written: str | None) -> datetime | None:
    try:
        ended = datetime.fromisoformat(written or "").replace(tzinfo=LOCAL_TIME)
    except ValueError:
        return None
    return (ended + timedelta(seconds=RESULT_SECONDS)).astimezone(UTC)


def _error_of(response: ResponseBody) -> ProviderError:
    return ProviderError(message=response.message or "", code=response.code)


def _status_of(error: ProviderError) -> int:
    return next((status for pattern, status in CODE_STATUSES if pattern.search(str(error.code))), 400)


VID_C = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    takes_open_length=True,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=partial(failed_call, table=ERROR_TABLE),
    encode_cancel=encode_cancel,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=10,
    poll_seconds=10,
    deadline_seconds=3600,
)

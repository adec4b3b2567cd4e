"""Protocol `vidG`: version 2 of the API, and version 1 for older models. A v1 result file needs a further look-up."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import as_error, read_error
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, StatusOrMore, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.content_array_encoding import content_items
from umg_grpc.wire.video.providers.errors import (
    BLOCKED_REASON,
    FAILED_REASON,
    LIMITED_REASON,
    REJECTED_REASON,
    refused,
    refused_submission,
    rows,
)
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.media_encoding import HTTP_SCHEMES, address_or_data_url
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    get_request,
    is_neutral,
    is_sent,
    json_request,
    path_id,
    prompt_of,
    ratio_of,
    refuse_media,
    report_size,
    report_sound,
    report_unsupported,
    resolution_of_size,
)
from umg_grpc.wire.video.providers.response_decoding import (
    SUCCEEDED_STATE,
    Text,
    error_of,
    number,
    read_or,
    succeeded,
    text,
    unknown_task,
)
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, refuse_failed, status_of

PROTOCOL_NAME = "vidG"
SUBMIT_PATH, PATH_V1 = "/v2/video_generation", "/v1/video_generation"
QUERY_PATH, QUERY_V1 = "/v2/query/video_generation", "/v1/query/video_generation"
FILES_PATH = "/v1/files/retrieve"
SUBJECT_MEMBER = "subject_reference"
V1_STATE = '{"api":"v1"}'
"""Facts that are stored with a task of the older API version v1, for its queries."""
API_V1 = "v1"
SUPPORTED_FIELDS = frozenset(
    {"prompt", "resolution", "duration_seconds", "aspect_ratio", "size", "watermark", "generate_audio"}  # always sound
)
FIELDS_V1 = frozenset({"prompt", "resolution", "duration_seconds", "prompt_extend"})
DEFAULT_RESOLUTION, DEFAULT_SECONDS, DEFAULT_RATIO = "768P", 6, "16:9"
ADAPTIVE_RATIO = "adaptive"
NEAREST_RESOLUTIONS = {"720p": "768P", "1080p": "2K"}
"""Resolution that v2 lacks -> nearest resolution that v2 has; the change is reported."""
RESULT_SECONDS = 3600
NOT_FOUND = re.compile(r"record not found|task.{0,20}not (?:found|exist)", re.IGNORECASE)
OK_CODES = ("", "0")
_CODE = re.compile(r"\((\d{4})\)\s*$")
ERROR_TABLE = (
    rows(BLOCKED_REASON, Failure.CALLER, "1026", "1027", "unprocessable_entity_error"),
    rows(FAILED_REASON, Failure.DOWN, "1004", "1008", "2049", "authorized_error", "insufficient_balance_error"),
    rows(LIMITED_REASON, Failure.OVERLOADED, "1002", "rate_limit_error"),
    rows(REJECTED_REASON, Failure.CALLER, "2013", "bad_request_error"),
)
CODE_STATUSES = {"1002": 429, "1004": 401, "1008": 402, "1026": 400, "1027": 400, "2013": 400, "2049": 401}
"""Error code of v1 in a response with status 200 -> HTTP status to classify it by; 500 for codes not listed."""


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission for v2 or, for older models, v1. It has no callback URL, which the provider would check."""
    if is_v1(submission.model):
        return _encode_v1(submission)
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, SUPPORTED_FIELDS, report)
    report_sound(submission, report)
    body: JsonObject = {
        "model": submission.model,
        "content": content_items(submission, schemes=HTTP_SCHEMES, only_urls={}),
    }
    if resolution := _resolution(submission, report):
        body["resolution"] = resolution
    if is_sent(submission, "duration_seconds"):
        body["duration"] = parameters.duration_seconds or DEFAULT_SECONDS
    if is_sent(submission, "watermark"):
        body["aigc_watermark"] = parameters.watermark
    ratio = parameters.aspect_ratio or ratio_of(parameters.size)
    if not parameters.media and (ratio == ADAPTIVE_RATIO or (ratio is None and is_neutral(submission))):
        if ratio is not None and not is_neutral(submission):
            report.drop("parameters.aspect_ratio", DEFAULT_RATIO)
        ratio = DEFAULT_RATIO  # there is no image to adapt to
    if ratio is not None:
        body["ratio"] = ratio
    report_size(submission, resolution, ratio or "", report)
    add_missing(body, extra_fields(submission, report))
    return json_request(SUBMIT_PATH, body, report)


def _resolution(submission: Submission, report: Report) -> str:
    """Return the resolution for v2: the requested one, or the one for the pixel size; "" leaves it to the provider."""
    parameters = submission.request.parameters
    if not (parameters.resolution or is_neutral(submission)):
        return resolution_of_size(parameters.size, _resolutions(submission.model))
    resolution = parameters.resolution or DEFAULT_RESOLUTION
    if (nearest := NEAREST_RESOLUTIONS.get(resolution.lower())) is not None:
        report.drop("parameters.resolution", nearest)
    return nearest or resolution.upper()


def _resolutions(model: str) -> Sequence[str]:
    row = media_model(PROTOCOL_NAME, model)
    values = row.values.get("resolution", ()) if row is not None else ()
    return [str(value) for value in values if str(value).lower() not in NEAREST_RESOLUTIONS] or [
        *NEAREST_RESOLUTIONS.values()
    ]


def is_v1(model: str) -> bool:
    """Return whether the provider offers the model only in the older version v1 of its API."""
    row = media_model(PROTOCOL_NAME, model)
    return row is not None and row.api == API_V1


def _encode_v1(submission: Submission) -> ProviderRequest:
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, FIELDS_V1, report)
    row = media_model(PROTOCOL_NAME, submission.model)
    subject = row is not None and SUBJECT_MEMBER in row.members
    inputs = inputs_of(submission, pairs=True, references=subject)
    refuse_media([*inputs.masks, *inputs.videos, *inputs.audio], "images")
    if not subject:
        refuse_media(inputs.references, "a first frame and a last frame")
    body: JsonObject = {"model": submission.model, "prompt": prompt_of(submission)}
    if is_sent(submission, "prompt_extend"):
        body["prompt_optimizer"] = parameters.prompt_extend
    if is_sent(submission, "duration_seconds"):
        body["duration"] = parameters.duration_seconds or DEFAULT_SECONDS
    if parameters.resolution:
        body["resolution"] = parameters.resolution.upper()
    for name, image in (("first_frame_image", inputs.first), ("last_frame_image", inputs.last)):
        if image is not None:
            body[name] = address_or_data_url(image[1], image[0])
    if inputs.references:
        images = [address_or_data_url(image, position) for position, image in inputs.references]
        body[SUBJECT_MEMBER] = [{"type": "character", "image": images}]
    add_missing(body, extra_fields(submission, report))
    return json_request(PATH_V1, body, report)


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    [task] = tasks
    if task.facts == V1_STATE:
        return get_request(f"{QUERY_V1}?{urlencode({'task_id': task.id})}")
    return get_request(f"{QUERY_PATH}/{path_id(task.id)}")


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the cancellation of a task. In v1, which has no cancellation, the provider responds with an error."""
    return ProviderRequest(method="DELETE", path=f"{SUBMIT_PATH}/{path_id(task.id)}")


# --- responses


class Content(Struct):
    """Member `content` of a task that succeeded."""

    url: str | None = None


class Usage(Struct):
    """Member `usage` of a task that succeeded."""

    output_seconds: Text = None
    input_seconds: Text = None
    input_image_count: Text = None


class Task(Struct):
    """Task as the provider returns it to a query."""

    status: str = ""
    error: Raw = Raw()
    content: Content | None = None
    duration: Text = None
    usage: Usage | None = None


class BaseResponse(Struct):
    """Member `base_resp` of the responses of v1."""

    status_code: Text = None
    status_msg: str | None = None


class File(Struct):
    """File of a task of v1."""

    download_url: str | None = None


class ResponseBody(Struct):
    """Response of every call of both versions."""

    task: Task | None = None
    task_id: Text = None
    status: str | None = None
    file_id: Text = None
    file: File | None = None
    video_width: Text = None
    video_height: Text = None
    base_resp: BaseResponse | None = None
    error: Raw = Raw()


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, _read_error(body), ERROR_TABLE)
    refuse_failed(PROTOCOL_NAME, body, headers, ERROR_TABLE)
    response = read_or(ResponseBody(), body)
    if (error := _error_of(response)) is not None:
        raise refused_submission(_status_of(error), headers, body, error, ERROR_TABLE)
    task_id = created_id(PROTOCOL_NAME, body, text(response.task_id), headers, ERROR_TABLE)
    return ProviderTask(id=task_id, model=submission.model, facts=V1_STATE if is_v1(submission.model) else "")


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`). For a succeeded v1 task return a further request
    that looks up the file; the response to that request is decoded here too.
    """
    [task] = tasks
    if status >= 400:
        error = _read_error(body)
        if is_lost(PROTOCOL_NAME, status, headers, body) or NOT_FOUND.search(error.message):
            return {task.id: unknown_task()}
        raise refused(status, headers, error, ERROR_TABLE)
    response = read_or(ResponseBody(), body)
    if response.file is not None:
        url = response.file.download_url
        return {task.id: succeeded([ProviderResult(url=url)] if url else [])}
    if response.task is not None:
        return {task.id: _status(response.task, body, task.id)}
    if response.status is None and (problem := _error_of(response)) is not None:
        if NOT_FOUND.search(problem.message):
            return {task.id: unknown_task()}
        raise refused(_status_of(problem), headers, problem, ERROR_TABLE)
    return {task.id: _status_v1(response, headers, body, task)}


def _status(task: Task, body: bytes, task_id: str) -> ProviderStatus | UmgError:
    url = task.content.url if task.content is not None else None
    error = as_error(error_of(task.error)) if task.error else ProviderError()
    own = OwnTask(
        word=task.status,
        results=[ProviderResult(url=url, duration_seconds=number(task.duration))] if url else [],
        usage=_usage(task.usage),
        message=error.message,
        code=text(error.code if not isinstance(error.code, float) else None),
    )
    return status_of(PROTOCOL_NAME, body, task_id, own)


def _status_v1(response: ResponseBody, headers: Mapping[str, str], body: bytes, task: ProviderTask) -> StatusOrMore:
    problem = _error_of(response)
    if problem is not None and response.status == "":
        return refused(_status_of(problem), headers, problem, ERROR_TABLE)
    error = problem or ProviderError()
    code = text(error.code if not isinstance(error.code, float) else None)
    is_own = response.task_id is not None or response.file_id is not None  # not the envelope of a relay
    own = OwnTask(word=response.status or "" if is_own else "", message=error.message, code=code)
    status = status_of(PROTOCOL_NAME, body, task.id, own)
    if isinstance(status, UmgError) or status.state != SUCCEEDED_STATE or status.results:
        return status
    if text(response.file_id):
        return get_request(f"{FILES_PATH}?file_id={quote(text(response.file_id), safe='')}")
    return status


def _usage(usage: Usage | None) -> pb.VideoUsage | None:
    if usage is None:
        return None
    found = pb.VideoUsage()
    if usage.output_seconds is not None:
        found.output_seconds = count(usage.output_seconds)
    if usage.input_seconds is not None:
        found.input_seconds = count(usage.input_seconds)
    if usage.input_image_count is not None:
        found.input_image_count = count(usage.input_image_count)
    return found


def _read_error(body: bytes) -> ProviderError:
    error = read_error(body)
    if (found := _CODE.search(error.message)) is not None:
        error.code = found[1]
    return error


def _error_of(response: ResponseBody) -> ProviderError | None:
    """Return the error that a response with HTTP status 200 states; None for a success."""
    base = response.base_resp
    if base is not None and text(base.status_code) not in OK_CODES:
        return ProviderError(message=base.status_msg or "", code=text(base.status_code))
    if (value := error_of(response.error)) is not None:
        return as_error(value)
    return None


def _status_of(error: ProviderError) -> int:
    return CODE_STATUSES.get(str(error.code), 500)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Return the error for a failed call other than a submission or a query. `headers`: by lower-case name."""
    return refused(status, headers, _read_error(body), ERROR_TABLE)


VID_G = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=decode_error,
    encode_cancel=encode_cancel,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=10,
    poll_seconds=10,
    deadline_seconds=3600,
)

"""Protocol `vidC` of video providers: the task API of DashScope. Tasks and URLs of results are valid for 24 hours."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone

import msgspec
from msgspec import Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.classification import ProviderError
from umg_grpc.wire.errors.provider_errors import is_ok, read_error
from umg_grpc.wire.video.provider_protocol import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task import ProviderResult, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import BLOCKED, FAILED, LIMITED, REJECTED, refused, refused_submission, rows
from umg_grpc.wire.video.providers.image_roles import Inputs, inputs_of
from umg_grpc.wire.video.providers.media_encoding import address_or_data_url
from umg_grpc.wire.video.providers.request_encoding import (
    JSON_HEADERS,
    add_missing,
    extra_fields,
    get_request,
    given,
    is_neutral,
    is_sent,
    members_of,
    path_id,
    pixels,
    prompt_of,
    ratio_of,
    refuse_media,
    report_unsupported,
)
from umg_grpc.wire.video.providers.response_decoding import Text, number, read_or, text, unknown_task
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, refuse_failed, status_of

NAME = "vidC"
PATH = "/api/v1/services/aigc/video-generation/video-synthesis"
FRAMES_PATH = "/api/v1/services/aigc/image2video/video-synthesis"
"""Path of the models that make a video between a first and a last frame."""
TASKS = "/api/v1/tasks"
ASYNC_HEADERS = {**JSON_HEADERS, "X-DashScope-Async": "enable"}
FIELDS = frozenset(
    {
        *("prompt", "negative_prompt", "duration_seconds", "size", "resolution", "aspect_ratio", "generate_audio"),
        *("seed", "watermark", "prompt_extend"),
    }
)
INPUT_FIELDS = frozenset({"audio_url", "template", "function", "ref_images_url"})
"""Additional fields of callers that are sent in `input`; all others are sent in `parameters`."""
SIZES = {
    "480P": {"16:9": "832*480", "9:16": "480*832", "1:1": "624*624"},
    "720P": {"16:9": "1280*720", "9:16": "720*1280", "1:1": "960*960", "4:3": "1088*832", "3:4": "832*1088"},
    "1080P": {"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1440*1440", "4:3": "1632*1248", "3:4": "1248*1632"},
}
"""Sizes of text-to-video by resolution and ratio."""
MAX_SEED = 2**31 - 1
LOCAL_TIME = timezone(timedelta(hours=8))
"""Time zone of the times in responses, which have no offset."""
RESULT_SECONDS = 86_400
TABLE = (
    rows(BLOCKED, Failure.CALLER, "DataInspectionFailed", "IPInfringementSuspect"),
    rows(FAILED, Failure.DOWN, "Arrearage", r"AccessDenied\.Unpurchased", r"AllocationQuota\.FreeTierOnly"),
    rows(FAILED, Failure.DOWN, "InvalidApiKey", r"Model\.AccessDenied", "ModelNotFound", r"AccessDenied[\w.]*"),
    rows(LIMITED, Failure.OVERLOADED, r"Throttling[\w.]*"),
    rows(REJECTED, Failure.CALLER, r"Invalid(?:Parameter|Image|URL|File)[\w.]*"),
    rows(FAILED, Failure.TRANSIENT, r"InternalError[\w.]*", "SystemError"),
)
STATUSES = (
    (re.compile(r"InvalidApiKey"), 401),
    (re.compile(r"Throttling"), 429),
    (re.compile(r"Internal|System"), 500),
    (re.compile(r"AccessDenied|Arrearage|AllocationQuota"), 403),
)
"""(pattern for the code of an error in a response with HTTP status 200, HTTP status by which it is classified); 400
for all others.
"""


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request to the path of its model."""
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, FIELDS, report)
    inputs = inputs_of(submission, pairs=True)
    extra = extra_fields(submission, report)
    source = _input(submission, inputs)
    options = _options(submission, inputs, report)
    add_missing(source, members_of(extra.pop("input", None)))
    add_missing(options, members_of(extra.pop("parameters", None)))
    for name, raw in extra.items():
        (source if name in INPUT_FIELDS else options).setdefault(name, raw)
    body = msgspec.json.encode({"model": submission.model, "input": source, "parameters": options})
    path = PATH if inputs.last is None else FRAMES_PATH
    return ProviderRequest(method="POST", path=path, body=body, headers=ASYNC_HEADERS, report=report)


def _input(submission: Submission, inputs: Inputs) -> JsonObject:
    parameters = submission.request.parameters
    refuse_media(
        [*inputs.references, *inputs.masks, *inputs.videos, *inputs.audio[1:]],
        "a first frame, a last frame and one audio file",
    )
    found: JsonObject = {"prompt": prompt_of(submission)}
    if parameters.negative_prompt:
        found["negative_prompt"] = parameters.negative_prompt
    if inputs.first is not None:
        name = "img_url" if inputs.last is None else "first_frame_url"
        found[name] = address_or_data_url(inputs.first[1], inputs.first[0])
    if inputs.last is not None:
        found["last_frame_url"] = address_or_data_url(inputs.last[1], inputs.last[0])
    if inputs.audio:
        position, media = inputs.audio[0]
        found["audio_url"] = address_or_data_url(media, position)
    return found


def _options(submission: Submission, inputs: Inputs, report: Report) -> JsonObject:
    """Return the member `parameters` of a submission. For neutral models, defaults of the provider that change the
    prompt, add a mark or cost more are overridden. `report`: receives parameters that are not sent.
    """
    parameters = submission.request.parameters
    switches = [name for name in ("prompt_extend", "watermark") if is_sent(submission, name)]
    options: JsonObject = {name: getattr(parameters, name) for name in switches}
    resolution = parameters.resolution.upper()
    if inputs.first is not None or inputs.last is not None:
        for name in sorted({"size", "aspect_ratio"} & given(parameters)):
            report.drop(f"parameters.{name}")
        if not resolution and (found := pixels(parameters.size)) is not None:
            resolution = f"{min(found)}P"
        if resolution:
            options["resolution"] = resolution
    elif size := _size(submission, resolution):
        options["size"] = size
    if parameters.duration_seconds:
        options["duration"] = parameters.duration_seconds
    if inputs.audio or is_sent(submission, "generate_audio"):
        options["audio"] = parameters.generate_audio or bool(inputs.audio)
    if parameters.HasField("seed") and 0 <= parameters.seed <= MAX_SEED:
        options["seed"] = parameters.seed
    elif parameters.HasField("seed"):
        report.drop("parameters.seed")
    return options


def _size(submission: Submission, resolution: str) -> str:
    """Return the size in pixels of a video without input images: the requested one, otherwise the size for the
    resolution and the requested aspect ratio; "" leaves it to the provider.
    """
    parameters = submission.request.parameters
    if parameters.size:
        return parameters.size.lower().replace("x", "*")
    if not (resolution or parameters.aspect_ratio or is_neutral(submission)):
        return ""
    sizes = SIZES.get(resolution or "720P", {})
    ratio = parameters.aspect_ratio or "16:9"
    return sizes.get(ratio, "") or sizes.get(ratio_of(ratio.replace(":", "x")) or "", "")


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    return get_request(f"{TASKS}/{path_id(tasks[0].id)}")


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the cancellation of a task, which the provider accepts while it is pending."""
    return ProviderRequest(method="POST", path=f"{TASKS}/{path_id(task.id)}/cancel", headers=JSON_HEADERS)


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
    video_duration: Text = None


class ResponseBody(Struct):
    """Response of every call: an error if it has a `code`, with any HTTP status."""

    code: Text = None
    message: str | None = None
    output: Output | None = None
    usage: Usage | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Return the provider's task of a submission from the response to it. Raise UmgError if the submission failed;
    its `failure` is AMBIGUOUS if the provider may have accepted the task.
    """
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), TABLE)
    refuse_failed(NAME, body, headers, TABLE)
    response = read_or(ResponseBody(), body)
    if not is_ok(response.code):
        error = _error_of(response)
        raise refused_submission(_status_of(error), headers, body, error, TABLE)
    own = response.output.task_id if response.output is not None else ""
    return ProviderTask(id=created_id(NAME, body, own, headers, TABLE), model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Return the provider's task id -> status or error of the task, from the response to a query of `tasks`. Raise
    UmgError if the query itself failed.
    """
    [task] = tasks
    if is_lost(NAME, status, headers, body):
        return {task.id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), TABLE)
    response = read_or(ResponseBody(), body)
    if not is_ok(response.code):
        error = _error_of(response)
        raise refused(_status_of(error), headers, error, TABLE)
    return {task.id: status_of(NAME, body, task.id, _own(response.output or Output(), response.usage))}


def _own(output: Output, usage: Usage | None) -> OwnTask:
    results = []
    if output.video_url:
        length = None if usage is None else number(usage.video_duration) or number(usage.duration)
        until = _end(output.end_time)
        results.append(ProviderResult(url=output.video_url, duration_seconds=length, url_expire_time=until))
    return OwnTask(word=output.task_status, results=results, message=output.message or "", code=text(output.code))


def _end(written: str | None) -> datetime | None:
    """Return the time until which the URL of a result is valid, from the text of the time at which the task ended;
    None for an absent or unreadable text.
    """
    try:
        ended = datetime.fromisoformat(written or "").replace(tzinfo=LOCAL_TIME)
    except ValueError:
        return None
    return (ended + timedelta(seconds=RESULT_SECONDS)).astimezone(UTC)


def _error_of(response: ResponseBody) -> ProviderError:
    return ProviderError(message=response.message or "", code=response.code)


def _status_of(error: ProviderError) -> int:
    return next((status for pattern, status in STATUSES if pattern.search(str(error.code))), 400)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Return the error for a failed call other than a submission or a query. `headers`: by lower-case name."""
    return refused(status, headers, read_error(body), TABLE)


VID_C = VideoProtocol(
    name=NAME,
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

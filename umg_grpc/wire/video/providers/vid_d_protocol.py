"""Protocol `vidD` of video providers: the content generation tasks of Ark."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from urllib.parse import urlencode

from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, any_value
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import as_error, read_error, unreadable
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.content_array_encoding import content_items
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
from umg_grpc.wire.video.providers.request_encoding import (
    ASPECT_RATIOS,
    add_missing,
    extra_fields,
    get_request,
    given,
    implied_resolution,
    is_sent,
    json_request,
    path_id,
    pixels,
    ratio_of,
    report_unsupported,
)
from umg_grpc.wire.video.providers.response_decoding import Text, error_of, number, read, read_or, time_of, unknown_task
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, status_of

PROTOCOL_NAME = "vidD"
TASKS_PATH = "/contents/generations/tasks"
URL_SCHEMES = ("http", "https", "asset")
ONLY_URLS = {pb.VIDEO_MEDIA_KIND_VIDEO: "a video"}
PARAMETER_MEMBERS = {
    **{name: name for name in ("resolution", "frames", "generate_audio", "return_last_frame", "seed", "camera_fixed")},
    "aspect_ratio": "ratio",
    "duration_seconds": "duration",
}
"""Canonical parameter -> body field. The sound switch is sent even if false, since the provider's default is true."""
SUPPORTED_FIELDS = frozenset({"prompt", "watermark", "frames_per_second", "size", "draft_task_id", *PARAMETER_MEMBERS})
PIXEL_RESOLUTIONS = ((600_000, "480p"), (1_500_000, "720p"), (4_000_000, "1080p"))
"""(upper limit of a frame's pixels, resolution below it): limits are between the sizes of @ai-sdk/bytedance 1.0.29."""
LARGEST_RESOLUTION = "4k"
NO_AUDIO = "-noAudio"
"""Suffix of a public model id that means videos without sound. It is removed, and sound is switched off."""
MAX_BATCH = 20
"""Maximum number of tasks in one query; the vendor does not document the limit of a page."""
RESULT_SECONDS = 86_400
ERROR_TABLE = (
    rows(BLOCKED_REASON, Failure.CALLER, r"(?:Input|Output)\w*SensitiveContentDetected[\w.]*"),
    rows(FAILED_REASON, Failure.DOWN, "ModelNotOpen", r"InvalidEndpointOrModel[\w.]*", "AccountOverdueError"),
    rows(FAILED_REASON, Failure.DOWN, "AuthenticationError", "AccessDenied", r"OperationDenied[\w.]*"),
    rows(LIMITED_REASON, Failure.OVERLOADED, r"RateLimitExceeded[\w.]*", r"\w*RateLimitExceeded", "ServerOverloaded"),
    rows(LIMITED_REASON, Failure.OVERLOADED, "QuotaExceeded", "SetLimitExceeded"),
    rows(REJECTED_REASON, Failure.CALLER, r"MissingParameter[\w.]*", r"InvalidParameter[\w.]*"),
)


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission: prompt and media in `content`, and the parameters that are set."""
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, SUPPORTED_FIELDS, report)
    model = submission.model.removesuffix(NO_AUDIO)
    # there is no field for the rate of frames, only a marker in the prompt
    rate = f" --fps {parameters.frames_per_second}" if parameters.frames_per_second else ""
    body: JsonObject = {"model": model, "content": _content(submission, rate)}
    if is_sent(submission, "watermark"):
        body["watermark"] = parameters.watermark
    present = given(parameters)
    for name, field in PARAMETER_MEMBERS.items():
        if name in present:
            body[field] = getattr(parameters, name)
    extra = extra_fields(submission, report)
    _add_size(body, parameters.size or any_text(extra.pop("size", None)), report)
    if parameters.frames:
        body.pop("duration", None)  # frames take precedence
    if any(each.endswith(NO_AUDIO) for each in (submission.model, submission.request.model)):
        body["generate_audio"] = False
    if submission.callback_url:
        body["callback_url"] = submission.callback_url
    add_missing(body, extra)
    return json_request(TASKS_PATH, body, report)


def _content(submission: Submission, suffix: str) -> list[JsonObject]:
    parameters, draft = submission.request.parameters, submission.source
    drafts: list[JsonObject] = [] if draft is None else [{"type": "draft_task", "draft_task": {"id": draft.id}}]
    if drafts and not parameters.media and not parameters.prompt.strip():
        return drafts
    return drafts + content_items(submission, suffix=suffix, schemes=URL_SCHEMES, only_urls=ONLY_URLS)


def _add_size(body: JsonObject, size: str, report: Report) -> None:
    """Add the resolution and ratio of a pixel size to a body without them; report a size that is not sent exactly."""
    if not size:
        return
    found, ratio = pixels(size), ratio_of(size)
    if found is None or ratio is None:
        report.drop("parameters.size")
        return
    sent = f"{body.setdefault('resolution', _resolution(found))} {body.setdefault('ratio', ratio)}"
    if sent != f"{min(found)}p {ratio}" or found[0] * ASPECT_RATIOS[ratio][1] != found[1] * ASPECT_RATIOS[ratio][0]:
        report.drop("parameters.size", sent)


def _resolution(size: tuple[int, int]) -> str:
    return next((name for most, name in PIXEL_RESOLUTIONS if size[0] * size[1] <= most), LARGEST_RESOLUTION)


def any_text(raw: Raw | None) -> str:
    """Return a JSON string; "" for None and for another value."""
    value = None if raw is None else any_value(raw)
    return value if isinstance(value, str) else ""


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of one task, or of a list of tasks."""
    if len(tasks) == 1:
        return get_request(f"{TASKS_PATH}/{path_id(tasks[0].id)}")
    query = [("page_num", "1"), ("page_size", str(len(tasks))), *(("filter.task_ids", task.id) for task in tasks)]
    return get_request(f"{TASKS_PATH}?{urlencode(query)}")


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode a cancellation. The provider rejects it for a running task, and deletes the record of a finished task."""
    return ProviderRequest(method="DELETE", path=f"{TASKS_PATH}/{path_id(task.id)}")


# --- responses


class Content(Struct):
    """Member `content` of a task that succeeded."""

    video_url: str | None = None
    file_url: str | None = None
    last_frame_url: str | None = None


class Usage(Struct):
    """Member `usage` of a task that succeeded."""

    total_tokens: Text = None
    completion_tokens: Text = None


class Task(Struct):
    """Task as the provider returns it to a query."""

    id: str = ""
    status: str = ""
    error: Raw = Raw()
    content: Content | None = None
    usage: Usage | None = None
    duration: Text = None
    updated_at: Text = None


class TaskList(Struct):
    """List of tasks."""

    items: list[Raw] | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), ERROR_TABLE)
    own = read_or(Task(), body).id
    return ProviderTask(id=created_id(PROTOCOL_NAME, body, own, headers, ERROR_TABLE), model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    if len(tasks) == 1 and is_lost(PROTOCOL_NAME, status, headers, body):
        return {tasks[0].id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), ERROR_TABLE)
    if len(tasks) == 1:
        return {tasks[0].id: _status(body, tasks[0].id)}
    items = read(TaskList, body).items
    if items is None:
        raise unreadable()
    found = [(read_or(Task(), item).id, bytes(item)) for item in items]
    return {task_id: _status(item, task_id) for task_id, item in found if task_id}


def _status(body: bytes, task_id: str) -> ProviderStatus | UmgError:
    task = read_or(Task(), body)
    error = as_error(error_of(task.error)) if task.error else ProviderError()
    own = OwnTask(
        word=task.status,
        results=_results(task),
        usage=_usage(task.usage),
        message=error.message,
        code=str(error.code or ""),
    )
    return status_of(PROTOCOL_NAME, body, task_id, own)


def _results(task: Task) -> list[ProviderResult]:
    content = task.content or Content()
    ended = time_of(task.updated_at)
    until = ended + timedelta(seconds=RESULT_SECONDS) if ended is not None else None
    results = []
    if url := content.video_url or content.file_url:
        results.append(ProviderResult(url=url, duration_seconds=number(task.duration), url_expire_time=until))
    if content.last_frame_url:
        variant = pb.VIDEO_VARIANT_LAST_FRAME
        url = content.last_frame_url
        results.append(ProviderResult(variant=variant, url=url, mime_type="image/png", url_expire_time=until))
    return results


def _usage(usage: Usage | None) -> pb.VideoUsage | None:
    tokens = 0 if usage is None else count(usage.total_tokens) or count(usage.completion_tokens)
    return pb.VideoUsage(total_tokens=tokens) if tokens else None


VID_D = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    takes_open_length=True,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=partial(failed_call, table=ERROR_TABLE),
    implied=implied_resolution(_resolution),
    takes_drafts=True,
    max_batch=MAX_BATCH,
    encode_cancel=encode_cancel,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=10,
    poll_seconds=10,
    deadline_seconds=48 * 3600,
)

"""Variant of `vidA` for xAI: tasks at `/videos/generations` and `/videos/edits`, with the result as a URL. Source:
@ai-sdk/xai 3.0.138, xai-video-model.ts (read 2026-11-29).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.errors.provider_errors import read_error
from umg_grpc.wire.video.provider_protocol_interface import Implied, ProviderRequest, Statuses
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import refused, refused_submission
from umg_grpc.wire.video.providers.image_roles import Inputs, Numbered, inputs_of, present
from umg_grpc.wire.video.providers.media_encoding import address_or_data_url
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    get_request,
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
    RUNNING_STATE,
    Text,
    failed,
    number,
    read_or,
    text,
    unknown_task,
)
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, status_of
from umg_grpc.wire.video.providers.vid_a_protocol import ERROR_TABLE, PROTOCOL_NAME, VID_A, VIDEOS_PATH
from umg_grpc.wire.video.task_error_codes import CONTENT_POLICY_VIOLATION

SUPPORTED_FIELDS = frozenset(
    {"prompt", "duration_seconds", "aspect_ratio", "resolution", "size", "generate_audio"}  # always sound
)
EDIT_FIELDS = frozenset({"prompt"})
"""Parameters of a video edit; the edited video keeps the length and the size of the input."""
HIGHEST_RESOLUTION, WITH_REFERENCES = "1080p", "720p"
"""Highest resolution in general, and highest resolution of a video made with reference images."""
ALL_RESOLUTIONS = ("480p", "720p", HIGHEST_RESOLUTION)
ASPECT_RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3")
RESULT_SECONDS = 3600
"""Assumed lifetime of a result URL in seconds; the vendor calls it temporary only, so the gateway copies the file."""
STATE_WORDS = {"pending": "in_progress"}
"""xAI's word -> word of `vidA`. It means running, not queued, as an earlier response without a body did."""
RUNNING_STATUS = 202
"""HTTP status of a query while the task runs, with or without a body."""


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission; with an input video it is an edit of that video. Raise UmgError(UNTRANSLATABLE) for a remix,
    since xAI cannot refer to a finished task, and for media that the provider does not accept.
    """
    if submission.source is not None:
        raise untranslatable("source", "this model's provider changes videos by their URL; send the video as an input")
    report = Report()
    inputs = inputs_of(submission)
    others = [*present(inputs.last), *inputs.masks, *inputs.audio, *inputs.videos[1:]]
    refuse_media(others, "images without a last frame, or one video")
    parameters = submission.request.parameters
    report_sound(submission, report)
    body: JsonObject = {"model": submission.model, "prompt": prompt_of(submission)}
    if inputs.videos:
        refuse_media([*present(inputs.first), *inputs.references], "one video alone")
        report_unsupported(parameters, EDIT_FIELDS, report)
        body["video"] = _url(inputs.videos[0])
    else:
        report_unsupported(parameters, SUPPORTED_FIELDS, report)
        body |= _options(submission, inputs, report)
    add_missing(body, extra_fields(submission, report))
    return json_request(f"{VIDEOS_PATH}/edits" if inputs.videos else f"{VIDEOS_PATH}/generations", body, report)


def _options(submission: Submission, inputs: Inputs, report: Report) -> JsonObject:
    parameters = submission.request.parameters
    options: JsonObject = {}
    if parameters.duration_seconds:
        options["duration"] = parameters.duration_seconds
    if ratio := parameters.aspect_ratio or ratio_of(parameters.size, ASPECT_RATIOS) or "":
        options["aspect_ratio"] = ratio
    if resolution := parameters.resolution.lower() or _of_size(submission):
        if inputs.references and resolution == HIGHEST_RESOLUTION:
            resolution = WITH_REFERENCES
            if parameters.resolution:
                report.drop("parameters.resolution", resolution)
        options["resolution"] = resolution
    report_size(submission, resolution, ratio, report)
    if inputs.first is not None:
        options["image"] = _url(inputs.first)
    if inputs.references:
        options["reference_images"] = [_url(each) for each in inputs.references]
    return options


def _url(numbered: Numbered) -> JsonObject:
    position, media = numbered
    return {"url": address_or_data_url(media, position)}


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    return get_request(f"{VIDEOS_PATH}/{path_id(tasks[0].id)}")


def _of_size(submission: Submission) -> str:
    row = media_model(PROTOCOL_NAME, submission.model)
    tiers = [str(value) for value in row.values.get("resolution", ())] if row is not None else []
    return resolution_of_size(submission.request.parameters.size, tiers or ALL_RESOLUTIONS)


def implied(submission: Submission) -> Mapping[str, Implied]:
    """Return the resolution that the requested size implies."""
    resolution = _of_size(submission)
    return {"resolution": Implied(resolution, "size")} if resolution else {}


# --- responses


class Created(Struct):
    """Response to a submission."""

    request_id: str = ""


class File(Struct):
    """Member `video` of a task that is done."""

    url: str | None = None
    duration: Text = None
    respect_moderation: bool | None = None


class Reason(Struct):
    """Member `error` of a task that failed."""

    code: Text = None
    message: str | None = None


class Task(Struct):
    """Task as the provider returns it."""

    status: str | None = None
    video: File | None = None
    progress: Text = None
    error: Reason | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), ERROR_TABLE)
    own = read_or(Created(), body).request_id
    return ProviderTask(id=created_id(PROTOCOL_NAME, body, own, headers, ERROR_TABLE), model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    [task] = tasks
    if is_lost(PROTOCOL_NAME, status, headers, body):
        return {task.id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), ERROR_TABLE)
    if status == RUNNING_STATUS and not body.strip():
        return {task.id: ProviderStatus(state=RUNNING_STATE)}
    return {task.id: _status(body, task)}


def _status(body: bytes, task: ProviderTask) -> ProviderStatus | UmgError:
    found = read_or(Task(), body)
    video, error = found.video or File(), found.error or Reason()
    if video.respect_moderation is False:
        message = error.message or "the content filter removed the video; change the prompt or the images"
        return failed(message, kind=CONTENT_POLICY_VIOLATION)
    results = [ProviderResult(url=video.url, duration_seconds=number(video.duration))] if video.url else []
    own = OwnTask(
        word=STATE_WORDS.get(found.status or "", found.status or ""),
        results=results,
        message=error.message or "",
        code=text(error.code),
        progress=found.progress,
    )
    return status_of(PROTOCOL_NAME, body, task.id, own)


VID_A_XAI = replace(
    VID_A,
    encode_create=encode_create,
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    takes_media_urls=True,
    implied=implied,
    result_seconds=RESULT_SECONDS,
    encode_cancel=None,
    provider_name="x_ai",
)

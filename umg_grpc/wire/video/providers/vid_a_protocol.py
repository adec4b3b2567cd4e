"""Protocol `vidA`: OpenAI's API `/videos`. A result file can be read only with the key that submitted the task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.wire.core.json_decoding import JsonObject, any_value, is_present
from umg_grpc.wire.core.multipart_forms import FilePart, encode_form
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import as_error, read_error
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import BLOCKED_REASON, failed_call, refused, refused_submission, rows
from umg_grpc.wire.video.providers.image_roles import Numbered, inputs_of, present
from umg_grpc.wire.video.providers.media_encoding import file_name, inline, media_type
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    get_request,
    is_sent,
    json_request,
    path_id,
    pixels,
    prompt_of,
    refuse_media,
    report_sound,
    report_unsupported,
)
from umg_grpc.wire.video.providers.response_decoding import (
    SUCCEEDED_STATE,
    Text,
    number,
    read_or,
    succeeded,
    text,
    time_of,
    unknown_task,
)
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, status_of

PROTOCOL_NAME = "vidA"
VIDEOS_PATH = "/videos"
RATIO_SIZES = {"16:9": "1280x720", "9:16": "720x1280"}
DEFAULT_SIZE = "720x1280"
DEFAULT_SECONDS = 4
SUPPORTED_FIELDS = frozenset({"prompt", "duration_seconds", "size", "aspect_ratio"})
ERROR_TABLE = (
    rows(BLOCKED_REASON, Failure.CALLER, "moderation_blocked", "content_policy_violation", "content_filter"),
)


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission as a form, like the vendor's SDK; a remix (change of a finished video) as JSON."""
    report = Report()
    if submission.source is not None:
        report_unsupported(submission.request.parameters, {"prompt"}, report)
        body: JsonObject = {"prompt": prompt_of(submission)}
        add_missing(body, extra_fields(submission, report))
        return json_request(f"{VIDEOS_PATH}/{path_id(submission.source.id)}/remix", body, report)
    parameters = submission.request.parameters
    report_unsupported(parameters, SUPPORTED_FIELDS, report)
    report_sound(submission, report)
    fields: JsonObject = {"model": submission.model, "prompt": prompt_of(submission)}
    if is_sent(submission, "duration_seconds"):
        fields["seconds"] = str(parameters.duration_seconds or DEFAULT_SECONDS)
    if size := _size(submission, report):
        fields["size"] = size
    parts: list[tuple[str, str] | FilePart] = [(name, str(value)) for name, value in fields.items()]
    if (image := _image(submission)) is not None:
        media = inline(image[1], image[0])
        name = media.file_name or file_name(media)
        parts.append(FilePart("input_reference", name, media_type(media), media.data))
    for name, raw in extra_fields(submission, report).items():
        if name not in {*fields, "input_reference"} and is_present(raw):
            parts += _form_fields(name, msgspec.json.decode(raw))
    form, content_type = encode_form(parts)
    return ProviderRequest(
        method="POST", path=VIDEOS_PATH, body=form, headers={"Content-Type": content_type}, report=report
    )


def _size(submission: Submission, report: Report) -> str:
    """Return the size of the video in pixels: the requested one, otherwise a size of the requested aspect ratio; ""
    leaves it to the provider. `report`: receives parameters that are not sent.
    """
    parameters = submission.request.parameters
    named = RATIO_SIZES.get(parameters.aspect_ratio)
    if parameters.aspect_ratio and (parameters.size or named is None):
        report.drop("parameters.aspect_ratio")
    default = DEFAULT_SIZE if is_sent(submission, "size") else ""
    return parameters.size.replace("*", "x") or named or default


def _image(submission: Submission) -> Numbered | None:
    inputs = inputs_of(submission)
    images = [*present(inputs.first), *inputs.references]
    refuse_media([*images[1:], *present(inputs.last), *inputs.masks, *inputs.videos, *inputs.audio], "one image")
    return images[0] if images else None


def _form_fields(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _form_fields(f"{name}[{key}]", child)
    elif isinstance(value, list):
        for child in value:
            yield from _form_fields(f"{name}[]", child)
    elif value is not None:
        yield name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    return get_request(f"{VIDEOS_PATH}/{path_id(tasks[0].id)}")


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the deletion of a task, by which the provider stops a task that has not started."""
    return ProviderRequest(method="DELETE", path=f"{VIDEOS_PATH}/{path_id(task.id)}")


# --- responses


class Video(Struct):
    """Video object: a task as the provider returns it."""

    id: str = ""
    status: str = ""
    progress: Text = None
    seconds: Text = None
    size: str | None = None
    expires_at: Text = None
    error: Raw = Raw()


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), ERROR_TABLE)
    own = read_or(Video(), body).id
    return ProviderTask(id=created_id(PROTOCOL_NAME, body, own, headers, ERROR_TABLE), model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`)."""
    if is_lost(PROTOCOL_NAME, status, headers, body):
        return {tasks[0].id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), ERROR_TABLE)
    return {tasks[0].id: _status(body, tasks[0])}


def _status(body: bytes, task: ProviderTask) -> ProviderStatus | UmgError:
    """Return the status of a task. The file is read with the key or, if that fails, from the URL a relay states."""
    video = read_or(Video(), body)
    error = as_error(any_value(video.error)) if is_present(video.error) else ProviderError()
    own = OwnTask(word=video.status, message=error.message, code=text(error.code), progress=video.progress)
    status = status_of(PROTOCOL_NAME, body, task.id, own)
    if isinstance(status, UmgError) or status.state != SUCCEEDED_STATE:
        return status
    return succeeded(_with_content(status.results, video, task))


def _with_content(relayed: Sequence[ProviderResult], video: Video, task: ProviderTask) -> list[ProviderResult]:
    width, height = pixels(video.size or "") or (None, None)
    content = ProviderResult(
        needs_key=f"{VIDEOS_PATH}/{path_id(task.id)}/content",
        duration_seconds=number(video.seconds),
        width=width,
        height=height,
        url_expire_time=time_of(video.expires_at),
    )
    first = next(iter(relayed), content)
    if first.data:
        return list(relayed)
    return [replace(content, url=first.url, duration_seconds=content.duration_seconds or first.duration_seconds)]


VID_A = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=partial(failed_call, table=ERROR_TABLE),
    takes_media_urls=False,
    encode_cancel=encode_cancel,
    first_poll_seconds=5,
    poll_seconds=5,
    deadline_seconds=1800,
    provider_name="openai",
)

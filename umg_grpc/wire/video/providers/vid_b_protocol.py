"""Protocol `vidB` of video providers: long-running operations of Vertex AI (names begin with `projects/`) and of the
Gemini API. Results are in the response, or are files that only the key can read.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure
from umg_grpc.wire.core.json_decoding import JsonObject, is_present
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import read_error, unreadable
from umg_grpc.wire.relay_task_responses import read_relayed
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import BLOCKED_REASON, failed_call, refused, refused_submission, rows
from umg_grpc.wire.video.providers.image_roles import Numbered, inputs_of
from umg_grpc.wire.video.providers.media_encoding import base64_of, inline, media_type
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    get_request,
    given,
    implied_resolution,
    is_sent,
    json_request,
    pixels,
    prompt_of,
    refuse_media,
    report_size,
    report_sound,
    report_unsupported,
)
from umg_grpc.wire.video.providers.response_decoding import (
    RUNNING_STATE,
    Text,
    failed,
    read_or,
    succeeded,
    unknown_task,
)
from umg_grpc.wire.video.providers.task_states import created_id, failed_at_creation, files_of, is_lost, status_of
from umg_grpc.wire.video.task_error_codes import CONTENT_POLICY_VIOLATION, INVALID_REQUEST, TASK_FAILED

PARAMETER_MEMBERS = {
    "duration_seconds": "durationSeconds",
    "aspect_ratio": "aspectRatio",
    "resolution": "resolution",
    "person_generation": "personGeneration",
    "negative_prompt": "negativePrompt",
    "prompt_extend": "enhancePrompt",
    "seed": "seed",
    "frames_per_second": "fps",
    "watermark": "addWatermark",
}
ONLY_VERTEX = frozenset({"frames_per_second", "watermark", "prompt_extend", "generate_audio"})
"""Canonical parameters that the Gemini API does not have."""
OF_THE_INSTANCE = ("mask", "cameraControl")
"""Additional fields that are sent in the instance; all others are sent in `parameters`."""
LABELS_MEMBER = "labels"
SUPPORTED_FIELDS = frozenset({"prompt", "size", "sample_count", "generate_audio", *PARAMETER_MEMBERS})
FIELDS_GEMINI = SUPPORTED_FIELDS - ONLY_VERTEX | {"generate_audio"}
"""Parameters of the Gemini API. `generate_audio` is one of them because its videos always have sound."""
PROTOCOL_NAME = "vidB"
VERTEX_PREFIX = "projects/"
OPERATION_NAME = re.compile(r"[\w.-]+(?:/[\w.@:-]+)*", re.ASCII)
MAX_RESPONSE_BYTES = 256 << 20
"""Maximum size of a response, which may contain four videos in base64."""
RESULT_SECONDS = 2 * 86_400
IN_A_BUCKET = "the provider wrote the video to a bucket, which the gateway cannot read; leave out its storage address"
INVALID_ARGUMENT = 3
"""gRPC code of an operation that failed because of its input."""
ERROR_TABLE = (rows(BLOCKED_REASON, Failure.CALLER, "SAFETY", "BLOCKED"),)


# --- requests


def encode_create(submission: Submission, *, is_vertex: bool) -> ProviderRequest:
    """Encode a submission to the Vertex API, or to the Gemini API, which has fewer parameters."""
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, SUPPORTED_FIELDS if is_vertex else FIELDS_GEMINI, report)
    if not is_vertex:
        report_sound(submission, report)
    options: JsonObject = {}
    if is_sent(submission, "sample_count"):
        options["sampleCount"] = parameters.sample_count or 1
    present = given(parameters)
    for name, field in PARAMETER_MEMBERS.items():
        if name in present and (is_vertex or name not in ONLY_VERTEX):
            options[field] = getattr(parameters, name)
    if is_vertex and is_sent(submission, "generate_audio"):
        options["generateAudio"] = parameters.generate_audio
    if (found := pixels(parameters.size)) is not None:
        options.setdefault("aspectRatio", "9:16" if found[1] > found[0] else "16:9")
        options.setdefault("resolution", _resolution(found))
    report_size(submission, str(options.get("resolution", "")), str(options.get("aspectRatio", "")), report)
    extra = extra_fields(submission, report)
    instance = _instance(submission)
    add_missing(instance, {name: extra.pop(name) for name in OF_THE_INSTANCE if name in extra})
    body: JsonObject = {"instances": [instance], "parameters": options}
    if is_vertex and LABELS_MEMBER in extra:
        body[LABELS_MEMBER] = extra.pop(LABELS_MEMBER)
    add_missing(options, extra)
    return json_request(f"/models/{quote(submission.model, safe='')}:predictLongRunning", body, report)


def _resolution(size: tuple[int, int]) -> str:
    return "4k" if max(size) >= 3840 else "1080p" if max(size) >= 1920 else "720p"


def _instance(submission: Submission) -> JsonObject:
    inputs = inputs_of(submission, pairs=True)
    refuse_media([*inputs.masks, *inputs.audio, *inputs.videos[1:]], "images and one video")
    instance: JsonObject = {}
    if prompt := prompt_of(submission):
        instance["prompt"] = prompt
    video = next(iter(inputs.videos), None)
    for name, medium in (("image", inputs.first), ("lastFrame", inputs.last), ("video", video)):
        if medium is not None:
            instance[name] = _bytes(medium)
    if inputs.references:
        instance["referenceImages"] = [
            {"image": _bytes(image), "referenceType": "asset"} for image in inputs.references
        ]
    return instance


def _bytes(numbered: Numbered) -> JsonObject:
    position, media = numbered
    inline(media, position)
    return {"bytesBase64Encoded": base64_of(media), "mimeType": media_type(media)}


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only operation in `tasks`, by the API to which its name belongs."""
    [task] = tasks
    if task.id.startswith(VERTEX_PREFIX):
        path = f"/models/{quote(task.model, safe='')}:fetchPredictOperation"
        return json_request(path, {"operationName": task.id})
    return get_request(f"/{task.id}")


# --- responses


class Created(Struct):
    """Response to a submission. `done` and `error`: those of an operation that has failed already."""

    name: str = ""
    done: Raw = Raw()
    error: Raw = Raw()


class Video(Struct, rename="camel"):
    """Video in a response of the Vertex API: its bytes, or its place in a bucket."""

    bytes_base64_encoded: bytes | None = None
    gcs_uri: str | None = None
    mime_type: str | None = None


class File(Struct, rename="camel"):
    """Video in a response of the Gemini API: the address of its file, or in older versions of the API the bytes."""

    uri: str | None = None
    encoded_video: bytes | None = None
    encoding: str | None = None


class Sample(Struct):
    """Item of `generatedSamples`."""

    video: File | None = None


class Generated(Struct, rename="camel"):
    """Member `generateVideoResponse` of the Gemini API."""

    generated_samples: list[Sample] | None = None
    rai_media_filtered_count: Text = None
    rai_media_filtered_reasons: list[str] | None = None


class Response(Struct, rename="camel"):
    """Response of an operation that is done, with the members of both APIs."""

    videos: list[Video] | None = None
    rai_media_filtered_count: Text = None
    rai_media_filtered_reasons: list[str] | None = None
    generate_video_response: Generated | None = None


class OperationError(Struct):
    """Error of an operation that is done."""

    code: Text = None
    message: str | None = None


class Operation(Struct):
    """Operation of a query. `done` is absent while it runs. A relay may state the state by a word instead."""

    name: str = ""
    status: Raw = Raw()
    state: Raw = Raw()
    data: Raw = Raw()
    done: bool = False
    error: OperationError | None = None
    response: Response | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status >= 400:
        raise refused_submission(status, headers, body, read_error(body), ERROR_TABLE)
    created = read_or(Created(), body)
    if bytes(created.done) == b"true" and is_present(created.error):
        raise failed_at_creation(headers, read_error(body), ERROR_TABLE)
    name = created_id(PROTOCOL_NAME, body, created.name, headers, ERROR_TABLE)
    if not OPERATION_NAME.fullmatch(name) or ".." in name:
        raise unreadable()
    return ProviderTask(id=name, model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`), in which Vertex AI includes the files."""
    [task] = tasks
    if is_lost(PROTOCOL_NAME, status, headers, body):
        return {task.id: unknown_task()}
    if status >= 400:
        raise refused(status, headers, read_error(body), ERROR_TABLE)
    operation = read_or(Operation(), body)
    if not operation.done:
        if operation.name and not (operation.status or operation.state or operation.data):
            return {task.id: ProviderStatus(state=RUNNING_STATE)}
        return {task.id: status_of(PROTOCOL_NAME, body, task.id)}
    if operation.error is not None and (operation.error.code or operation.error.message):
        return {task.id: _failed(operation.error)}
    return {task.id: _done(operation.response or Response(), body, task)}


def _failed(error: OperationError) -> ProviderStatus:
    status = failed(error.message or "")
    if status.error is not None and status.error.code == TASK_FAILED and error.code == INVALID_ARGUMENT:
        return failed(error.message or "", kind=INVALID_REQUEST)
    return status


def _done(response: Response, body: bytes, task: ProviderTask) -> ProviderStatus:
    generated = response.generate_video_response or Generated()
    files = [sample.video for sample in generated.generated_samples or [] if sample.video is not None]
    results = [result for video in response.videos or [] if (result := _of_video(video)) is not None]
    results += [result for file in files if (result := _of_file(file)) is not None]
    if results:
        return succeeded(results)
    if relayed := files_of(read_relayed(body, PROTOCOL_NAME, task.id)):
        return succeeded(relayed)
    if any(video.gcs_uri for video in response.videos or []):
        return failed(IN_A_BUCKET)
    if response.videos or files:
        return succeeded([])  # there is a video, in a form that cannot be read
    reasons = [*(response.rai_media_filtered_reasons or []), *(generated.rai_media_filtered_reasons or [])]
    message = " ".join(reasons) or "the content filter removed the video; change the prompt or the images"
    return failed(message, kind=CONTENT_POLICY_VIOLATION)


def _of_video(video: Video) -> ProviderResult | None:
    if not video.bytes_base64_encoded:
        return None
    return ProviderResult(data=video.bytes_base64_encoded, mime_type=video.mime_type or "video/mp4")


def _of_file(file: File) -> ProviderResult | None:
    if file.encoded_video:
        return ProviderResult(data=file.encoded_video, mime_type=file.encoding or "video/mp4")
    return ProviderResult(needs_key=file.uri) if file.uri else None


VID_B = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=partial(encode_create, is_vertex=True),
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=partial(failed_call, table=ERROR_TABLE),
    takes_media_urls=False,
    implied=implied_resolution(_resolution),
    key_header=NATIVE_KEY_HEADER,
    max_response_bytes=MAX_RESPONSE_BYTES,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=10,
    poll_seconds=10,
    deadline_seconds=1800,
    provider_name="gcp.vertex_ai",
)
VID_B_GEMINI = replace(VID_B, encode_create=partial(encode_create, is_vertex=False), provider_name="gcp.gemini")

"""Protocol `vidF`: an API with signed requests. URLs of results are valid for one hour, tasks for 12."""

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, is_present
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import is_ok, read_error
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, Statuses, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderTask, Submission
from umg_grpc.wire.video.providers.errors import (
    BLOCKED_REASON,
    FAILED_REASON,
    LIMITED_REASON,
    refused,
    refused_submission,
    rows,
)
from umg_grpc.wire.video.providers.media_encoding import address, at, base64_of
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    is_sent,
    json_request,
    prompt_of,
    ratio_of,
    report_size,
    report_unsupported,
)
from umg_grpc.wire.video.providers.response_decoding import Text, failed, read, read_or, text, unknown_task
from umg_grpc.wire.video.providers.task_states import OwnTask, created_id, is_lost, refuse_failed, status_of

PROTOCOL_NAME = "vidF"
API_VERSION, CANCEL_VERSION = "2022-08-31", "2024-06-06"
SUBMIT_PATH = f"/?Action=CVSync2AsyncSubmitTask&Version={API_VERSION}"
QUERY_PATH = f"/?Action=CVSync2AsyncGetResult&Version={API_VERSION}"
SUBMIT_AVATAR = f"/?Action=CVSubmitTask&Version={API_VERSION}"
QUERY_AVATAR = f"/?Action=CVGetResult&Version={API_VERSION}"
INPUT_MEMBERS = {
    pb.VIDEO_MEDIA_KIND_IMAGE: "image_url",
    pb.VIDEO_MEDIA_KIND_VIDEO: "video_url",
    pb.VIDEO_MEDIA_KIND_AUDIO: "audio_url",
}
"""Kind of input -> field with the URL of the input, for models that accept several kinds."""
CANCEL_PATH = f"/?Action=CVCancelTask&Version={CANCEL_VERSION}"
OK_CODE = "10000"
SUPPORTED_FIELDS = frozenset({"prompt", "seed", "frames", "duration_seconds", "aspect_ratio", "size"})
FRAMES_A_SECOND = 24
RESULT_SECONDS = 3600
ERROR_TABLE = (
    rows(BLOCKED_REASON, Failure.CALLER, r"504(?:0[1-9]|1\d)", r"505(?:1\d|2[0-2])"),
    rows(LIMITED_REASON, Failure.OVERLOADED, "50429", "50430"),
    rows(FAILED_REASON, Failure.TRANSIENT, "50500", "50501"),
    rows(FAILED_REASON, Failure.DOWN, "SignatureDoesNotMatch", "InvalidAccessKey"),
    rows(FAILED_REASON, Failure.DOWN, "InvalidTimestamp", "InvalidSecurityToken"),
    rows(FAILED_REASON, Failure.DOWN, "LackPolicy", r"AccessDenied[\w.]*", "ServiceNotFound", "InvalidActionOrVersion"),
    rows(FAILED_REASON, Failure.DOWN, "MissingSignature", "MissingAuthenticationToken", "MissingRequestInfo"),
)
TEMPORARY_CODES = re.compile(r"50(?:429|430|500|501)|[1-5]\d\d")
"""Codes which mean that the query failed, including HTTP statuses that relays write; other codes: the task failed."""
REJECTED_CONTENT = re.compile(r"504(?:0[1-9]|1\d)|505(?:1\d|2[0-2])")
"""Codes of a task whose input or output violates the content policy."""


# --- requests


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission. The model is sent as the member `req_key`, which must be repeated in queries."""
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, SUPPORTED_FIELDS, report)
    body: JsonObject = {"req_key": submission.model}
    if prompt := prompt_of(submission):
        body["prompt"] = prompt
    row = media_model(PROTOCOL_NAME, submission.model)
    body |= _addresses(parameters, row.members) if row is not None and row.members else _images(parameters)
    if is_sent(submission, "seed"):
        body["seed"] = parameters.seed if parameters.HasField("seed") else -1
    if parameters.frames:
        body["frames"] = parameters.frames
        if parameters.duration_seconds:
            report.drop("parameters.duration_seconds")
    elif parameters.duration_seconds:
        body["frames"] = parameters.duration_seconds * FRAMES_A_SECOND + 1
    if ratio := parameters.aspect_ratio or ratio_of(parameters.size):
        body["aspect_ratio"] = ratio
    report_size(submission, "", ratio or "", report)
    add_missing(body, extra_fields(submission, report))
    return json_request(SUBMIT_AVATAR if _is_avatar(submission.model) else SUBMIT_PATH, body, report)


def _is_avatar(model: str) -> bool:
    row = media_model(PROTOCOL_NAME, model)
    return row is not None and bool(row.api)


def _addresses(parameters: pb.VideoParameters, members: Collection[str]) -> JsonObject:
    """Return the fields with the URLs of the inputs, one input of each kind. `members`: fields that the model has."""
    body: JsonObject = {}
    for position, item in enumerate(parameters.media):
        name = INPUT_MEMBERS.get(item.kind, "")
        if name not in members or name in body:
            kinds = " and ".join(each.removesuffix("_url") for each in members)
            raise untranslatable(at(position), f"this model's provider accepts one {kinds}; leave it out")
        if item.WhichOneof("source") == "data":
            raise untranslatable(at(position), "this model's provider accepts URLs only; send an https URL")
        body[name] = address(item, position)
    return body


def _images(parameters: pb.VideoParameters) -> JsonObject:
    """Return the members of the body with the input images, all as URLs or all in base64."""
    media = list(enumerate(parameters.media))
    for position, item in media:
        if item.kind != pb.VIDEO_MEDIA_KIND_IMAGE or item.role == pb.VIDEO_MEDIA_ROLE_STATIC_MASK:
            raise untranslatable(at(position), "this model's provider accepts images only; leave it out")
    by_address = [(position, item) for position, item in media if item.WhichOneof("source") == "url"]
    if not by_address:
        return {"binary_data_base64": [base64_of(item) for _, item in media]} if media else {}
    if len(by_address) < len(media):
        position = next(position for position, item in media if item.WhichOneof("source") == "data")
        problem = "this model's provider accepts all images by URL or all as bytes; send them in one form"
        raise untranslatable(at(position), problem)
    return {"image_urls": [address(item, position) for position, item in by_address]}


def encode_query(tasks: Sequence[ProviderTask]) -> ProviderRequest:
    """Encode the query of the only task in `tasks`."""
    [task] = tasks
    path = QUERY_AVATAR if _is_avatar(task.model) else QUERY_PATH
    return json_request(path, {"req_key": task.model, "task_id": task.id, "req_json": '{"return_url":true}'})


def encode_cancel(task: ProviderTask) -> ProviderRequest:
    """Encode the cancellation of a task."""
    return json_request(CANCEL_PATH, {"req_key": task.model, "task_id": task.id})


# --- responses


class GatewayError(Struct, rename="pascal"):
    """Error of the provider's API gateway."""

    code: str = ""
    message: str = ""


class Metadata(Struct, rename="pascal"):
    """Member `ResponseMetadata`, which only the provider's API gateway writes."""

    error: GatewayError | None = None


class ResponseBody(Struct):
    """Response of every call."""

    code: Text = None
    message: str | None = None
    data: Raw = Raw()


class Data(Struct):
    """Member `data` of a response."""

    task_id: Text = None
    status: str | None = None
    video_url: str | None = None


class Envelope(Struct, rename={"metadata": "ResponseMetadata"}):
    """Envelope of the provider's API gateway around a response."""

    metadata: Metadata | None = None


def decode_created(status: int, headers: Mapping[str, str], body: bytes, submission: Submission) -> ProviderTask:
    """Decode the response to a submission (`VideoProtocol.decode_created`)."""
    if status < 400:
        refuse_failed(PROTOCOL_NAME, body, headers, ERROR_TABLE)
    if (error := _error(status, body)) is not None:
        raise refused_submission(_status_of(status, error), headers, body, error, ERROR_TABLE)
    task_id = created_id(PROTOCOL_NAME, body, text(_data(body).task_id), headers, ERROR_TABLE)
    return ProviderTask(id=task_id, model=submission.model)


def decode_status(status: int, headers: Mapping[str, str], body: bytes, tasks: Sequence[ProviderTask]) -> Statuses:
    """Decode the response to a query (`VideoProtocol.decode_status`).

    An outer code other than success means that the task failed; the inner status then only states that it ended.
    """
    [task] = tasks
    if (error := _error(status, body)) is not None:
        code = str(error.code or "")
        if is_lost(PROTOCOL_NAME, status, headers, body):
            return {task.id: unknown_task()}
        if not code.isdecimal() or TEMPORARY_CODES.fullmatch(code) or status >= 500:
            raise refused(_status_of(status, error), headers, error, ERROR_TABLE)
        kind = "content_policy_violation" if REJECTED_CONTENT.fullmatch(code) else ""
        return {task.id: failed(error.message, code, kind=kind)}
    data = _data(body)
    results = [ProviderResult(url=data.video_url)] if data.video_url else []
    return {task.id: status_of(PROTOCOL_NAME, body, task.id, OwnTask(word=data.status or "", results=results))}


def decode_cancelled(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Decode the response to a cancellation (`VideoProtocol.decode_cancelled`); False if the code rejects it."""
    if (error := _error(status, body)) is None:
        return True
    code = str(error.code or "")
    if code.isdecimal() and not TEMPORARY_CODES.fullmatch(code) and status < 500:
        return False
    raise refused(_status_of(status, error), headers, error, ERROR_TABLE)


def _error(status: int, body: bytes) -> ProviderError | None:
    """Return the error that the envelope or the HTTP status of a response states; None for a success."""
    try:
        fault = read(Envelope, body).metadata
        response = read(ResponseBody, body)
    except UmgError:
        if status >= 400:
            return read_error(body)
        raise
    if fault is not None and fault.error is not None:
        return ProviderError(message=fault.error.message, code=fault.error.code)
    if response.code is None:
        return read_error(body) if status >= 400 else None
    if text(response.code) != OK_CODE and not is_ok(response.code):
        return ProviderError(message=response.message or "", code=text(response.code))
    return ProviderError(message=response.message or "") if status >= 400 else None


def _data(body: bytes) -> Data:
    data = read(ResponseBody, body).data
    return read_or(Data(), data) if is_present(data) else Data()


def _status_of(status: int, error: ProviderError) -> int:
    """Return the HTTP status to classify an error by: the response's status or, if that is 200, the error code's."""
    code = str(error.code or "")
    if status >= 400:
        return status
    if code in {"50429", "50430"}:
        return 429
    if code.isdecimal() and 400 <= int(code) < 600:
        return int(code)
    return 500 if code in {"50500", "50501"} else 400


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Return the error for a failed call other than a submission or a query. `headers`: by lower-case name."""
    return refused(status, headers, _error(status, body) or read_error(body), ERROR_TABLE)


VID_F = VideoProtocol(
    name=PROTOCOL_NAME,
    encode_create=encode_create,
    decode_created=decode_created,
    encode_query=encode_query,
    decode_status=decode_status,
    decode_error=decode_error,
    encode_cancel=encode_cancel,
    decode_cancelled=decode_cancelled,
    result_seconds=RESULT_SECONDS,
    first_poll_seconds=5,
    poll_seconds=5,
    deadline_seconds=12 * 3600,
)

"""HTTP API of `vidF` for callers: `POST /vidF`. The query parameter `Action` distinguishes submissions and queries."""

from collections.abc import Mapping

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid, missing
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.errors import encode_error_f
from umg_grpc.wire.video.submission_body_reader import CreateBody, WholeNumber, members_of
from umg_grpc.wire.video.task_response_values import (
    FAILED_STATES,
    code_and_message,
    failure_message,
    states,
    task_query,
    urls,
)

BODY_FIELDS = {**members_of(str, "prompt", "aspect_ratio"), **members_of(WholeNumber, "seed", "frames")}
IMAGE_FIELDS = ("image", "image_urls", "binary_data_base64")
SUBMIT_ACTION, QUERY_ACTION = "CVSync2AsyncSubmitTask", "CVSync2AsyncGetResult"
API_VERSION = "2022-08-31"
SUCCESS_CODE = 10000
STATE_NAMES = states("PENDING", "RUNNING", "SUCCESS", "FAILED")

wire_path = wire_paths(
    [(r"^model$", "req_key"), (r"^parameters\.media.*", "image_urls"), (r"^parameters\.(extra_json\.)?", "")]
)


def _action(parameters: Mapping[str, str]) -> str:
    action = parameters.get("Action", "")
    if not action:
        raise missing("Action")
    if action not in {SUBMIT_ACTION, QUERY_ACTION}:
        raise invalid("Action", f"{echo(action)} is not one of its values; send {SUBMIT_ACTION} or {QUERY_ACTION}")
    if parameters.get("Version", API_VERSION) != API_VERSION:
        raise invalid("Version", f"expected {API_VERSION}; correct it or leave it out")
    return action


def decode_create(body: bytes, parameters: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body that submits a task. `parameters`: those of the query. Raise UmgError naming the field."""
    if _action(parameters) != SUBMIT_ACTION:
        raise invalid("Action", f"expected {SUBMIT_ACTION}; correct it")
    given = CreateBody(pb.VIDEO_ENTRY_F, body)
    given.model("req_key")
    given.read(BODY_FIELDS)
    for name in IMAGE_FIELDS:
        if (raw := given.take(name)) is not None:
            given.images(raw, name)
    return given.finish({"parameters.media": "image_urls"})


def decode_posted_query(body: bytes, parameters: Mapping[str, str]) -> pb.GetVideoTaskRequest | None:
    """Return the look-up of a task if the query parameter `Action` means a query; None if it means a submission."""
    if _action(parameters) != QUERY_ACTION:
        return None
    given = CreateBody(pb.VIDEO_ENTRY_F, body)
    query = task_query(pb.VIDEO_ENTRY_F, {"task_id": given.text("task_id") or ""})
    if model := given.text("req_key"):
        query.model = model
    return query


def encode_created(task: pb.VideoTask, request_id: str = "") -> bytes:
    """Return the response to a submission: an envelope whose `data` has the id of the task."""
    return _enveloped({"task_id": task.task_id}, "Success", request_id or task.task_id)


def encode_task(task: pb.VideoTask, request_id: str = "") -> bytes:
    """Return the response to a query: an envelope with the task's state. `code` describes the query, which succeeded;
    `message` and `data.error` give the reason of a failed task. `request_id`: "" for a notification.
    """
    data: JsonObject = {"status": STATE_NAMES[task.state]}
    if addresses := urls(task):
        data["video_url"] = addresses[0]
    if task.state in FAILED_STATES:
        data["error"] = code_and_message(task)
    message = failure_message(task) if task.state in FAILED_STATES else "Success"
    return _enveloped(data, message, request_id or task.task_id)


def _enveloped(data: JsonObject, message: str, request_id: str) -> bytes:
    return msgspec.json.encode({"code": SUCCESS_CODE, "message": message, "request_id": request_id, "data": data})


ENTRY_F = EntryFormat(
    name="video_f",
    entry=pb.VIDEO_ENTRY_F,
    decode_create=decode_create,
    decode_posted_query=decode_posted_query,
    encode_created=encode_created,
    encode_task=encode_task,
    encode_error=encode_error_f,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_F, parameters),
    error_paths=("/vidF",),
)

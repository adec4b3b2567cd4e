"""HTTP API of family `vidD` for callers: `/vidD/api/v3/contents/generations/tasks`."""

from collections.abc import Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.video_model_rules import video_family
from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, parse
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.content_array_items import ROLES_D, read_content
from umg_grpc.wire.video.errors import encode_error_d
from umg_grpc.wire.video.submission_body_reader import CreateBody, WholeNumber, members_of
from umg_grpc.wire.video.task_response_values import (
    FAILED_STATES,
    code_and_message,
    last_frame_url,
    seconds,
    states,
    task_query,
    urls,
)

BODY_FIELDS = {
    **members_of(str, "resolution", ratio="aspect_ratio"),
    **members_of(WholeNumber, "seed", "frames", duration="duration_seconds"),
    **members_of(bool, "generate_audio", "return_last_frame", "watermark", "camera_fixed"),
}
STATE_NAMES = states("queued", "processing", "succeeded", "failed")

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "duration"),
        (r"^parameters\.aspect_ratio", "ratio"),
        (r"^parameters\.(media|prompt|draft_task_id).*", "content"),
        (r"^parameters\.(extra_json\.)?", ""),
    ]
)


def decode_create(body: bytes, _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body of a submission. Raise UmgError with the specification's text and the name of the field."""
    given = CreateBody(pb.VIDEO_ENTRY_D, body)
    model = given.given.get("model")
    if model is None or not is_present(model) or not parse(str, model, "model").strip():
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, "model is required", field="model")
    is_neutral = video_family(given.model()) != ""
    if not is_neutral:
        given.keep_open_length(given.members)
    if (content := given.take("content")) is not None:
        read_content(given, content, "content", ROLES_D, takes_draft=not is_neutral)
    given.read(BODY_FIELDS if is_neutral else {**BODY_FIELDS, **members_of(str, "size")})
    given.callback(given.take("callback_url"), "callback_url")
    return given.finish({"parameters.prompt": "content", "parameters.media": "content"})


def encode_created(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a submission: `{id}`."""
    return msgspec.json.encode({"id": task.task_id})


def encode_task(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a query: the task with its status and its result or error."""
    view: JsonObject = {"id": task.task_id, "model": task.model, "status": STATE_NAMES[task.state]}
    if addresses := urls(task):
        content: JsonObject = {"video_url": addresses[0]}
        if frame := last_frame_url(task):
            content["last_frame_url"] = frame
        view["content"] = content
    view |= {"created_at": seconds(task.create_time), "updated_at": seconds(task.update_time)}
    if task.state in FAILED_STATES:
        view["error"] = code_and_message(task)
    return msgspec.json.encode(view)


ENTRY_D = EntryFormat(
    name="video_d",
    entry=pb.VIDEO_ENTRY_D,
    decode_create=decode_create,
    encode_created=encode_created,
    encode_task=encode_task,
    encode_error=encode_error_d,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_D, parameters),
    notifies=True,
    error_paths=("/vidD/",),
)

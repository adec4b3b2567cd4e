"""HTTP API of family `vidG` for callers: `/vidG/v2/video_generation`."""

from collections.abc import Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, missing, parse
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.content_array_items import ITEM_ROLES, read_content
from umg_grpc.wire.video.errors import encode_error_g
from umg_grpc.wire.video.submission_body_reader import CreateBody, WholeNumber, members_of
from umg_grpc.wire.video.task_response_values import FAILED_STATES, code_and_message, seconds, states, task_query, urls

BODY_FIELDS = {
    **members_of(str, "resolution", ratio="aspect_ratio"),
    **members_of(WholeNumber, duration="duration_seconds"),
    **members_of(bool, aigc_watermark="watermark"),
}
STATE_NAMES = states("queued", "running", "succeeded", "failed", "cancelled")

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "duration"),
        (r"^parameters\.aspect_ratio", "ratio"),
        (r"^parameters\.watermark", "aigc_watermark"),
        (r"^parameters\.(media|prompt).*", "content"),
        (r"^parameters\.(extra_json\.)?", ""),
    ]
)


def decode_create(body: bytes, _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the body of a submission. Raise UmgError naming the field, also for any `callback_url`, even null."""
    given = CreateBody(pb.VIDEO_ENTRY_G, body)
    if "callback_url" in given.given:
        message = "callback_url is not supported by this entry; leave it out and poll"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="callback_url")
    given.model()
    content = given.take("content")
    if content is None or not parse(list[msgspec.Raw], content, "content"):
        raise missing("content")
    read_content(given, content, "content", ITEM_ROLES)
    given.read(BODY_FIELDS)
    return given.finish(
        {"parameters.prompt": "content", "parameters.media": "content", "parameters.duration_seconds": "duration"}
    )


def encode_created(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a submission: `{task_id}`."""
    return msgspec.json.encode({"task_id": task.task_id})


def encode_task(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a query: `{task: {...}}`."""
    view: JsonObject = {"id": task.task_id, "model": task.model, "status": STATE_NAMES[task.state]}
    if addresses := urls(task):
        view["content"] = {"url": addresses[0]}
    view |= {"created_at": seconds(task.create_time), "updated_at": seconds(task.update_time)}
    if task.state in FAILED_STATES:
        view["error"] = code_and_message(task)
    return msgspec.json.encode({"task": view})


ENTRY_G = EntryFormat(
    name="video_g",
    entry=pb.VIDEO_ENTRY_G,
    decode_create=decode_create,
    encode_created=encode_created,
    encode_task=encode_task,
    encode_error=encode_error_g,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_G, parameters),
    error_paths=("/vidG/",),
)

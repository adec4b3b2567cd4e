"""HTTP API of `vidE` 3.0 for callers: `/vidE/text-to-video/{model}` and other kinds, and `/vidE/tasks`."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, missing, parse
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.errors import encode_error_e
from umg_grpc.wire.video.input_media import is_video
from umg_grpc.wire.video.submission_body_reader import CreateBody, Members, WholeNumber, begins, members_of
from umg_grpc.wire.video.task_response_values import FAILED_STATES, code_and_message, milliseconds, states, videos

SETTING_FIELDS = {
    **members_of(WholeNumber, duration="duration_seconds"),
    **members_of(str, "resolution", "aspect_ratio"),
}
BODY_FIELDS = {**members_of(str, "prompt", "negative_prompt"), **SETTING_FIELDS}
MEDIA_FIELDS = ("image", "images", "image_list", "video", "videos", "video_list", "reference_videos")
URL_MEMBERS = ("url", "image_url", "video_url", "image", "video")
"""Members in which an object that describes a medium may have its URL."""
PATH_KINDS = {
    "text-to-video": pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
    "image-to-video": pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
    "omni-video": pb.VIDEO_TASK_KIND_OMNI,
}
STATE_NAMES = states("submitted", "processing", "succeeded", "failed")

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "duration"),
        (r"^parameters\.generate_audio", "settings.audio"),
        (r"^parameters\.media.*", "images"),
        (r"^(callback_url|external_task_id)", r"options.\1"),
        (r"^parameters\.(extra_json\.)?", ""),
    ]
)


def decode_create(body: bytes, parameters: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body that submits a task; the path (`parameters`) contains model and kind. Members without a
    canonical parameter are kept for the provider. Raise UmgError naming the field.
    """
    given = CreateBody(pb.VIDEO_ENTRY_E_3, body)
    given.request.model, given.request.kind = parameters["model"], PATH_KINDS[parameters["kind"]]
    if (model := given.text("model")) is not None and model != parameters["model"]:
        raise invalid("model", "it is another model than that of the path; leave it out")
    given.read(BODY_FIELDS)
    settings = given.nested("settings")
    given.read(SETTING_FIELDS, settings, "settings")
    given.keep(settings, "settings")
    for name in MEDIA_FIELDS:
        if (raw := given.take(name)) is not None:
            _read_media(given, raw, name)
    options = given.nested("options")
    given.callback(options.pop("callback_url", None), "options.callback_url")
    given.external_id(options.pop("external_task_id", None), "options.external_task_id")
    given.keep(options, "options")
    return given.finish({"parameters.media": "image", "parameters.prompt": "prompt"})


def _read_media(given: CreateBody, raw: Raw, name: str) -> None:
    """Decode the member `name` with a medium or a list of media, each a string or an object with a URL."""
    many = begins(raw, b"[")
    for position, item in enumerate(parse(list[Raw], raw, name) if many else [raw]):
        path = f"{name}[{position}]" if many else name
        if begins(item, b"{"):
            members = parse(Members, item, path)
            member = next((key for key in URL_MEMBERS if key in members), None)
            if member is None:
                raise missing(f"{path}.url")
            path += f".{member}"
            text = parse(str, members[member], path)
        else:
            text = parse(str, item, path)
        moving = "video" in path or is_video(text)
        given.medium(text, path, pb.VIDEO_MEDIA_KIND_VIDEO if moving else pb.VIDEO_MEDIA_KIND_IMAGE)


def decode_query(parameters: Mapping[str, str]) -> pb.GetVideoTaskRequest:
    """Return the look-up by the one id in the query, the gateway's or the caller's. Raise UmgError if none or more."""
    ids, external = parameters.get("task_ids"), parameters.get("external_task_ids")
    if ids is not None and external is not None:
        raise invalid("external_task_ids", "send either task_ids or external_task_ids")
    name, given = ("task_ids", ids) if external is None else ("external_task_ids", external)
    wanted = [part.strip() for part in (given or "").split(",")]
    if wanted == [""]:
        raise missing(name)
    if len(wanted) > 1:
        raise invalid(name, "only one task can be queried per call; send one id")
    if external is None:
        return pb.GetVideoTaskRequest(task_id=wanted[0], entry=pb.VIDEO_ENTRY_E_3)
    return pb.GetVideoTaskRequest(external_task_id=wanted[0], entry=pb.VIDEO_ENTRY_E_3)


def encode_task(task: pb.VideoTask, request_id: str = "") -> bytes:
    """Return a response: an envelope whose `data` has the task as only item. `request_id`: "" for a notification."""
    return msgspec.json.encode(
        {"code": 0, "message": "success", "request_id": request_id or task.task_id, "data": [_item(task)]}
    )


def _item(task: pb.VideoTask) -> JsonObject:
    item: JsonObject = {
        "id": task.task_id,
        "status": STATE_NAMES[task.state],
        "create_time": milliseconds(task.create_time),
        "update_time": milliseconds(task.update_time),
        "external_id": task.external_task_id,
    }
    outputs = [
        {"url": result.url, "duration": round(result.duration_seconds) or task.parameters.duration_seconds}
        for result in videos(task)
        if result.url
    ]
    if outputs:
        item["outputs"] = outputs
    if task.state in FAILED_STATES:
        item["error"] = code_and_message(task)
    return item


ENTRY_E_3 = EntryFormat(
    name="video_e_3",
    entry=pb.VIDEO_ENTRY_E_3,
    decode_create=decode_create,
    encode_created=encode_task,
    encode_task=encode_task,
    encode_error=encode_error_e,
    wire_path=wire_path,
    decode_query=decode_query,
    notifies=True,
    error_paths=("/vidE/",),
)

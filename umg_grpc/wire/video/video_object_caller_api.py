"""HTTP API `/v1/videos` for callers of video tasks, as the openai SDK calls it; responses contain video objects."""

from collections.abc import Mapping

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.core.multipart_forms import FormPart, form_object
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.submission_body_reader import CreateBody, Seconds, members_of
from umg_grpc.wire.video.task_response_values import (
    FAILED_STATES,
    SUCCEEDED_STATE,
    code_and_message,
    seconds,
    states,
    task_query,
)

BODY_FIELDS = {**members_of(str, "prompt", "size"), **members_of(Seconds, seconds="duration_seconds")}
REMIX_FIELDS = members_of(str, "prompt")
IMAGE_FIELDS = ("input_reference", "image")
STATE_NAMES = states("queued", "in_progress", "completed", "failed")
MAX_LIMIT = 100
LIST_ORDERS = {"asc": pb.VIDEO_TASK_ORDER_OLDEST_FIRST, "desc": pb.VIDEO_TASK_ORDER_NEWEST_FIRST}

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "seconds"),
        (r"^parameters\.media.*", "input_reference"),
        (r"^parameters\.", ""),
        (r"^page_size$", "limit"),
        (r"^page_token$", "after"),
    ]
)


# --- submission


def decode_create(body: bytes, _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body that submits a task. Raise UmgError naming the field."""
    return _decode(CreateBody(pb.VIDEO_ENTRY_VIDEO_OBJECT, body))


def decode_form(parts: list[FormPart], _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the form that submits a task, as the openai SDK sends it. Raise UmgError naming the field."""
    return _decode(CreateBody(pb.VIDEO_ENTRY_VIDEO_OBJECT, msgspec.json.encode(form_object(parts)), is_form=True))


def _decode(body: CreateBody) -> pb.CreateVideoTaskRequest:
    body.model()
    body.read(BODY_FIELDS)
    for name in IMAGE_FIELDS:
        if (raw := body.take(name)) is not None:
            body.images(raw, name)
    return body.finish({"parameters.media": "input_reference"})


def decode_remix(body: bytes, parameters: Mapping[str, str]) -> pb.RemixVideoTaskRequest:
    """Decode the JSON body that submits a remix (change of a finished video). The path (`parameters`) contains the id
    of the video. Raise UmgError naming the field, for example for a missing prompt.
    """
    given = CreateBody(pb.VIDEO_ENTRY_VIDEO_OBJECT, body)
    model = given.text("model")
    given.read(REMIX_FIELDS)
    prompt, extra = given.request.parameters.prompt, given.members
    if not prompt.strip():
        raise invalid("prompt", "it is required and has a text; describe the change")
    return pb.RemixVideoTaskRequest(
        task_id=parameters["video_id"],
        model=model,
        prompt=prompt,
        extra_json=msgspec.json.encode(extra).decode() if extra else "",
    )


# --- answers


def encode_task(task: pb.VideoTask, _: str = "") -> bytes:
    """Return a task as the JSON of a video object."""
    return msgspec.json.encode(video_object(task))


def video_object(task: pb.VideoTask) -> JsonObject:
    """Return a task as a video object. Members that do not apply to its state are absent."""
    done = task.state == SUCCEEDED_STATE
    view: JsonObject = {
        "id": task.task_id,
        "task_id": task.task_id,
        "object": "video",
        "model": task.model,
        "status": STATE_NAMES[task.state],
        "progress": 100 if done else task.progress_percent,
        "created_at": seconds(task.create_time),
    }
    if done:
        view["completed_at"] = seconds(task.complete_time)
        if task.HasField("expire_time"):
            view["expires_at"] = seconds(task.expire_time)
    if task.parameters.HasField("duration_seconds"):
        view["seconds"] = str(task.parameters.duration_seconds)
    if task.parameters.HasField("size"):
        view["size"] = task.parameters.size
    if task.HasField("remixed_from_task_id"):
        view["remixed_from_video_id"] = task.remixed_from_task_id
    if task.state in FAILED_STATES:
        view["error"] = code_and_message(task)
    return view


def encode_deleted(task: pb.VideoTask) -> bytes:
    """Return the JSON body that confirms the deletion of a video."""
    return msgspec.json.encode({"id": task.task_id, "object": "video.deleted", "deleted": True})


# --- list


def decode_list(query: Mapping[str, str]) -> pb.ListVideoTasksRequest:
    """Decode the query of a video list: `limit`, `after`, `order`. Raise UmgError(INVALID_FIELD) with the name."""
    request = pb.ListVideoTasksRequest(entry=pb.VIDEO_ENTRY_VIDEO_OBJECT, page_token=query.get("after", ""))
    if (limit := query.get("limit")) is not None:
        if not (limit.isascii() and limit.isdecimal() and len(limit) < 5 and 1 <= int(limit) <= MAX_LIMIT):
            raise invalid("limit", f"expected a whole number of 1 to {MAX_LIMIT}; correct it")
        request.page_size = int(limit)
    if (order := query.get("order")) is not None:
        if order not in LIST_ORDERS:
            raise invalid("order", "expected asc or desc; correct it")
        request.order = LIST_ORDERS[order]
    return request


def encode_list(page: pb.ListVideoTasksResponse) -> bytes:
    """Return the JSON body of a page of tasks as video objects."""
    items = [video_object(task) for task in page.tasks]
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    more = bool(page.next_page_token)
    return msgspec.json.encode({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": more})


VIDEO_OBJECT = EntryFormat(
    name="video_object",
    entry=pb.VIDEO_ENTRY_VIDEO_OBJECT,
    decode_create=decode_create,
    decode_form=decode_form,
    encode_created=encode_task,
    encode_task=encode_task,
    encode_error=encode_error,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_VIDEO_OBJECT, parameters),
)

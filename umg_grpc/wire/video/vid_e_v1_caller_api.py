"""HTTP API of family `vidE`, version 1, for callers: `/vidE/v1/videos/text2video` and `/image2video`."""

from collections.abc import Mapping

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.multipart_forms import FormPart, form_object
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.errors import encode_error_e
from umg_grpc.wire.video.submission_body_reader import CreateBody, JsonText, WholeNumber, members_of
from umg_grpc.wire.video.task_response_values import (
    FAILED_STATES,
    SUCCEEDED_STATE,
    code_and_message,
    seconds,
    states,
    task_query,
    urls,
)

BODY_FIELDS = {
    **members_of(str, "prompt", "size", "mode", "aspect_ratio", "negative_prompt"),
    **members_of(WholeNumber, "seed", duration="duration_seconds"),
    **members_of(float, "cfg_scale"),
    **members_of(bool, sound="generate_audio"),
    **members_of(JsonText, dynamic_masks="dynamic_masks_json", camera_control="camera_control_json"),
}
IMAGE_FIELDS = ("image", "images", "input_reference")
MEDIA_KINDS = {"text2video": pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO, "image2video": pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO}
STATE_NAMES = states("queued", "processing", "succeeded", "failed")

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "duration"),
        (r"^parameters\.generate_audio", "metadata.sound"),
        (r"^parameters\.(dynamic_masks|camera_control)_json", r"metadata.\1"),
        (r"^parameters\.(aspect_ratio|negative_prompt|cfg_scale|seed)", r"metadata.\1"),
        (r"^parameters\.media.*", "image"),
        (r"^parameters\.extra_json", "metadata"),
        (r"^(callback_url|external_task_id)", r"metadata.\1"),
        (r"^parameters\.", ""),
    ]
)


def decode_create(body: bytes, parameters: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body that submits a task. `parameters`: those of the path. Raise UmgError naming the field."""
    return _decode(CreateBody(pb.VIDEO_ENTRY_E_V1, body), parameters)


def decode_form(parts: list[FormPart], parameters: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the form that submits a task. `parameters`: those of the path. Raise UmgError naming the field."""
    body = CreateBody(pb.VIDEO_ENTRY_E_V1, msgspec.json.encode(form_object(parts)), is_form=True)
    return _decode(body, parameters)


def _decode(body: CreateBody, parameters: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    body.model()
    body.request.kind = MEDIA_KINDS[parameters["kind"]]
    metadata = body.nested("metadata")
    for members, at in ((body.members, ""), (metadata, "metadata.")):
        body.read(BODY_FIELDS, members, at.rstrip("."))
        for name in IMAGE_FIELDS:
            if (raw := members.pop(name, None)) is not None:
                body.images(raw, f"{at}{name}")
        body.callback(members.pop("callback_url", None), f"{at}callback_url")
        body.external_id(members.pop("external_task_id", None), f"{at}external_task_id")
    if (mask := metadata.pop("static_mask", None)) is not None:
        body.images(mask, "metadata.static_mask", pb.VIDEO_MEDIA_ROLE_STATIC_MASK)
    body.keep(metadata)
    return body.finish({"parameters.media": "image", "parameters.prompt": "prompt"})


def encode_created(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a submission, a video object."""
    return msgspec.json.encode(_view(task))


def encode_task(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a query: a video object with the result. The specification only defines its `status`;
    the members of the result are those of `/v1/video/generations`.
    """
    view = _view(task)
    if task.HasField("external_task_id"):
        view["external_task_id"] = task.external_task_id
    view |= {"progress": 100 if task.state == SUCCEEDED_STATE else task.progress_percent}
    if addresses := urls(task):
        view |= {"completed_at": seconds(task.complete_time), "url": addresses[0]}
    if task.state in FAILED_STATES:
        view["error"] = code_and_message(task)
    return msgspec.json.encode(view)


def _view(task: pb.VideoTask) -> JsonObject:
    return {
        "id": task.task_id,
        "task_id": task.task_id,
        "object": "video",
        "model": task.model,
        "status": STATE_NAMES[task.state],
        "created_at": seconds(task.create_time),
    }


ENTRY_E_V1 = EntryFormat(
    name="video_e_v1",
    entry=pb.VIDEO_ENTRY_E_V1,
    decode_create=decode_create,
    decode_form=decode_form,
    encode_created=encode_created,
    encode_task=encode_task,
    encode_error=encode_error_e,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_E_V1, parameters, MEDIA_KINDS[parameters["kind"]]),
    notifies=True,
)

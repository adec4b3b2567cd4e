"""HTTP API `/v1/video/generations` for callers of video tasks, which accepts the models of all families."""

from collections.abc import Mapping

import msgspec

from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS, ENTRY_RULES, video_family
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import encode_error
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, missing
from umg_grpc.wire.core.multipart_forms import FormPart, form_object
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.content_array_items import ITEM_KINDS, ROLES_D_1, read_content
from umg_grpc.wire.video.prompt_option_markers import read_markers
from umg_grpc.wire.video.submission_body_reader import CreateBody, Members, Seconds, WholeNumber, members_of
from umg_grpc.wire.video.task_response_values import (
    FAILED_STATES,
    VIDEO_FORMAT,
    failure_message,
    states,
    task_query,
    urls,
)

BODY_FIELDS = {
    **members_of(str, "prompt", "size", aspectRatio="aspect_ratio"),
    **members_of(WholeNumber, duration="duration_seconds", durationSeconds="duration_seconds"),
    **members_of(Seconds, seconds="duration_seconds"),
    **members_of(str, "aspect_ratio", "resolution", "mode", ratio="aspect_ratio", personGeneration="person_generation"),
    **members_of(str, negativePrompt="negative_prompt", negative_prompt="negative_prompt"),
    **members_of(bool, generateAudio="generate_audio", generate_audio="generate_audio"),
    **members_of(bool, addWatermark="watermark", watermark="watermark"),
    **members_of(bool, enhancePrompt="prompt_extend", prompt_extend="prompt_extend"),
    **members_of(bool, "camera_fixed", "return_last_frame"),
    **members_of(WholeNumber, "seed", "frames", sampleCount="sample_count", fps="frames_per_second"),
}
"""Field of the body or of `metadata` -> canonical parameter. The specification does not name the fields for prompt
extension and for `vidC`'s audio, so they have the names of the vendor's API.
"""
IMAGE_FIELDS = ("image", "images", "input_reference")
AUDIO_FIELD, VIDEO_FIELD = "audio_url", "video_url"
STATE_NAMES = states("queued", "in_progress", "succeeded", "failed")
_NO_VIDEO = {name: kind for name, kind in ITEM_KINDS.items() if name == "image_url"}

wire_path = wire_paths(
    [
        (r"^parameters\.duration_seconds", "duration"),
        (r"^parameters\.aspect_ratio", "aspectRatio"),
        (r"^parameters\.generate_audio", "generateAudio"),
        (r"^parameters\.sample_count", "sampleCount"),
        (r"^parameters\.person_generation", "personGeneration"),
        (r"^parameters\.frames_per_second", "fps"),
        (r"^parameters\.media.*", "image"),
        (r"^parameters\.extra_json", "metadata"),
        (r"^(callback_url|external_task_id)", r"metadata.\1"),
        (r"^parameters\.", ""),
    ]
)


def decode_create(body: bytes, _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the JSON body that submits a task. Raise UmgError naming the field."""
    return _decode(CreateBody(pb.VIDEO_ENTRY_UNIFIED, body))


def decode_form(parts: list[FormPart], _: Mapping[str, str]) -> pb.CreateVideoTaskRequest:
    """Decode the form that submits a task. Raise UmgError naming the field."""
    return _decode(CreateBody(pb.VIDEO_ENTRY_UNIFIED, msgspec.json.encode(form_object(parts)), is_form=True))


def _decode(body: CreateBody) -> pb.CreateVideoTaskRequest:
    model = body.model()
    family = video_family(model)
    metadata = body.nested("metadata")
    content = metadata.pop("content", None)
    if content is not None:
        if family not in {"", "vidD"}:
            raise invalid("metadata.content", "only family D accepts its prompt in it; send `prompt`")
        body.take("prompt")  # "not used by family D 1.x"
        read_content(
            body,
            content,
            "metadata.content",
            ROLES_D_1,
            kinds=_NO_VIDEO,
            read_text=lambda text, path: read_markers(body, text, path),
        )
    elif family == "vidD" and (model in ENTRY_RULES[pb.VIDEO_ENTRY_UNIFIED] or model not in DOCUMENTED_MODELS):
        raise missing("metadata.content")
    for members, at in ((body.members, ""), (metadata, "metadata.")):
        if not family:
            body.keep_open_length(members)
        body.read(BODY_FIELDS, members, at.rstrip("."))
        _read_media(body, members, at)
        if not family:
            _read_medium(body, members, at, VIDEO_FIELD, pb.VIDEO_MEDIA_KIND_VIDEO)
        body.callback(members.pop("callback_url", None), f"{at}callback_url")
        body.external_id(members.pop("external_task_id", None), f"{at}external_task_id")
    body.keep(metadata)
    prompt = "metadata.content" if family == "vidD" else "prompt"
    return body.finish({"parameters.media": "image", "parameters.prompt": prompt})


def _read_media(body: CreateBody, members: Members, at: str) -> None:
    for name in IMAGE_FIELDS:
        if (raw := members.pop(name, None)) is not None:
            body.images(raw, f"{at}{name}")
    media = body.request.parameters.media
    if (last := members.pop("lastFrame", None)) is not None:
        if len(media) == 1:
            media[0].role = pb.VIDEO_MEDIA_ROLE_FIRST_FRAME
        body.images(last, f"{at}lastFrame", pb.VIDEO_MEDIA_ROLE_LAST_FRAME)
    _read_medium(body, members, at, AUDIO_FIELD, pb.VIDEO_MEDIA_KIND_AUDIO)


def _read_medium(body: CreateBody, members: Members, at: str, name: str, kind: "pb.VideoMediaKind.ValueType") -> None:
    if (raw := members.pop(name, None)) is None:
        return
    text = msgspec.json.decode(raw)
    if not isinstance(text, str):
        raise invalid(f"{at}{name}", "expected a string; correct its type")
    body.medium(text, f"{at}{name}", kind)


def encode_created(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a submission: `{task_id, status, format}`."""
    return msgspec.json.encode({"task_id": task.task_id, "status": STATE_NAMES[task.state], "format": VIDEO_FORMAT})


def encode_task(task: pb.VideoTask, _: str = "") -> bytes:
    """Return the response to a query: the task with its state and its result or error."""
    view: JsonObject = {"task_id": task.task_id, "status": STATE_NAMES[task.state], "format": VIDEO_FORMAT}
    if addresses := urls(task):
        view["url"] = addresses[0]
        if len(addresses) > 1:
            view["urls"] = addresses
    if task.state in FAILED_STATES:
        view["error"] = {"code": task.error.status_code or 500, "message": failure_message(task)}
        view["fail_reason"] = failure_message(task)
    return msgspec.json.encode(view)


UNIFIED_FORMAT = EntryFormat(
    name="video",
    entry=pb.VIDEO_ENTRY_UNIFIED,
    decode_create=decode_create,
    decode_form=decode_form,
    encode_created=encode_created,
    encode_task=encode_task,
    encode_error=encode_error,
    wire_path=wire_path,
    decode_query=lambda parameters: task_query(pb.VIDEO_ENTRY_UNIFIED, parameters),
    notifies=True,
)

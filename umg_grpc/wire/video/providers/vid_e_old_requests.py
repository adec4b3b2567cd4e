"""Encoding for the old API of `vidE`: numbers and switches are texts, and each operation has its fields for inputs."""

from collections.abc import Collection

from msgspec import Raw

from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.image_roles import Inputs, Numbered, inputs_of, present
from umg_grpc.wire.video.providers.media_encoding import address_or_base64, video_address
from umg_grpc.wire.video.providers.request_encoding import (
    OF_THE_GATEWAY,
    add_missing,
    extra_fields,
    is_sent,
    json_request,
    members_of,
    prompt_of,
    ratio_of,
    refuse_contents,
    refuse_media,
    report_size,
    report_unsupported,
)
from umg_grpc.wire.video.providers.vid_e_apis import (
    ASPECT_RATIOS,
    DEFAULT_SECONDS,
    MODE_RESOLUTIONS,
    MOTION_OPERATION,
    OLD_API,
    OMNI_OPERATION,
    RESOLUTION_MODES,
    mode_of,
    model_name,
    old_path,
    sends_sound,
)

OF_ALL = frozenset({"prompt", "mode", "watermark"})
OF_TIMED = OF_ALL | {"duration_seconds", "size", "aspect_ratio"}
OPERATION_FIELDS = {
    "multi-image2video": OF_TIMED | {"negative_prompt", "cfg_scale"},
    OMNI_OPERATION: OF_TIMED | {"generate_audio"},
    MOTION_OPERATION: OF_ALL | {"generate_audio"},
}
"""Operation -> parameters that it accepts; operations not listed accept `OF_OTHERS`."""
OF_OTHERS = OF_TIMED | {
    *("negative_prompt", "cfg_scale", "generate_audio", "camera_control_json", "dynamic_masks_json")
}
WITH_RATIO = frozenset({"text2video", "multi-image2video", OMNI_OPERATION})
"""Operations that accept an aspect ratio; in all others the video has the ratio of the input."""


def encode_old(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request of the old API. Raise UmgError for a part that the API cannot express."""
    report = Report()
    parameters = submission.request.parameters
    path = old_path(submission)
    operation = path.removeprefix(OLD_API)
    fields = OPERATION_FIELDS.get(operation, OF_OTHERS)
    is_tier = not parameters.mode and parameters.resolution.lower() in RESOLUTION_MODES
    report_unsupported(parameters, {*fields, "resolution"} if is_tier else fields, report)
    body: JsonObject = {
        "model_name": model_name(submission),
        "prompt": prompt_of(submission),
        "external_task_id": submission.task_id,
    }
    if mode := mode_of(submission):
        body["mode"] = mode
    body |= _media(submission, operation)
    if operation != MOTION_OPERATION:
        _encode_options(submission, fields, body)
        _encode_ratio(submission, operation, body, report)
    elif parameters.HasField("generate_audio"):
        body["keep_original_sound"] = "yes" if parameters.generate_audio else "no"
    if parameters.HasField("watermark"):
        body["watermark_info"] = {"enabled": parameters.watermark}
    if submission.callback_url:
        body["callback_url"] = submission.callback_url
    add_missing(body, _extra(submission, report))
    return json_request(path, body, report)


def _extra(submission: Submission, report: Report) -> dict[str, Raw]:
    extra = extra_fields(submission, report)
    refuse_contents(extra)
    groups = {**members_of(extra.pop("settings", None)), **members_of(extra.pop("options", None))}
    for name in sorted(OF_THE_GATEWAY & groups.keys()):
        report.drop(f"parameters.extra_json.{name}")
        del groups[name]
    return {**groups, **extra}


def _encode_options(submission: Submission, fields: Collection[str], body: JsonObject) -> None:
    parameters = submission.request.parameters
    if "duration_seconds" in fields and is_sent(submission, "duration_seconds"):
        body["duration"] = str(parameters.duration_seconds or DEFAULT_SECONDS)  # the provider refuses a number
    if "generate_audio" in fields and sends_sound(submission):
        body["sound"] = "on" if parameters.generate_audio else "off"
    if "negative_prompt" in fields and parameters.negative_prompt:
        body["negative_prompt"] = parameters.negative_prompt
    if "cfg_scale" in fields and parameters.HasField("cfg_scale"):
        body["cfg_scale"] = parameters.cfg_scale
    for name, field in (("camera_control_json", "camera_control"), ("dynamic_masks_json", "dynamic_masks")):
        if name in fields and (value := getattr(parameters, name)):
            body[field] = json_text(value, f"parameters.{name}")


def _encode_ratio(submission: Submission, operation: str, body: JsonObject, report: Report) -> None:
    parameters, has_ratio = submission.request.parameters, operation in WITH_RATIO
    ratio = parameters.aspect_ratio or ratio_of(parameters.size, ASPECT_RATIOS) or ""
    if ratio and has_ratio:
        body["aspect_ratio"] = ratio
    elif ratio:
        report.drop("parameters.aspect_ratio" if parameters.aspect_ratio else "parameters.size")
    report_size(submission, MODE_RESOLUTIONS.get(mode_of(submission), ""), ratio if has_ratio else "", report)


def _media(submission: Submission, operation: str) -> JsonObject:
    inputs = inputs_of(submission, pairs=True)
    if operation == MOTION_OPERATION:
        return _of_motion(inputs)
    if operation == OMNI_OPERATION:
        return _of_omni(inputs)
    if operation == "multi-image2video":
        refuse_media([*inputs.masks, *inputs.videos, *inputs.audio], "reference images")
        return {"image_list": [{"image": _url(image)} for image in inputs.references]}
    refuse_media(
        [*inputs.references, *inputs.masks[1:], *inputs.videos, *inputs.audio],
        "a first frame, a last frame and one static mask",
    )
    named = (("image", inputs.first), ("image_tail", inputs.last), ("static_mask", next(iter(inputs.masks), None)))
    return {name: _url(image) for name, image in named if image is not None}


def _of_motion(inputs: Inputs) -> JsonObject:
    images = [*present(inputs.first, inputs.last), *inputs.references]
    refuse_media([*images[1:], *inputs.masks, *inputs.videos[1:], *inputs.audio], "one image and one video")
    body: JsonObject = {}
    for image in images:
        body["image_url"] = _url(image)
    for position, video in inputs.videos:
        body["video_url"] = video_address(video, position)
    return body


def _of_omni(inputs: Inputs) -> JsonObject:
    refuse_media([*inputs.masks, *inputs.audio], "images and videos")
    frames = (("first_frame", inputs.first), ("end_frame", inputs.last))
    images: list[JsonObject] = [{"image_url": _url(image), "type": name} for name, image in frames if image is not None]
    images += [{"image_url": _url(image)} for image in inputs.references]
    videos = [
        {"video_url": video_address(video, position), "refer_type": "feature"} for position, video in inputs.videos
    ]
    return {name: items for name, items in (("image_list", images), ("video_list", videos)) if items}


def _url(image: Numbered) -> str:
    position, media = image
    return address_or_base64(media, position)

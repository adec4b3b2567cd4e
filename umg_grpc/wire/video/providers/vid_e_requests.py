"""Encoding of submissions for the protocol `vidE`, to the old or the new API of its providers."""

import re
from urllib.parse import quote

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject, json_text
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.video.provider_protocol import ProviderRequest
from umg_grpc.wire.video.provider_task import Submission
from umg_grpc.wire.video.providers.image_roles import Inputs, Numbered, inputs_of
from umg_grpc.wire.video.providers.media_encoding import address_or_base64, at
from umg_grpc.wire.video.providers.request_encoding import (
    add_missing,
    extra_fields,
    is_neutral,
    is_sent,
    json_request,
    members_of,
    prompt_of,
    ratio_of,
    refuse_media,
    report_unsupported,
)

NEW_MODELS = re.compile(r"(?:^|-)[3-9]\.\d")
"""Pattern for model ids of the new API (`kling-3.0-turbo`); ids of the old API are written like `kling-v2-6`."""
OLD_PATHS = {False: "/v1/videos/text2video", True: "/v1/videos/image2video"}
"""Whether there are images -> path of the old API."""
NEW_PATHS = {
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO: "text-to-video",
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO: "image-to-video",
    pb.VIDEO_TASK_KIND_OMNI: "omni-video",
}
WITH_SOUND = re.compile(r"v2-6|v3")
"""Pattern for model ids of the old API that accept the field `sound`."""
DEFAULT_SECONDS = 5
DEFAULT_RESOLUTION, DEFAULT_RATIO = "720p", "16:9"
OLD_FIELDS = frozenset(
    {
        *("prompt", "negative_prompt", "duration_seconds", "size", "aspect_ratio", "mode", "generate_audio"),
        *("cfg_scale", "camera_control_json", "dynamic_masks_json"),
    }
)
NEW_FIELDS = frozenset(
    {"prompt", "duration_seconds", "resolution", "aspect_ratio", "size", "generate_audio", "watermark"}
)
OWN_OPTIONS = ("callback_url", "external_task_id")
"""Fields of `options` that only the gateway sets, also if the caller sends `options`."""


def is_new(model: str) -> bool:
    """Return whether the provider offers the model in its new API, by the model id."""
    return NEW_MODELS.search(model) is not None


def old_path(submission: Submission) -> str:
    """Return the path to which a submission is sent in the old API, and below which its task is queried."""
    return OLD_PATHS[_has_images(submission)]


def _has_images(submission: Submission) -> bool:
    return submission.request.kind == pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO or bool(submission.request.parameters.media)


# --- the old API


def encode_old(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request of the old API. Raise UmgError for a part that the API cannot express."""
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, OLD_FIELDS, report)
    inputs = inputs_of(submission, pairs=True)
    refuse_media(
        [*inputs.references, *inputs.masks[1:], *inputs.videos, *inputs.audio],
        "a first frame, a last frame and one static mask",
    )
    body: JsonObject = {
        "model_name": submission.model,
        "prompt": prompt_of(submission),
        "external_task_id": submission.task_id,
    }
    if is_sent(submission, "duration_seconds"):
        body["duration"] = str(parameters.duration_seconds or DEFAULT_SECONDS)  # the provider refuses a number
    if parameters.negative_prompt:
        body["negative_prompt"] = parameters.negative_prompt
    if parameters.mode:
        body["mode"] = parameters.mode
    masks = (("static_mask", next(iter(inputs.masks), None)),)
    for name, image in (("image", inputs.first), ("image_tail", inputs.last), *masks):
        if image is not None:
            body[name] = address_or_base64(image[1], image[0])
    _encode_old_options(submission, body, report)
    if submission.callback_url:
        body["callback_url"] = submission.callback_url
    add_missing(body, extra_fields(submission, report))
    return json_request(old_path(submission), body, report)


def _encode_old_options(submission: Submission, body: JsonObject, report: Report) -> None:
    parameters = submission.request.parameters
    ratio = parameters.aspect_ratio or ratio_of(parameters.size)
    if ratio and not _has_images(submission):
        body["aspect_ratio"] = ratio
    elif ratio:
        report.drop("parameters.aspect_ratio" if parameters.aspect_ratio else "parameters.size")
    if WITH_SOUND.search(submission.model):
        if is_sent(submission, "generate_audio"):
            body["sound"] = "on" if parameters.generate_audio else "off"
    elif parameters.generate_audio:
        report.drop("parameters.generate_audio")
    if parameters.HasField("cfg_scale"):
        body["cfg_scale"] = parameters.cfg_scale
    for name, field in (("camera_control_json", "camera_control"), ("dynamic_masks_json", "dynamic_masks")):
        if value := getattr(parameters, name):
            body[field] = json_text(value, f"parameters.{name}")


# --- the new API


def encode_new(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request of the new API. `contents`, `settings` and `options` of the caller take
    precedence, except for the callback and the external id, which the gateway sets.
    """
    report = Report()
    parameters = submission.request.parameters
    report_unsupported(parameters, NEW_FIELDS, report)
    inputs, kind = inputs_of(submission, pairs=True), _kind(submission)
    extra = extra_fields(submission, report)
    body: JsonObject = {}
    if kind == pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO:
        refuse_media(list(enumerate(parameters.media)), "no media for a video of a text")
        body["prompt"] = prompt_of(submission)
    else:
        contents = _contents(submission, inputs, is_omni=kind == pb.VIDEO_TASK_KIND_OMNI)
        body["contents"] = extra.pop("contents", None) or contents
    body["settings"] = {**_settings(submission, inputs, kind, report), **members_of(extra.pop("settings", None))}
    options = members_of(extra.pop("options", None))
    for name in OWN_OPTIONS:
        options.pop(name, None)
    if is_sent(submission, "watermark"):
        options.setdefault("watermark_info", Raw(b'{"enabled":true}' if parameters.watermark else b'{"enabled":false}'))
    body["options"] = {**options, **_own_options(submission)}
    add_missing(body, extra)
    return json_request(f"/{NEW_PATHS[kind]}/{quote(submission.model, safe='')}", body, report)


def _kind(submission: Submission) -> "pb.VideoTaskKind.ValueType":
    """Return the kind of a task, which is part of the path: the kind in the submission, otherwise the one that its
    model and its media imply.
    """
    if submission.request.kind in NEW_PATHS:
        return submission.request.kind
    if submission.model.endswith("omni"):
        return pb.VIDEO_TASK_KIND_OMNI
    has_images = _has_images(submission)
    return pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO if has_images else pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO


def _contents(submission: Submission, inputs: Inputs, *, is_omni: bool) -> list[JsonObject]:
    """Return the member `contents` of a request of the new API: the prompt and the media. `is_omni`: whether the path
    is that of multi-modal models.
    """
    contents: list[JsonObject] = []
    if prompt := prompt_of(submission):
        contents.append({"type": "prompt", "text": prompt})
    for name, image in (("first_frame", inputs.first), ("last_frame", inputs.last)):
        if image is not None:
            contents.append({"type": name, "url": address_or_base64(image[1], image[0])})
    refuse_media([*inputs.masks, *inputs.audio], "images" if not is_omni else "images and videos")
    if not is_omni:
        refuse_media([*inputs.references, *inputs.videos], "a first frame and a last frame")
    for position, media in inputs.references:
        contents.append({"type": "refer_image", "url": address_or_base64(media, position)})
    contents += [{"type": "feature_video", "url": _video_url(numbered)} for numbered in inputs.videos]
    return contents


def _video_url(numbered: Numbered) -> str:
    position, media = numbered
    if media.WhichOneof("source") == "data":
        raise untranslatable(at(position), "this model's provider accepts a video by its URL only; send an https URL")
    return address_or_base64(media, position)


def _settings(submission: Submission, inputs: Inputs, kind: "pb.VideoTaskKind.ValueType", report: Report) -> JsonObject:
    """Return the member `settings` of a request of the new API. For neutral models, defaults of the provider that cost
    more are overridden. `report`: receives parameters that are not sent.
    """
    parameters = submission.request.parameters
    settings: JsonObject = {}
    if is_sent(submission, "resolution"):
        settings["resolution"] = parameters.resolution or DEFAULT_RESOLUTION
    if is_sent(submission, "duration_seconds"):
        settings["duration"] = parameters.duration_seconds or DEFAULT_SECONDS
    if is_sent(submission, "generate_audio"):
        settings["audio"] = "native" if parameters.generate_audio else "off"
    if is_neutral(submission):
        settings["multi_shot"] = False
    ratio = parameters.aspect_ratio or ratio_of(parameters.size)
    if kind == pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO:
        if ratio:
            report.drop("parameters.aspect_ratio" if parameters.aspect_ratio else "parameters.size")
    elif ratio or (is_neutral(submission) and inputs.first is None and not inputs.videos):
        settings["aspect_ratio"] = ratio or DEFAULT_RATIO
    return settings


def _own_options(submission: Submission) -> JsonObject:
    options: JsonObject = {"external_task_id": submission.task_id}
    if submission.callback_url:
        options["callback_url"] = submission.callback_url
    return options

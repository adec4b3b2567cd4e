"""Encoding of submissions for the new API of the protocol `vidE`: inputs in `contents`, parameters in `settings`."""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.image_roles import Inputs, inputs_of
from umg_grpc.wire.video.providers.media_encoding import address_or_base64, video_address
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
    report_size,
    report_unsupported,
)
from umg_grpc.wire.video.providers.vid_e_apis import (
    ASPECT_RATIOS,
    DEFAULT_SECONDS,
    MODE_RESOLUTIONS,
    MOTION_OPERATION,
    OMNI_OPERATION,
    ORIENTATION_MEMBER,
    has_media,
    is_motion,
    is_omni,
    model_name,
    resolution_of,
    row_of,
    sends_sound,
)

TEXT_OPERATION, IMAGE_OPERATION = "text-to-video", "image-to-video"
KIND_OPERATIONS = {
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO: TEXT_OPERATION,
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO: IMAGE_OPERATION,
    pb.VIDEO_TASK_KIND_OMNI: OMNI_OPERATION,
}
DEFAULT_RESOLUTION, DEFAULT_RATIO = "720p", "16:9"
SUPPORTED_FIELDS = frozenset(
    {"prompt", "duration_seconds", "resolution", "aspect_ratio", "size", "generate_audio", "watermark"}
)
MOTION_FIELDS = frozenset({"prompt", "resolution", "generate_audio", "watermark"})
SHOTS_MEMBER = "multi_shot"
OWN_OPTIONS = ("callback_url", "external_task_id")
"""Fields of `options` that only the gateway sets, even if the caller sends `options`."""


def encode_new(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request of the new API. The caller's `contents`, `settings` and `options` take
    precedence, except for the callback and the external id, which only the gateway sets.
    """
    report = Report()
    operation = _operation(submission)
    parameters, fields = (
        submission.request.parameters,
        MOTION_FIELDS if operation == MOTION_OPERATION else SUPPORTED_FIELDS,
    )
    is_tier = not parameters.resolution and parameters.mode in MODE_RESOLUTIONS
    report_unsupported(parameters, fields | {"mode"} if is_tier else fields, report)
    inputs = inputs_of(submission, pairs=True)
    extra = extra_fields(submission, report)
    body: JsonObject = {}
    if operation == TEXT_OPERATION:
        refuse_media(list(enumerate(parameters.media)), "no media for a video of a text")
        body["prompt"] = prompt_of(submission)
    else:
        callers = extra.pop("contents", None)
        body["contents"] = _contents(submission, inputs, operation) if callers is None else _stated(callers, submission)
    settings = (
        _motion_settings(submission)
        if operation == MOTION_OPERATION
        else _settings(submission, inputs, operation, report)
    )
    if operation == MOTION_OPERATION and ORIENTATION_MEMBER in extra:
        settings[ORIENTATION_MEMBER] = extra.pop(ORIENTATION_MEMBER)
    body["settings"] = {**settings, **members_of(extra.pop("settings", None))}
    body["options"] = _options(submission, members_of(extra.pop("options", None)))
    add_missing(body, extra)
    return json_request(f"/{operation}/{quote(model_name(submission), safe='')}", body, report)


def _operation(submission: Submission) -> str:
    """Return the operation of a submission, a part of the path: the model's only operation, or else the operation of
    the requested kind, or else the one that the media imply.
    """
    if is_motion(submission):
        return MOTION_OPERATION
    if is_omni(submission):
        return OMNI_OPERATION
    default = IMAGE_OPERATION if has_media(submission) else TEXT_OPERATION
    return KIND_OPERATIONS.get(submission.request.kind, default)


def _stated(contents: Raw, submission: Submission) -> list[Raw]:
    """Return the caller's `contents`. The parameter `prompt` is added if `contents` has no prompt item."""
    parameters = submission.request.parameters
    refuse_media(list(enumerate(parameters.media)), "the media in `contents` beside it")
    items = parse(list[Raw], contents, "parameters.extra_json.contents")
    if parameters.prompt.strip() and not any(bytes(members_of(item).get("type", b"")) == b'"prompt"' for item in items):
        items.insert(0, Raw(msgspec.json.encode({"type": "prompt", "text": parameters.prompt})))
    return items


def _contents(submission: Submission, inputs: Inputs, operation: str) -> list[JsonObject]:
    contents: list[JsonObject] = []
    if prompt := prompt_of(submission):
        contents.append({"type": "prompt", "text": prompt})
    frames = [("first_frame", inputs.first), ("last_frame", inputs.last)]
    images = [(name, *image) for name, image in frames if image is not None]
    images += [("refer_image", *image) for image in inputs.references]
    video = "feature_video"
    if operation == MOTION_OPERATION:
        images, video = [("image", position, media) for _, position, media in images], "video"
        others = [(position, media) for _, position, media in images[1:]] + inputs.videos[1:]
        refuse_media([*others, *inputs.masks, *inputs.audio], "one image and one video")
    elif operation == OMNI_OPERATION:
        refuse_media([*inputs.masks, *inputs.audio], "images and videos")
    else:
        refuse_media([*inputs.masks, *inputs.audio], "images")
        refuse_media([*inputs.references, *inputs.videos], "a first frame and a last frame")
    contents += [{"type": name, "url": address_or_base64(media, position)} for name, position, media in images]
    contents += [{"type": video, "url": video_address(media, position)} for position, media in inputs.videos]
    return contents


def _settings(submission: Submission, inputs: Inputs, operation: str, report: Report) -> JsonObject:
    parameters, row = submission.request.parameters, row_of(submission)
    settings: JsonObject = {}
    if (resolution := resolution_of(submission)) or is_neutral(submission):
        settings["resolution"] = resolution or DEFAULT_RESOLUTION
    if is_sent(submission, "duration_seconds"):
        settings["duration"] = parameters.duration_seconds or DEFAULT_SECONDS
    if sends_sound(submission):
        settings["audio"] = "native" if parameters.generate_audio else "off"
    if is_neutral(submission) and (row is None or SHOTS_MEMBER in row.members):
        settings[SHOTS_MEMBER] = bool(inputs.videos)  # the provider refuses a single shot of a video
    ratio = parameters.aspect_ratio or ratio_of(parameters.size, ASPECT_RATIOS) or ""
    if operation == IMAGE_OPERATION:
        if ratio:
            report.drop("parameters.aspect_ratio" if parameters.aspect_ratio else "parameters.size")
    elif ratio or (is_neutral(submission) and inputs.first is None and not inputs.videos):
        settings["aspect_ratio"] = ratio or DEFAULT_RATIO
    report_size(submission, resolution, "" if operation == IMAGE_OPERATION else ratio, report)
    return settings


def _motion_settings(submission: Submission) -> JsonObject:
    """Return the field `settings` for motion control, where sound is either the input video's or none."""
    parameters = submission.request.parameters
    settings: JsonObject = {}
    if resolution := resolution_of(submission):
        settings["resolution"] = resolution
    if parameters.HasField("generate_audio"):
        settings["audio"] = "original" if parameters.generate_audio else "off"
    return settings


def _options(submission: Submission, callers: Mapping[str, Raw]) -> JsonObject:
    """Return the field `options`: `callers`, the caller's members, and the members that the gateway sets."""
    options: JsonObject = {name: value for name, value in callers.items() if name not in OWN_OPTIONS}
    if is_sent(submission, "watermark"):
        options.setdefault("watermark_info", {"enabled": submission.request.parameters.watermark})
    own: JsonObject = {"external_task_id": submission.task_id}
    if submission.callback_url:
        own["callback_url"] = submission.callback_url
    return options | own

"""Encoding of submissions to another gateway as video provider: path and body of the HTTP API that the caller used."""

from collections.abc import Callable, Mapping

from msgspec import Raw

from umg_grpc.knowledge.families.video_model_rules import video_family
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video import (
    vid_d_caller_api,
    vid_e_3_caller_api,
    vid_e_v1_caller_api,
    vid_f_caller_api,
    vid_g_caller_api,
)
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.content_array_encoding import content_items
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.media_encoding import address_or_data_url
from umg_grpc.wire.video.providers.request_encoding import (
    JSON_HEADERS,
    add_missing,
    extra_fields,
    given,
    json_request,
    members_of,
    path_id,
    prompt_of,
    refuse_media,
    report_unsupported,
)
from umg_grpc.wire.video.submission_body_reader import Fields, JsonText

UNIFIED_ENTRY, VIDEO_OBJECT = "unified", "video_object"
ENTRY_D, E_V1, E_3, ENTRY_F, ENTRY_G = "D", "E_v1", "E_3", "F", "G"
ENTRY_NAMES = {
    pb.VIDEO_ENTRY_VIDEO_OBJECT: VIDEO_OBJECT,
    pb.VIDEO_ENTRY_D: ENTRY_D,
    pb.VIDEO_ENTRY_E_V1: E_V1,
    pb.VIDEO_ENTRY_E_3: E_3,
    pb.VIDEO_ENTRY_F: ENTRY_F,
    pb.VIDEO_ENTRY_G: ENTRY_G,
}
"""HTTP API of the caller -> its name in the stored facts of a task; APIs not listed use `/v1/video/generations`."""
URL_SCHEMES = ("http", "https", "asset")
VERSION_PARAMETER = "Version=2022-08-31"
SUBMIT_F, QUERY_F = (
    f"/vidF?Action=CVSync2AsyncSubmitTask&{VERSION_PARAMETER}",
    f"/vidF?Action=CVSync2AsyncGetResult&{VERSION_PARAMETER}",
)
KINDS_E_V1 = {pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO: "image2video", pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO: "text2video"}
KINDS_E_3 = {
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO: "text-to-video",
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO: "image-to-video",
    pb.VIDEO_TASK_KIND_OMNI: "omni-video",
}


def _sent(fields: Fields) -> Mapping[str, str]:
    return {
        member.parameter: name for name, member in fields.items() if name != "prompt" and member.kind is not JsonText
    }


ENTRY_FIELDS: Mapping[str, Mapping[str, str]] = {
    UNIFIED_ENTRY: {
        **{name: name for name in ("size", "resolution", "seed", "watermark", "negative_prompt", "prompt_extend")},
        **{name: name for name in ("camera_fixed", "return_last_frame", "frames", "mode")},
        "duration_seconds": "duration",
        "aspect_ratio": "aspectRatio",
        "generate_audio": "generateAudio",
        "sample_count": "sampleCount",
        "person_generation": "personGeneration",
        "frames_per_second": "fps",
    },
    VIDEO_OBJECT: {"size": "size", "negative_prompt": "negative_prompt"},
    ENTRY_D: _sent(vid_d_caller_api.BODY_FIELDS),
    E_V1: _sent(vid_e_v1_caller_api.BODY_FIELDS),
    E_3: _sent(vid_e_3_caller_api.BODY_FIELDS),
    ENTRY_F: _sent(vid_f_caller_api.BODY_FIELDS),
    ENTRY_G: _sent(vid_g_caller_api.BODY_FIELDS),
}
"""HTTP API -> canonical parameter -> field of the API's body."""
FURTHER_PARAMETERS = {
    VIDEO_OBJECT: {"duration_seconds"},
    E_V1: {"camera_control_json", "dynamic_masks_json"},
    E_3: {"generate_audio"},
}
"""HTTP API -> parameters that the API's body contains in another form than as a field of `ENTRY_FIELDS`."""


def entry_of(submission: Submission) -> str:
    """Return the HTTP API for a submission: the caller's; for a remix (change of a finished video) `/v1/videos`."""
    if submission.source is not None:
        return VIDEO_OBJECT
    return ENTRY_NAMES.get(submission.request.entry, UNIFIED_ENTRY)


def query_path(submission: Submission) -> str:
    """Return the path of the other gateway below which the task of a submission is queried."""
    entry = entry_of(submission)
    if entry == E_V1:
        return f"/vidE/v1/videos/{KINDS_E_V1.get(submission.request.kind, 'text2video')}"
    return {
        UNIFIED_ENTRY: "/v1/video/generations",
        VIDEO_OBJECT: "/v1/videos",
        ENTRY_D: "/vidD/api/v3/contents/generations/tasks",
        E_3: "/vidE/tasks",
        ENTRY_F: QUERY_F,
        ENTRY_G: "/vidG/v2/query/video_generation",
    }[entry]


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request of the HTTP API that the caller used."""
    report = Report()
    entry, parameters = entry_of(submission), submission.request.parameters
    if submission.source is not None:
        report_unsupported(parameters, {"prompt"}, report)
        body: JsonObject = {"prompt": prompt_of(submission)}
        add_missing(body, extra_fields(submission, report))
        return _request(f"/v1/videos/{path_id(submission.source.id)}/remix", body, submission, report)
    fields = ENTRY_FIELDS[entry]
    report_unsupported(parameters, {"prompt", *fields, *FURTHER_PARAMETERS.get(entry, ())}, report)
    present = given(parameters)
    options: JsonObject = {field: getattr(parameters, name) for name, field in fields.items() if name in present}
    path, body = ENTRY_ENCODERS[entry](submission, options, extra_fields(submission, report))
    return _request(path, body, submission, report)


def _request(path: str, body: JsonObject, submission: Submission, report: Report) -> ProviderRequest:
    request = json_request(path, body, report)
    headers = {**JSON_HEADERS, "Idempotency-Key": submission.task_id}
    return ProviderRequest(method="POST", path=path, body=request.body, headers=headers, report=report)


Extra = Mapping[str, Raw]
Encoded = tuple[str, JsonObject]


def _unified(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
    metadata: JsonObject = dict(extra)
    body: JsonObject = {"model": submission.model, **options}
    if (submission.family or video_family(submission.model, submission.request.model)) == "vidD":
        metadata["content"] = content_items(submission, schemes=URL_SCHEMES, only_urls={})
    else:
        body |= {"prompt": prompt_of(submission), **_images(submission)}
    if metadata:
        body["metadata"] = metadata
    return "/v1/video/generations", body


def _images(submission: Submission) -> JsonObject:
    inputs = inputs_of(submission, pairs=True)
    refuse_media([*inputs.masks, *inputs.videos, *inputs.audio[1:]], "images and one audio file")
    images = [*([inputs.first] if inputs.first is not None else []), *inputs.references]
    found: JsonObject = {}
    if len(images) == 1:
        found["image"] = address_or_data_url(images[0][1], images[0][0])
    elif images:
        found["images"] = [address_or_data_url(media, position) for position, media in images]
    if inputs.last is not None:
        found["lastFrame"] = address_or_data_url(inputs.last[1], inputs.last[0])
    if inputs.audio:
        found["audio_url"] = address_or_data_url(inputs.audio[0][1], inputs.audio[0][0])
    return found


def _video_object(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
    inputs = inputs_of(submission)
    images = [*([inputs.first] if inputs.first is not None else []), *inputs.references]
    last = [inputs.last] if inputs.last is not None else []
    refuse_media([*images[1:], *last, *inputs.masks, *inputs.videos, *inputs.audio], "one image")
    body: JsonObject = {"model": submission.model, "prompt": prompt_of(submission), **options}
    if seconds := submission.request.parameters.duration_seconds:
        body["seconds"] = str(seconds)
    if images:
        body["input_reference"] = address_or_data_url(images[0][1], images[0][0])
    add_missing(body, extra)
    return "/v1/videos", body


def _content(path: str) -> "Callable[[Submission, JsonObject, Extra], Encoded]":
    """Return the encoder for an HTTP API whose body has prompt and media in a `content` array."""

    def encode(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
        items = content_items(submission, schemes=URL_SCHEMES, only_urls={})
        body: JsonObject = {"model": submission.model, "content": items, **options}
        add_missing(body, extra)
        return path, body

    return encode


def _e_v1(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
    parameters, inputs = submission.request.parameters, inputs_of(submission, pairs=True)
    refuse_media([*inputs.masks[1:], *inputs.videos, *inputs.audio], "images and one static mask")
    metadata: JsonObject = {
        name: options.pop(name)
        for name in ("aspect_ratio", "negative_prompt", "cfg_scale", "sound", "seed")
        if name in options
    }
    for name, field in (("camera_control_json", "camera_control"), ("dynamic_masks_json", "dynamic_masks")):
        if value := getattr(parameters, name):
            metadata[field] = json_text(value, f"parameters.{name}")
    if inputs.masks:
        metadata["static_mask"] = address_or_data_url(inputs.masks[0][1], inputs.masks[0][0])
    add_missing(metadata, extra)
    body: JsonObject = {"model": submission.model, "prompt": prompt_of(submission), **options}
    frames = [frame for frame in (inputs.first, inputs.last) if frame is not None]
    if images := [address_or_data_url(media, position) for position, media in (*frames, *inputs.references)]:
        body["images"] = images
    if metadata:
        body["metadata"] = metadata
    return query_path(submission), body


def _e_3(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
    parameters = submission.request.parameters
    inputs = inputs_of(submission, pairs=True)
    refuse_media([*inputs.masks, *inputs.audio], "images and videos")
    body: JsonObject = {"prompt": prompt_of(submission), **options}
    body["options"] = {**members_of(extra.get("options")), "external_task_id": submission.task_id}
    if parameters.HasField("generate_audio"):
        audio = "native" if parameters.generate_audio else "off"
        body["settings"] = {"audio": audio, **members_of(extra.get("settings"))}
    frames = [frame for frame in (inputs.first, inputs.last) if frame is not None]
    for name, media in (("images", [*frames, *inputs.references]), ("videos", inputs.videos)):
        if media:
            body[name] = [address_or_data_url(medium, position) for position, medium in media]
    add_missing(body, extra)
    kind = KINDS_E_3.get(submission.request.kind, KINDS_E_3[pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO])
    return f"/vidE/{kind}/{path_id(submission.model)}", body


def _f(submission: Submission, options: JsonObject, extra: Extra) -> Encoded:
    media = list(enumerate(submission.request.parameters.media))
    refuse_media([(at, item) for at, item in media if item.kind != pb.VIDEO_MEDIA_KIND_IMAGE], "images")
    body: JsonObject = {"req_key": submission.model, "prompt": prompt_of(submission), **options}
    if media:
        body["image_urls"] = [address_or_data_url(item, position) for position, item in media]
    add_missing(body, extra)
    return SUBMIT_F, body


ENTRY_ENCODERS: Mapping[str, Callable[[Submission, JsonObject, Extra], Encoded]] = {
    UNIFIED_ENTRY: _unified,
    VIDEO_OBJECT: _video_object,
    ENTRY_D: _content("/vidD/api/v3/contents/generations/tasks"),
    E_V1: _e_v1,
    E_3: _e_3,
    ENTRY_F: _f,
    ENTRY_G: _content("/vidG/v2/video_generation"),
}
"""HTTP API -> function (submission, options, additional fields) that returns the path and the body."""

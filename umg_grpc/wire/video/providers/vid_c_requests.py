"""Submissions of the protocol `vidC`. The fields for media, size and sound depend on the model."""

from collections.abc import Collection

import msgspec

from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.knowledge.video_member_places import EACH_ITEM, MEDIA_ITEM, Medium, VideoPlaces, video_places
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.image_roles import Inputs, Numbered, inputs_of
from umg_grpc.wire.video.providers.media_encoding import address_or_data_url, at
from umg_grpc.wire.video.providers.request_encoding import (
    JSON_HEADERS,
    add_missing,
    extra_fields,
    given,
    is_neutral,
    is_sent,
    members_of,
    nearest_ratio,
    pixels,
    prompt_of,
    refuse_media,
    report_unsupported,
)

PROTOCOL_NAME = "vidC"
SYNTHESIS_PATH = "/api/v1/services/aigc/video-generation/video-synthesis"
ASYNC_HEADERS = {**JSON_HEADERS, "X-DashScope-Async": "enable"}
SUPPORTED_FIELDS = frozenset(
    {
        *("prompt", "negative_prompt", "duration_seconds", "size", "resolution", "aspect_ratio", "generate_audio"),
        *("seed", "watermark", "prompt_extend"),
    }
)
INPUT_FIELDS = frozenset(
    {
        *("audio_url", "template", "function", "ref_images_url", "media", "img_url", "first_frame_url"),
        *("last_frame_url", "head_frame", "tail_frame", "reference_urls", "reference_url", "reference_video_urls"),
        "reference_video_description",
    }
)
"""Additional fields of callers that are sent in `input`; all others are sent in `parameters`."""
OF_OTHERS = frozenset({"settings", "options"})
"""Additional fields that group another vendor's parameters and are therefore not sent."""
TIER_SIZES = {
    "480P": {"16:9": "832*480", "9:16": "480*832", "1:1": "624*624"},
    "720P": {"16:9": "1280*720", "9:16": "720*1280", "1:1": "960*960", "4:3": "1088*832", "3:4": "832*1088"},
    "1080P": {"16:9": "1920*1080", "9:16": "1080*1920", "1:1": "1440*1440", "4:3": "1632*1248", "3:4": "1248*1632"},
}
"""Sizes in pixels by tier and aspect ratio."""
DEFAULT_TIER, DEFAULT_RATIO = "720P", "16:9"
TIER_PIXELS = (("480P", 606_000), ("720P", 1_382_000), ("1080P", 10**9))
"""(tier, largest number of pixels for which the tier is the nearest one)."""
ASPECT_RATIOS = ("16:9", "9:16", "1:1", "4:3", "3:4")
MAX_SEED = 2**31 - 1
MEDIA_NAMES: dict[Medium, str] = {
    "first_frame": "a first frame",
    "last_frame": "a last frame",
    "reference_image": "reference images",
    "video": "videos",
    "audio": "audio",
}


def encode_create(submission: Submission) -> ProviderRequest:
    """Encode a submission as a request to the path that its model needs."""
    report = Report()
    parameters, places = submission.request.parameters, video_places(PROTOCOL_NAME, submission.model)
    report_unsupported(parameters, SUPPORTED_FIELDS.difference(places.without), report)
    takes_pairs = "last_frame" in places.media and "reference_image" not in places.media
    inputs = inputs_of(submission, pairs=takes_pairs, references=places.one_image == "reference_image")
    extra = extra_fields(submission, report)
    source = _input(submission, places, inputs)
    options = _options(submission, places, inputs, report)
    add_missing(source, members_of(extra.pop("input", None)))
    add_missing(options, members_of(extra.pop("parameters", None)))
    for name, raw in extra.items():
        if name in OF_OTHERS:
            report.drop(f"parameters.extra_json.{name}")
            continue
        (source if name in INPUT_FIELDS else options).setdefault(name, raw)
    body = msgspec.json.encode({"model": submission.model, "input": source, "parameters": options})
    return ProviderRequest(
        method="POST", path=places.path or SYNTHESIS_PATH, body=body, headers=ASYNC_HEADERS, report=report
    )


def _input(submission: Submission, places: VideoPlaces, inputs: Inputs) -> JsonObject:
    parameters = submission.request.parameters
    found: JsonObject = {}
    if prompt := prompt_of(submission):
        found["prompt"] = prompt
    if parameters.negative_prompt and "negative_prompt" not in places.without:
        found["negative_prompt"] = parameters.negative_prompt
    refuse_media(inputs.masks, accepted_media(places))
    items, lists = list[JsonObject](), dict[str, list[str]]()
    for medium, (position, media) in _media_of(inputs):
        place = places.media.get(medium)
        if place is None or place in found:
            raise untranslatable(at(position), f"this model's provider accepts {accepted_media(places)}; leave it out")
        url = address_or_data_url(media, position)
        if place.startswith(MEDIA_ITEM):
            items.append({"type": place.removeprefix(MEDIA_ITEM), "url": url})
        elif place.endswith(EACH_ITEM):
            lists.setdefault(place.removesuffix(EACH_ITEM), []).append(url)
        else:
            found[place] = url
    if items:
        found["media"] = items
    return {**found, **lists}


def _media_of(inputs: Inputs) -> list[tuple[Medium, Numbered]]:
    """Return all media in the order of the request; prompts refer to them by numbers in this order."""
    found: list[tuple[Medium, Numbered]] = []
    if inputs.first is not None:
        found.append(("first_frame", inputs.first))
    if inputs.last is not None:
        found.append(("last_frame", inputs.last))
    found += [("reference_image", numbered) for numbered in inputs.references]
    found += [("video", numbered) for numbered in inputs.videos]
    found += [("audio", numbered) for numbered in inputs.audio]
    return sorted(found, key=lambda pair: pair[1][0])


def accepted_media(places: VideoPlaces) -> str:
    """Return the kinds of media that a model accepts, as a phrase for an error message."""
    *others, last = [name for medium, name in MEDIA_NAMES.items() if medium in places.media] or ["no images and files"]
    return f"{', '.join(others)} and {last}" if others else last


def _options(submission: Submission, places: VideoPlaces, inputs: Inputs, report: Report) -> JsonObject:
    parameters = submission.request.parameters
    options: JsonObject = {
        name: getattr(parameters, name)
        for name in ("prompt_extend", "watermark")
        if name not in places.without and is_sent(submission, name)
    }
    has_image = inputs.first is not None
    if places.size == "pixels" or (places.size == "tier_with_image" and not has_image):
        if size := _size(submission, report):
            options["size"] = size
    else:
        options |= _tier(submission, places, report)
    if parameters.duration_seconds and "duration_seconds" not in places.without:
        options["duration"] = parameters.duration_seconds
    _add_sound(options, submission, places, inputs, report)
    if parameters.HasField("seed") and 0 <= parameters.seed <= MAX_SEED:
        options["seed"] = parameters.seed
    elif parameters.HasField("seed"):
        report.drop("parameters.seed")
    return options


def _size(submission: Submission, report: Report) -> str:
    """Return the size in pixels: the requested one, else the size for the requested resolution and aspect ratio; ""
    leaves it to the provider. `report`: receives a resolution or ratio that the size does not have.
    """
    parameters = submission.request.parameters
    size = parameters.size.lower().replace("x", "*")
    if not (size or parameters.resolution or parameters.aspect_ratio or is_neutral(submission)):
        return ""
    if not size:
        sizes = TIER_SIZES.get(parameters.resolution.upper() or DEFAULT_TIER, {})
        ratio = parameters.aspect_ratio or DEFAULT_RATIO
        size = sizes.get(ratio, "") or sizes.get(_ratio(pixels(ratio.replace(":", "x"))), "")
    if not is_neutral(submission):
        found = pixels(size)
        if parameters.resolution and parameters.resolution.upper() != _tier_of(found):
            report.drop("parameters.resolution", size or None)
        if parameters.aspect_ratio and parameters.aspect_ratio != _ratio(found):
            report.drop("parameters.aspect_ratio", size or None)
    return size


def _tier(submission: Submission, places: VideoPlaces, report: Report) -> JsonObject:
    parameters = submission.request.parameters
    found = pixels(parameters.size)
    tier = parameters.resolution.upper() or _tier_of(found, _tiers(submission.model))
    options: JsonObject = {"resolution": tier} if tier else {}
    if not places.ratio:
        for name in sorted({"size", "aspect_ratio"} & given(parameters)):
            report.drop(f"parameters.{name}")
        return options
    if ratio := parameters.aspect_ratio or _ratio(found):
        options["ratio"] = ratio
    exact = TIER_SIZES.get(tier, {}).get(ratio, "")
    if parameters.size and (found is None or found != pixels(exact)):
        report.drop("parameters.size", " ".join(filter(None, (tier, ratio))) or None)
    return options


def _tiers(model: str) -> Collection[str]:
    row = media_model(PROTOCOL_NAME, model)
    values = row.values.get("resolution") if row is not None else None
    return [str(value).upper() for value in values] if values else TIER_SIZES


def _tier_of(size: tuple[int, int] | None, tiers: Collection[str] = tuple(TIER_SIZES)) -> str:
    accepted = [(tier, most) for tier, most in TIER_PIXELS if tier in tiers]
    if size is None or not accepted:
        return ""
    return next((tier for tier, most in accepted if size[0] * size[1] <= most), accepted[-1][0])


def _ratio(size: tuple[int, int] | None) -> str:
    return "" if size is None else nearest_ratio(size, ASPECT_RATIOS)


def _add_sound(
    options: JsonObject, submission: Submission, places: VideoPlaces, inputs: Inputs, report: Report
) -> None:
    """Add the sound switch to `options`, in place, or record in `report` that the model cannot apply it."""
    parameters = submission.request.parameters
    if places.sound == "switched":
        if is_sent(submission, "generate_audio"):
            options["audio"] = parameters.generate_audio or (is_neutral(submission) and bool(inputs.audio))
        return
    if places.sound == "never":
        is_ignored = parameters.generate_audio
    else:  # the checks fill in false for neutral models
        is_ignored = parameters.HasField("generate_audio") and not parameters.generate_audio
        is_ignored = is_ignored and not is_neutral(submission)
    if is_ignored:
        report.drop("parameters.generate_audio")

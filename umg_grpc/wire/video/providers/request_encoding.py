"""Steps that several protocols share when they encode the submission of a video task."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from urllib.parse import quote

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.families.video_model_rules import video_family
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, check_numbers, invalid, missing
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.video.provider_protocol_interface import Implied, ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission

JSON_TYPE = "application/json"
JSON_HEADERS = {"Content-Type": JSON_TYPE}
OF_THE_GATEWAY = frozenset(
    {
        *("model", "model_name", "req_key", "callback_url", "callbackUrl", "external_task_id", "webhook_url"),
        *("storageUri", "pubsubTopic", "user"),
    }
)
"""Provider body fields that callers cannot set: they refer to objects or servers, or only the gateway may set them."""
MEDIA_FIELDS = frozenset({"media"})


def json_request(path: str, body: JsonObject, report: Report | None = None) -> ProviderRequest:
    """Return a POST request with a JSON body to a path below the base URL. `report`: parameters that are not sent."""
    return ProviderRequest(
        method="POST", path=path, body=msgspec.json.encode(body), headers=JSON_HEADERS, report=report or Report()
    )


def get_request(path: str) -> ProviderRequest:
    """Return a GET request. `path`: path below the channel's base URL, with the query."""
    return ProviderRequest(method="GET", path=path)


def path_id(task_id: str) -> str:
    """Return a task id, escaped for a URL path. Raise UmgError(UPSTREAM_FAILED) if it could lead to another path."""
    if not task_id or task_id in {".", ".."}:
        message = "the provider's id of the task cannot be used"
        raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)
    return quote(task_id, safe="")


def given(parameters: pb.VideoParameters) -> set[str]:
    """Return the names of the parameters that are set."""
    return {descriptor.name for descriptor, _ in parameters.ListFields()}


def is_neutral(submission: Submission) -> bool:
    """Return whether a submission is for a neutral model, for which the gateway's defaults replace the provider's. A
    vendor's model is sent only the parameters that the caller set.
    """
    return bool(video_family(submission.request.model, submission.model))


def is_sent(submission: Submission, parameter: str) -> bool:
    """Return whether a parameter is sent even if it is false or empty: the caller set it, or the model is neutral."""
    return submission.request.parameters.HasField(parameter) or is_neutral(submission)  # type: ignore[arg-type]


def prompt_of(submission: Submission) -> str:
    """Return the prompt; "" if the submission has only media. Raise UmgError(MISSING_FIELD) if it has neither."""
    parameters = submission.request.parameters
    if not parameters.prompt.strip() and not parameters.media:
        raise missing("parameters.prompt")
    return parameters.prompt


def report_unsupported(parameters: pb.VideoParameters, supported: Collection[str], report: Report) -> None:
    """Record in `report` the set parameters that are not in `supported` (canonical names). A false value and a single
    sample are not recorded; nor are media, since codecs reject media that the provider does not support.
    """
    for name in sorted(given(parameters) - {*supported, *MEDIA_FIELDS, "extra_json"}):
        value = getattr(parameters, name)
        if value is False or (name == "sample_count" and value == 1):
            continue
        report.drop(f"parameters.{name}")


def report_sound(submission: Submission, report: Report) -> None:
    """Report requested silence from a provider that always makes sound, unless it is a neutral model's default."""
    parameters = submission.request.parameters
    if parameters.HasField("generate_audio") and not parameters.generate_audio and not is_neutral(submission):
        report.drop("parameters.generate_audio")


def extra_fields(submission: Submission, report: Report) -> dict[str, Raw]:
    """Return the caller's additional fields for the provider. Fields that only the gateway may set are left out and
    recorded in `report`. Raise UmgError(INVALID_FIELD) if `extra_json` is not one JSON object.
    """
    text = submission.request.parameters.extra_json
    if not text:
        return {}
    try:
        fields = msgspec.json.decode(text, type=dict[str, Raw])
    except (ValueError, RecursionError):
        raise invalid("parameters.extra_json", "expected one JSON object; correct it") from None
    check_numbers(fields, "parameters.extra_json.")
    for name in sorted(OF_THE_GATEWAY & fields.keys()):
        report.drop(f"parameters.extra_json.{name}")
        del fields[name]
    return fields


def add_missing(body: JsonObject, fields: Mapping[str, Raw]) -> None:
    """Add the `fields` that a body does not have yet to the body, in place."""
    for name, raw in fields.items():
        body.setdefault(name, raw)


def members_of(raw: Raw | None) -> dict[str, Raw]:
    """Return the members of a JSON object; an empty dict for None and for any other JSON value."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw]) if raw is not None else {}
    except (ValueError, RecursionError):
        return {}


def refuse_media(media: Iterable[tuple[int, pb.VideoMedia]], supported: str) -> None:
    """Raise UmgError(UNTRANSLATABLE) for the first of `media`, if there is any. `media`: (index in the list of media,
    medium); `supported`: description of the media that the provider accepts, for the message.
    """
    for position, _ in media:
        raise untranslatable(
            f"parameters.media[{position}]", f"this model's provider accepts {supported}; leave it out"
        )


def refuse_contents(fields: Collection[str]) -> None:
    """Raise UmgError for media in the additional field `contents`. A provider without this field would ignore the media
    and make, and charge, a different video. `fields`: names of the caller's additional fields.
    """
    if "contents" in fields:
        message = "this model's API does not have it; send `prompt` and `image`"
        raise untranslatable("parameters.extra_json.contents", message)


SHORT_SIDES = {"480p": 480, "720p": 720, "768p": 768, "1080p": 1080, "2k": 1440, "4k": 2160}
"""Resolution in lower case -> shorter side in pixels of its 16:9 frames."""
ASPECT_RATIOS = {"1:1": (1, 1), "16:9": (16, 9), "9:16": (9, 16), "4:3": (4, 3), "3:4": (3, 4), "21:9": (21, 9)}


def pixels(size: str) -> tuple[int, int] | None:
    """Return width and height of a size like `1280x720` or `1280*720`; None for another form."""
    width, separator, height = size.lower().replace("*", "x").partition("x")
    if not separator or not (width.isdecimal() and height.isdecimal()) or max(len(width), len(height)) > 5:
        return None
    return (int(width), int(height)) if int(width) and int(height) else None


def ratio_of(size: str, ratios: Iterable[str] = ASPECT_RATIOS) -> str | None:
    """Return the aspect ratio (`16:9`) among `ratios` that is nearest to a pixel size; None if the text is no size."""
    found = pixels(size)
    return None if found is None else nearest_ratio(found, ratios)


def resolution_of_size(size: str, resolutions: Iterable[str]) -> str:
    """Return the resolution whose 16:9 frames have nearly as many pixels as a size; "" if the text is no size."""
    if (found := pixels(size)) is None:
        return ""
    frame = found[0] * found[1]
    return min(resolutions, key=lambda name: abs(math.log(frame / (SHORT_SIDES[name.lower()] ** 2 * 16 / 9))))


def implied_resolution(
    resolution_of: Callable[[tuple[int, int]], str],
) -> Callable[[Submission], Mapping[str, Implied]]:
    """Return a `VideoProtocol.implied` for sizes in pixels. `resolution_of`: (width, height) -> resolution."""

    def implied(submission: Submission) -> Mapping[str, Implied]:
        found = pixels(submission.request.parameters.size)
        return {} if found is None else {"resolution": Implied(resolution_of(found), "size")}

    return implied


def report_size(submission: Submission, resolution: str, ratio: str, report: Report) -> None:
    """Report a size in pixels that resolution and ratio do not express exactly; sizes of neutral models name ratios."""
    size = submission.request.parameters.size
    if not size or is_neutral(submission):
        return
    found, (wide, high) = pixels(size), pixels(ratio.replace(":", "x")) or (0, 0)
    if (
        found is None
        or min(found) != SHORT_SIDES.get(resolution.lower())
        or found[0] * high != found[1] * wide
        or not wide
    ):
        report.drop("parameters.size", " ".join(filter(None, (resolution, ratio))) or None)


def nearest_ratio(size: tuple[int, int], ratios: Iterable[str]) -> str:
    """Return the aspect ratio among `ratios`, for example `16:9`, that is nearest to a size in pixels."""
    ratio = size[0] / size[1]
    return min(ratios, key=lambda name: abs(int(name.partition(":")[0]) / int(name.partition(":")[2]) - ratio))

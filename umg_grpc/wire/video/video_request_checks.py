"""Checks of video submissions against the rules of their models, and the defaults for missing parameters.

The rules come from the specification of videos, whose entries are the HTTP APIs for videos, each with its own paths.
The service calls `check` and `read_urls` once, for HTTP and gRPC callers alike. An error has the canonical path of its
field and, where the specification has one, its text. The rules bind only neutral ids (`vidB-...`). Any other id is a
vendor's, and its request is sent as the caller wrote it. Pure: no I/O and no clock.
"""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.video_model_rules import (
    ANY_ROLE,
    DOCUMENTED_MODELS,
    E_3,
    E_V1,
    ENTRY_D,
    ENTRY_G,
    ENTRY_PATHS,
    ENTRY_RULES,
    FIRST_FRAME,
    IMAGE_KIND,
    IMAGES_TASK,
    LAST_FRAME,
    MAX_SIDE,
    MIN_SIDE,
    OMNI_TASK,
    REFERENCE_IMAGE,
    STATIC_MASK,
    TEXT_TASK,
    UNIFIED_ENTRY,
    VIDEO_FAMILIES,
    VIDEO_KIND,
    Role,
    Rules,
    Value,
    video_family,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import is_data_url, parse_data_url
from umg_grpc.wire.video.grouped_parameters import read_nested

_SIZE = re.compile(r"([0-9]{1,5})\*([0-9]{1,5})", re.ASCII)
_SIZE_OF_ALL = re.compile(r"([0-9]{1,5})[*x]([0-9]{1,5})", re.ASCII)
_HTTP = re.compile(r"https?://[^/?#\s]+")
_HTTPS = re.compile(r"https://[^/?#\s]+", re.IGNORECASE)
_EXTERNAL_ID = re.compile(r"[A-Za-z0-9._-]{1,191}")
ASSET_PREFIX = "asset://"
"""Prefix of URLs in a provider's media library, which only that provider can read."""
_OMNI_OTHERS, _OMNI_OTHERS_WITH_VIDEO = 7, 4


def check(request: pb.CreateVideoTaskRequest, family: str = "", upstream_model: str = "") -> pb.CreateVideoTaskRequest:
    """Return a copy of a video request with the kind of its task and the documented defaults of its model.

    `family` and `upstream_model` are from the operator's config, "" if the model is not served. The rules bind neutral
    ids, of callers or upstream; the request for a vendor's model stays as the caller stated it, in any API. Raises
    UmgError with the canonical path and the documented text: UNSUPPORTED_FIELD for a parameter that the model lacks,
    MISSING_FIELD, and INVALID_FIELD for a value outside its set or range and for a model of another API.
    """
    checked = pb.CreateVideoTaskRequest()
    checked.CopyFrom(request)
    checked.entry = request.entry or UNIFIED_ENTRY
    rules = _rules(checked, family, upstream_model)
    _check_entry(checked, needs_text=rules is not None or not checked.parameters.media)
    if rules is not None:
        _check_media(checked, rules)
        _check_parameters(checked.parameters, rules, checked.model)
        _check_agreement(checked.parameters)
        _set_defaults(checked.parameters, rules)
    elif checked.entry == E_3 and checked.parameters.extra_json:
        read_nested(checked.parameters)
    _set_kind(checked)
    return checked


def read_urls(request: pb.CreateVideoTaskRequest, check_url: Callable[..., None]) -> None:
    """Replace `data:` URLs of media by their bytes, and check other URLs by `check_url`. `check_url` is the method of
    `Fetcher` that raises UmgError for URLs that the config forbids. Raise UmgError(INVALID_FIELD) for an invalid
    `data:` URL.
    """
    media = request.parameters.media
    for position, medium in enumerate(media):
        if medium.HasField("url") and is_data_url(medium.url):
            mime_type, data = parse_data_url(medium.url, f"parameters.media[{position}].url")
            medium.data = data
            medium.mime_type = medium.mime_type or mime_type
    if request.HasField("callback_url"):
        check_url(request.callback_url, field="callback_url")
    for position, medium in enumerate(media):
        if medium.HasField("url") and not medium.url.startswith(ASSET_PREFIX):
            check_url(medium.url, field=f"parameters.media[{position}].url")


def _rules(request: pb.CreateVideoTaskRequest, family: str, upstream_model: str) -> Rules | None:
    """Return the rules of the request's model in the caller's HTTP API; None if the model has no neutral id."""
    model, rules = request.model, ENTRY_RULES[request.entry]
    neutral = video_family(model, upstream_model)
    if not neutral and (family or upstream_model or request.entry != ENTRY_D):
        return None
    family = family if family in VIDEO_FAMILIES else neutral
    documented = next((known for known in (model, upstream_model) if known in DOCUMENTED_MODELS), None)
    if documented in rules or (documented is None and family in rules):
        return rules[documented or family]
    if request.entry == ENTRY_D:
        raise _invalid("model", f"unsupported seedance-family model: {model}")
    paths = [ENTRY_PATHS[entry] for entry, others in ENTRY_RULES.items() if (documented or family) in others]
    raise _invalid("model", f"`model`: {model} is not served by this entry; submit it to {' or '.join(paths)}")


# --- rules of the entries


def _check_entry(request: pb.CreateVideoTaskRequest, *, needs_text: bool) -> None:
    """Raise UmgError if the request breaks a rule that its HTTP API has for all models. `needs_text`: whether a missing
    text is an error; false for vendors' models that make videos from media alone.
    """
    if request.HasField("callback_url"):
        if request.entry == ENTRY_G:
            raise _unsupported("callback_url", "this entry sends no callbacks; leave it out and poll")
        if not _HTTP.match(request.callback_url) and request.entry != E_3:
            raise _invalid("callback_url", "callback_url must be an absolute http or https URL")
        if request.entry == E_3 and not _HTTPS.match(request.callback_url):
            raise _invalid("callback_url", "callback_url must be an absolute https URL")
    if request.HasField("external_task_id") and not _EXTERNAL_ID.fullmatch(request.external_task_id):
        problem = "external_task_id must be 1 to 191 ASCII letters, digits, `-`, `_` or `.`"
        raise _invalid("external_task_id", problem)
    is_draft = request.parameters.HasField("draft_task_id")
    if request.entry == ENTRY_D and needs_text and not is_draft and not request.parameters.prompt.strip():
        raise _missing("parameters.prompt", "text content is required")
    if request.parameters.extra_json:
        try:
            msgspec.json.decode(request.parameters.extra_json, type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            raise _invalid("parameters.extra_json", "parameters.extra_json must be one JSON object") from None


def _check_media(request: pb.CreateVideoTaskRequest, rules: Rules) -> None:
    """Raise UmgError for input images and videos if the model does not accept their kinds, roles or number."""
    media, model = request.parameters.media, request.model
    for position, medium in enumerate(media):
        at = f"parameters.media[{position}]"
        if medium.kind not in rules.kinds or (medium.kind == IMAGE_KIND and rules.max_images == 0):
            kind = pb.VideoMediaKind.Name(medium.kind).rpartition("_")[2].lower()
            raise _unsupported(at, f"`{at}`: model {model} accepts no {kind} input; leave it out")
        if medium.role not in rules.roles:
            role = pb.VideoMediaRole.Name(medium.role).removeprefix("VIDEO_MEDIA_ROLE_").lower()
            raise _unsupported(at, f"`{at}`: model {model} accepts no media of role {role}; leave it out")
    images = [medium for medium in media if medium.kind == IMAGE_KIND and medium.role != STATIC_MASK]
    roles = [image.role for image in images]
    for frame, name in ((FIRST_FRAME, "first"), (LAST_FRAME, "last")):
        if roles.count(frame) > 1:
            second = [position for position, medium in enumerate(media) if medium.role == frame][1]
            at = f"parameters.media[{second}]"
            raise _invalid(at, f"`{at}`: it is the second {name} frame; send one")
    if LAST_FRAME in roles and REFERENCE_IMAGE in roles:
        raise _invalid(_at(media, LAST_FRAME), "last frame image content cannot be mixed with reference image")
    if LAST_FRAME in roles and FIRST_FRAME not in roles and request.entry not in (E_V1, E_3):
        raise _invalid(
            _at(media, LAST_FRAME), "a last frame image needs a first frame image; add one with role first_frame"
        )
    if rules.max_images and len(images) > rules.max_images:
        raise _invalid(
            "parameters.media",
            f"`parameters.media`: model {model} accepts at most {rules.max_images} image(s); send fewer",
        )
    if rules.needs_image and not images:
        raise _missing("parameters.media", f"`parameters.media`: model {model} makes a video of an image; add one")
    _check_kind(request, images)
    frames = 2 if request.entry in (E_V1, E_3) else rules.max_images or 1
    if request.kind != OMNI_TASK and all(role == ANY_ROLE for role in roles) and len(images) <= frames:
        for image, frame in zip(images, (FIRST_FRAME, LAST_FRAME), strict=False):
            image.role = frame


def _check_kind(request: pb.CreateVideoTaskRequest, images: list[pb.VideoMedia]) -> None:
    """Raise UmgError for media that contradict the kind of task (or path below `/vidE`) or exceed limits of omni."""
    media = request.parameters.media
    omni = request.model.endswith("-omni")
    if (
        request.entry == E_3
        and request.model in DOCUMENTED_MODELS
        and request.kind
        and (request.kind == OMNI_TASK) != omni
    ):
        raise _invalid("model", f"`model`: {request.model} is not of the kind of this path; call the path of its kind")
    if request.kind == TEXT_TASK and images:
        raise _unsupported(
            "parameters.media[0]", "`parameters.media[0]`: text to video accepts no image; submit it as image to video"
        )
    if request.kind == IMAGES_TASK and not images:
        raise _missing("parameters.media", "`parameters.media`: image to video needs an image; add one")
    if (
        request.kind in (TEXT_TASK, IMAGES_TASK)
        and request.entry in (E_V1, E_3)
        and any(item.kind == VIDEO_KIND for item in media)
    ):
        raise _unsupported("parameters.media", "`parameters.media`: only omni video accepts reference videos")
    if request.entry == E_3 and (request.kind == OMNI_TASK or omni):
        videos = sum(item.kind == VIDEO_KIND for item in media)
        others, allowed = len(media) - videos, _OMNI_OTHERS_WITH_VIDEO if videos else _OMNI_OTHERS
        if videos > 1:
            raise _invalid("parameters.media", "`parameters.media`: at most 1 reference video is allowed; send one")
        if others > allowed:
            given = "with a reference video" if videos else "without a reference video"
            raise _invalid(
                "parameters.media",
                f"`parameters.media`: at most {allowed} reference inputs are allowed {given}; send fewer",
            )


# --- rules of the parameters


def _check_parameters(parameters: pb.VideoParameters, rules: Rules, model: str) -> None:
    for name in _present(parameters):
        path = f"parameters.{name}"
        if name in rules.always:
            continue
        if name not in rules.accepted:
            raise _unsupported(path, f"`{path}`: model {model} has no such parameter in this entry; leave it out")
        value = getattr(parameters, name)
        if rules is ENTRY_RULES[ENTRY_D]["vidD-2-0-fast-260128"] and value == "1080p":
            raise _invalid(path, f"the fast model {model} does not support 1080p")
        if name in rules.values and value not in rules.values[name]:
            allowed = ", ".join(str(choice) for choice in rules.values[name])
            raise _invalid(path, f"`{path}`: {_shown(value)} is not one of its values on model {model}: {allowed}")
        if name in rules.ranges and not rules.ranges[name][0] <= value <= rules.ranges[name][1]:
            low, high = rules.ranges[name]
            raise _invalid(path, f"{RANGE_NAMES.get(name, name)} must be between {low} and {high}")
        if name == "size" and name not in rules.values:
            _check_size(value, path)
    present = {descriptor.name for descriptor, _ in parameters.ListFields()}
    needs_prompt = rules.needs_input and not parameters.media
    for name in ("prompt", *rules.required) if needs_prompt else rules.required:
        if name not in present or (name == "prompt" and not parameters.prompt.strip()):
            why = "a text is required where there is no image; add one"
            problem = " is required; add it" if name in rules.required else f": {why}"
            raise _missing(f"parameters.{name}", f"`parameters.{name}`{problem}")


RANGE_NAMES = {"duration_seconds": "duration", "sample_count": "sampleCount"}
"""Parameter -> its name in the documented texts about ranges (`duration must be between 4 and 15`)."""


def _present(parameters: pb.VideoParameters) -> Iterator[str]:
    for descriptor, _ in parameters.ListFields():
        if descriptor.name not in {"prompt", "media", "extra_json"}:
            yield descriptor.name


def _check_size(size: str, path: str) -> None:
    found = _SIZE.fullmatch(size)
    if found is None or not all(MIN_SIDE <= int(side) <= MAX_SIDE for side in found.groups()):
        problem = f"expected `<width>*<height>`, each of {MIN_SIDE} to {MAX_SIDE} pixels, got {_shown(size)}"
        raise _invalid(path, f"`{path}`: {problem}")


def _check_agreement(parameters: pb.VideoParameters) -> None:
    """Raise UmgError if size and resolution, or size and aspect ratio, conflict: only one could be applied."""
    found = _SIZE_OF_ALL.fullmatch(parameters.size)
    if found is None:
        return
    width, height = int(found[1]), int(found[2])
    wide, _, high = parameters.aspect_ratio.partition(":")
    if parameters.resolution and parameters.resolution != f"{min(width, height)}p":
        raise _contradiction("resolution", parameters.size)
    if high and width * int(high) != height * int(wide):
        raise _contradiction("aspect_ratio", parameters.size)


def _contradiction(name: str, size: str) -> UmgError:
    path = f"parameters.{name}"
    return _invalid(path, f"`{path}`: it contradicts the size {size}; send one of them")


def _set_defaults(parameters: pb.VideoParameters, rules: Rules) -> None:
    present = {descriptor.name for descriptor, _ in parameters.ListFields()}
    if "size" in present:
        present.add("resolution")  # family C has two spellings of one parameter
    for name, value in rules.defaults.items():
        if name not in present:
            setattr(parameters, name, value)
    for name, value in rules.always.items():
        setattr(parameters, name, value)


def _set_kind(request: pb.CreateVideoTaskRequest) -> None:
    kinds = {medium.kind for medium in request.parameters.media if medium.role != STATIC_MASK}
    if not request.kind:
        omni = VIDEO_KIND in kinds or (request.entry == E_3 and request.model.endswith("-omni"))
        request.kind = OMNI_TASK if omni else IMAGES_TASK if IMAGE_KIND in kinds else TEXT_TASK


def _at(media: Sequence[pb.VideoMedia], role: Role) -> str:
    """Return the canonical path of the first input medium with the role, for errors. The medium must exist."""
    return f"parameters.media[{next(position for position, medium in enumerate(media) if medium.role == role)}]"


def _shown(value: Value) -> str:
    text = str(value)
    return "".join(character if character.isprintable() else "?" for character in text[:80])


def _invalid(path: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=path)


def _missing(path: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field=path)


def _unsupported(path: str, message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=path)

"""Steps that several protocols share when they encode an image request for a provider."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, assert_never

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.knowledge.families.image_model_rules import PlacedImage, is_grouped, placed_images
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import normal_mime
from umg_grpc.wire.core.image_file_headers import PNG_TYPE, sniff_image
from umg_grpc.wire.core.json_decoding import JsonObject, check_numbers, invalid
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import RequestNotes


class FlatRequest(NamedTuple):
    """Prompt and input images of a request as one text and one list, for providers without conversations."""

    prompt: str
    images: Sequence[PlacedImage]


ENCODED_BY_ALL = frozenset({"model", "operation", "prompt", "inputs", "turns", "response_format", "n", "source"})
"""Canonical fields that every protocol encodes in a different way, and that are therefore not reported as dropped."""
WITHOUT_EFFECT: Mapping[str, Collection[object]] = {
    "watermark": (False,),
    "sequential_image_generation": (pb.SEQUENTIAL_IMAGE_GENERATION_DISABLED,),
    "response_modalities": ("image",),
    "person_generation": ("allow_adult",),
}
"""Canonical field -> values that mean the same as its absence, so that nothing is lost if they are dropped."""


def flatten(request: pb.GenerateImageRequest, report: Report) -> FlatRequest:
    """Return one prompt (the texts of all messages and the prompt, one per line) with all input images. A conversation
    of several messages is recorded in `report`, because its roles are lost.
    """
    texts = [part.text for turn in request.turns for part in turn.parts if part.HasField("text")]
    if request.HasField("prompt"):
        texts.append(request.prompt)
    roles = [turn.role for turn in request.turns]
    if len(roles) > 1 or pb.IMAGE_TURN_ROLE_MODEL in roles:
        report.drop("turns", "prompt")
    return FlatRequest("\n".join(texts), list(placed_images(request)))


def report_others(
    request: pb.GenerateImageRequest, supported: Collection[str], notes: RequestNotes, report: Report
) -> None:
    """Record in `report` each field that is set and not in `supported` (canonical names), and the fields of the
    caller's body without a canonical form. `notes`: facts about the caller's body.
    """
    for descriptor, value in request.ListFields():
        name = descriptor.name
        if name in ENCODED_BY_ALL or name in supported or value in WITHOUT_EFFECT.get(name, ()):
            continue
        if name == "partial_images" or (name == "max_sequential_images" and not is_grouped(request)):
            continue  # without effect by itself
        if name == "extra_json":
            for extra in extra_fields(request):
                report.drop(extra)
        else:
            report.drop(name)
    notes.report_uncarried(report)


def extra_fields(request: pb.GenerateImageRequest) -> dict[str, Raw]:
    """Return the caller's additional fields in `extra_json`. Raise UmgError(INVALID_FIELD) if it is no JSON object."""
    if not request.extra_json:
        return {}
    try:
        fields = msgspec.json.decode(request.extra_json, type=dict[str, Raw])
    except (ValueError, RecursionError):
        raise invalid("extra_json", "it is not one JSON object; correct it") from None
    check_numbers(fields, "extra_json.")
    return fields


def stated_json(request: pb.GenerateImageRequest, notes: RequestNotes, paths: frozenset[str]) -> str | bytes:
    """Return the JSON object in which the caller may have set members without a canonical field. This is `extra_json`,
    else the caller's body if it has one of `paths`; "" if there is none. `notes`: facts about the caller's body.
    """
    if request.extra_json or paths.isdisjoint(notes.uncarried):
        return request.extra_json
    return request.source.body


def own_members(
    request: pb.GenerateImageRequest, notes: RequestNotes, names: frozenset[str], report: Report
) -> dict[str, Raw]:
    """Return the members in `names`, without a canonical field, that the caller set, and remove them from the report. A
    form has names with brackets for the members of an object. `notes`: facts about the caller's body.
    """
    if not (stated := stated_json(request, notes, names)):
        return {}
    try:
        members = msgspec.json.decode(stated, type=dict[str, Raw])
    except (ValueError, RecursionError):
        return {}  # of another form: they stay reported
    found = {name: raw for name, raw in members.items() if name.partition("[")[0] in names}
    for name in found:
        report.forget(name)
    return found


def refuse_edits(request: pb.GenerateImageRequest) -> None:
    """Raise UmgError(UNTRANSLATABLE) for a variation or a mask: without both, the provider changes the whole image."""
    if request.HasField("mask"):
        raise untranslatable("mask", "this model's provider accepts no mask; leave it out or choose another model")
    if request.operation == pb.IMAGE_OPERATION_VARIATION:
        raise untranslatable("operation", "this model's provider makes no variations; send an edit with a prompt")


def mime_of(image: pb.ImageInput) -> str:
    """Return the media type of an input image by its first bytes; if these are unknown, as the caller declares it."""
    return sniff_image(image.data) or normal_mime(image.mime_type) or PNG_TYPE


def as_url(placed: PlacedImage) -> Raw:
    """Return an input image as a JSON string: its URL, or a data URL with its bytes."""
    path, image = placed
    match image.WhichOneof("source"):
        case "url":
            return Raw(msgspec.json.encode(image.url))
        case "data":
            return Raw(b'"data:%b;base64,%b"' % (mime_of(image).encode(), pybase64.b64encode(image.data)))
        case None:
            raise invalid(path, "the image has neither a `url` nor `data`; add one")
        case unhandled:
            assert_never(unhandled)


def add_set(fields: JsonObject, request: pb.GenerateImageRequest, names: Mapping[str, str]) -> None:
    """Add the set scalar fields of a request to a body. `names`: canonical field -> member of the body."""
    for canonical, name in names.items():
        if request.HasField(canonical):  # type: ignore[arg-type]
            fields[name] = getattr(request, canonical)


def size_with(separator: str, size: str) -> str:
    """Return a size in pixels (`1024x1024`, `1024*1024`) with another separator; a text of another form unchanged."""
    width, _, height = size.replace("*", "x").partition("x")
    return f"{width}{separator}{height}" if width.isdigit() and height.isdigit() else size

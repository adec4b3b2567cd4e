"""Checks of image requests against the specification's rules of the model's family: fields, sizes, numbers of images.
The service calls `check` once, before the first attempt.
"""

import math
from collections.abc import Collection

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import (
    FAMILY_FIELDS,
    GENERAL_RULES,
    MAX_GROUP,
    MAX_SIDE,
    MIN_SIDE,
    RATIO_PIXELS,
    SIZE_WITH_ASTERISK,
    ImageRules,
    has_images,
    invalid_value,
    is_grouped,
    nearest_ratio,
    one_of,
    placed_images,
)
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT

# Fields of a body whose canonical form other families have under another name, or not as a field.
_BODY_OWNERS = {"input": "imgD", "parameters": "imgD", "mime_type": "famG"}


def check(request: pb.GenerateImageRequest, row: ImageRules | None, body_fields: Collection[str] = ()) -> None:
    """Raise UmgError, with the canonical path of the field, for an image request that `row`, the rules of its model,
    reject.

    The reason is UNSUPPORTED_FIELD for a field that the family does not have, MISSING_FIELD for a required one,
    INVALID_FIELD for a value. Without rules (None) only the form of the images is checked and, for a vendor's model,
    that there is a text or an image. `body_fields`: names of the family-specific fields in the caller's body, from its
    decoder, and `response_format` if its value is unknown, which only family G ignores.
    """
    if "response_format" in body_fields and (row is None or row.family != "famG"):
        raise invalid_value("response_format", "expected url or b64_json; correct its value")
    if row is None:
        return
    if row.is_open:
        _check_text(request, row)
        return
    _check_body(request, row, body_fields)
    _check_fields(request, row)
    _check_inputs(request, row)
    _check_text(request, row)
    _check_counts(request, row)
    _check_values(request, row)


def _check_body(request: pb.GenerateImageRequest, row: ImageRules, body_fields: Collection[str]) -> None:
    for name, owner in _BODY_OWNERS.items():
        if name in body_fields and owner != row.family:
            raise _unsupported(
                name, f"only models of family {owner} accept it, not those of {row.family}; leave it out"
            )
    is_generation = request.operation in (pb.IMAGE_OPERATION_UNSPECIFIED, pb.IMAGE_OPERATION_GENERATE)
    if row.is_structured and is_generation and request.source.format and "input" not in body_fields:
        message = f"`input` is required by models of family {row.family}; send the prompt in `input.messages`"
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field="input")


def _check_fields(request: pb.GenerateImageRequest, row: ImageRules) -> None:
    for descriptor, _ in request.ListFields():
        name = descriptor.name
        if name in FAMILY_FIELDS and name not in row.fields:
            owners = ", ".join(family for family, other in GENERAL_RULES.items() if name in other.fields)
            if row.family in owners:
                raise _unsupported(name, f"this model of family {row.family} does not accept it; leave it out")
            raise _unsupported(name, f"only models of {owners} accept it, not those of {row.family}; leave it out")
    if request.operation == pb.IMAGE_OPERATION_VARIATION and not row.has_variations:
        raise _unsupported("operation", f"models of family {row.family} make no variations; send an edit with a prompt")


def _check_inputs(request: pb.GenerateImageRequest, row: ImageRules) -> None:
    images = list(placed_images(request))
    if len(images) > row.max_inputs:
        path = images[row.max_inputs][0]
        if not row.max_inputs:
            raise _unsupported(path, "this model makes images from text only; leave the image out")
        several = f"at most {row.max_inputs} input images" if row.max_inputs > 1 else "one input image"
        raise invalid_value(path, f"this model takes {several}, not {len(images)}; send fewer")
    if len(images) < row.min_inputs:
        message = "`inputs` is required: this model edits an image; send one"
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field="inputs")
    for path, image in images:
        if row.max_input_bytes is not None and len(image.data) > row.max_input_bytes:
            problem = f"the image has {len(image.data)} bytes, and at most {row.max_input_bytes} are accepted"
            raise invalid_value(path, f"{problem}; send a smaller file")
    if request.HasField("input_fidelity") and not images:
        raise invalid_value("input_fidelity", "it applies to input images, and there is none; send one or leave it out")


def _check_text(request: pb.GenerateImageRequest, row: ImageRules) -> None:
    if request.operation == pb.IMAGE_OPERATION_VARIATION:
        if given := "prompt" if request.HasField("prompt") else "turns" if request.turns else "":
            raise _unsupported(given, "a variation is made of an image only; leave it out, or send an edit")
        return
    texts = (part.text for turn in request.turns for part in turn.parts)
    if request.prompt.strip() or any(map(str.strip, texts)):
        return
    if row.needs_text or not has_images(request):
        raise UmgError(pb.ERROR_REASON_MISSING_FIELD, "`prompt` is required; describe the image in it", field="prompt")


def _check_counts(request: pb.GenerateImageRequest, row: ImageRules) -> None:
    if request.HasField("n") and not 1 <= request.n <= row.max_n:
        several = f"1 to {row.max_n} images" if row.max_n > 1 else "1 image"
        raise invalid_value("n", f"this model makes {several} in one call, not {request.n}; correct it")
    group = request.max_sequential_images
    if is_grouped(request) and request.HasField("max_sequential_images") and not 1 <= group <= MAX_GROUP:
        raise invalid_value("max_sequential_images", f"expected 1 to {MAX_GROUP}, not {group}; correct it")
    for name in ("temperature", "top_p", "guidance_scale"):
        maximum = {"temperature": 2.0, "top_p": 1.0}.get(name, math.inf)
        if request.HasField(name) and not 0 <= getattr(request, name) <= maximum:
            bound = f"of at most {maximum:g}" if maximum < math.inf else "of at least 0"
            raise invalid_value(name, f"expected a number {bound}; correct it")
    if request.HasField("seed") and request.seed < 0:
        raise invalid_value("seed", f"expected 0 to {MAX_COUNT}; correct it")


def _check_values(request: pb.GenerateImageRequest, row: ImageRules) -> None:
    for descriptor, value in request.ListFields():
        values = row.values.get(descriptor.name)
        if values is not None and value not in values:
            raise invalid_value(descriptor.name, f"expected {one_of(values)}; correct it")
    if request.background == "transparent" and request.output_mime_type == "image/jpeg":
        raise invalid_value("background", "a JPEG file has no transparency; request PNG or WebP, or leave it out")
    if not request.HasField("size"):
        return
    if row.sizes is RATIO_PIXELS:
        nearest_ratio(request.size)
    elif row.sizes is None:
        found = SIZE_WITH_ASTERISK.fullmatch(request.size)
        if found is None or not all(MIN_SIDE <= int(side) <= MAX_SIDE for side in found.groups()):
            problem = f"expected `<width>*<height>` with sides of {MIN_SIDE} to {MAX_SIDE} pixels, such as `1328*1328`"
            raise invalid_value("size", f"{problem}; correct it")
    elif request.size not in row.sizes:
        raise invalid_value("size", f"expected {one_of(row.sizes)}; correct it")


def _unsupported(at: str, problem: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, f"`{at}`: {problem}", field=at)

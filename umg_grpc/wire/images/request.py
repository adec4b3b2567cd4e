"""Decoding of image requests from a caller's JSON body: flat, or with fields in `input` and `parameters` (family
`imgD`). The model's family decides which of the two it accepts; `RequestNotes.family` records the fields that matter.
"""

from collections.abc import Iterator, Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import check_utf8, invalid, missing, parse, whole
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes
from umg_grpc.wire.images.input_images import ACCEPTED_IMAGES, decode_input
from umg_grpc.wire.images.long_json_strings import LONG_BYTES, LongStrings, LongText
from umg_grpc.wire.images.schema import (
    OUTPUT_FORMATS,
    ContentItem,
    ContentPart,
    ImageBody,
    ImageReference,
    InputImage,
    InputImages,
    KnownImageBody,
    StreamChoice,
    StructuredInput,
    StructuredItem,
    StructuredMessage,
    StructuredParameters,
)

KNOWN_FIELDS = Fields(ImageBody, {}, {})

RESPONSE_FORMATS = {"url": pb.IMAGE_RESPONSE_FORMAT_URL, "b64_json": pb.IMAGE_RESPONSE_FORMAT_B64_JSON}
SEQUENTIAL_MODES = {"auto": pb.SEQUENTIAL_IMAGE_GENERATION_AUTO, "disabled": pb.SEQUENTIAL_IMAGE_GENERATION_DISABLED}
TURN_ROLES = {"user": pb.IMAGE_TURN_ROLE_USER, "model": pb.IMAGE_TURN_ROLE_MODEL}
SAME_NAMES = (
    *("prompt", "size", "quality", "aspect_ratio", "image_size", "response_modalities", "temperature", "top_p"),
    *("watermark", "guidance_scale", "input_fidelity", "background", "moderation", "user"),
    *("negative_prompt", "prompt_extend"),
)
"""Fields with the same name and value in a flat body (all fields at the top level) and in the canonical request."""
WHOLE_NAMES = {
    **{name: name for name in ("n", "max_output_tokens", "seed", "partial_images")},
    "output_compression": "output_compression_percent",
}
"""Integer field of a flat body -> canonical field."""
OPTION_NAMES = ("n", "negative_prompt", "prompt_extend", "watermark", "seed", "size")
NESTED_FIELDS = (
    *("contents", "images", "input", "parameters"),
    *("sequential_image_generation_options", "optimize_prompt_options"),
)
"""Fields of a body whose values are objects or lists of objects, which may contain unknown fields."""
FAMILY_NAMES = frozenset({"input", "parameters", "mime_type"})
"""Fields of a body that only models of one family accept, and that have no separate canonical field."""
BESIDE_INPUT = frozenset({"model", "input", "parameters", "response_format", "stream", "user", "safety_identifier"})
"""Fields that may be at the top level of a body with `input` and `parameters`."""

wire_path = wire_paths(
    [
        (r"^operation$", "model"),
        (r"^(?:inputs|image)\[(\d+)\](?:\.\w+)?$", r"image[\1]"),
        (r"^inputs$", "image"),
        (r"^mask\.\w+$", "mask"),
        (r"^turns\[(\d+)\]\.parts\[(\d+)\]\.(text|image).*", r"contents[\1].parts[\2].\3"),
        (r"^turns", "contents"),
        (r"^output_mime_type$", "mime_type"),
        (r"^output_compression_percent$", "output_compression"),
        (r"^max_sequential_images$", "sequential_image_generation_options.max_images"),
        (r"^optimize_prompt_mode$", "optimize_prompt_options.mode"),
    ]
)


def decode_request(
    face: str, operation: "pb.ImageOperation.ValueType", body: bytes, headers: Mapping[str, str], model: str = ""
) -> DecodedRequest[pb.GenerateImageRequest]:
    """Decode the JSON body of an image request. `face`: name of the format; `operation`: generation, edit or variation,
    by the path. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    strings = LongStrings(check_utf8(body))
    decoded, unknown = _read(strings.body)
    if _restore(decoded, strings) < len(strings):  # a long string that is no image
        decoded, unknown = _read(body)
    notes = RequestNotes(uncarried=unknown)
    names = {name for name in ImageBody.__struct_fields__ if getattr(decoded, name) is not None}
    notes.family += sorted(names & FAMILY_NAMES)
    request = pb.GenerateImageRequest(model=decoded.model, operation=operation)
    request.source.format, request.source.body = face, body
    _check_operation(decoded, operation)
    if decoded.input is not None or decoded.parameters is not None:
        _decode_structured(decoded, names, request, notes)
    decode_flat(decoded, request, notes)
    _decode_images(decoded, request, notes)
    check_operation_inputs(request, notes.opaque_paths.get("inputs", "image"))
    return DecodedRequest(request, notes)


def check_operation_inputs(request: pb.GenerateImageRequest, at: str = "image") -> None:
    """Raise UmgError(MISSING_FIELD, INVALID_FIELD) if an edit has no input image, or if a variation has none or
    several. `at`: path of the input images in the caller's body.
    """
    if request.operation == pb.IMAGE_OPERATION_EDIT:
        if not request.inputs and not any(part.HasField("image") for turn in request.turns for part in turn.parts):
            message = f"`{at}` is required: an edit changes an image; send one, or call /v1/images/generations"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field=at)
    elif request.operation == pb.IMAGE_OPERATION_VARIATION:
        if not request.inputs:
            message = f"`{at}` is required: a variation is made of an image; send one"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field=at)
        if len(request.inputs) > 1:
            raise invalid(at, f"a variation is made of one image, not {len(request.inputs)}; send one")


def wants_stream(body: bytes) -> bool:
    """Return whether an image request requests a stream. `body`: JSON."""
    if len(body) >= LONG_BYTES:
        body = LongStrings(body).body
    return bool(parse(StreamChoice, body).stream)


def _read(body: bytes) -> tuple[ImageBody, list[str]]:
    try:
        decoded = _KNOWN.decode(body)
        has_nested = any(getattr(decoded, name) is not None for name in NESTED_FIELDS)
        return decoded, list(KNOWN_FIELDS.nested_unknown(body)) if has_nested else []
    except (ValueError, RecursionError):
        return parse(ImageBody, body), list(KNOWN_FIELDS.unknown(body))


_KNOWN = msgspec.json.Decoder(KnownImageBody)


def _restore(decoded: ImageBody, strings: LongStrings) -> int:
    """Replace placeholders in the image fields of `decoded` by the long strings that were cut out of the body."""
    if not len(strings):
        return 0
    parts: list[ContentPart | StructuredItem] = [part for item in decoded.contents or () for part in item.parts]
    if decoded.input is not None:
        parts += [item for message in decoded.input.messages for item in message.content]
    for part in parts:
        part.image = part.image and strings.restore(part.image)
    restored = [part.image for part in parts]
    for name in ("image", "images", "mask"):
        given = getattr(decoded, name)
        items = [_restored(item, strings) for item in (given if isinstance(given, list) else [given])]
        setattr(decoded, name, items if isinstance(given, list) else items[0])
        restored += [item.image_url if isinstance(item, ImageReference) else item for item in items]
    return sum(isinstance(text, LongText) for text in restored)


def _restored(item: InputImage | None, strings: LongStrings) -> InputImage | None:
    if isinstance(item, ImageReference):
        item.image_url = item.image_url and strings.restore(item.image_url)
        return item
    return item and strings.restore(item)


def _check_operation(decoded: ImageBody, operation: "pb.ImageOperation.ValueType") -> None:
    if operation == pb.IMAGE_OPERATION_GENERATE:
        if decoded.mask is not None:
            raise invalid("mask", "masks are for edits; send it to /v1/images/edits, or leave it out")
        made_from = (decoded.prompt, decoded.contents, decoded.image, decoded.images, decoded.input)
        if decoded.parameters is None and all(value is None for value in made_from):
            message = "`prompt` is required, or `contents`, or `input` for family D; describe the image in it"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, message, field="prompt")
    elif operation == pb.IMAGE_OPERATION_VARIATION and decoded.mask is not None:
        raise invalid("mask", "a variation has no mask; leave it out")


# --- structured bodies


def _decode_structured(
    decoded: ImageBody, names: set[str], request: pb.GenerateImageRequest, notes: RequestNotes
) -> None:
    if beside := sorted(names - BESIDE_INPUT):
        raise invalid(beside[0], "a body with `input` has its options in `parameters`; move it there")
    if decoded.input is None:
        raise missing("input")
    _decode_messages(decoded.input, request, notes)
    _decode_parameters(decoded.parameters or StructuredParameters(), request, notes)


def _decode_messages(given: StructuredInput, request: pb.GenerateImageRequest, notes: RequestNotes) -> None:
    """Decode the messages of `input` (family `imgD`). One message with at most one text becomes `prompt` and `inputs`;
    any other conversation becomes `turns`, the list of messages.
    """
    paths, first = notes.opaque_paths, given.messages[0]
    if len(given.messages) > 1 or sum(item.text is not None for item in first.content) > 1:
        for index, message in enumerate(given.messages):
            _decode_message(message, request.turns.add(), index, notes)
        return
    paths["prompt"] = paths["inputs"] = "input.messages[0].content"
    for number, item in enumerate(first.content):
        at = _one_of(item.text, item.image, f"input.messages[0].content[{number}]")
        if item.text is not None:
            request.prompt, paths["prompt"] = item.text, at
        elif item.image is not None:
            paths[f"inputs[{len(request.inputs)}]"] = at
            decode_input(item.image, request.inputs.add(), at)


def _decode_message(message: StructuredMessage, turn: pb.ImageTurn, index: int, notes: RequestNotes) -> None:
    turn.role = TURN_ROLES[message.role]
    for number, item in enumerate(message.content):
        at = _one_of(item.text, item.image, f"input.messages[{index}].content[{number}]")
        notes.opaque_paths[f"turns[{index}].parts[{number}].image"] = at
        _decode_part(item.text, item.image, turn.parts.add(), at)


def _decode_parameters(given: StructuredParameters, request: pb.GenerateImageRequest, notes: RequestNotes) -> None:
    for name in OPTION_NAMES:
        notes.opaque_paths[name] = f"parameters.{name}"
        value = getattr(given, name)
        if name in WHOLE_NAMES:
            value = whole(value, f"parameters.{name}")
        if value is not None:
            setattr(request, name, value)


# --- flat bodies


def _response_format(decoded: ImageBody, notes: RequestNotes) -> "pb.ImageResponseFormat.ValueType | None":
    if (given := decoded.response_format) is None:
        return None
    if (known := RESPONSE_FORMATS.get(given)) is None:
        notes.family.append("response_format")
    return known


def decode_flat(decoded: ImageBody, request: pb.GenerateImageRequest, notes: RequestNotes) -> None:
    """Decode the options and the conversation of a flat body. `notes`: gets facts without a canonical form."""
    for name in SAME_NAMES:
        if (value := getattr(decoded, name)) is not None:
            setattr(request, name, value)
    for name, canonical in WHOLE_NAMES.items():
        if (number := whole(getattr(decoded, name), name)) is not None:
            setattr(request, canonical, number)
    if decoded.safety_identifier is not None and decoded.user is None:
        request.user = decoded.safety_identifier
    if (response_format := _response_format(decoded, notes)) is not None:
        request.response_format = response_format
    elif request.operation != pb.IMAGE_OPERATION_GENERATE:
        request.response_format = pb.IMAGE_RESPONSE_FORMAT_B64_JSON  # SDKs read bytes from edits
    if (person := decoded.person_generation or decoded.personGeneration) is not None:
        request.person_generation = person
    if decoded.mime_type is not None:
        request.output_mime_type = decoded.mime_type
    elif decoded.output_format is not None:
        request.output_mime_type = OUTPUT_FORMATS[decoded.output_format]
        notes.opaque_paths["output_mime_type"] = "output_format"
    _decode_group(decoded, request)
    for index, item in enumerate(decoded.contents or ()):
        _decode_turn(item, request.turns.add(), index)


def _decode_group(decoded: ImageBody, request: pb.GenerateImageRequest) -> None:
    """Decode the options for groups of images, which only the 4.x models of family `imgA` have."""
    if decoded.sequential_image_generation is not None:
        request.sequential_image_generation = SEQUENTIAL_MODES[decoded.sequential_image_generation]
    if (options := decoded.sequential_image_generation_options) is not None:
        at = "sequential_image_generation_options.max_images"
        if (number := whole(options.max_images, at)) is not None:
            request.max_sequential_images = number
    if (optimize := decoded.optimize_prompt_options) is not None and optimize.mode is not None:
        request.optimize_prompt_mode = optimize.mode


def _decode_images(decoded: ImageBody, request: pb.GenerateImageRequest, notes: RequestNotes) -> None:
    for name, given in (("image", decoded.image), ("images", decoded.images)):
        for at, value in _listed(name, given):
            notes.opaque_paths[f"inputs[{len(request.inputs)}]"] = at
            decode_input(value, request.inputs.add(), at)
    for at, value in _listed("mask", decoded.mask):
        decode_input(value, request.mask, at)


def _decode_turn(item: ContentItem, turn: pb.ImageTurn, index: int) -> None:
    turn.role = TURN_ROLES[item.role]
    for number, part in enumerate(item.parts):
        at = _one_of(part.text, part.image, f"contents[{index}].parts[{number}]")
        _decode_part(part.text, part.image, turn.parts.add(), at)


def _decode_part(text: str | None, image: str | None, part: pb.ImageTurnPart, at: str) -> None:
    if text is not None:
        part.text = text
    elif image is not None:
        decode_input(image, part.image, at)


def _one_of(text: str | None, image: str | None, at: str) -> str:
    if (text is None) == (image is None):
        raise invalid(at, "expected either `text` or `image`; send one item for each")
    return f"{at}.{'image' if text is None else 'text'}"


def _listed(name: str, given: InputImages | None) -> Iterator[tuple[str, str]]:
    """Yield (path in the body, image) for a field that is a string, an object, a list of both, or absent."""
    if given is None:
        return
    items = [(name, given)] if not isinstance(given, list) else [(f"{name}[{i}]", item) for i, item in enumerate(given)]
    for at, item in items:
        if isinstance(item, ImageReference):
            if item.image_url is None:
                problem = "it has no `image_url`" if item.file_id is None else "files are not stored here"
                raise invalid(at, f"{problem}; {ACCEPTED_IMAGES} in `image_url`")
            yield f"{at}.image_url", item.image_url
        else:
            yield at, item

"""Decoding of image edit and variation requests that are sent as forms (`multipart/form-data`), as SDKs do."""

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid, parse
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes
from umg_grpc.wire.image_format_interface import DecodedForm
from umg_grpc.wire.images.input_images import decode_input, fill_bytes
from umg_grpc.wire.images.request import check_operation_inputs, decode_flat
from umg_grpc.wire.images.schema import NEWER_MEMBERS, ImageBody

_IMAGE = re.compile(r"images?(?:\[[0-9]*\])?", re.ASCII)
"""Names of the input images: `image`, `image[]`, and the `image[0]` of some clients."""
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


def decode_form(operation: "pb.ImageOperation.ValueType", parts: Iterable[FormPart]) -> DecodedForm:
    """Return the request in the parts of a `multipart/form-data` body (without source document), and whether it
    requests a stream. Input images are files, or texts as in JSON. Raise UmgError(MISSING_FIELD, INVALID_FIELD) naming
    the field.
    """
    fields, images, masks = JsonObject(), list[FormPart](), list[FormPart]()
    for part in parts:
        if _IMAGE.fullmatch(part.name):
            images.append(part)
        elif part.name == "mask":
            masks.append(part)
        elif part.file_name is not None:
            raise invalid(part.name, "it is not a field for a file; send images as `image`, `image[]` or `mask`")
        else:
            name = part.name.removesuffix("[]")
            if name in fields:
                raise invalid(name, "it is in the form twice; send it once")
            fields[name] = _read_field(name, part)
    newer = {name: value for name, value in fields.items() if name.partition("[")[0] in NEWER_MEMBERS}
    notes = RequestNotes(uncarried=sorted(fields.keys() - _READERS.keys() - newer.keys()))
    known = {name: value for name, value in fields.items() if name in _READERS}
    decoded = parse(ImageBody, msgspec.json.encode(known))  # the types and ranges of a JSON body
    request = pb.GenerateImageRequest(model=decoded.model, operation=operation)
    decode_flat(decoded, request, notes)
    if newer:
        request.extra_json = msgspec.json.encode(newer).decode()
    for index, part in enumerate(images):
        at = "image" if len(images) == 1 else f"image[{index}]"
        notes.opaque_paths[f"inputs[{index}]"] = at
        _decode_image(part, request.inputs.add(), at)
    if len(masks) > 1:
        raise invalid("mask", "there are several; send one")
    if masks:
        _decode_image(masks[0], request.mask, "mask")
    check_operation_inputs(request)
    if known.get("mime_type") is not None:
        notes.family.append("mime_type")
    return DecodedForm(DecodedRequest(request, notes), bool(decoded.stream))


def _decode_image(part: FormPart, image: pb.ImageInput, at: str) -> None:
    if part.file_name is not None:
        fill_bytes(part.data, image, at)
        image.file_name = part.file_name
    else:
        decode_input(_text(part, at), image, at)


# --- fields as texts


def _text(part: FormPart, at: str) -> str:
    try:
        return part.data.decode()
    except UnicodeDecodeError:
        message = f"`{at}`: the text is not UTF-8; encode it as UTF-8, or send a file with a file name"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field=at) from None


def _read_field(name: str, part: FormPart) -> object:
    read, text = _READERS.get(name, _keep), _text(part, name)
    return None if not text and read is not _keep else read(name, text)


def _keep(name: str, text: str) -> object:
    return text


def _number(name: str, text: str) -> object:
    if _NUMBER.fullmatch(text.strip()) is None:
        raise invalid(name, f"expected a number, got {echo(text)}; correct it")
    return float(text) if "." in text else int(text)


def _boolean(name: str, text: str) -> object:
    if text.strip().lower() not in _BOOLEANS:
        raise invalid(name, f"expected `true` or `false`, got {echo(text)}; correct it")
    return _BOOLEANS[text.strip().lower()]


def _json(name: str, text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        raise invalid(name, "expected JSON; send the object as JSON text") from None


_TEXTS = (
    *("model", "prompt", "response_format", "user", "safety_identifier", "size", "quality", "aspect_ratio"),
    *("image_size", "mime_type", "response_modalities", "person_generation", "personGeneration"),
    *("sequential_image_generation", "input_fidelity", "background", "moderation", "output_format"),
    "negative_prompt",
)
_NUMBERS = (
    *("n", "temperature", "top_p", "max_output_tokens", "seed", "guidance_scale", "output_compression"),
    "partial_images",
)
_READERS: Mapping[str, Callable[[str, str], object]] = {
    **dict.fromkeys(_TEXTS, _keep),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(("stream", "watermark", "prompt_extend"), _boolean),
    **dict.fromkeys(("contents", "sequential_image_generation_options", "optimize_prompt_options"), _json),
}
FORM_FIELDS = tuple(_READERS)

"""Protocol of another Unified Model Gateway: generations as JSON of all families, edits and variations as forms."""

from dataclasses import replace

import msgspec

from umg_grpc.knowledge.families.image_model_rules import PlacedImage, family_row, placed_images
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.providers import images_protocol
from umg_grpc.wire.images.providers.multipart_image_encoding import encode_files
from umg_grpc.wire.images.providers.request_encoding import add_set, as_url, extra_fields, flatten, report_others
from umg_grpc.wire.images.providers.response_decoding import OUTPUT_NAMES
from umg_grpc.wire.text_format_interface import UpstreamRequest

OPTION_FIELDS = (
    *("n", "size", "aspect_ratio", "image_size", "quality", "output_compression_percent", "background", "moderation"),
    *("input_fidelity", "response_modalities", "person_generation", "temperature", "top_p", "max_output_tokens"),
    *("seed", "guidance_scale", "watermark", "negative_prompt", "prompt_extend", "user"),
)
OPTION_MEMBERS = {name: name.removesuffix("_percent") for name in OPTION_FIELDS}
STRUCTURED_FIELDS = ("n", "negative_prompt", "prompt_extend", "watermark", "seed", "size")
"""Fields that are in the member `parameters`, not at the top level, in a request to family `imgD`."""
SUPPORTED_FIELDS = frozenset(
    {*OPTION_MEMBERS, "output_mime_type", "sequential_image_generation", "max_sequential_images"}
    | {"optimize_prompt_mode", "partial_images", "extra_json", "mask"}
)
FORM_SUPPORTED = SUPPORTED_FIELDS - {"extra_json", "negative_prompt", "prompt_extend"}
SHAPE_HEADERS = {"x-umg-shape": "sdk"}
"""Header that selects the response shape of SDKs, since only that shape has the usage."""
RESPONSE_FORMATS = {pb.IMAGE_RESPONSE_FORMAT_URL: "url", pb.IMAGE_RESPONSE_FORMAT_B64_JSON: "b64_json"}
SEQUENTIAL_NAMES = {pb.SEQUENTIAL_IMAGE_GENERATION_AUTO: "auto", pb.SEQUENTIAL_IMAGE_GENERATION_DISABLED: "disabled"}
ROLE_NAMES = {pb.IMAGE_TURN_ROLE_MODEL: "model"}


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode an image request as a call of the other gateway. `stream`: whether to request a stream; `notes`: facts
    about the caller's body. Raise UmgError(INVALID_FIELD, UNTRANSLATABLE) for a request that this call cannot express.
    """
    row = family_row(request.model, notes.model_family) or family_row(model)
    structured = row is not None and row.is_structured
    if is_form(request) and not structured:
        return _form(request, model, stream, notes)
    report = Report()
    report_others(request, SUPPORTED_FIELDS, notes, report)
    fields: JsonObject = dict(extra_fields(request))
    if structured:
        fields |= _structured(request)
    else:
        fields |= {**_scalars(request, notes), **_groups(request), **_images(request)}
    fields |= _call_fields(request, model, stream)
    return UpstreamRequest(images_protocol.GENERATIONS_PATH, msgspec.json.encode(fields), SHAPE_HEADERS, report)


def _form(request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes) -> UpstreamRequest:
    report = Report()
    flat = flatten(request, report)
    report_others(request, FORM_SUPPORTED, notes, report)
    fields = {**_scalars(request, notes), **_groups(request), **_call_fields(request, model, stream)}
    is_edit = request.operation == pb.IMAGE_OPERATION_EDIT
    if is_edit:
        fields["prompt"] = flat.prompt
    return encode_files(
        images_protocol.EDITS_PATH if is_edit else images_protocol.VARIATIONS_PATH, fields, request, flat, report
    )


def _call_fields(request: pb.GenerateImageRequest, model: str, stream: bool) -> JsonObject:
    """Return the members of the body that do not describe the images: model, response format, stream and drafts."""
    fields: JsonObject = {"model": model}
    if request.response_format in RESPONSE_FORMATS:
        fields["response_format"] = RESPONSE_FORMATS[request.response_format]
    if stream:
        fields["stream"] = True
        add_set(fields, request, {"partial_images": "partial_images"})
    return fields


def _scalars(request: pb.GenerateImageRequest, notes: RequestNotes) -> JsonObject:
    fields: JsonObject = {}
    add_set(fields, request, {"prompt": "prompt", **OPTION_MEMBERS})
    row = family_row(request.model, notes.model_family)
    if request.HasField("output_mime_type"):
        if row is not None and row.family == "famG":
            fields["mime_type"] = request.output_mime_type
        else:
            fields["output_format"] = OUTPUT_NAMES.get(request.output_mime_type, request.output_mime_type)
    return fields


def _groups(request: pb.GenerateImageRequest) -> JsonObject:
    """Return the members of the body for groups of images and for prompt optimization, both only in family `imgA`."""
    fields: JsonObject = {}
    if request.sequential_image_generation in SEQUENTIAL_NAMES:
        fields["sequential_image_generation"] = SEQUENTIAL_NAMES[request.sequential_image_generation]
    if request.HasField("max_sequential_images"):
        fields["sequential_image_generation_options"] = {"max_images": request.max_sequential_images}
    if request.HasField("optimize_prompt_mode"):
        fields["optimize_prompt_options"] = {"mode": request.optimize_prompt_mode}
    return fields


def _images(request: pb.GenerateImageRequest) -> JsonObject:
    fields: JsonObject = {}
    inputs = [as_url(PlacedImage(f"inputs[{index}]", image)) for index, image in enumerate(request.inputs)]
    if inputs:
        fields["image"] = inputs[0] if len(inputs) == 1 else inputs
    if request.turns:
        fields["contents"] = _contents(request)
    return fields


def _contents(request: pb.GenerateImageRequest) -> list[object]:
    urls = {placed.path: as_url(placed) for placed in placed_images(request)}
    return [
        {
            "role": ROLE_NAMES.get(turn.role, "user"),
            "parts": [
                {"image": urls[path]}
                if (path := f"turns[{index}].parts[{number}].image") in urls
                else {"text": part.text}
                for number, part in enumerate(turn.parts)
            ],
        }
        for index, turn in enumerate(request.turns)
    ]


def _structured(request: pb.GenerateImageRequest) -> JsonObject:
    """Return the members `input` and `parameters`, which only a body for family `imgD` has."""
    content: list[object] = [{"image": as_url(placed)} for placed in placed_images(request)]
    texts = [part.text for turn in request.turns for part in turn.parts if part.HasField("text")]
    content += [{"text": text} for text in (*texts, request.prompt) if text]
    parameters: JsonObject = {}
    add_set(parameters, request, {name: OPTION_MEMBERS[name] for name in STRUCTURED_FIELDS})
    return {"input": {"messages": [{"role": "user", "content": content}]}, "parameters": parameters}


def takes_urls(request: pb.GenerateImageRequest) -> bool:
    """Return whether input images may be sent as URLs. False for a form, since its files need the bytes."""
    return not is_form(request)


def is_form(request: pb.GenerateImageRequest) -> bool:
    """Return whether a request is sent as a form. Edits and variations are."""
    return request.operation in (pb.IMAGE_OPERATION_EDIT, pb.IMAGE_OPERATION_VARIATION)


UMG_IMAGES = replace(
    images_protocol.IMAGES_PROTOCOL,
    name="umg_images",
    encode_request=encode_request,
    takes_urls=takes_urls,
    provider_name="",
)

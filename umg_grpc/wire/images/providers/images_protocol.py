"""Protocol of `imgC`: `POST /images/generations` as JSON, `/edits` and `/variations` as forms. Streams have drafts."""

import msgspec

from umg_grpc.knowledge.families.image_model_rules import has_images
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, any_value
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers.images_protocol_responses import ImagesStreamDecoder, decode_response
from umg_grpc.wire.images.providers.multipart_image_encoding import encode_files
from umg_grpc.wire.images.providers.request_encoding import (
    FlatRequest,
    add_set,
    extra_fields,
    flatten,
    own_members,
    report_others,
    size_with,
)
from umg_grpc.wire.images.providers.response_decoding import OUTPUT_NAMES
from umg_grpc.wire.images.schema import NEWER_MEMBERS
from umg_grpc.wire.text_format_interface import UpstreamRequest

GENERATIONS_PATH, EDITS_PATH, VARIATIONS_PATH = "/images/generations", "/images/edits", "/images/variations"
OPTION_FIELDS = ("n", "quality", "output_compression_percent", "background", "moderation", "user")
OPTION_MEMBERS = {name: name.removesuffix("_percent") for name in OPTION_FIELDS}
SUPPORTED_FIELDS = frozenset({*OPTION_MEMBERS, "size", "output_mime_type", "input_fidelity", "mask"})
INPUT_FIDELITIES = ("low", "high")
"""Values of `input_fidelity` that the provider accepts. The specification's `auto` and `medium` are dropped."""
MAX_FILE_BYTES = 50 << 20
"""Maximum bytes of an input image (openai 3.57.0, types/image_edit_params.py); neutral models have a lower limit."""
PROTOCOL_NAMES = ("images",)
"""Formats of callers whose fields without a canonical form are forwarded, since the provider may accept them."""


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of one of the three paths; a generation with input images is sent as an edit. `response_format` is
    sent only for variations, since the other paths reject it. `notes`: facts about the caller's body. Raise
    UmgError(INVALID_FIELD, UNTRANSLATABLE) for a request that the provider cannot express.
    """
    report = Report()
    flat = flatten(request, report)
    if request.operation == pb.IMAGE_OPERATION_VARIATION:
        return _variation(request, model, flat, notes, report)
    is_edit = bool(flat.images) or request.operation == pb.IMAGE_OPERATION_EDIT
    own = request.source.format in PROTOCOL_NAMES
    report_others(request, SUPPORTED_FIELDS | ({"extra_json"} if own else set()), notes, report)
    fields: JsonObject = dict(extra_fields(request)) if own and not is_edit else {}
    fields |= {name: any_value(raw) for name, raw in own_members(request, notes, NEWER_MEMBERS, report).items()}
    fields |= {"model": model, "prompt": flat.prompt}
    add_set(fields, request, OPTION_MEMBERS)
    _add_output(fields, request)
    if stream:
        fields["stream"] = True
        if request.HasField("partial_images"):
            fields["partial_images"] = request.partial_images
    if not is_edit:
        return UpstreamRequest(GENERATIONS_PATH, msgspec.json.encode(fields), {}, report)
    if fields.pop("moderation", None) is not None:
        report.drop("moderation")  # only generations have it
    _add_fidelity(fields, request, report)
    return encode_files(EDITS_PATH, _as_form(fields), request, flat, report)


def _as_form(fields: JsonObject) -> JsonObject:
    """Return form fields for members of a body. Members of objects get names with brackets, as in the vendor's SDK."""
    flat: JsonObject = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            flat |= _as_form({f"{name}[{key}]": member for key, member in value.items()})
        else:
            flat[name] = value
    return flat


def _variation(
    request: pb.GenerateImageRequest, model: str, flat: FlatRequest, notes: RequestNotes, report: Report
) -> UpstreamRequest:
    report_others(request, {"size", "user"}, notes, report)
    fields: JsonObject = {"model": model}
    add_set(fields, request, {"n": "n", "size": "size", "user": "user"})
    if request.response_format == pb.IMAGE_RESPONSE_FORMAT_B64_JSON:
        fields["response_format"] = "b64_json"
    return encode_files(VARIATIONS_PATH, fields, request, flat, report)


def _add_output(fields: JsonObject, request: pb.GenerateImageRequest) -> None:
    if request.HasField("size"):
        fields["size"] = size_with("x", request.size)
    if request.HasField("output_mime_type"):
        fields["output_format"] = OUTPUT_NAMES.get(request.output_mime_type, request.output_mime_type)


def _add_fidelity(fields: JsonObject, request: pb.GenerateImageRequest, report: Report) -> None:
    if request.input_fidelity in INPUT_FIDELITIES:
        fields["input_fidelity"] = request.input_fidelity
    elif request.input_fidelity == "medium":
        report.drop("input_fidelity")


def takes_urls(request: pb.GenerateImageRequest) -> bool:
    """Return whether the request has no input images. They need their bytes, since they are sent as files of a form."""
    return not has_images(request, with_mask=True)


IMAGES_PROTOCOL = ImageProtocol(
    name="images",
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=decode_error,
    takes_urls=takes_urls,
    stream_decoder=ImagesStreamDecoder,
    max_file_bytes=MAX_FILE_BYTES,
    provider_name="openai",
)

"""Variant of the protocol `images` for xAI: edits are JSON with the URLs of images, and ratios replace sizes.

Sources: @ai-sdk/xai 3.0.138, xai-image-model.ts; for the ratios, the vendor's schema of requests as docs.comfy.org
repeats it (read 2026-11-29).
"""

from dataclasses import replace

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.families.image_model_rules import nearest_ratio
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers.images_protocol import EDITS_PATH, GENERATIONS_PATH, IMAGES_PROTOCOL, PROTOCOL_NAMES
from umg_grpc.wire.images.providers.images_protocol_responses import decode_response
from umg_grpc.wire.images.providers.request_encoding import (
    add_set,
    as_url,
    extra_fields,
    flatten,
    own_members,
    refuse_edits,
    report_others,
)
from umg_grpc.wire.images.providers.response_decoding import OUTPUT_NAMES, blocked
from umg_grpc.wire.text_format_interface import UpstreamRequest

OPTION_MEMBERS = {"n": "n", "quality": "quality", "user": "user"}
SUPPORTED_FIELDS = frozenset({*OPTION_MEMBERS, "aspect_ratio", "image_size", "output_mime_type", "size"})
OWN_MEMBERS = frozenset({"resolution", "sync_mode"})
"""Members of the provider's body that have no canonical field. Callers set them by the provider's names."""
ASPECT_RATIOS = (
    *("1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2"),
    *("9:19.5", "19.5:9", "9:20", "20:9", "1:2", "2:1"),
)
"""Ratios that the provider accepts, besides `auto`."""


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a generation, or an edit of input images. `stream` is ignored: the provider has no streams. A size in
    pixels becomes the nearest ratio, which is reported. Raise UmgError(INVALID_FIELD, UNTRANSLATABLE) for a request
    that the provider cannot express.
    """
    refuse_edits(request)
    report = Report()
    flat = flatten(request, report)
    own = request.source.format in PROTOCOL_NAMES
    report_others(request, SUPPORTED_FIELDS | ({"extra_json"} if own else set()), notes, report)
    fields: JsonObject = dict(extra_fields(request)) if own else {}
    fields |= own_members(request, notes, OWN_MEMBERS, report)
    fields |= {"model": model, "prompt": flat.prompt, "response_format": "b64_json"}
    add_set(fields, request, OPTION_MEMBERS)
    if request.HasField("size") and request.size != "auto":
        report.drop("size", "aspect_ratio")
    if request.HasField("aspect_ratio"):
        fields["aspect_ratio"] = request.aspect_ratio
    elif request.size not in ("", "auto"):
        fields["aspect_ratio"] = nearest_ratio(request.size, ASPECT_RATIOS)
    if request.HasField("image_size"):
        fields["resolution"] = request.image_size.lower()
    if request.HasField("output_mime_type"):
        fields["output_format"] = OUTPUT_NAMES.get(request.output_mime_type, request.output_mime_type)
    images = [{"url": as_url(placed), "type": "image_url"} for placed in flat.images]
    if len(images) == 1:
        fields["image"] = images[0]
    elif images:
        fields["images"] = images
    return UpstreamRequest(EDITS_PATH if images else GENERATIONS_PATH, msgspec.json.encode(fields), {}, report)


class Moderated(Struct):
    """Item of `data`, of which only the result of the moderation is decoded."""

    respect_moderation: bool | None = None


class Response(Struct):
    """Response, of which only the results of the moderation are decoded."""

    data: list[Moderated] | Raw = Raw()


def decode(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse:
    """Decode a response. Raise UmgError(CONTENT_BLOCKED) if the moderation removed an image."""
    if b'"respect_moderation"' in body and any(each.respect_moderation is False for each in _moderated(body)):
        raise blocked("The provider's content filter removed the image; change the prompt or the input images.")
    return decode_response(body, request)


def _moderated(body: bytes) -> list[Moderated]:
    try:
        found = msgspec.json.decode(body, type=Response).data
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


XAI_IMAGES: ImageProtocol = replace(
    IMAGES_PROTOCOL,
    encode_request=encode_request,
    decode_response=decode,
    takes_urls=lambda _: True,
    stream_decoder=None,
    provider_name="x_ai",
)

"""Moderation requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, NonEmpty, parse
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format_interface import UpstreamRequest

FORMAT_NAME = "moderations"
DEFAULT_MODEL = "omni-moderation-latest"
"""Model for a body that names no model (openai 3.57.0, `ModerationCreateParams.model`)."""


class ImageAddress(Struct):
    """Member `image_url` of a part."""

    url: NonEmpty


class TextPart(Struct, tag_field="type", tag="text"):
    """Part of a content that is a text."""

    text: str


class ImagePart(Struct, tag_field="type", tag="image_url"):
    """Part of a content that is an image."""

    image_url: ImageAddress


class ModerationBody(Struct, kw_only=True):
    """Body of `POST /v1/moderations`: a text, several texts, or the parts of one content."""

    model: NonEmpty | None = None
    input: str | Annotated[list[str | TextPart | ImagePart], Meta(min_length=1)]


KNOWN_FIELDS = Fields(ModerationBody, {}, {})
wire_path = wire_paths([(r"^inputs(\[\d+\])?.*", r"input\1")])


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.ModerateRequest]:
    """Decode the JSON body of a request, which the canonical request keeps as source document. `headers`, `model`:
    without effect. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    decoded = parse(ModerationBody, body)
    request = pb.ModerateRequest(model=decoded.model or DEFAULT_MODEL)
    request.source.format, request.source.body = FORMAT_NAME, body
    given = [decoded.input] if isinstance(decoded.input, str) else decoded.input
    texts = [item for item in given if isinstance(item, str)]
    if len(texts) == len(given):
        for text in texts:
            request.inputs.add().parts.add(text=text)
    else:
        parts = request.inputs.add().parts
        for item in given:
            match item:
                case TextPart():
                    parts.add(text=item.text)
                case ImagePart():
                    parts.add(image_url=item.image_url.url)
                case text:  # a text among parts
                    parts.add(text=text)
    return DecodedRequest(request, RequestNotes(uncarried=list(KNOWN_FIELDS.unknown(body))))


def encode_request(request: pb.ModerateRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a request as a call of a provider's `POST /moderations`. Members of a caller's body in this format are
    kept. Raise UmgError(UNTRANSLATABLE) for several contents that are not all texts.
    """
    fields: JsonObject = {"input": _input(request)}
    if request.source.format == FORMAT_NAME:
        fields |= parse(dict[str, Raw], request.source.body)
    fields["model"] = model
    return UpstreamRequest("/moderations", msgspec.json.encode(fields), {}, Report())


def _input(request: pb.ModerateRequest) -> object:
    alone = [given.parts[0] for given in request.inputs if len(given.parts) == 1]
    texts = [part.text for part in alone if not part.HasField("image_url")]
    if len(texts) == len(request.inputs):
        return texts[0] if len(texts) == 1 else texts
    if len(request.inputs) > 1:
        raise untranslatable(
            "inputs", "a call judges several texts, or one content with images; send one call for each"
        )
    return [_part(part) for part in request.inputs[0].parts]


def _part(part: pb.ModerationPart) -> JsonObject:
    if part.HasField("image_url"):
        return {"type": "image_url", "image_url": {"url": part.image_url}}
    return {"type": "text", "text": part.text}

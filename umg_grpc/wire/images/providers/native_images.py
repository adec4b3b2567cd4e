"""Protocol of the image provider of family `famG`: `POST /models/{model}:generateContent` with an image as output.
One call makes one image; input images are sent as bytes in the body.
"""

import re

import msgspec
import pybase64
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import PlacedImage, placed_images, ratio_of, tier_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import PNG_TYPE
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, invalid
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.core.provider_key_headers import NATIVE_KEY_HEADER
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.provider_errors import NO_RESPONSE, is_error, read_response, unreadable
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers.request_encoding import add_set, mime_of, refuse_edits, report_others
from umg_grpc.wire.images.providers.response_decoding import blocked, is_text, no_image, set_bytes
from umg_grpc.wire.native.errors import decode_error, stated_error
from umg_grpc.wire.native.model_paths import GENERATE_VERB, call_path
from umg_grpc.wire.native.usage import UsageMetadata
from umg_grpc.wire.text_format_interface import UpstreamRequest

OPTION_MEMBERS = {"temperature": "temperature", "top_p": "topP", "max_output_tokens": "maxOutputTokens"}
SUPPORTED_FIELDS = frozenset({*OPTION_MEMBERS, "size", "aspect_ratio", "image_size", "quality", "response_modalities"})
TEXT_TOO = "image-text"
SIZE_TIERS = {"1K": None, "2K": "2K", "3K": "4K", "4K": "4K"}
"""Canonical `image_size` -> `imageSize`; None for the provider's default. For `3K`, the next larger size is sent."""
ONE_TIER = re.compile(r"2\.5-flash")
"""Provider models that have only the 1K size."""
MAX_FILE_BYTES = 20 << 20
"""Maximum bytes of an input image, since the provider limits the size of a whole request."""


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode the call for one image. `stream` has no effect: images are not streamed. `notes`: facts about the caller's
    body. Raise UmgError(INVALID_FIELD, UNTRANSLATABLE) for a request that the provider cannot express.
    """
    refuse_edits(request)
    report = Report()
    report_others(
        request,
        SUPPORTED_FIELDS | ({"output_mime_type"} if request.output_mime_type == PNG_TYPE else set()),
        notes,
        report,
    )
    modalities = ["TEXT", "IMAGE"] if request.response_modalities == TEXT_TOO else ["IMAGE"]
    config: JsonObject = {"responseModalities": modalities}
    if image_config := _image_config(request, model, report):
        config["imageConfig"] = image_config
    add_set(config, request, OPTION_MEMBERS)
    body = {"contents": _contents(request), "generationConfig": config}
    return UpstreamRequest(call_path(model, GENERATE_VERB), msgspec.json.encode(body), {}, report)


def _image_config(request: pb.GenerateImageRequest, model: str, report: Report) -> JsonObject:
    config: JsonObject = {}
    if (ratio := ratio_of(request)) is not None:
        config["aspectRatio"] = ratio
    wanted = tier_of(request)
    size = SIZE_TIERS.get(wanted)
    if size is None:
        return config
    source = "image_size" if request.HasField("image_size") else "quality"
    if ONE_TIER.search(model):
        report.drop(source, "1K")
        return config
    if size != wanted:
        report.drop(source, size)
    config["imageSize"] = size
    return config


def _contents(request: pb.GenerateImageRequest) -> list[JsonObject]:
    images = dict(placed_images(request))
    contents: list[JsonObject] = []
    for index, turn in enumerate(request.turns):
        parts: list[JsonObject] = []
        for number, part in enumerate(turn.parts):
            path = f"turns[{index}].parts[{number}].image"
            parts.append(_inline(PlacedImage(path, images[path])) if path in images else {"text": part.text})
        role = "model" if turn.role == pb.IMAGE_TURN_ROLE_MODEL else "user"
        contents.append({"role": role, "parts": parts})
    last: list[JsonObject] = [{"text": request.prompt}] if request.prompt else []
    last += [_inline(PlacedImage(f"inputs[{index}]", image)) for index, image in enumerate(request.inputs)]
    if last:
        contents.append({"role": "user", "parts": last})
    return contents


def _inline(placed: PlacedImage) -> JsonObject:
    if not placed.image.data:
        raise invalid(placed.path, "the image has no `data`; send its bytes")
    data = Raw(b'"%b"' % pybase64.b64encode(placed.image.data))
    return {"inlineData": {"mimeType": mime_of(placed.image), "data": data}}


# --- provider -> canonical


class Blob(Struct, rename="camel"):
    """Member `inlineData` of a part: media type and bytes."""

    data: Raw = ABSENT_MEMBER


class Part(Struct, rename="camel"):
    """Part of a response."""

    text: str | None = None
    inline_data: Blob | None = None
    thought: bool | None = None


class Content(Struct):
    """Member `content` of a candidate."""

    parts: list[Part] | None = None


class Candidate(Struct, rename="camel"):
    """Candidate of a response."""

    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Feedback(Struct, rename="camel"):
    """Member `promptFeedback`."""

    block_reason: str | None = None


class ResponseBody(Struct, rename="camel"):
    """Body of a response: candidates and usage, the reason why the prompt was blocked, or an error."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: Raw = ABSENT_MEMBER


_BODY_DECODER = msgspec.json.Decoder(ResponseBody)
NOT_BLOCKED = frozenset(
    {"STOP", "MAX_TOKENS", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED", "MALFORMED_FUNCTION_CALL"}
)
"""Values of `finishReason` without an image that do not mean refused content, so that another attempt may succeed."""
UNBLOCKED_PROMPTS = frozenset({"", "BLOCK_REASON_UNSPECIFIED", "OTHER"})


def decode_response(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse:
    """Decode a response. Without image, raise UmgError: CONTENT_BLOCKED for refused content, else UPSTREAM_FAILED."""
    parsed = read_response(_BODY_DECODER, body)
    if is_error(parsed.error):
        raise stated_error(parsed.error)
    if parsed.candidates is None and parsed.prompt_feedback is None:
        raise unreadable(NO_RESPONSE)
    response = pb.GenerateImageResponse()
    result, texts = response.result, list[str]()
    result.model = request.model
    for candidate in parsed.candidates or ():
        for part in (candidate.content.parts if candidate.content is not None else None) or ():
            if part.thought:
                continue  # a draft
            if part.inline_data is not None and is_text(part.inline_data.data):
                set_bytes(result.images.add(), part.inline_data.data)
            elif part.text:
                texts.append(part.text)
    if not result.images:
        raise _without_image(parsed, texts)
    if texts and request.response_modalities == TEXT_TOO:
        result.images[0].revised_prompt = "".join(texts)
    _set_usage(result.usage, parsed.usage_metadata)
    result.usage.image_count = len(result.images)
    return response


def _without_image(response: ResponseBody, texts: list[str]) -> UmgError:
    """Return the error for a response with only `texts`: CONTENT_BLOCKED for refused content, else UPSTREAM_FAILED."""
    feedback = (response.prompt_feedback.block_reason if response.prompt_feedback is not None else None) or ""
    if feedback not in UNBLOCKED_PROMPTS:
        return _refused(feedback, "the prompt")
    for candidate in response.candidates or ():
        reason = candidate.finish_reason or ""
        if reason and reason not in NOT_BLOCKED:
            return _refused(reason, "the image")
    return no_image(f"the provider made no image{': it answered with a text' if texts else ''}; try again")


def _refused(reason: str, refused: str) -> UmgError:
    return blocked(f"the provider's content policy refused {refused} ({clean(reason)}); change the prompt")


def _set_usage(usage: pb.ImageUsage, metadata: UsageMetadata | None) -> None:
    if metadata is None or not metadata.is_stated:
        return
    usage.input_tokens = count(metadata.prompt_token_count)
    usage.output_tokens = count(metadata.candidates_token_count)
    usage.total_tokens = count(metadata.total_token_count)
    for kind in metadata.prompt_tokens_details or ():
        match kind.modality:
            case "TEXT":
                usage.input_text_tokens = count(kind.token_count)
            case "IMAGE":
                usage.input_image_tokens = count(kind.token_count)
            case _:  # a modality that images do not have
                pass


NATIVE_IMAGES = ImageProtocol(
    name="native_images",
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=decode_error,
    takes_urls=lambda _: False,  # it needs the bytes
    one_image=True,
    max_file_bytes=MAX_FILE_BYTES,
    key_header=NATIVE_KEY_HEADER,
    provider_name="gcp.gemini",
)

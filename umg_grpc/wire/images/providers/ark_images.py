"""Protocol of the image providers of families `imgA` and `imgB`: `POST /images/generations`, whose successful
response may contain failures of single images, and streams with the images of a group.
"""

import re
from functools import partial

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.families.image_model_rules import MAX_GROUP, family_row, is_grouped
from umg_grpc.knowledge.media_model_rules import media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, any_value, is_present
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.core.sse import SseEvent
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.error_classification import (
    BLOCKED_REASON,
    DEFAULT_TABLE,
    LIMITED_REASON,
    ClassificationRow,
    Table,
)
from umg_grpc.wire.errors.provider_errors import (
    NO_RESPONSE,
    as_error,
    decode_error,
    from_provider,
    is_error,
    read_response,
    unreadable,
)
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers.images_protocol import GENERATIONS_PATH
from umg_grpc.wire.images.providers.request_encoding import (
    add_set,
    as_url,
    flatten,
    refuse_edits,
    report_others,
    size_with,
    stated_json,
)
from umg_grpc.wire.images.providers.response_decoding import (
    Layer,
    check_images,
    copy_size,
    set_file,
    set_layer,
    set_time,
)
from umg_grpc.wire.images.providers.stream_decoding import EventDecoder
from umg_grpc.wire.images.schema import OUTPUT_FORMATS
from umg_grpc.wire.text_format_interface import UpstreamRequest

PROTOCOL_NAME = "ark_images"
SUPPORTED_FIELDS = frozenset(
    {"size", "seed", "guidance_scale", "watermark", "optimize_prompt_mode", "output_mime_type"}
    | {"sequential_image_generation", "max_sequential_images"}
)
GROUPS_FIELD = "sequential_image_generation"
OPTIMIZATION_MEMBER = "optimize_prompt_options"


class OwnMembers(Struct):
    """Members of a caller's body, or of `extra_json`, that only this protocol has."""

    tools: Raw = ABSENT_MEMBER
    layer_decomposition: Raw = ABSENT_MEMBER
    optimize_prompt: Raw = ABSENT_MEMBER
    optimize_prompt_options: dict[str, Raw] | None = None


OWN_PATHS = frozenset({"tools", "layer_decomposition", "optimize_prompt", f"{OPTIMIZATION_MEMBER}.thinking"})
"""Paths of those members in a body. No canonical field has their values."""


def encode_request(
    request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode an image request as a call of the provider. `notes`: facts about the caller's body. Raise
    UmgError(INVALID_FIELD, UNTRANSLATABLE) for a request that the provider cannot express.

    The response format and the size of a group are always sent. For neutral ids, so are the watermark, the size and
    whether to make a group, since their defaults differ between the image document and the provider.
    """
    refuse_edits(request)
    report = Report()
    flat = flatten(request, report)
    row = family_row(request.model, notes.model_family)
    binds = row is not None and not row.is_open
    fields: JsonObject = {"model": model, "prompt": flat.prompt}
    if binds or request.HasField("watermark"):
        fields["watermark"] = request.watermark
    known = media_model(PROTOCOL_NAME, model)
    supported = SUPPORTED_FIELDS - set(known.without if known is not None else ())
    if binds and row is not None and GROUPS_FIELD in row.fields and "guidance_scale" not in row.fields:
        supported -= {"seed"}  # the 4.x models have none (reference, 10)
    report_others(request, supported, notes, report)
    wants_bytes = request.response_format == pb.IMAGE_RESPONSE_FORMAT_B64_JSON
    fields["response_format"] = "b64_json" if wants_bytes else "url"
    if request.HasField("size"):
        fields["size"] = size_with("x", request.size)
    elif row is not None and row.default_size:
        fields["size"] = row.default_size
    add_set(fields, request, {name: name for name in ("seed", "guidance_scale") if name in supported})
    if GROUPS_FIELD in supported:
        _add_group(fields, request, states_none=binds and row is not None and GROUPS_FIELD in row.fields)
    if request.HasField("optimize_prompt_mode"):
        fields[OPTIMIZATION_MEMBER] = {"mode": request.optimize_prompt_mode}
    if request.HasField("output_mime_type"):
        fields["output_format"] = request.output_mime_type.removeprefix("image/")
    _add_own_members(fields, request, notes, report)
    if flat.images:
        images = [as_url(placed) for placed in flat.images]
        fields["image"] = images[0] if len(images) == 1 else images
    if stream:
        fields["stream"] = True
    return UpstreamRequest(GENERATIONS_PATH, msgspec.json.encode(fields), {}, report)


def _add_group(fields: JsonObject, request: pb.GenerateImageRequest, *, states_none: bool) -> None:
    if is_grouped(request):
        fields[GROUPS_FIELD] = "auto"
        fields["sequential_image_generation_options"] = {"max_images": request.max_sequential_images or MAX_GROUP}
    elif request.sequential_image_generation or states_none:
        fields[GROUPS_FIELD] = "disabled"


def _add_own_members(fields: JsonObject, request: pb.GenerateImageRequest, notes: RequestNotes, report: Report) -> None:
    """Add the members that only this protocol has to a body, in place, and remove them from the report."""
    if not (stated := stated_json(request, notes, OWN_PATHS)):
        return
    try:
        own = msgspec.json.decode(stated, type=OwnMembers)
    except (ValueError, RecursionError):
        return  # of another form: it stays reported
    for name in ("tools", "layer_decomposition", "optimize_prompt"):
        if is_present(value := getattr(own, name)):
            fields[name] = value
            report.forget(name)
    if own.optimize_prompt_options and (thinking := own.optimize_prompt_options.get("thinking")) is not None:
        mode = {"mode": request.optimize_prompt_mode} if request.HasField("optimize_prompt_mode") else {}
        fields[OPTIMIZATION_MEMBER] = {**mode, "thinking": thinking}
        report.forget(f"{OPTIMIZATION_MEMBER}.thinking")
        report.forget(OPTIMIZATION_MEMBER)


# --- provider -> canonical

MODERATED_CODES = re.compile(r"SensitiveContentDetected|PolicyViolation|RiskDetection", re.IGNORECASE)
ERROR_TABLE: Table = (
    ClassificationRow({400, 403, 422}, BLOCKED_REASON, Failure.CALLER, codes=MODERATED_CODES),
    # a limit that the operator set for the account, not one per minute
    ClassificationRow({429}, LIMITED_REASON, Failure.DOWN, codes=re.compile("SetLimitExceeded")),
    *DEFAULT_TABLE,
)

CODE_STATUSES = (
    (MODERATED_CODES, 400),
    (re.compile(r"Invalid|Missing"), 400),
    (re.compile(r"RateLimit|QuotaExceeded|ServerOverloaded|LimitExceeded"), 429),
    (re.compile(r"Authentication"), 401),
    (re.compile(r"AccountOverdue|AccessDenied|OperationDenied"), 403),
    (re.compile(r"NotOpen|NotFound"), 404),
)
"""(pattern of an error code in a successful response, HTTP status of failed responses with that code). Default: 500."""


def stated_error(error: Raw) -> UmgError:
    """Return the caller's error for the member `error` of an image, of an event, or of a response with status 200."""
    read = as_error(any_value(error))
    status = next((status for pattern, status in CODE_STATUSES if pattern.search(read.codes)), 500)
    return from_provider(status, read, table=ERROR_TABLE)


class Usage(Struct):
    """Member `usage`."""

    generated_images: Count = None
    output_tokens: Count = None
    total_tokens: Count = None


class Item(Layer):
    """Item of `data`: an image, or its failure."""

    url: str | None = None
    b64_json: Raw = ABSENT_MEMBER
    size: str | None = None
    output_format: str | None = None
    error: Raw = ABSENT_MEMBER


class ResponseBody(Struct):
    """Body of a response: images and usage, or an error."""

    created: float | None = None
    data: list[Item] | None = None
    usage: Usage | None = None
    error: Raw = ABSENT_MEMBER


_BODY_DECODER = msgspec.json.Decoder(ResponseBody)


def decode_response(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse:
    """Decode a response, leaving out failed images. If no image is left, raise the UmgError of the first failure."""
    parsed = read_response(_BODY_DECODER, body)
    if is_error(parsed.error):
        raise stated_error(parsed.error)
    if parsed.data is None:
        raise unreadable(NO_RESPONSE)
    response = pb.GenerateImageResponse()
    result, failures = response.result, list[UmgError]()
    result.model = request.model
    set_time(result.create_time, parsed.created)
    for item in parsed.data:
        if is_error(item.error):
            failures.append(stated_error(item.error))
        else:
            set_image(result.images.add(), item)
    _set_usage(result.usage, parsed.usage)
    check_images(result, failures)
    return response


def set_image(image: pb.Image, item: "Item | Event") -> None:
    """Set the fields of `image` from an item or event. Raise UmgError(UPSTREAM_FAILED) if it has no file."""
    set_file(image, item.b64_json, item.url)
    copy_size(image, item.size)
    set_layer(image, item)
    if not image.mime_type:
        image.mime_type = OUTPUT_FORMATS.get(item.output_format or "", "")


def _set_usage(usage: pb.ImageUsage, stated: Usage | None) -> None:
    if stated is not None and stated.output_tokens is not None:
        usage.output_tokens = count(stated.output_tokens)
        usage.total_tokens = count(stated.total_tokens)


class Event(Layer):
    """Event of a provider's image stream: a finished image, a failed image, the end with the usage, or an error."""

    type: str = ""
    created: float | None = None
    image_index: int | None = None
    url: str | None = None
    b64_json: Raw = ABSENT_MEMBER
    size: str | None = None
    output_format: str | None = None
    usage: Usage | None = None
    error: Raw = ABSENT_MEMBER


_EVENT = msgspec.json.Decoder(Event)


class ArkStreamDecoder(EventDecoder):
    """Decoder of `image_generation.*` events of `imgA` and `imgB`; `partial_succeeded` is a finished group image."""

    def decode_event(self, event: SseEvent, data: bytes, message: pb.StreamGenerateImageResponse) -> None:
        read = read_response(_EVENT, data)
        match read.type:
            case "image_generation.partial_succeeded":
                self.start(message, read.created)
                set_image(self.add_image(message, read.image_index), read)
            case "image_generation.partial_failed" if is_error(read.error):
                self.add_failure(message, stated_error(read.error), read.image_index)
            case "image_generation.completed":
                _set_usage(self.result.usage, read.usage)
                self.ended = True
            case _:  # an error, or a type that later versions of the protocol add
                if is_error(read.error):
                    raise stated_error(read.error)
                if event.name == b"error":
                    raise stated_error(Raw(data))


ARK_IMAGES = ImageProtocol(
    name=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(decode_error, too_long="prompt", table=ERROR_TABLE),
    takes_urls=lambda _: True,
    stream_decoder=ArkStreamDecoder,
    one_image=True,
    provider_name="volcengine",
)

"""Decoding of responses and streams of the images format. The images of a response are at the top level, as in the
SDKs, or in the member `data` of an envelope with `code` and `msg`.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import is_grouped
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, any_value
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.core.sse import SseEvent
from umg_grpc.wire.errors.error_classification import FILTERED_CODES
from umg_grpc.wire.errors.provider_errors import (
    NO_RESPONSE,
    as_error,
    from_provider,
    is_error,
    read_response,
    unreadable,
)
from umg_grpc.wire.images.long_json_strings import LongStrings
from umg_grpc.wire.images.providers.response_decoding import (
    Layer,
    check_images,
    copy_size,
    set_bytes,
    set_file,
    set_layer,
    set_time,
)
from umg_grpc.wire.images.providers.stream_decoding import EventDecoder
from umg_grpc.wire.images.schema import OUTPUT_FORMATS


class InputDetails(Struct):
    """Member `usage.input_tokens_details`."""

    text_tokens: Count = None
    image_tokens: Count = None


class Usage(Struct):
    """Member `usage`."""

    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Count = None
    input_tokens_details: InputDetails | None = None


class Item(Layer):
    """Item of `data`: one image."""

    url: str | None = None
    b64_json: Raw = ABSENT_MEMBER
    revised_prompt: str | None = None
    error: Raw = ABSENT_MEMBER


class Head(Struct):
    """Properties of all images of a complete response, or of the image of one event."""

    size: str | None = None
    quality: str | None = None
    background: str | None = None
    output_format: str | None = None
    usage: Usage | None = None


class Inner(Head):
    """Member `data` of an envelope with `code` and `msg`."""

    created: float | None = None
    data: list[Item] | None = None


class ResponseBody(Head):
    """Body of a response. Its member `data` is the list of images, as in the SDKs, or an object with this list."""

    created: float | None = None
    data: list[Item] | Inner | None = None
    error: Raw = ABSENT_MEMBER


_BODY_DECODER = msgspec.json.Decoder(ResponseBody)


def decode_response(body: bytes, request: pb.GenerateImageRequest) -> pb.GenerateImageResponse:
    """Decode a provider's response. Raise UmgError: the error that a body with HTTP status 200 states, or
    UPSTREAM_FAILED for a body that cannot be decoded or has no image.
    """
    strings = LongStrings(body)
    parsed, inner = _read(strings.body)
    restored = 0
    for item in inner.data or ():
        short, item.b64_json = item.b64_json, strings.restore_raw(item.b64_json)
        restored += item.b64_json is not short
    if restored < len(strings):  # a long string that is no image
        parsed, inner = _read(body)
    if is_error(parsed.error):
        raise stated_error(parsed.error)
    if inner.data is None:
        raise unreadable(NO_RESPONSE)
    response = pb.GenerateImageResponse()
    result = response.result
    result.model = request.model
    set_time(result.create_time, inner.created or parsed.created)
    set_head(result, parsed)
    set_head(result, inner)
    check_images(result, add_items(result, inner.data))
    return response


def _read(body: bytes) -> tuple[ResponseBody, Inner]:
    response = read_response(_BODY_DECODER, body)
    return response, response.data if isinstance(response.data, Inner) else Inner(data=response.data)


def add_items(result: pb.ImageResult, items: Sequence[Item]) -> list[UmgError]:
    """Add the images in a response's items to `result`. Return the errors of the items without an image."""
    failures = list[UmgError]()
    for item in items:
        if is_error(item.error):
            failures.append(stated_error(item.error))
            continue
        image = result.images.add()
        set_image(image, item)
        copy_size(image, result.size)
    return failures


def set_image(image: pb.Image, item: "Item | Event") -> None:
    """Set the fields of `image` from an item or event. Raise UmgError(UPSTREAM_FAILED) if it has no file."""
    set_file(image, item.b64_json, item.url)
    if item.revised_prompt:
        image.revised_prompt = item.revised_prompt
    set_layer(image, item)
    if isinstance(item, Event):
        copy_size(image, item.size)


def set_head(result: pb.ImageResult, head: Head) -> None:
    """Set the usage of `result` and the properties that all its images share, in place."""
    for name in ("size", "quality", "background"):
        if value := getattr(head, name):
            setattr(result, name, value)
    if head.output_format:
        result.output_mime_type = OUTPUT_FORMATS.get(head.output_format, head.output_format)
    if head.usage is not None:
        add_usage(result.usage, head.usage)


def add_usage(total: pb.ImageUsage, usage: Usage) -> None:
    """Add the token counts of one response or event to `total`, in place."""
    details = usage.input_tokens_details or InputDetails()
    for name, number in (
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("total_tokens", usage.total_tokens),
        ("input_text_tokens", details.text_tokens),
        ("input_image_tokens", details.image_tokens),
    ):
        if number is not None:
            setattr(total, name, count(getattr(total, name) + count(number)))


def stated_error(error: Raw) -> UmgError:
    """Return the caller's error for the member `error` of an event, or of a response with status 200."""
    read = as_error(any_value(error))
    return from_provider(400 if FILTERED_CODES.search(read.codes) else 200, read)


# --- streams


class Event(Head):
    """Event of a provider's image stream: a draft, a finished image or an error."""

    type: str = ""
    b64_json: Raw = ABSENT_MEMBER
    url: str | None = None
    revised_prompt: str | None = None
    created_at: float | None = None
    partial_image_index: int = 0
    image_index: int | None = None
    error: Raw = ABSENT_MEMBER
    z_index: Raw = ABSENT_MEMBER
    bounding_box: Raw = ABSENT_MEMBER
    name: Raw = ABSENT_MEMBER
    description: Raw = ABSENT_MEMBER


_EVENT = msgspec.json.Decoder(Event)
PARTIAL_IMAGE, COMPLETED_IMAGE, FAILED_IMAGE = (".partial_image", ".completed", ".partial_failed")


class ImagesStreamDecoder(EventDecoder):
    """Decoder of a stream of `image_generation.*` or `image_edit.*` events. Here `completed` is a finished image and
    `partial_image` a draft. If the provider is a gateway, it also sends an event for each failed image.
    """

    def __init__(self, request: pb.GenerateImageRequest) -> None:
        super().__init__(request)
        self.ends_with_body = is_grouped(request)

    def decode_event(self, event: SseEvent, data: bytes, message: pb.StreamGenerateImageResponse) -> None:
        read = read_response(_EVENT, data)
        if read.type.endswith(FAILED_IMAGE):
            self.add_failure(message, stated_error(Raw(data)), read.image_index)
        elif is_error(read.error) or event.name == b"error" or read.type == "error":
            raise stated_error(read.error if is_error(read.error) else Raw(data))
        elif read.type.endswith(PARTIAL_IMAGE):
            self.start(message, read.created_at, read.quality or "", read.background or "")
            partial = message.events.add().partial
            partial.image_index = read.image_index or 0
            partial.partial_index = max(0, read.partial_image_index)
            set_bytes(partial.image, read.b64_json)
        elif read.type.endswith(COMPLETED_IMAGE):
            self.start(message, read.created_at, read.quality or "", read.background or "")
            set_image(self.add_image(message, read.image_index), read)
            set_head(self.result, read)
        # of a group, only its maximum is known
        self.ended = not self.ends_with_body and self.images + len(self.failures) >= (self.request.n or 1)

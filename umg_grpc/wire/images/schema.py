"""JSON bodies of the image paths as typed structs: the specification's fields, and those of current SDKs; null is
absent. Values that depend on the model's family are checked by `umg_grpc.knowledge.families.image_model_rules`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from umg_grpc.wire.core.json_decoding import NonEmpty, PositiveWhole, Whole

# --- flat bodies


class ContentPart(Struct, kw_only=True):
    """Item in the `parts` of an element of `contents`: either a text or an image."""

    text: str | None = None
    image: NonEmpty | None = None


class ContentItem(Struct, kw_only=True):
    """Element of `contents`: one message of a conversation."""

    role: Literal["user", "model"] = "user"
    parts: Annotated[list[ContentPart], Meta(min_length=1)]


class ImageReference(Struct, kw_only=True):
    """Input image of an edit as an object, as newer SDKs send it."""

    image_url: NonEmpty | None = None
    file_id: str | None = None


InputImage = NonEmpty | ImageReference
InputImages = NonEmpty | ImageReference | list[InputImage]


class SequentialOptions(Struct, kw_only=True):
    """Member `sequential_image_generation_options`."""

    max_images: Whole | None = None


class OptimizeOptions(Struct, kw_only=True):
    """Member `optimize_prompt_options`."""

    mode: NonEmpty | None = None


# --- structured bodies (family D)


class StructuredItem(Struct, kw_only=True):
    """Item of `input.messages[].content`: either a text or an image."""

    text: str | None = None
    image: NonEmpty | None = None


class StructuredMessage(Struct, kw_only=True):
    """Item of `input.messages`."""

    role: Literal["user"]
    content: Annotated[list[StructuredItem], Meta(min_length=1)]


class StructuredInput(Struct, kw_only=True):
    """Member `input` of a body for family `imgD`."""

    messages: Annotated[list[StructuredMessage], Meta(min_length=1)]


class StructuredParameters(Struct, kw_only=True):
    """Member `parameters` of a body for family `imgD`."""

    n: PositiveWhole | None = None
    negative_prompt: str | None = None
    prompt_extend: bool | None = None
    watermark: bool | None = None
    seed: Whole | None = None
    size: NonEmpty | None = None


# --- the body


class ImageBody(Struct, kw_only=True):
    """Body of `POST /v1/images/generations`, `/edits` and `/variations`."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    prompt: str | None = None
    response_format: Annotated[str, Meta(extra_json_schema={"enum": ["url", "b64_json"]})] | None = None
    contents: Annotated[list[ContentItem], Meta(min_length=1)] | None = None
    image: InputImages | None = None
    images: InputImages | None = None
    mask: InputImage | None = None
    stream: bool | None = None
    user: str | None = None
    safety_identifier: str | None = None

    n: PositiveWhole | None = None
    size: NonEmpty | None = None
    quality: NonEmpty | None = None
    # family G
    aspect_ratio: NonEmpty | None = None
    image_size: NonEmpty | None = None
    mime_type: NonEmpty | None = None
    response_modalities: NonEmpty | None = None
    person_generation: NonEmpty | None = None
    personGeneration: NonEmpty | None = None  # noqa: N815 (readings, 25)
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_output_tokens: PositiveWhole | None = None
    # families A and B
    watermark: bool | None = None
    seed: Whole | None = None
    guidance_scale: float | None = None
    sequential_image_generation: Literal["auto", "disabled"] | None = None
    sequential_image_generation_options: SequentialOptions | None = None
    optimize_prompt_options: OptimizeOptions | None = None
    # family C
    input_fidelity: NonEmpty | None = None
    background: NonEmpty | None = None
    moderation: NonEmpty | None = None
    output_format: Literal["png", "jpeg", "webp", "gif", "svg"] | None = None
    output_compression: Annotated[int, Meta(ge=0, le=100)] | Annotated[float, Meta(ge=0, le=100)] | None = None
    partial_images: Annotated[int, Meta(ge=0, le=3)] | Annotated[float, Meta(ge=0, le=3)] | None = None
    # family D; flat bodies name the first two for models of its vendor
    negative_prompt: str | None = None
    prompt_extend: bool | None = None
    input: StructuredInput | None = None
    parameters: StructuredParameters | None = None


class KnownImageBody(ImageBody, forbid_unknown_fields=True):
    """Body of an image request that rejects unknown fields; decoding it is faster, and succeeds for most bodies."""


SVG_TYPE = "image/svg+xml"
OUTPUT_FORMATS = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp", "gif": "image/gif", "svg": SVG_TYPE}
NEWER_MEMBERS = frozenset({"complexity", "frame_count", "frame_duration_ms", "svg"})
"""Members for newer models of OpenAI (openai 3.57.0, types/image_generate_params.py), which are sent unchanged."""


class StreamChoice(Struct):
    """Body of an image request of which only the member `stream` is decoded."""

    stream: bool | None = None

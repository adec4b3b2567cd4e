"""Types of the responses of images and of callbacks about videos, for the OpenAPI document."""

from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.openapi_schemas.text_response_types import Count

# --- images


class Image(Struct, kw_only=True):
    """Image as its URL or as its file in base64; the other member is absent."""

    url: str | None = None
    b64_json: str | None = None
    revised_prompt: str | None = None
    z_index: int | None = None
    """Order of a layer of a picture; these members are those of the provider, which may have others."""
    bounding_box: Raw = ABSENT_MEMBER
    name: str | None = None
    description: str | None = None


class Images(Struct, kw_only=True):
    """Images in the shape of SDKs, which a request selects by `x-umg-shape: sdk` or the headers of an SDK."""

    created: int
    data: list[Image]
    usage: Raw = ABSENT_MEMBER


class DocumentedImages(Struct, kw_only=True):
    """Images in the documented shape."""

    code: int
    msg: str
    data: Images


class ImageEvent(Struct, kw_only=True):
    """Event of a stream of images: `partial_image` (a draft), `completed` (a finished image) or `partial_failed` (a
    failed image of a group), after the name of the operation.
    """

    type: str
    image_index: Count


# --- videos


class CallbackTaken(Struct, kw_only=True):
    """Confirmation to a provider that its notification was received."""

    code: int
    message: str

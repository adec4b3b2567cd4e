"""Image formats for callers (`POST /v1/images/generations`, `/edits`, `/variations`). `providers` has the protocols."""

from functools import partial

from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import AZURE_KEY_HEADER
from umg_grpc.wire.image_format_interface import ImageFormat
from umg_grpc.wire.images.errors import encode_error
from umg_grpc.wire.images.image_stream_encoding import HEARTBEAT_COMMENT, StreamEncoder
from umg_grpc.wire.images.input_images import check_inputs
from umg_grpc.wire.images.multipart_requests import decode_form
from umg_grpc.wire.images.request import decode_request, wants_stream, wire_path
from umg_grpc.wire.images.response import encode_pieces, encode_response
from umg_grpc.wire.unary_format_interface import ClientShape

__all__ = ["IMAGES_FACE", "IMAGE_EDITS", "IMAGE_FORMATS", "IMAGE_VARIATIONS", "check_inputs"]


def _face(
    name: str, operation: "pb.ImageOperation.ValueType", events: str, shape: ClientShape | None, *, forms: bool
) -> ImageFormat:
    return ImageFormat(
        name=name,
        source_headers=(),
        decode_request=partial(decode_request, name, operation),
        encode_response=encode_response,
        stream_encoder=partial(StreamEncoder, events),
        wants_stream=wants_stream,
        encode_error=encode_error,
        wire_path=wire_path,
        encode_pieces=encode_pieces,
        decode_form=partial(decode_form, operation) if forms else None,
        shape=shape,
        heartbeat=HEARTBEAT_COMMENT,
        key_headers=(AZURE_KEY_HEADER,),
        error_paths=("/v1/images",) if name == "images" else (),
    )


IMAGES_FACE = _face("images", pb.IMAGE_OPERATION_GENERATE, "image_generation", None, forms=False)
IMAGE_EDITS = _face("image_edits", pb.IMAGE_OPERATION_EDIT, "image_edit", ClientShape.SDK, forms=True)
IMAGE_VARIATIONS = _face(
    "image_variations", pb.IMAGE_OPERATION_VARIATION, "image_variation", ClientShape.SDK, forms=True
)
IMAGE_FORMATS: dict[str, ImageFormat] = {
    IMAGES_FACE.name: IMAGES_FACE,
    IMAGE_EDITS.name: IMAGE_EDITS,
    IMAGE_VARIATIONS.name: IMAGE_VARIATIONS,
}

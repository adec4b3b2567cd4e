"""Encoding of image responses for callers, in the documented envelope or in the shape of the SDKs."""

from collections.abc import Iterator

import msgspec
import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_files import EncodedFiles
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.unary_format import ClientShape

STEP_BYTES = 384 << 10
"""Bytes of a file that are encoded at once, in a tenth of a millisecond: one piece of all answers in each
iteration of the event loop. A multiple of 3, so that only the last step has padding.
"""
_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}


def encode_response(response: pb.GenerateImageResponse, request: pb.GenerateImageRequest, shape: ClientShape) -> bytes:
    """Encode an image response (image document, "Image result") in the documented shape or that of the SDKs."""
    return b"".join(encode_pieces(response, request, shape, EncodedFiles(b"")))


def encode_pieces(
    response: pb.GenerateImageResponse, request: pb.GenerateImageRequest, shape: ClientShape, files: EncodedFiles
) -> Iterator[bytes | memoryview]:
    """Yield the body of an image response in pieces, each encoded when it is requested. A response without files is one
    piece. `files`: images that stay in the provider's base64.
    """
    result = response.result
    created = result.create_time.seconds
    if shape is ClientShape.DOCUMENTED:
        head, tail = b'{"code":200,"msg":"success","data":{"data":[', b'],"created":%d}}' % created
    else:
        described = msgspec.json.encode(_describe(result, request))
        head, tail = (
            b'{"created":%d,"data":[' % created,
            b"]%b}" % (b"," + described[1:-1] if described != b"{}" else b""),
        )
    text = head
    for index, image in enumerate(result.images):
        text += b"," if index else b""
        if image.HasField("data"):
            text += b'{"b64_json":"'
            if (file := files.find(data := image.data)) is not None:
                yield text
                yield from file.pieces()
            else:
                yield from _steps(text, data)
            text = b'"' + _revised(image) + b"}"
        else:
            text += b'{"url":' + msgspec.json.encode(image.url) + _revised(image) + b"}"
    yield text + tail


def output_format(mime_type: str) -> str:
    """Return the name of a media type in `output_format`; that of PNG for an unknown type."""
    return _FORMATS.get(mime_type, "png")


def encode_usage(usage: pb.ImageUsage) -> JsonObject | None:
    """Encode the usage in tokens as SDKs expect it; return None if the provider bills by the image."""
    if not (usage.HasField("output_tokens") or usage.HasField("total_tokens") or usage.HasField("input_tokens")):
        return None
    total = usage.total_tokens if usage.HasField("total_tokens") else usage.input_tokens + usage.output_tokens
    details = {"text_tokens": usage.input_text_tokens, "image_tokens": usage.input_image_tokens}
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": details,
        "output_tokens": usage.output_tokens,
        "total_tokens": total,
    }


def _describe(result: pb.ImageResult, request: pb.GenerateImageRequest) -> JsonObject:
    """Return the facts about the images that the SDKs' shape has beside the images, as far as the provider reports
    them.
    """
    members: JsonObject = {}
    for name in ("background", "quality", "size"):
        if value := getattr(result, name):
            members[name] = value
    mime_type = result.output_mime_type or (result.images[0].mime_type if result.images else "")
    if mime_type in _FORMATS:
        members["output_format"] = _FORMATS[mime_type]
    if (usage := encode_usage(result.usage)) is not None:
        members["usage"] = usage
    return members


def _steps(text: bytes, data: bytes) -> Iterator[bytes]:
    """Yield JSON text in which the data of an image is replaced by the base64 of its file."""
    view = memoryview(data)
    for start in range(0, len(view), STEP_BYTES):
        yield text + pybase64.b64encode(view[start : start + STEP_BYTES])
        text = b""
    if text:
        yield text


def _revised(image: pb.Image) -> bytes:
    if not image.HasField("revised_prompt"):
        return b""
    return b',"revised_prompt":' + msgspec.json.encode(image.revised_prompt)

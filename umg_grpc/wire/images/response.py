"""Encoding of image responses for callers: as specified (an envelope with `code` and `msg`), or as in official SDKs."""

from collections.abc import Iterator

import msgspec
import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.undecoded_base64_files import EncodedFiles
from umg_grpc.wire.unary_format_interface import ClientShape

STEP_BYTES = 384 << 10
"""Bytes of a file encoded at once, in a tenth of a millisecond; a multiple of 3, so that only the end has padding."""
_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}


def encode_response(response: pb.GenerateImageResponse, request: pb.GenerateImageRequest, shape: ClientShape) -> bytes:
    """Encode an image response as JSON. `request`: the caller's; SDKs expect its options in the response."""
    return b"".join(encode_pieces(response, request, shape, EncodedFiles(b"")))


def encode_pieces(
    response: pb.GenerateImageResponse, request: pb.GenerateImageRequest, shape: ClientShape, files: EncodedFiles
) -> Iterator[bytes | memoryview]:
    """Yield the JSON body of an image response in pieces; each is encoded when it is requested. A response without
    files is one piece. `files`: images that are still in the provider's base64.
    """
    result = response.result
    created = result.create_time.seconds
    if shape is ClientShape.DOCUMENTED:
        head, tail = b'{"code":200,"msg":"success","data":{"data":[', b'],"created":%d}}' % created
    else:
        described = msgspec.json.encode(_describe(result))
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
            text = b'"' + _members(image) + b"}"
        else:
            text += b'{"url":' + msgspec.json.encode(image.url) + _members(image) + b"}"
    yield text + tail


def output_format(mime_type: str) -> str:
    """Return the value of `output_format` for a media type: `png`, `jpeg` or `webp`; `png` for an unknown type."""
    return _FORMATS.get(mime_type, "png")


def encode_usage(usage: pb.ImageUsage) -> JsonObject | None:
    """Return the token usage as SDKs expect it; None for a provider that bills by the image and states no tokens."""
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


def _describe(result: pb.ImageResult) -> JsonObject:
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
    """Yield in pieces: `text`, the JSON before a file, and then the file `data` as base64."""
    view = memoryview(data)
    for start in range(0, len(view), STEP_BYTES):
        yield text + pybase64.b64encode(view[start : start + STEP_BYTES])
        text = b""
    if text:
        yield text


def _members(image: pb.Image) -> bytes:
    members = b""
    if image.HasField("revised_prompt"):
        members = b',"revised_prompt":' + msgspec.json.encode(image.revised_prompt)
    if image.extra_json:
        members += b"," + image.extra_json.encode()[1:-1]
    return members

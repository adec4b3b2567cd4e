"""Further members of images, as those of the layers of a picture: from a provider to callers, also through another
gateway.
"""

from typing import Any

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.images.image_stream_encoding import StreamEncoder
from umg_grpc.wire.images.providers.ark_images import ARK_IMAGES, ArkStreamDecoder
from umg_grpc.wire.images.providers.dashscope_images import DASHSCOPE_IMAGES
from umg_grpc.wire.images.providers.images_protocol import IMAGES_PROTOCOL
from umg_grpc.wire.images.providers.images_protocol_responses import ImagesStreamDecoder
from umg_grpc.wire.images.response import encode_response
from umg_grpc.wire.unary_format_interface import ClientShape

REQUEST = pb.GenerateImageRequest(model="m", prompt="a tree")
BASE = {"z_index": 0}
TREE = {
    "z_index": 1,
    "bounding_box": {"absolute": [8, 8, 64, 64], "normalized": [10, 10, 80, 80]},
    "name": "tree",
    "description": "a tree on a hill",
}
ARK: dict[str, Any] = {
    "created": 1767323045,
    "data": [
        {"url": "https://files.example/0.png", "size": "64x64", "output_format": "png", **BASE},
        {"b64_json": "aGVsbG8=", **TREE},
    ],
}


def members(body: bytes, shape: ClientShape) -> list[dict[str, Any]]:
    """Return the images of a response to a caller, without their files."""
    answer = msgspec.json.decode(body)
    data = answer["data"] if shape is ClientShape.SDK else answer["data"]["data"]
    return [{name: value for name, value in item.items() if name not in ("url", "b64_json")} for item in data]


@pytest.mark.parametrize("shape", [ClientShape.SDK, ClientShape.DOCUMENTED], ids=lambda shape: shape.name)
def test_the_layers_of_ark_reach_a_caller_with_their_places(shape: ClientShape) -> None:
    response = ARK_IMAGES.decode_response(msgspec.json.encode(ARK), REQUEST)
    assert response.result.images[0].mime_type == "image/png"
    body = encode_response(response, REQUEST, shape)
    assert members(body, shape) == [BASE, TREE]
    if shape is ClientShape.SDK:  # as of a gateway that is the provider of another one
        chained = IMAGES_PROTOCOL.decode_response(body, REQUEST)
        assert [msgspec.json.decode(image.extra_json) for image in chained.result.images] == [BASE, TREE]


def test_the_layers_of_a_stream_reach_a_caller_with_their_places() -> None:
    events = [
        {"type": "image_generation.partial_succeeded", "image_index": at, **item} for at, item in enumerate(ARK["data"])
    ]
    events.append({"type": "image_generation.completed", "created": 1767323045})
    sent = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events)
    message = ArkStreamDecoder(REQUEST).feed(sent)
    assert message is not None
    encoder = StreamEncoder("image_generation", REQUEST)
    frames = encoder.feed(message) + encoder.close()
    for item in (BASE, TREE):
        for name, value in item.items():
            assert msgspec.json.encode(name) + b":" + msgspec.json.encode(value) in frames
    chained = ImagesStreamDecoder(pb.GenerateImageRequest(model="m", prompt="a tree", n=2)).feed(frames)
    assert chained is not None
    images = [event.completed.image for event in chained.events if event.HasField("completed")]
    assert [msgspec.json.decode(image.extra_json) for image in images] == [BASE, TREE]


def test_the_members_beside_an_image_of_dashscope_reach_a_caller() -> None:
    content = [
        {"type": "image", "image": "https://files.example/0.png"},
        {"image": "https://files.example/1.png", **TREE},
    ]
    body = msgspec.json.encode({"output": {"choices": [{"message": {"content": [*content, {"text": "done"}]}}]}})
    response = DASHSCOPE_IMAGES.decode_response(body, REQUEST)
    sent = encode_response(response, REQUEST, ClientShape.SDK)
    assert [image.url for image in response.result.images] == [f"https://files.example/{at}.png" for at in (0, 1)]
    assert members(sent, ClientShape.SDK) == [{}, TREE]

"""Large answers of the images format, whose base64 is decoded in place."""

import base64
import json

import pytest

from tests.support.images import PNG
from umg_grpc.v1 import pb
from umg_grpc.wire.images.long_json_strings import LONG_BYTES
from umg_grpc.wire.images.providers.images_protocol_responses import decode_response

FILE = PNG + bytes(2 * LONG_BYTES)
ENCODED = base64.b64encode(FILE).decode()
LONG_TEXT = "a lake " * LONG_BYTES


@pytest.mark.parametrize("is_documented", [True, False], ids=["documented", "of SDKs"])
@pytest.mark.parametrize("prompt", ["short", LONG_TEXT], ids=["short", "long"])
def test_large_images_are_decoded_beside_texts_of_any_length(prompt: str, *, is_documented: bool) -> None:
    items = [
        {"b64_json": ENCODED, "revised_prompt": prompt},
        {"url": "https://example.com/a.png"},
        {"b64_json": ENCODED},
    ]
    answer = {"created": 1, "data": items}
    body = json.dumps({"code": 200, "msg": "success", "data": answer} if is_documented else answer).encode()
    images = decode_response(body, pb.GenerateImageRequest(model="m")).result.images
    assert [image.data for image in images] == [FILE, b"", FILE]
    assert images[0].revised_prompt == prompt
    assert images[1].url == "https://example.com/a.png"

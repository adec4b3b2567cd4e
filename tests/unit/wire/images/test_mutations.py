"""Mutated bodies and forms of the image paths: for any content, decoding and checks raise nothing but UmgError."""

import base64
import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from http_facade.exchange.multipart_form_parser import parse_form
from tests.proofs.fuzz.mutation import bodies
from tests.support.images import PNG
from tests.unit.wire.images.test_request import FLAT, LONG_TEXT
from tests.unit.wire.laws import modest
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS, max_images, requested_pixels
from umg_grpc.wire.images import IMAGE_EDITS, IMAGE_FORMATS, check_inputs
from umg_grpc.wire.images.image_request_checks import check

B64 = base64.b64encode(PNG).decode()
TURN = {"role": "user", "parts": [{"text": "a kite"}, {"image": f"data:image/png;base64,{B64}"}]}
BODIES: dict[str, dict[str, Any]] = {
    **{name: {"prompt": "a kite", **body} for name, (body, _) in FLAT.items()},
    "images": {
        "prompt": "a kite",
        "image": B64,
        "images": [B64, {"image_url": "https://example.com/a.png"}],
        "mask": B64,
    },
    "turns": {"contents": [TURN, TURN], "n": 1, "size": "16:9"},
    "a structured body": {
        "input": {"messages": [{"role": "user", "content": [{"image": B64}, {"text": "p"}]}]},
        "parameters": {"n": 1, "size": "10*10", "seed": 1, "watermark": True, "negative_prompt": "x"},
    },
    "a long file": {"prompt": "a kite", "image": LONG_TEXT, "stream": True},
}


@pytest.mark.parametrize("face", IMAGE_FORMATS)
@pytest.mark.parametrize("name", BODIES)
@modest
@given(st.data())
def test_a_mutated_body_is_decoded_or_refused(name: str, face: str, data: st.DataObject) -> None:
    body = data.draw(bodies([json.dumps({"model": "m", **BODIES[name]}).encode()]))
    with suppress(UmgError):
        request, notes = IMAGE_FORMATS[face].decode_request(body, {})
        IMAGE_FORMATS[face].wants_stream(body)
        check_inputs(request)
        for row in IMAGE_MODELS.values():
            with suppress(UmgError):
                check(request, row, notes.family)
                assert requested_pixels(request, row) is None or max_images(request) > 0


FORM = (
    b'--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--b\r\ncontent-disposition: form-data; name="n"\r\n\r\n2\r\n'
    b'--b\r\ncontent-disposition: form-data; name="stream"\r\n\r\ntrue\r\n'
    b'--b\r\ncontent-disposition: form-data; name="image[]"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n'
    + PNG
    + b"\r\n--b--\r\n"
)


def test_a_mutated_form_is_decoded_or_refused() -> None:
    random, decoded = Random("form"), 0
    assert IMAGE_EDITS.decode_form is not None
    for _ in range(2000):
        body = bytearray(FORM)
        for _ in range(random.choice((1, 2, 5))):
            place = random.randrange(len(body))
            body[place : place + random.randrange(3)] = random.choice((b"", b"\r\n", b"--b", b'"', b";", b"\xff", b"="))
        with suppress(UmgError):
            IMAGE_EDITS.decode_form(parse_form(bytes(body), "multipart/form-data; boundary=b"))
            decoded += 1
    assert decoded > 100

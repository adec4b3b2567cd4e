"""Requests that a protocol refuses, and the form of multipart bodies."""

from dataclasses import dataclass

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FilePart, encode_form
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 20


@dataclass(frozen=True)
class Refused:
    id: str
    protocols: tuple[str, ...]
    request: pb.GenerateImageRequest
    reason: "pb.ErrorReason.ValueType"
    field: str


WITHOUT_EDITS = ("native_images", "ark_images", "dashscope_images")
REFUSED = [
    Refused(
        "a mask",
        WITHOUT_EDITS,
        pb.GenerateImageRequest(
            operation=pb.IMAGE_OPERATION_EDIT,
            prompt="p",
            inputs=[pb.ImageInput(data=PNG)],
            mask=pb.ImageInput(data=PNG),
        ),
        pb.ERROR_REASON_UNTRANSLATABLE,
        "mask",
    ),
    Refused(
        "a variation",
        WITHOUT_EDITS,
        pb.GenerateImageRequest(operation=pb.IMAGE_OPERATION_VARIATION, inputs=[pb.ImageInput(data=PNG)]),
        pb.ERROR_REASON_UNTRANSLATABLE,
        "operation",
    ),
    Refused(
        "an image without bytes",
        ("images", "native_images"),
        pb.GenerateImageRequest(prompt="p", inputs=[pb.ImageInput(url="https://files.example/1.png")]),
        pb.ERROR_REASON_INVALID_FIELD,
        "inputs[0]",
    ),
    Refused(
        "an image without content",
        tuple(IMAGE_PROTOCOLS),
        pb.GenerateImageRequest(
            prompt="p",
            turns=[pb.ImageTurn(parts=[pb.ImageTurnPart(text="t"), pb.ImageTurnPart(image=pb.ImageInput())])],
        ),
        pb.ERROR_REASON_INVALID_FIELD,
        "turns[0].parts[1].image",
    ),
    Refused(
        "extra fields that are no object",
        tuple(IMAGE_PROTOCOLS),
        pb.GenerateImageRequest(prompt="p", extra_json="[1]"),
        pb.ERROR_REASON_INVALID_FIELD,
        "extra_json",
    ),
]


@pytest.mark.parametrize(
    ("protocol", "case"),
    [(protocol, case) for case in REFUSED for protocol in case.protocols],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
def test_a_request_that_would_change_its_meaning_is_refused(protocol: str, case: Refused) -> None:
    with raises_error(reason=case.reason, metadata={"field": case.field}):
        IMAGE_PROTOCOLS[protocol].encode_request(case.request, "m", False)


def test_no_value_can_end_a_part_of_a_form() -> None:
    body, content_type = encode_form([("prompt", "a\r\n--umg-\r\n")], [FilePart("image", "i.png", "image/png", PNG)])
    boundary = content_type.partition("boundary=")[2].encode()
    assert body.count(b"--" + boundary) == 3
    assert body.endswith(b"\r\n--" + boundary + b"--\r\n")
    assert encode_form([("prompt", "a\r\n--umg-\r\n")], [FilePart("image", "i.png", "image/png", PNG)])[0] == body


def test_default_values_of_other_families_are_not_reported() -> None:
    request = pb.GenerateImageRequest(prompt="p", watermark=False, response_modalities="image", partial_images=2)
    for name in ("images", "native_images"):
        report = IMAGE_PROTOCOLS[name].encode_request(request, "m", False).report
        assert report.dropped == {}, name

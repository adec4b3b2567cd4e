"""Requests for OpenAI's newer image models against the types of the vendor's SDK: sizes, formats and newer members."""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from openai.types.image_edit_params import ImageEditParamsNonStreaming
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming

from tests.support.providers.images.image_file_texts import form_of, png
from tests.support.providers.images.openai import takes_size
from tests.support.providers.server import ReceivedRequest
from tests.support.providers.typed_dict_validation import Leniency, check
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import family_row
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.images import image_request_checks
from umg_grpc.wire.images.multipart_requests import decode_form
from umg_grpc.wire.images.providers.images_protocol import IMAGES_PROTOCOL
from umg_grpc.wire.images.providers.native_images import NATIVE_IMAGES
from umg_grpc.wire.images.providers.response_decoding import SVG_TYPE
from umg_grpc.wire.images.request import decode_request, wire_path
from umg_grpc.wire.images.vendor_rule_checks import check_values
from umg_grpc.wire.text_format_interface import UpstreamRequest

MODEL = "gpt-image-2.6-sunburst"
PNG = png("a kite", 16, 16)


@dataclass(frozen=True)
class Full:
    id: str
    body: dict[str, Any] = field(default_factory=dict)


FULL = [
    Full("a bare call"),
    Full("a size by 16 pixels and the highest quality", {"size": "1536x864", "quality": "max", "n": 3}),
    Full("the largest size", {"size": "3840x2160", "quality": "xhigh", "background": "transparent", "user": "u"}),
    Full(
        "a moving image",
        {"output_format": "gif", "frame_count": 4, "frame_duration_ms": 120, "complexity": "high"},
    ),
    Full(
        "a drawing",
        {"output_format": "svg", "svg": {"model": "gpt-6-sol", "reasoning": {"effort": "max"}}, "complexity": "low"},
    ),
    Full("a photo", {"output_format": "jpeg", "output_compression": 60, "moderation": "low", "size": "auto"}),
]


def decoded(body: dict[str, Any]) -> DecodedRequest[pb.GenerateImageRequest]:
    raw = msgspec.json.encode({"model": MODEL, "prompt": "a kite", **body})
    found = decode_request("images", pb.IMAGE_OPERATION_GENERATE, raw, {})
    image_request_checks.check(found.canonical, family_row(MODEL, "imgC"), found.notes.family)
    return found


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.id)
def test_a_generation_is_sent_as_the_vendors_sdk_types_it(case: Full) -> None:
    given = decoded(case.body)
    encoded = IMAGES_PROTOCOL.encode_request(given.canonical, MODEL, False, given.notes)
    sent = msgspec.json.decode(encoded.body)
    assert sent == {"model": MODEL, "prompt": "a kite", **case.body}
    assert check(sent, ImageGenerateParamsNonStreaming, Leniency({}, {})) is None
    assert takes_size(MODEL, sent.get("size", "auto"))
    assert not encoded.report.dropped


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.id)
def test_an_edit_is_sent_as_the_vendors_sdk_types_it(case: Full) -> None:
    given = decoded({**case.body, "image": [data_url(), data_url()]})
    encoded = IMAGES_PROTOCOL.encode_request(given.canonical, MODEL, False, given.notes)
    sent = form(encoded)
    assert sent.pop("image[]") == 2
    accepted = {name: value for name, value in case.body.items() if name != "moderation"}
    assert sent == {"model": MODEL, "prompt": "a kite", **texts(accepted)}
    assert set(encoded.report.dropped) == case.body.keys() - accepted.keys()
    scalars = {name: value for name, value in accepted.items() if not isinstance(value, dict)}
    assert check({"prompt": "p", **scalars}, ImageEditParamsNonStreaming, ANY_FILE) is None


def test_a_form_keeps_its_newer_members() -> None:
    parts = [
        FormPart("model", None, MODEL.encode()),
        FormPart("prompt", None, b"a kite"),
        FormPart("frame_count", None, b"4"),
        FormPart("svg[reasoning][effort]", None, b"low"),
        FormPart("image", "a.png", PNG),
    ]
    given = decode_form(pb.IMAGE_OPERATION_EDIT, parts).request
    encoded = IMAGES_PROTOCOL.encode_request(given.canonical, MODEL, False, given.notes)
    sent = form(encoded)
    assert (sent["frame_count"], sent["svg[reasoning][effort]"]) == ("4", "low")
    assert not encoded.report.dropped


def test_a_provider_without_the_members_reports_them() -> None:
    given = decoded({"complexity": "high", "svg": {"model": "gpt-6-sol"}, "n": 1})
    report = NATIVE_IMAGES.encode_request(given.canonical, "gemini-4-image", False, given.notes).report
    assert {"complexity", "svg"} <= set(report.dropped)


def test_a_drawing_has_its_type() -> None:
    body = {"created": 1, "output_format": "svg", "data": [{"b64_json": "PHN2ZyB4bWxucz0iaCI+PC9zdmc+"}]}
    found = IMAGES_PROTOCOL.decode_response(msgspec.json.encode(body), pb.GenerateImageRequest())
    assert [image.mime_type for image in found.result.images] == [SVG_TYPE]


def test_sixteen_images_of_fifty_megabytes_are_accepted() -> None:
    images = [pb.ImageInput(data=bytes(11 * 2**20)), *[pb.ImageInput(data=PNG)] * 15]
    request = pb.GenerateImageRequest(model=MODEL, prompt="x", inputs=images)
    image_request_checks.check(request, family_row(MODEL, "imgC"))
    assert IMAGES_PROTOCOL.max_file_bytes == 50 * 2**20


ANY_FILE = Leniency({"ImageEditParamsNonStreaming": frozenset({"image"})}, {})


def data_url() -> str:
    return f"data:image/png;base64,{b64encode(PNG).decode()}"


def texts(body: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a form for a body, as the SDK writes them."""
    flat = {}
    for name, value in body.items():
        if isinstance(value, dict):
            flat |= texts({f"{name}[{key}]": member for key, member in value.items()})
        else:
            flat[name] = str(value)
    return flat


def form(encoded: UpstreamRequest) -> dict[str, Any]:
    """Return the texts of a form, and the number of files by name."""
    headers = {name.lower(): value for name, value in encoded.headers.items()}
    received = ReceivedRequest(method="POST", path=encoded.path, query={}, headers=headers, body=encoded.body)
    found: dict[str, Any] = {}
    for part in form_of(received):
        found[part.name] = part.data.decode() if part.file_name is None else found.get(part.name, 0) + 1
    return found


@dataclass(frozen=True)
class Wrong:
    id: str
    body: dict[str, Any]
    field: str
    message: str
    model: str = MODEL


WRONG = [
    Wrong("no step of 16", {"size": "1500x864"}, "size", "both sides must be multiples of 16; correct it"),
    Wrong("a ratio above 3:1", {"size": "3216x1024"}, "size", "may be at most 3 times the shorter one"),
    Wrong("a long side", {"size": "3856x1600"}, "size", "at most 3840 pixels"),
    Wrong("too many pixels", {"size": "3200x3200"}, "size", "expected 655360 to 8294400 pixels"),
    Wrong("too few pixels", {"size": "512x512"}, "size", "expected 655360 to 8294400 pixels"),
    Wrong("no size", {"size": "large"}, "size", "expected `auto`, or pixels such as `1536x864`"),
    Wrong("a size of a newer model", {"size": "1536x864"}, "size", "expected `auto`, `1024x1024`", "gpt-image-1.5"),
    Wrong("a quality of a newer model", {"quality": "max"}, "quality", "expected `low`", "gpt-image-2"),
    Wrong("a quality of a retired model", {"quality": "hd"}, "quality", "`xhigh`"),
    Wrong("eleven images", {"n": 11}, "n", "expected 1 to 10"),
    Wrong(
        "a transparent photo",
        {"background": "transparent", "output_format": "jpeg"},
        "output_format",
        "expected `png` or `webp` with `background` `transparent`",
    ),
    Wrong("two drawings", {"output_format": "svg", "n": 2}, "n", "expected `1` with `output_format` `svg`"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_value_that_the_vendor_refuses_is_refused_before_it_is_sent(case: Wrong) -> None:
    given = decoded(case.body)
    with pytest.raises(UmgError) as caught:
        check_values(IMAGES_PROTOCOL.name, case.model, given.canonical, given.notes)
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
    assert wire_path(caught.value.metadata["field"]) == case.field
    assert case.message in caught.value.message
    assert not takes_size(case.model, case.body.get("size", ""))


@pytest.mark.parametrize("case", FULL, ids=lambda case: case.id)
def test_a_value_that_the_vendor_takes_is_not_refused(case: Full) -> None:
    for model in (MODEL, "gpt-image-3", "gpt-image-2.5-flare-2026-09-08"):
        check_values(IMAGES_PROTOCOL.name, model, decoded(case.body).canonical)


def test_a_relays_own_model_has_no_rules() -> None:
    check_values(IMAGES_PROTOCOL.name, "gpt-image-2-all", decoded({"size": "1500x864"}).canonical)

"""Seedream of Ark and ModelArk, from bodies of `/v1/images/generations`: bare and full requests against the rules of
its SDK, and its errors.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.providers import ark_sdk
from umg_grpc.knowledge.families.image_model_rules import family_row
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.images.image_request_checks import check
from umg_grpc.wire.images.providers.ark_images import ARK_IMAGES
from umg_grpc.wire.images.request import decode_request
from umg_grpc.wire.images.vendor_rule_checks import check_values

MODELS = ["doubao-seedream-4-5-251128", "doubao-seedream-5-0-260128", "seedream-4-0-250828", "ep-20260101-abcde"]
PICTURE = "https://files.example/a.png"


def sent(model: str, body: dict[str, Any]) -> tuple[dict[str, Any], Report]:
    """Return the body that the provider gets of a caller's body, with the report."""
    raw = msgspec.json.encode({"model": model, **body})
    decoded = decode_request("images", pb.IMAGE_OPERATION_GENERATE, raw, {})
    row = family_row(model, "imgA")
    check(decoded.canonical, row, decoded.notes.family)
    check_values(ARK_IMAGES.name, model, decoded.canonical, decoded.notes)
    notes = msgspec.structs.replace(decoded.notes, model_family="imgA")
    request = ARK_IMAGES.encode_request(decoded.canonical, model, False, notes)
    made = msgspec.json.decode(request.body)
    assert ark_sdk.image_problem(request.path, made) == ""
    return made, request.report


@pytest.mark.parametrize("model", MODELS)
def test_a_bare_request_is_the_prompt_alone(model: str) -> None:
    made, report = sent(model, {"prompt": "a boat"})
    assert made == {"model": model, "prompt": "a boat", "response_format": "url"}
    assert not report.dropped


FULL: dict[str, Any] = {
    "prompt": "a boat",
    "image": [PICTURE] * 14,
    "size": "2K",
    "watermark": False,
    "response_format": "b64_json",
    "output_format": "png",
    "optimize_prompt_options": {"thinking": "enabled", "mode": "fast"},
    "sequential_image_generation": "auto",
    "sequential_image_generation_options": {"max_images": 9},
    "tools": [{"type": "web_search"}],
    "layer_decomposition": True,
    "optimize_prompt": True,
}


def test_every_member_of_the_sdk_reaches_the_vendor() -> None:
    made, report = sent("doubao-seedream-4-5-251128", FULL)
    assert made == {"model": "doubao-seedream-4-5-251128", **FULL}
    assert not report.dropped


def test_members_in_a_canonical_request_reach_the_vendor_and_others_are_reported() -> None:
    own = {"tools": [{"type": "web_search"}], "optimize_prompt_options": {"thinking": "auto"}, "other": 1}
    request = pb.GenerateImageRequest(
        model="m", prompt="a boat", optimize_prompt_mode="standard", extra_json=msgspec.json.encode(own).decode()
    )
    encoded = ARK_IMAGES.encode_request(request, "m", False, RequestNotes())
    made = msgspec.json.decode(encoded.body)
    assert made["tools"] == own["tools"]
    assert made["optimize_prompt_options"] == {"mode": "standard", "thinking": "auto"}
    assert list(encoded.report.dropped) == ["other"]


@dataclass(frozen=True)
class Lost:
    id: str
    model: str
    body: dict[str, Any]
    dropped: set[str]


LOST = [
    Lost(
        id="4.x: the seed and the guidance",
        model="seedream-4-5-251128",
        body={"seed": 7, "guidance_scale": 3.0},
        dropped={"seed", "guidance_scale"},
    ),
    Lost(
        id="5.0: a group",
        model="seedream-5-0-260128",
        body={"sequential_image_generation": "auto", "sequential_image_generation_options": {"max_images": 2}},
        dropped={"sequential_image_generation", "max_sequential_images"},
    ),
    Lost(
        id="fields of other vendors",
        model="seedream-4-5-251128",
        body={"quality": "high", "background": "opaque", "negative_prompt": "rain", "aspect_ratio": "1:1", "other": 1},
        dropped={"quality", "background", "negative_prompt", "aspect_ratio", "other"},
    ),
]


@pytest.mark.parametrize("case", LOST, ids=lambda case: case.id)
def test_a_field_that_the_vendor_does_not_have_is_reported(case: Lost) -> None:
    made, report = sent(case.model, {"prompt": "a boat", **case.body})
    assert set(report.dropped) == case.dropped
    assert made.keys() == {"model", "prompt", "response_format"}


def test_the_first_generation_has_a_seed_and_a_guidance() -> None:
    made, _ = sent("doubao-seedream-3-0-t2i-250415", {"prompt": "a boat", "seed": 7, "guidance_scale": 2.5})
    assert (made["seed"], made["guidance_scale"]) == (7, 2.5)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"image": [PICTURE] * 15}, "inputs[14]", id="15 images"),
        pytest.param({"output_format": "webp"}, "output_format", id="WebP"),
        pytest.param({"optimize_prompt_options": {"mode": "slow"}}, "optimize_prompt_mode", id="a mode"),
    ],
)
def test_a_value_that_the_vendor_refuses_is_refused_before_it_is_sent(body: dict[str, Any], field: str) -> None:
    with raises_error(metadata={"field": field}):
        sent("seedream-4-5-251128", {"prompt": "a boat", **body})

"""Bodies for an alias, whose family only the config states."""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageRequestEncoder
from umg_grpc.wire.images.providers import ark_images, dashscope_images, umg_gateway_images


@dataclass(frozen=True)
class Case:
    id: str
    encode: ImageRequestEncoder
    family: str
    member: str


CASES = [
    Case(id="gateway, a structured body", encode=umg_gateway_images.encode_request, family="imgD", member="input"),
    Case(id="gateway, a media type", encode=umg_gateway_images.encode_request, family="famG", member="mime_type"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_family_of_the_config_decides_the_body(case: Case) -> None:
    request = pb.GenerateImageRequest(model="draw", prompt="a lake", output_mime_type="image/png")

    def members(family: str) -> set[str]:
        body = msgspec.json.decode(case.encode(request, "m", False, RequestNotes(model_family=family)).body)
        return {*body, *body.get("parameters", {})}

    assert case.member in members(case.family)
    assert case.member not in members("")


@dataclass(frozen=True)
class Defaults:
    id: str
    encode: ImageRequestEncoder
    family: str
    members: set[str]


DEFAULTS = [
    Defaults(
        id="ark",
        encode=ark_images.encode_request,
        family="imgA",
        members={"watermark", "size", "sequential_image_generation"},
    ),
    Defaults(
        id="dashscope",
        encode=dashscope_images.encode_request,
        family="imgD",
        members={"n", "watermark", "prompt_extend"},
    ),
]


@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
def test_defaults_of_the_document_are_sent_for_neutral_ids_only(case: Defaults) -> None:
    def members(model: str) -> set[str]:
        request, notes = pb.GenerateImageRequest(model=model, prompt="a lake"), RequestNotes(model_family=case.family)
        body = msgspec.json.decode(case.encode(request, "m", False, notes).body)
        return {*body, *body.get("parameters", {})}

    assert not members("draw") & case.members
    assert members(f"{case.family}-9") >= case.members

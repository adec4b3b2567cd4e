"""Codec of xAI's images against a table of the members that @ai-sdk/xai 3.0.138 sends (read 2026-11-29)."""

from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.providers.images.image_file_texts import png
from umg_grpc.v1 import pb
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS, image_protocol
from umg_grpc.wire.images.providers.xai_images import XAI_IMAGES
from umg_grpc.wire.images.request import decode_request

MODEL = "grok-imagine-image-2.0"
MEMBERS = {
    "model": str,
    "prompt": str,
    "n": int,
    "response_format": str,
    "aspect_ratio": str,
    "output_format": str,
    "resolution": str,
    "quality": str,
    "user": str,
    "image": dict,
    "images": list,
}
"""Member -> its type."""
PNG = pb.ImageInput(data=png("a kite"))


def sent(path: str, dropped: tuple[str, ...] = (), **values: Any) -> dict[str, Any]:
    """Return the body of a request, which the strict provider accepts, without the members that all have."""
    request = pb.GenerateImageRequest(model=MODEL, prompt="a kite", **values)
    encoded = XAI_IMAGES.encode_request(request, MODEL, False)
    assert (encoded.path, tuple(encoded.report.dropped)) == (path, dropped)
    body: dict[str, Any] = msgspec.json.decode(encoded.body)
    for name, value in body.items():
        assert isinstance(value, MEMBERS[name]), name
    assert body.get("resolution", "1k") in ("1k", "2k")
    assert body.pop("response_format") == "b64_json"
    assert (body.pop("model"), body.pop("prompt")) == (MODEL, "a kite")
    return body


def test_the_variant_follows_from_the_address() -> None:
    assert image_protocol("images", "https://api.x.ai/v1") is XAI_IMAGES
    assert image_protocol("images", "https://api.openai.com/v1") is IMAGE_PROTOCOLS["images"]


def test_a_generation_has_the_stated_members() -> None:
    assert sent("/images/generations") == {}
    stated = {"n": 3, "aspect_ratio": "16:9", "image_size": "2K", "quality": "high", "user": "u"}
    assert sent("/images/generations", output_mime_type="image/jpeg", **stated) == {
        "n": 3,
        "aspect_ratio": "16:9",
        "resolution": "2k",
        "quality": "high",
        "user": "u",
        "output_format": "jpeg",
    }


def test_a_size_is_the_nearest_ratio_and_reported() -> None:
    assert sent("/images/generations", ("size",), size="1536x1024") == {"aspect_ratio": "3:2"}
    assert sent("/images/generations", size="auto") == {}


@pytest.mark.parametrize(("size", "ratio"), [("1024x1280", "3:4"), ("2520x1080", "20:9"), ("900x1950", "9:19.5")])
def test_a_size_is_sent_as_a_ratio_that_the_provider_has(size: str, ratio: str) -> None:
    assert sent("/images/generations", ("size",), size=size) == {"aspect_ratio": ratio}


def test_the_ratio_that_the_model_selects_is_sent() -> None:
    assert sent("/images/generations", aspect_ratio="auto") == {"aspect_ratio": "auto"}


def test_members_of_the_provider_in_a_body_are_sent() -> None:
    body = b'{"model":"m","prompt":"a kite","resolution":"2k","sync_mode":true,"style":"vivid"}'
    request, notes = decode_request("images", pb.IMAGE_OPERATION_GENERATE, body, {})
    encoded = XAI_IMAGES.encode_request(request, MODEL, False, notes)
    sent_body = msgspec.json.decode(encoded.body)
    assert (sent_body["resolution"], sent_body["sync_mode"]) == ("2k", True)
    assert list(encoded.report.dropped) == ["style"]


def test_members_of_other_vendors_are_reported() -> None:
    assert sent("/images/generations", ("background", "seed"), seed=1, background="opaque") == {}


def test_an_edit_has_its_images_as_addresses() -> None:
    one = sent("/images/edits", inputs=[pb.ImageInput(url="https://files.example/a.png")])
    assert one == {"image": {"url": "https://files.example/a.png", "type": "image_url"}}
    several = sent("/images/edits", inputs=[PNG, PNG])["images"]
    assert [each["url"][:22] for each in several] == ["data:image/png;base64,"] * 2


def test_a_mask_is_refused() -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE):
        sent("/images/edits", inputs=[PNG], mask=PNG)


def test_a_response_has_images_unless_the_moderation_removed_one() -> None:
    item = {"b64_json": "iVBORw0KGgo=", "respect_moderation": True}
    found = XAI_IMAGES.decode_response(msgspec.json.encode({"data": [item]}), pb.GenerateImageRequest())
    assert len(found.result.images) == 1
    with raises_error(reason=pb.ERROR_REASON_CONTENT_BLOCKED):
        XAI_IMAGES.decode_response(
            msgspec.json.encode({"data": [item | {"respect_moderation": False}]}), pb.GenerateImageRequest()
        )

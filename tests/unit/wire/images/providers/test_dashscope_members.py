"""Members that the vendor of family D has for its own models, from flat and from structured bodies of callers."""

from typing import Any

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.images.providers.dashscope_images import DASHSCOPE_IMAGES
from umg_grpc.wire.images.request import decode_request


def sent(model: str, dropped: tuple[str, ...] = (), **body: Any) -> dict[str, Any]:
    """Return the body of the call for a caller's body. `dropped`: fields that the report names."""
    given = msgspec.json.encode({"model": model, **body})
    request, notes = decode_request("images", pb.IMAGE_OPERATION_GENERATE, given, {})
    encoded = DASHSCOPE_IMAGES.encode_request(request, model, False, notes)
    assert tuple(encoded.report.dropped) == dropped
    decoded: dict[str, Any] = msgspec.json.decode(encoded.body)
    return decoded


@pytest.mark.parametrize("model", ["qwen-image-3.0", "qwen-image-4.0-pro", "wan2.7-image"])
def test_a_flat_body_has_the_options_of_the_vendor(model: str) -> None:
    body = sent(model, prompt="a kite", negative_prompt="rain", prompt_extend=False, size="1328x1328", seed=7)
    assert body["parameters"] == {
        "negative_prompt": "rain",
        "prompt_extend": False,
        "size": "1328*1328",
        "seed": 7,
    }


def test_further_parameters_of_a_vendors_model_are_sent_as_they_are() -> None:
    source = {"messages": [{"role": "user", "content": [{"text": "a kite"}]}]}
    options = {"n": 2, "thinking_mode": True, "color_palette": [{"hex": "#C2D1E6", "ratio": "23.51%"}]}
    body = sent("wan2.7-image", ("input.style",), input={**source, "style": "ink"}, parameters=options)
    assert body["parameters"] == options


def test_a_neutral_model_has_no_further_parameters() -> None:
    source = {"messages": [{"role": "user", "content": [{"text": "a kite"}]}]}
    body = sent("imgD-plus", ("parameters.thinking_mode",), input=source, parameters={"thinking_mode": True})
    assert body["parameters"] == {"n": 1, "watermark": True}

"""Costs of video tasks of a vendor's models, by the resolution, the size and the seconds that are billed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from umg_grpc.knowledge.conditional_price_rates import Terms, highest_prices
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices, variant_of
from umg_grpc.knowledge.shipped_prices import shipped_price_list
from umg_grpc.knowledge.vendor_addresses import region_of, vendor_of
from umg_grpc.service.video_tasks.task_costs import actual_cost, max_cost, stored_prices
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Case:
    id: str
    micros: int
    model: str = "wan3.0-video"
    wanted: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    address: str = "https://dashscope.aliyuncs.com"


SECONDS = 1.8e9
"""Unix time of the submissions."""
SINGAPORE, WORKSPACE = "https://dashscope-intl.aliyuncs.com", "https://my.ap-southeast-1.maas.aliyuncs.com"
KLING, JIMENG = "https://api-singapore.klingai.com", "https://visual.volcengineapi.com"
TURN = {"extra_json": '{"character_orientation":"image"}'}
LOUD = TURN | {"mode": "pro", "generate_audio": True}
CASES = [
    Case("the highest resolution without a wish", 825125),
    Case("a resolution", 412565, wanted={"resolution": "720p"}),
    Case("a size of the resolution", 412565, wanted={"size": "1280x720"}),
    Case("a portrait of the resolution", 412565, wanted={"size": "832*1088"}),
    Case("a square of the highest resolution", 825125, wanted={"size": "1440x1440"}),
    Case("the lowest resolution", 206280, wanted={"size": "832x480"}),
    Case("seconds of an input video", 742617, wanted={"resolution": "720p"}, usage={"input_seconds": 4}),
    Case("another model", 430060, model="wan2.7-i2v", wanted={"resolution": "720p"}),
    Case("a model with its own price of the lowest", 309423, "happyhorse-1.1-r2v", {"resolution": "480p"}),
    Case("Singapore", 500000, wanted={"resolution": "720p"}, address=SINGAPORE),
    Case("Singapore, the highest resolution without a wish", 1000000, address=SINGAPORE),
    Case("a workspace in Singapore", 500000, "wan2.7-t2v", {"size": "1280x720"}, address=WORKSPACE),
    Case("an avatar", 800000, "jimeng_realman_avatar_picture_omni_v15", address=JIMENG),
    Case("Kling", 210000, "kling-v2-6", address=KLING),
    Case("Kling, motion control by its member", 350000, "kling-v2-6", TURN, address=KLING),
    Case("Kling, motion control of a mode with sound", 560000, "kling-v2-6", LOUD, address=KLING),
    Case("Kling, motion control of a resolution", 840000, "kling-3.0", TURN | {"resolution": "1080p"}, address=KLING),
    Case("Kling, motion control by the id", 560000, "kling-v2-6-motion-control", TURN | {"mode": "pro"}, address=KLING),
    Case("Kling, a turbo model", 560000, "kling-3.0-turbo", {"resolution": "720p"}, address=KLING),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_task_costs_its_billed_seconds_at_the_price_of_its_resolution(case: Case) -> None:
    prices = shipped_price_list(case.model, vendor_of(case.address), region_of(case.address, case.model))
    parameters = pb.VideoParameters(duration_seconds=5, **case.wanted)
    usage = pb.VideoUsage(video_count=1, output_seconds=5, **case.usage)
    cost = actual_cost(stored_prices(prices, SECONDS), parameters, usage)
    assert cost == case.micros
    if not case.usage:
        assert max_cost(parameters, highest_prices(prices, Terms(seconds=SECONDS))) == cost


@pytest.mark.parametrize(
    ("size", "price"), [("1366x768", 3), ("1600x900", 9), ("2560x1440", 9), ("x", 9), ("0x720", 9), ("9" * 9 + "x1", 9)]
)
def test_a_size_far_from_all_resolutions_has_the_price_of_others(size: str, price: int) -> None:
    unit = pb.BILLABLE_UNIT_VIDEO_SECOND
    prices = Prices({variant_of(unit, "720p"): 3, variant_of(unit, "1080p"): 5, unit: 9})
    assert prices.price_of(variant_of(unit, size)) == price


@pytest.mark.parametrize(
    "model", ["wan2.7-image", "wan2.6-image", "wan2.2-t2i-plus", "jimeng_dreamactor_m20_gen_video"]
)
def test_a_model_whose_price_no_source_states_has_none_instead_of_a_price_of_zero(model: str) -> None:
    for vendor in ("dashscope-media", "jimeng", ""):
        assert shipped_price_list(model, vendor) is FREE_PRICES

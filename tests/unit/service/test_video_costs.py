"""Costs of video tasks of a vendor's models, by the resolution, the size and the seconds that are billed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from umg_grpc.knowledge.prices import Prices, variant_of
from umg_grpc.knowledge.shipped_prices import shipped_price_list
from umg_grpc.service.video_tasks.task_costs import actual_cost, max_cost, stored_prices
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Case:
    id: str
    micros: int
    model: str = "wan3.0-video"
    wanted: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)


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
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_task_costs_its_billed_seconds_at_the_price_of_its_resolution(case: Case) -> None:
    prices = shipped_price_list(case.model, "dashscope")
    parameters = pb.VideoParameters(duration_seconds=5, **case.wanted)
    usage = pb.VideoUsage(video_count=1, output_seconds=5, **case.usage)
    cost = actual_cost(stored_prices(prices), parameters, usage)
    assert cost == case.micros
    if not case.usage:
        assert max_cost(parameters, prices) == cost


@pytest.mark.parametrize(
    ("size", "price"), [("1366x768", 3), ("1600x900", 9), ("2560x1440", 9), ("x", 9), ("0x720", 9), ("9" * 9 + "x1", 9)]
)
def test_a_size_far_from_all_resolutions_has_the_price_of_others(size: str, price: int) -> None:
    unit = pb.BILLABLE_UNIT_VIDEO_SECOND
    prices = Prices({variant_of(unit, "720p"): 3, variant_of(unit, "1080p"): 5, unit: 9})
    assert prices.price_of(variant_of(unit, size)) == price

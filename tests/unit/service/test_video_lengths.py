"""Lengths by which videos without a requested one are reserved and charged."""

import pytest

from umg_grpc.knowledge.price_calculation import VIDEO_SECOND, Prices
from umg_grpc.service.video_tasks.task_costs import MAX_SECONDS, USUAL_SECONDS, complete_usage, max_cost
from umg_grpc.v1 import pb

BARE, STATED = pb.VideoParameters(prompt="a boat"), pb.VideoParameters(prompt="a boat", duration_seconds=10)
PRICES = Prices({VIDEO_SECOND: 1_000_000_000_000})
SEEDANCE = "doubao-seedance-2-0-260128"


@pytest.mark.parametrize(
    ("parameters", "model", "seconds"),
    [
        pytest.param(STATED, SEEDANCE, 10, id="stated"),
        pytest.param(BARE, SEEDANCE, 5, id="the default of the vendor"),
        pytest.param(BARE, "m", MAX_SECONDS, id="an unknown default"),
    ],
)
def test_a_budget_reserves_the_length_that_the_vendor_makes(
    parameters: pb.VideoParameters, model: str, seconds: int
) -> None:
    assert max_cost(parameters, PRICES, model) == seconds * max_cost(pb.VideoParameters(duration_seconds=1), PRICES)


@pytest.mark.parametrize(
    ("parameters", "model", "seconds"),
    [
        pytest.param(STATED, SEEDANCE, 10, id="stated"),
        pytest.param(BARE, SEEDANCE, 5, id="the default of the vendor"),
        pytest.param(BARE, "m", USUAL_SECONDS, id="an unknown default"),
    ],
)
def test_a_video_of_unknown_length_is_not_free(parameters: pb.VideoParameters, model: str, seconds: int) -> None:
    assert complete_usage(None, parameters, 2, model).output_seconds == 2 * seconds
    reported = pb.VideoUsage(output_seconds=7)
    assert complete_usage(reported, parameters, 1, model).output_seconds == 7

"""Costs of images and videos: no response costs more than the amount reserved for it, and none that has a price costs
nothing.
"""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS, RATIO_PIXELS, max_images
from umg_grpc.knowledge.price_calculation import (
    IMAGE_OUTPUT,
    IMAGE_UNIT,
    PRICED_UNITS,
    REQUEST_UNIT,
    VIDEO_SECOND,
    Prices,
    Quantities,
    Unit,
    price_list,
)
from umg_grpc.service.pipeline.image_call_costs import (
    IMAGE_TOKENS,
    MAX_IMAGE_TOKENS,
    image_quantities,
    max_cost,
    with_estimated_tokens,
)
from umg_grpc.service.pipeline.rate_limit_token_estimates import TokenEstimate, estimate_tokens
from umg_grpc.service.video_tasks import task_costs
from umg_grpc.v1 import pb

SIZES = ["", "1024x1024", "1536x1024", "2048x2048", "1328x1328", "1K", "2K"]
QUALITIES = ["", "low", "medium", "high"]
UNITS = [
    pb.BILLABLE_UNIT_REQUEST,
    pb.BILLABLE_UNIT_INPUT_TOKEN,
    pb.BILLABLE_UNIT_IMAGE_INPUT_TOKEN,
    pb.BILLABLE_UNIT_IMAGE_OUTPUT_TOKEN,
]
amounts = st.integers(0, 10**9)
price_lists = st.builds(
    lambda variants, units: [
        *(pb.Price(unit=IMAGE_UNIT, size=s.lower(), quality=q, micro_credits_per_million=a) for (s, q), a in variants.items()),
        *(pb.Price(unit=unit, micro_credits_per_million=amount) for unit, amount in units.items()),
    ],
    st.dictionaries(st.tuples(st.sampled_from(SIZES), st.sampled_from(QUALITIES)), amounts, max_size=6),
    st.dictionaries(st.sampled_from(UNITS), amounts),
)  # fmt: skip
text = st.text(max_size=40)


@given(st.data(), st.sampled_from(["", *IMAGE_MODELS]), price_lists)
def test_no_answer_costs_more_than_its_bound(data: st.DataObject, model: str, prices: list[pb.Price]) -> None:
    rules = IMAGE_MODELS.get(model)
    sizes = ["", "1024x1024"] if rules is None else ["", *(rules.sizes or ["1328*1328"])]
    request = pb.GenerateImageRequest(
        model=model,
        prompt=data.draw(text),
        inputs=[pb.ImageInput(data=b"x")] * data.draw(st.integers(0, 3)),
        n=data.draw(st.integers(1, 4)),
    )
    if size := data.draw(st.sampled_from(sizes)):
        request.size = size
    quality = data.draw(st.sampled_from(QUALITIES))
    if quality and rules is not None and "quality" in rules.fields and rules.sizes is not RATIO_PIXELS:
        request.quality = quality
    images = data.draw(st.integers(0, max_images(request)))
    result = pb.ImageResult(size=data.draw(st.sampled_from(SIZES)), quality=data.draw(st.sampled_from(QUALITIES)))
    usage = result.usage
    usage.input_image_tokens = MAX_IMAGE_TOKENS * len(request.inputs)
    usage.input_tokens = usage.input_image_tokens + len(request.prompt.encode())
    usage.output_tokens = MAX_IMAGE_TOKENS * images
    priced = price_list(prices)
    assert (
        priced.cost(image_quantities(request, rules, result, images)) * PRICED_UNITS
        < max_cost(request, rules, priced) + PRICED_UNITS
    )


@pytest.mark.parametrize(("inputs", "tokens"), [(0, 2), (2, 2002)])
def test_input_images_are_estimated_by_their_number(inputs: int, tokens: int) -> None:
    request = pb.GenerateImageRequest(prompt="12345678", inputs=[pb.ImageInput(data=bytes(10**6))] * inputs)
    assert estimate_tokens(request, pb.Model()) == TokenEstimate(tokens, 0)


@dataclass(frozen=True)
class Reported:
    id: str
    price: Unit
    reported: Quantities
    tokens: int
    """Tokens of images that are charged."""


REPORTED = [
    Reported("tokens", IMAGE_OUTPUT, {REQUEST_UNIT: 1, IMAGE_UNIT: 2, IMAGE_OUTPUT: 700}, 700),
    Reported("no tokens", IMAGE_OUTPUT, {REQUEST_UNIT: 1, IMAGE_UNIT: 2}, 2 * IMAGE_TOKENS),
    Reported("no tokens, of images with a price", IMAGE_UNIT, {REQUEST_UNIT: 1, IMAGE_UNIT: 2}, 0),
    Reported("no tokens, of calls with a price", REQUEST_UNIT, {REQUEST_UNIT: 1, IMAGE_UNIT: 2}, 0),
]


@pytest.mark.parametrize("case", REPORTED, ids=lambda case: case.id)
def test_tokens_of_images_are_estimated_where_only_they_have_a_price(case: Reported) -> None:
    found = with_estimated_tokens(case.reported, 2, Prices({case.price: 1}))
    assert {**found} == {**case.reported, **({IMAGE_OUTPUT: case.tokens} if case.tokens else {})}


@pytest.mark.parametrize(("unit", "reported"), [("output", 0), ("output", 9000), ("video_second", 0)])
def test_a_finished_video_with_a_price_has_a_cost(unit: str, reported: int) -> None:
    price = {"output": pb.BILLABLE_UNIT_OUTPUT_TOKEN, "video_second": VIDEO_SECOND}[unit]
    prices = Prices({price: PRICED_UNITS})
    parameters = pb.VideoParameters(prompt="a lake", duration_seconds=4)
    usage = task_costs.complete_usage(pb.VideoUsage(total_tokens=reported), parameters, 1)
    cost = task_costs.actual_cost(task_costs.stored_prices(prices, 0), parameters, usage)
    expected = 4 if unit == "video_second" else reported or 4 * task_costs.TOKENS_PER_SECOND
    assert cost == expected <= task_costs.max_cost(parameters, prices)

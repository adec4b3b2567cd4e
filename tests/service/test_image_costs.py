"""Cost bound of image calls: no answer costs more than the amount reserved for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.families.image import MODELS, RATIO_PIXELS, max_images
from umg_grpc.knowledge.prices import IMAGE, PRICED_UNITS, price_list
from umg_grpc.service.pipeline.image_costs import MAX_IMAGE_TOKENS, image_quantities, max_cost
from umg_grpc.service.pipeline.token_estimates import TokenEstimate, estimate_tokens
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
        *(pb.Price(unit=IMAGE, size=s.lower(), quality=q, micro_credits_per_million=a) for (s, q), a in variants.items()),
        *(pb.Price(unit=unit, micro_credits_per_million=amount) for unit, amount in units.items()),
    ],
    st.dictionaries(st.tuples(st.sampled_from(SIZES), st.sampled_from(QUALITIES)), amounts, max_size=6),
    st.dictionaries(st.sampled_from(UNITS), amounts),
)  # fmt: skip
text = st.text(max_size=40)


@given(st.data(), st.sampled_from(["", *MODELS]), price_lists)
def test_no_answer_costs_more_than_its_bound(data: st.DataObject, model: str, prices: list[pb.Price]) -> None:
    rules = MODELS.get(model)
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

"""Priced quantities of image calls: of a response, of the maximum cost before the call, and of a lost response
(estimated). Images are priced by size and quality. If the request determines both, the cost is known before the call;
otherwise the provider's response states them. For family famG the size in a price is the resolution tier (`2K`).
"""

from typing import NamedTuple

from umg_grpc.knowledge.families.image_model_rules import RATIO_PIXELS, ImageRules, max_images, placed_images, tier_of
from umg_grpc.knowledge.price_calculation import (
    IMAGE_INPUT,
    IMAGE_OUTPUT,
    IMAGE_UNIT,
    INPUT_TOKEN,
    REQUEST_UNIT,
    Prices,
    Quantities,
    variant_of,
)
from umg_grpc.knowledge.price_calculation import image_quantities as quantities_of_images
from umg_grpc.v1 import pb

MAX_IMAGE_TOKENS = 8000
"""Maximum tokens of an image in request or response: 6240 of a large one, and 100 of each draft, rounded up."""
IMAGE_TOKENS = 1300
"""Usual tokens of one image in a response, for estimates."""
AUTO_VALUE = "auto"


class ImageVariant(NamedTuple):
    """Size and quality of images, on which their price depends. None: only the provider's response states it. "": the
    price does not depend on it.
    """

    size: str | None
    quality: str | None


def requested_variant(request: pb.GenerateImageRequest, rules: ImageRules | None) -> ImageVariant:
    """Return size and quality of images as the request and the family's defaults (`rules`) determine them."""
    if rules is not None and rules.sizes is RATIO_PIXELS:
        return ImageVariant(tier_of(request), "")
    size = request.size or (rules.default_size if rules is not None else "")
    if rules is not None and "quality" not in rules.fields:
        return ImageVariant(size or None, "")
    quality = request.quality or (rules.default_quality if rules is not None else "")
    return ImageVariant(None if size in ("", AUTO_VALUE) else size, None if quality in ("", AUTO_VALUE) else quality)


def image_quantities(
    request: pb.GenerateImageRequest, rules: ImageRules | None, result: pb.ImageResult, images: int
) -> Quantities:
    """Return the priced quantities (unit -> number) of a response by the family's `rules`. `images`: the caller's."""
    size, quality = requested_variant(request, rules)
    if size is None:
        first = result.images[0] if result.images else pb.Image()
        size = result.size or (f"{first.width}x{first.height}" if first.width and first.height else "")
    usage = pb.ImageUsage()
    usage.CopyFrom(result.usage)
    usage.image_count = images
    return quantities_of_images(usage, size, result.quality if quality is None else quality)


def max_cost(request: pb.GenerateImageRequest, rules: ImageRules | None, prices: Prices) -> int:
    """Return the maximum cost of an image call in millionths of a micro-credit. `rules`: of the model's family."""
    size, quality = requested_variant(request, rules)
    image = prices.highest(IMAGE_UNIT)
    if size is not None and quality is not None:
        image = prices.price_of(variant_of(IMAGE_UNIT, size, quality))
    return (
        prices.highest(REQUEST_UNIT)
        + text_bytes(request) * prices.highest(INPUT_TOKEN)
        + input_count(request) * MAX_IMAGE_TOKENS * prices.highest(IMAGE_INPUT)
        + max_images(request) * (image + MAX_IMAGE_TOKENS * prices.highest(IMAGE_OUTPUT))
    )


def with_estimated_tokens(quantities: Quantities, images: int, prices: Prices) -> Quantities:
    """Return the quantities of a response. If only tokens have a price and none were reported, add the usual tokens of
    the images, since the call would cost nothing otherwise.
    """
    if IMAGE_OUTPUT in quantities or IMAGE_UNIT in prices.micro_credits or IMAGE_OUTPUT not in prices.micro_credits:
        return quantities
    return {**quantities, IMAGE_OUTPUT: images * IMAGE_TOKENS} if images else quantities


def estimated_image_quantities(request: pb.GenerateImageRequest, input_tokens: int) -> Quantities:
    """Return the estimated priced quantities (unit -> number) of a lost response. `input_tokens`: of its request."""
    images = max_images(request)
    return {REQUEST_UNIT: 1, INPUT_TOKEN: input_tokens, IMAGE_UNIT: images, IMAGE_OUTPUT: images * IMAGE_TOKENS}


def text_bytes(request: pb.GenerateImageRequest) -> int:
    """Return the size of all texts of a request in bytes, which is at least the number of their tokens."""
    texts = [request.prompt, request.negative_prompt]
    texts += [part.text for turn in request.turns for part in turn.parts]
    return sum(len(text.encode()) for text in texts)


def input_count(request: pb.GenerateImageRequest) -> int:
    """Return the number of input images of a request, including its mask."""
    return sum(1 for _ in placed_images(request, with_mask=True))

"""Admitted image calls, and the completion of their responses with usage and cost."""

from umg_grpc.knowledge.families.image_model_rules import ImageRules
from umg_grpc.service.pipeline.base_pipeline import Admitted
from umg_grpc.service.pipeline.image_call_costs import image_quantities, with_estimated_tokens
from umg_grpc.v1 import pb


class AdmittedImages(Admitted[pb.GenerateImageRequest], kw_only=True):
    """Admitted call of the image operation, with the rules of the model's image family."""

    rules: ImageRules | None = None
    """Rules of the model's image family, set by the step `rules`; None for a model without a family."""


def complete(admitted: AdmittedImages, result: pb.ImageResult, images: int) -> None:
    """Complete an image result: the caller's model id, the time and the number of images; record its usage."""
    result.model = admitted.request.model
    if not result.HasField("create_time"):
        result.create_time.GetCurrentTime()
        result.create_time.nanos = 0
    result.usage.image_count = images
    account(admitted, result, images)


def account(admitted: AdmittedImages, result: pb.ImageResult, images: int) -> None:
    """Record the usage of an image call, and the quantities that are priced. `images`: number of images that the caller
    gets. If the price is by token and the provider reports none, the tokens are estimated.
    """
    facts, usage, prices = admitted.call.facts, result.usage, admitted.call.charges.prices
    facts.usage = pb.Usage(
        input_tokens=usage.input_tokens,
        image_input_tokens=usage.input_image_tokens,
        output_tokens=usage.output_tokens,
        image_output_tokens=usage.output_tokens,
    )
    reported = image_quantities(admitted.request, admitted.rules, result, images)
    facts.quantities = reported if prices is None else with_estimated_tokens(reported, images, prices)
    facts.usage.estimated = facts.quantities is not reported

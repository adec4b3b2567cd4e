"""State of an admitted image call, and the usage and cost of its responses."""

from umg_grpc.image_family_rules import ImageRules
from umg_grpc.service.pipeline.base_pipeline import Admitted
from umg_grpc.service.pipeline.image_costs import image_quantities
from umg_grpc.v1 import pb


class AdmittedImages(Admitted[pb.GenerateImageRequest], kw_only=True):
    """Admitted call of the image operation, with the image rules of its model's family."""

    rules: ImageRules | None
    """Rules of the model's family; None for a model without them."""


def complete(admitted: AdmittedImages, result: pb.ImageResult, images: int) -> None:
    """Complete the result of an image call: set the caller's model id, the time and the number of images, and record
    its usage.
    """
    result.model = admitted.request.model
    if not result.HasField("create_time"):
        result.create_time.GetCurrentTime()
        result.create_time.nanos = 0
    result.usage.image_count = images
    account(admitted, result, images)


def account(admitted: AdmittedImages, result: pb.ImageResult, images: int) -> None:
    """Record the usage and the priced quantities of an image call. `images`: number of images that the caller gets."""
    facts, usage = admitted.call.facts, result.usage
    facts.usage = pb.Usage(
        input_tokens=usage.input_tokens,
        image_input_tokens=usage.input_image_tokens,
        output_tokens=usage.output_tokens,
        image_output_tokens=usage.output_tokens,
    )
    facts.quantities = image_quantities(admitted.request, admitted.rules, result, images)

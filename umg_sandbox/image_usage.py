"""Usage of simulated image models: tokens for the families `famG` and `imgC`, numbers of images for all others."""

from umg_grpc.knowledge.families.image_model_rules import ImageRules
from umg_grpc.v1 import pb
from umg_grpc.wire.core.lenient_number_reading import count
from umg_sandbox.image_drawing import Drawing
from umg_sandbox.response_images import IMAGE_TOKENS

QUALITY_TOKENS = {"low": 272, "medium": 1056, "high": 4160}
"""Quality of an image of family `imgC` -> tokens of a square image; other shapes take half as many more."""
INPUT_TOKENS = 323
BYTES_PER_TOKEN = 4


def usage_of(
    request: pb.GenerateImageRequest, rules: ImageRules | None, drawing: Drawing, images: int
) -> pb.ImageUsage:
    """Return the usage of a call of `images` images. `rules`: of the model's family, None if it is unknown."""
    usage = pb.ImageUsage(image_count=images)
    if rules is None or rules.family not in ("famG", "imgC"):
        return usage
    each = IMAGE_TOKENS
    if rules.family == "imgC":
        each = QUALITY_TOKENS.get(request.quality or rules.default_quality, IMAGE_TOKENS)
        each = each if drawing.width == drawing.height else each * 3 // 2
        each += 100 * request.partial_images
    usage.input_text_tokens = count(-(-len(drawing.prompt.encode()) // BYTES_PER_TOKEN))
    usage.input_image_tokens = INPUT_TOKENS * len(drawing.inputs)
    usage.input_tokens = usage.input_text_tokens + usage.input_image_tokens
    usage.output_tokens = each * images
    usage.total_tokens = usage.input_tokens + usage.output_tokens
    return usage

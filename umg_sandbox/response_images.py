"""Images in the responses of simulated text models, by the image options of the native format."""

import math
import re
from collections.abc import Sequence

from umg_grpc.knowledge.families.image_model_rules import RATIO_PIXELS, one_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_sandbox.image_drawing import PILLOW_FORMATS, Drawing
from umg_sandbox.input_images import InputImage

IMAGE_TOKENS = 1290
SQUARE_EDGE = 1024
"""Edge of a square 1K image, in pixels."""
LARGEST_SIZE = 4

_SIZE = re.compile(r"(\d(?:\.\d)?)K", re.IGNORECASE)


def plan(request: pb.GenerateRequest, model: str, words: str, index: int) -> Drawing:
    """Return the parameters for drawing a candidate's image, with the requested aspect ratio and size (1K is the area
    of 1024 x 1024 pixels). `index`: of the candidate. Raise UmgError(INVALID_FIELD) for an invalid ratio, size or type.
    """
    options = request.image_output
    ratio = options.aspect_ratio or "1:1"
    if ratio not in RATIO_PIXELS:
        raise invalid("image_output.aspect_ratio", f"expected {one_of(RATIO_PIXELS)}; correct it")
    wide, high = map(int, ratio.split(":"))
    size = _SIZE.fullmatch(options.image_size or "1K")
    if size is None or not 0.5 <= float(size[1]) <= LARGEST_SIZE:
        raise invalid("image_output.image_size", "expected `1K`, `2K` or `4K`; send one of them")
    mime = options.mime_type.lower() or "image/png"
    if mime not in PILLOW_FORMATS:
        raise invalid("image_output.mime_type", f"expected one of {', '.join(PILLOW_FORMATS)}; send one of them")
    unit = max(1, round(SQUARE_EDGE * float(size[1]) / math.sqrt(wide * high)))
    return Drawing(
        model=model,
        prompt=words,
        width=wide * unit,
        height=high * unit,
        mime_type=mime,
        seed=request.seed if request.HasField("seed") else None,
        index=index,
        count=request.candidate_count or 1,
        inputs=_inputs(request.messages),
    )


def _inputs(messages: Sequence[pb.Message]) -> tuple[InputImage, ...]:
    """Return the images of the last message that has images, so that in a conversation the latest image is changed."""
    for index in range(len(messages) - 1, -1, -1):
        found = [
            InputImage(f"messages[{index}].parts[{position}].media", data=part.media.data, url=part.media.uri)
            for position, part in enumerate(messages[index].parts)
            if part.media.kind == pb.MEDIA_KIND_IMAGE and (part.media.data or part.media.uri)
        ]
        if found:
            return tuple(found)
    return ()

"""Check of image requests by the rules that vendors have for their models (`knowledge/media_models.py`)."""

from umg_grpc.knowledge.families.image import invalid_value, one_of, placed_images
from umg_grpc.knowledge.media_models import is_among, media_model
from umg_grpc.v1 import pb


def check_values(protocol: str, model: str, request: pb.GenerateImageRequest) -> None:
    """Raise UmgError(INVALID_FIELD) for the first value of a request that the provider's `model` does not accept in a
    protocol. A model without a row has no rules.
    """
    if (row := media_model(protocol, model)) is None:
        return
    for descriptor, value in request.ListFields():
        name = descriptor.name
        if name in row.without:
            continue
        if name in row.values and not is_among(value, row.values[name]):
            raise invalid_value(name, f"expected {one_of([str(choice) for choice in row.values[name]])}; correct it")
        if name in row.ranges and not row.ranges[name][0] <= value <= row.ranges[name][1]:
            raise invalid_value(name, f"expected {row.ranges[name][0]} to {row.ranges[name][1]}; correct it")
    images = list(placed_images(request))
    if len(images) > (most := row.most_media.get("image", len(images))):
        problem = f"this model takes at most {most} input images, not {len(images)}; send fewer"
        raise invalid_value(images[most].path, problem)

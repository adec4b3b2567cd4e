"""Input images given as URLs: downloaded by the gateway for providers that accept only bytes."""

import asyncio
from collections.abc import Iterator

from umg_grpc.knowledge.families.image_model_rules import PlacedImage, placed_images
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import ACCEPTED_TYPES, check_image, sniff_image
from umg_grpc.wire.core.json_decoding import invalid

MAX_CONCURRENT = 4
"""Maximum files of one request that are fetched at once."""
MAX_TOTAL_BYTES = 64 << 20
"""Maximum size of all fetched files of one request together."""
IMAGE_PLACEHOLDER = b"\x89PNG\r\n\x1a\n"
_TYPES = "PNG, JPEG, GIF or WebP"


def addresses(request: pb.GenerateImageRequest) -> Iterator[PlacedImage]:
    """Yield the input images and the mask of a request that are given as URLs, each with the path of its field."""
    for path, image in placed_images(request, with_mask=True):
        if image.HasField("url"):
            yield PlacedImage(f"{path}.url", image)


def with_placeholders(request: pb.GenerateImageRequest) -> pb.GenerateImageRequest:
    """Return the request with placeholders for image URLs, by which it is checked before their download."""
    copied = pb.GenerateImageRequest()
    copied.CopyFrom(request)
    for place in addresses(copied):
        place.image.data = IMAGE_PLACEHOLDER
    return copied


async def with_inline_images(
    request: pb.GenerateImageRequest, fetcher: Fetcher, max_file_bytes: int, seconds: float
) -> pb.GenerateImageRequest:
    """Return a copy of the request with the downloaded bytes instead of image URLs. `seconds`: time for all downloads.
    Raise UmgError(INVALID_FIELD) for a URL that the egress rules forbid, and for a file that cannot be downloaded or is
    no image of an accepted type.
    """
    copied = pb.GenerateImageRequest()
    copied.CopyFrom(request)
    slots, total = asyncio.Semaphore(MAX_CONCURRENT), 0
    end = asyncio.get_running_loop().time() + seconds

    async def fetch(place: PlacedImage) -> None:
        nonlocal total
        async with slots:
            left = max(0.0, end - asyncio.get_running_loop().time())
            url = place.image.url
            found = await fetcher.fetch(
                url,
                field=place.path,
                max_bytes=max(0, min(max_file_bytes, MAX_TOTAL_BYTES - total)),
                seconds=left,
                check=lambda beginning: _check_type(beginning, place.path),
            )
        total += len(found.body)
        header = check_image(found.body, place.path)
        place.image.data, place.image.mime_type = found.body, header.mime_type

    tasks = [asyncio.create_task(fetch(place)) for place in addresses(copied)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return copied


def _check_type(beginning: bytes, field: str) -> None:
    if sniff_image(beginning) not in ACCEPTED_TYPES:
        raise invalid(field, f"the file at the URL is not an image; send the URL of a {_TYPES} file")

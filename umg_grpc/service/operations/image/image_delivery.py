"""Delivery of images in the requested form. For URLs, bytes from the provider are stored, and the caller gets a signed
link to them. For bytes, a URL of the provider is fetched, if the rules for URLs allow it.
"""

import asyncio
from collections.abc import Sequence

from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel
from umg_grpc.knowledge.families.image_model_rules import ImageRules, placed_images
from umg_grpc.service.operations.image.admitted_image_call import AdmittedImages
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.upstream.caller_url_fetch import DIRECT_ROUTE, Fetcher, failed
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import read_header, sniff_image

MAX_FETCHES = 4
IMAGE_FIELD = "image"
"""Name of a provider's image in errors about its header, which are not sent to callers."""


class ImageDelivery:
    """Converter of a provider's images to the form that the caller requested: addresses or bytes."""

    def __init__(
        self, channels: Channels, fetcher: Fetcher, blobs: BlobStore | None, links: FileLinks, budget: ResponseBudget
    ) -> None:
        """Create a converter. `fetcher`: reads URLs under the rules of the config. `blobs`: None if the operator stores
        no files, so that images are returned as bytes. `budget`: memory limit of fetched images.
        """
        self._channels = channels
        self._fetcher = fetcher
        self._blobs = blobs
        self._links = links
        self._budget = budget

    def check_addresses(self, request: pb.GenerateImageRequest) -> None:
        """Check the addresses of the input images, most of which providers fetch by themselves. Raise UmgError for an
        address that the rules for URLs refuse by its text alone.
        """
        for path, image in placed_images(request, with_mask=True):
            if image.HasField("url"):
                self._fetcher.check(image.url, field=f"{path}.url")

    async def deliver(self, admitted: AdmittedImages, channel: Channel, result: pb.ImageResult) -> None:
        """Convert all images of a result to the requested form. An image that cannot be fetched is left out; if all
        fail, raise the UmgError of the first one, after which no other channel is tried, since the images were paid
        for.
        """
        for image in result.images:
            if not is_described(image):
                describe(image, image.data)
        form = requested_form(admitted.request, admitted.rules)
        if form == pb.IMAGE_RESPONSE_FORMAT_B64_JSON:
            await self._fetch_all(admitted, channel, result)
        elif form == pb.IMAGE_RESPONSE_FORMAT_URL:
            for image in result.images:
                await self._store(image)

    async def fetch(self, admitted: AdmittedImages, channel: Channel, image: pb.Image) -> None:
        """Fetch the image at an address, and replace the address by the bytes; only describe an image that has bytes.
        Raise UmgError, after which no other channel is tried.
        """
        if image.WhichOneof("content") == "url":
            try:
                found = await self._fetcher.fetch(
                    image.url,
                    field=None,
                    seconds=min(admitted.call.seconds_left(), channel.timeout.images),
                    check=_check_type,
                    reserve=self._budget.hold,
                    route=self._channels.routes.get(channel.name, DIRECT_ROUTE),
                )
            except UmgError as error:
                error.failure = None
                raise
            image.data = found.body
            describe(image, found.body)
        elif not is_described(image):
            describe(image, image.data)

    async def _fetch_all(self, admitted: AdmittedImages, channel: Channel, result: pb.ImageResult) -> None:
        """Fetch the images of a result that are addresses, `MAX_FETCHES` at a time, and leave out the failed ones."""
        slots = asyncio.Semaphore(MAX_FETCHES)

        async def fetch(image: pb.Image) -> UmgError | None:
            async with slots:
                try:
                    await self.fetch(admitted, channel, image)
                except UmgError as error:
                    return error
            return None

        if not any(image.HasField("url") for image in result.images):
            return
        failures: Sequence[UmgError | None] = await asyncio.gather(*map(fetch, result.images))
        fetched = [image for image, failure in zip(result.images, failures, strict=True) if failure is None]
        if not fetched:
            raise next(failure for failure in failures if failure is not None)
        if len(fetched) < len(failures):
            del result.images[:]
            result.images.extend(fetched)

    async def _store(self, image: pb.Image) -> None:
        if self._blobs is None or not image.HasField("data"):
            return
        blob = await self._blobs.put(image.data, image.mime_type)
        image.url = self._links.url_of(blob)


def requested_form(request: pb.GenerateImageRequest, rules: ImageRules | None) -> "pb.ImageResponseFormat.ValueType":
    """Return the form in which the caller gets images: addresses or bytes. For a model without rules it may be
    unspecified, and the images stay as the provider returned them.
    """
    if rules is not None and rules.always_bytes:
        return pb.IMAGE_RESPONSE_FORMAT_B64_JSON
    if request.response_format or rules is None:
        return request.response_format
    return pb.IMAGE_RESPONSE_FORMAT_URL


def are_bytes(request: pb.GenerateImageRequest, rules: ImageRules | None) -> bool:
    """Return whether images that came as bytes are passed on as bytes, not stored and replaced by addresses."""
    return requested_form(request, rules) != pb.IMAGE_RESPONSE_FORMAT_URL


def is_described(image: pb.Image) -> bool:
    """Return whether `describe` has nothing to do, without an access to the bytes, which would take milliseconds."""
    has_size = image.HasField("width") and image.HasField("height")
    return not image.HasField("data") or (bool(image.mime_type) and has_size)


def describe(image: pb.Image, data: bytes) -> None:
    """Set the media type of an image from its bytes; also width and height, if the provider did not report them."""
    image.mime_type = sniff_image(data) or image.mime_type
    if image.HasField("width") and image.HasField("height"):
        return
    try:
        header = read_header(data, IMAGE_FIELD)
    except UmgError:  # of a type without a known header
        return
    image.width, image.height = header.width, header.height


def _check_type(beginning: bytes) -> None:
    if not sniff_image(beginning):
        raise failed(None, "the file is not an image")

"""Protocols of image providers. Each is one module, without I/O, and one row of the table here."""

from urllib.parse import urlsplit

from umg_grpc.wire.images.provider_protocol import ImageProtocol
from umg_grpc.wire.images.providers.ark_images import ARK_IMAGES
from umg_grpc.wire.images.providers.dashscope_images import DASHSCOPE_IMAGES
from umg_grpc.wire.images.providers.images_protocol import IMAGES
from umg_grpc.wire.images.providers.native_images import NATIVE_IMAGES
from umg_grpc.wire.images.providers.umg_gateway_images import UMG_IMAGES
from umg_grpc.wire.images.providers.xai_images import XAI_IMAGES

XAI_HOST = "api.x.ai"
"""Host of the vendor that has a variant of `images`."""
IMAGE_PROTOCOLS: dict[str, ImageProtocol] = {
    protocol.name: protocol for protocol in (IMAGES, UMG_IMAGES, NATIVE_IMAGES, ARK_IMAGES, DASHSCOPE_IMAGES)
}
"""Name in a channel's `protocols` -> protocol of an image provider."""


def image_protocol(name: str, base_url: str) -> ImageProtocol:
    """Return the image protocol `name` for a channel. `images` has a variant for the address of xAI."""
    return XAI_IMAGES if name == IMAGES.name and urlsplit(base_url).hostname == XAI_HOST else IMAGE_PROTOCOLS[name]

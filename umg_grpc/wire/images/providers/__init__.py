"""Protocols of image providers. Each is one module, without I/O, and one row of the table here."""

from umg_grpc.wire.images.provider_protocol import ImageProtocol
from umg_grpc.wire.images.providers.ark_images import ARK_IMAGES
from umg_grpc.wire.images.providers.dashscope_images import DASHSCOPE_IMAGES
from umg_grpc.wire.images.providers.images_protocol import IMAGES
from umg_grpc.wire.images.providers.native_images import NATIVE_IMAGES
from umg_grpc.wire.images.providers.umg_gateway_images import UMG_IMAGES

IMAGE_PROTOCOLS: dict[str, ImageProtocol] = {
    protocol.name: protocol for protocol in (IMAGES, UMG_IMAGES, NATIVE_IMAGES, ARK_IMAGES, DASHSCOPE_IMAGES)
}
"""Name in a channel's `protocols` -> protocol of an image provider."""

"""Protocols of image providers. Each protocol is one module, without I/O, and one row of the table here."""

from dataclasses import replace
from urllib.parse import urlsplit

from umg_grpc.knowledge.cloud_call_shapes import CallShape, call_shape
from umg_grpc.v1 import pb
from umg_grpc.wire.cloud_call_encoding import shaped
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers.ark_images import ARK_IMAGES
from umg_grpc.wire.images.providers.dashscope_images import DASHSCOPE_IMAGES
from umg_grpc.wire.images.providers.images_protocol import IMAGES_PROTOCOL
from umg_grpc.wire.images.providers.native_images import NATIVE_IMAGES
from umg_grpc.wire.images.providers.umg_gateway_images import UMG_IMAGES
from umg_grpc.wire.images.providers.xai_images import XAI_IMAGES
from umg_grpc.wire.text_format_interface import UpstreamRequest

XAI_HOST = "api.x.ai"
"""Host of xAI, which has a variant of the protocol `images`."""
IMAGE_PROTOCOLS: dict[str, ImageProtocol] = {
    protocol.name: protocol for protocol in (IMAGES_PROTOCOL, UMG_IMAGES, NATIVE_IMAGES, ARK_IMAGES, DASHSCOPE_IMAGES)
}


def image_protocol(name: str, base_url: str) -> ImageProtocol:
    """Return a channel's image protocol. For xAI's address `images` is a variant; some clouds need other calls."""
    is_variant = name == IMAGES_PROTOCOL.name and urlsplit(base_url).hostname == XAI_HOST
    protocol, shape = XAI_IMAGES if is_variant else IMAGE_PROTOCOLS[name], call_shape(name, base_url)
    return protocol if shape is None else _with_shape(protocol, shape)


def _with_shape(protocol: ImageProtocol, shape: CallShape) -> ImageProtocol:
    def encode_request(
        request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES, /
    ) -> UpstreamRequest:
        return shaped(protocol.encode_request(request, model, stream, notes), model, stream, shape)

    return replace(protocol, encode_request=encode_request)

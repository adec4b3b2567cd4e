"""Interface of a face of the image operation to the rest of the gateway. A face is one package and one row in
`wire.IMAGE_FORMATS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.request_notes import DecodedRequest
from umg_grpc.wire.text_format import BodyDecoder
from umg_grpc.wire.unary_format import ClientShape


class ImageStreamEncoder(Protocol):
    """Encoder of one stream of image events as server-sent events."""

    def feed(self, message: pb.StreamGenerateImageResponse) -> bytes:
        """Return all frames of one message, for one write; b"" when it has no output in this format."""
        ...

    def close(self) -> bytes:
        """Return the end of a complete stream."""
        ...

    def error(self, error: UmgError) -> bytes:
        """Return the error event that ends a broken stream."""
        ...


@dataclass(frozen=True)
class ImageFormat:
    """Codec of one face of the image operation (image document)."""

    name: str
    """Name of the face: `SourceDocument.format` of the requests that it decodes."""
    source_headers: tuple[str, ...]
    """Request headers, in lower case, that change the meaning of a body and are forwarded with it."""
    decode_request: BodyDecoder[DecodedRequest[pb.GenerateImageRequest]]
    encode_response: Callable[[pb.GenerateImageResponse, pb.GenerateImageRequest, ClientShape], bytes]
    """(response, its request, shape) -> JSON body."""
    stream_encoder: Callable[[pb.GenerateImageRequest], ImageStreamEncoder]
    wants_stream: Callable[[bytes], bool]
    """Whether a body requests a stream."""
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body, in both shapes at once."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`inputs[0].url`) in this format. For errors and reports only."""

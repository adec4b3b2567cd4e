"""Interface of an image format for callers. A format is one package, and one row in `wire.images.IMAGE_FORMATS`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.core.undecoded_base64_files import EncodedFiles
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.text_format_interface import BodyDecoder
from umg_grpc.wire.unary_format_interface import ClientShape


class DecodedForm(NamedTuple):
    """Image request decoded from a `multipart/form-data` body."""

    request: DecodedRequest[pb.GenerateImageRequest]
    stream: bool  # whether the form requests a stream of events


class ImageStreamEncoder(Protocol):
    """Encoder of one stream of canonical image events as server-sent events for a caller. One instance per stream."""

    def feed(self, message: pb.StreamGenerateImageResponse) -> bytes:
        """Return the events for one message and one write; b"" if the message has no output in this format."""
        ...

    def close(self) -> bytes:
        """Return the bytes that end a complete stream; b"" if nothing is left to send."""
        ...

    def error(self, error: UmgError) -> bytes:
        """Return the bytes that end a stream after a failure: finished images not sent yet, and the error event."""
        ...


@dataclass(frozen=True)
class ImageFormat:
    """Image format for callers: the functions that decode its requests and encode its responses."""

    name: str  # `SourceDocument.format` of the requests that it decodes
    source_headers: tuple[str, ...]
    """Request headers, in lower case, that change the meaning of a body and are forwarded with it."""
    decode_request: BodyDecoder[DecodedRequest[pb.GenerateImageRequest]]
    encode_response: Callable[[pb.GenerateImageResponse, pb.GenerateImageRequest, ClientShape], bytes]
    """(response, its request, shape) -> JSON body."""
    stream_encoder: Callable[[pb.GenerateImageRequest], ImageStreamEncoder]
    wants_stream: Callable[[bytes], bool]  # whether a body requests a stream of events
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body, in both shapes at once."""
    wire_path: Callable[[str], str]
    """Canonical path (`inputs[0].url`) -> path in a body of this format. Only for errors and reports."""
    encode_pieces: Callable[
        [pb.GenerateImageResponse, pb.GenerateImageRequest, ClientShape, EncodedFiles], Iterator[bytes | memoryview]
    ]
    """Variant of `encode_response` that yields the body in pieces. Each piece is encoded when it is requested, in about
    a millisecond; a body without files is one piece. Fourth argument: images that stay in the provider's base64.
    """
    heartbeat: bytes  # sent while no event is ready; all clients of the format ignore it
    decode_form: Callable[[Iterable[FormPart]], DecodedForm] | None = None
    """Decoder of a `multipart/form-data` body; None for a path without forms. Raises UmgError naming the field."""
    shape: ClientShape | None = None
    """Shape of all responses; None if it depends on the caller's request."""
    key_header: str = "authorization"
    """Header for a provider's key: `authorization` with a Bearer token, or any other header with the bare key."""
    provider_name: str = ""
    """Name of the providers of the format in telemetry (`gen_ai.provider.name`); "" for `umg.<format>`."""
    key_headers: tuple[str, ...] = ()  # headers that hold a caller's key besides `Authorization`
    key_parameter: str = ""  # query parameter that holds a caller's key
    error_paths: tuple[str, ...] = ()
    """First parts of URL paths. A call of a path that begins so but has no route gets an error body of this format."""

    @property
    def has_shapes(self) -> bool:
        """Whether callers may select the shape of a response."""
        return self.shape is None

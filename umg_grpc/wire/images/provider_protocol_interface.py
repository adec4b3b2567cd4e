"""Interface of an image provider's protocol: conversions between canonical and HTTP messages, without I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import UpstreamRequest


class ImageRequestEncoder(Protocol):
    """Function that encodes a canonical image request as an HTTP request to a provider."""

    def __call__(
        self, request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES, /
    ) -> UpstreamRequest:
        """Encode a request for the provider's `model`; if `stream`, one that requests a stream. `notes`: facts about
        the caller's body. Raise UmgError for an unsupported part whose loss would change the meaning. Other unsupported
        parts are recorded in the report of the result.
        """
        ...


class ImageStreamDecoder(Protocol):
    """Decoder of a provider's image stream into canonical messages. One instance per stream."""

    @property
    def done(self) -> bool:
        """Whether the end of the stream was received. Later bytes do not belong to the response."""
        ...

    def feed(self, frames: bytes) -> pb.StreamGenerateImageResponse | None:
        """Decode complete server-sent events. Return a message with their canonical events; None if they have none.
        Raise UmgError for an error event, and for an event that cannot be decoded.
        """
        ...

    def close(self) -> pb.StreamGenerateImageResponse:
        """Return the last events of the stream, with `finished`. Raise UmgError(UPSTREAM_CUT) if it is incomplete."""
        ...


@dataclass(frozen=True)
class ImageTasks:
    """Functions for asynchronous calls of an image protocol: a call creates a task, which is queried until it ends."""

    is_required: Callable[[UmgError], bool]
    """Function that returns whether the error of a synchronous call means that the model accepts only tasks."""
    encode_create: Callable[[pb.GenerateImageRequest, str, RequestNotes], UpstreamRequest | None]
    """(request, the provider's model id, notes). None for a request that a task cannot express."""
    decode_created: Callable[[bytes], str]
    """Body -> the provider's task id."""
    encode_query: Callable[[str], UpstreamRequest]
    decode_status: Callable[[bytes, pb.GenerateImageRequest], pb.GenerateImageResponse | None]
    """(body, request) -> the result; None while the task is not finished. Raises UmgError for a failed task."""
    is_known: Callable[[str], bool]
    """The provider's model id -> whether the model is known to accept only tasks."""
    poll_seconds: float = 3.0


@dataclass(frozen=True)
class ImageProtocol:
    """Protocol of an image provider: the functions that encode its calls and decode its responses."""

    name: str
    encode_request: ImageRequestEncoder
    """Encoder of a request. Files are inline, or addresses that the provider fetches: `HttpImages` fetched others."""
    decode_response: Callable[[bytes, pb.GenerateImageRequest], pb.GenerateImageResponse]
    """(body, request). Raises UmgError for an error with status 200, no images, or a body that cannot be decoded."""
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of a failed call -> error with its `failure`."""
    takes_urls: Callable[[pb.GenerateImageRequest], bool]
    """Whether the provider itself fetches the addresses in this request; otherwise it needs the bytes."""
    stream_decoder: Callable[[pb.GenerateImageRequest], ImageStreamDecoder] | None = None
    """Function that creates the decoder of one stream; None for a protocol without streams."""
    one_image: bool = False
    """Whether one request makes one image (or one group of images), so that `n` images take `n` requests."""
    max_file_bytes: int = 20 << 20
    """Maximum bytes of an input image that the gateway downloads for the provider."""
    tasks: ImageTasks | None = None
    """Asynchronous calls, for models that accept only these; None for a protocol without them."""
    key_header: str = DEFAULT_KEY_HEADER
    """Default header for a provider's key: `authorization` with a Bearer token, or any other with the bare key."""
    provider_name: str = ""
    """Name in telemetry (`gen_ai.provider.name`)."""

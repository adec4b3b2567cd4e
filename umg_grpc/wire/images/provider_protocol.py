"""Interface of an image provider's protocol: functions without I/O between canonical messages and HTTP messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import DEFAULT_KEY_HEADER
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format import UpstreamRequest


class ImageRequestEncoder(Protocol):
    """Encoder of a canonical image request as a call to a provider."""

    def __call__(
        self, request: pb.GenerateImageRequest, model: str, stream: bool, notes: RequestNotes = NO_NOTES, /
    ) -> UpstreamRequest:
        """Encode a request for the provider's `model`. Raise UmgError for a part that the provider does not support and
        that cannot be left out without changing the meaning; other unsupported parts are in the report.
        """
        ...


class ImageStreamDecoder(Protocol):
    """Decoder of a provider's image stream into canonical messages. One instance per stream."""

    @property
    def done(self) -> bool:
        """Whether the end of the stream was received, so that later bytes do not belong to the answer."""
        ...

    def feed(self, frames: bytes) -> pb.StreamGenerateImageResponse | None:
        """Decode complete server-sent events. Return a message with their canonical events; None if they have none.
        Raise UmgError for an error event, or for one that cannot be decoded.
        """
        ...

    def close(self) -> pb.StreamGenerateImageResponse:
        """Return the last events of the stream, with `finished`. Raise UmgError(UPSTREAM_CUT) for an incomplete
        answer.
        """
        ...


@dataclass(frozen=True)
class ImageTasks:
    """Asynchronous calls of an image protocol: a call creates a task, which is queried until it ends."""

    is_required: Callable[[UmgError], bool]
    """Whether the refusal of a synchronous call demands a task instead."""
    encode_create: Callable[[pb.GenerateImageRequest, str, RequestNotes], UpstreamRequest | None]
    """(request, the provider's model id, notes). None for a request that a task cannot express."""
    decode_created: Callable[[bytes], str]
    """Body -> the provider's task id."""
    encode_query: Callable[[str], UpstreamRequest]
    decode_status: Callable[[bytes, pb.GenerateImageRequest], pb.GenerateImageResponse | None]
    """(body, request) -> the result; None while the task is not finished. Raises UmgError for a failed task."""
    poll_seconds: float = 3.0
    """Time between two queries."""


@dataclass(frozen=True)
class ImageProtocol:
    """Protocol of an image provider: the functions that encode its calls and decode its responses."""

    name: str
    encode_request: ImageRequestEncoder
    """All files are inline, or addresses that the provider fetches: `HttpImages` fetches the others before."""
    decode_response: Callable[[bytes, pb.GenerateImageRequest], pb.GenerateImageResponse]
    """(body, request). Raises UmgError for an error with status 200, an answer without images, or one that cannot be
    decoded.
    """
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of a failed call -> error with its `failure`."""
    takes_urls: Callable[[pb.GenerateImageRequest], bool]
    """Whether the provider fetches the addresses of this request itself; otherwise it needs the bytes."""
    stream_decoder: Callable[[pb.GenerateImageRequest], ImageStreamDecoder] | None = None
    """None for a protocol without streams."""
    one_image: bool = False
    """Whether a call makes one image (or one group), so that `n` images are `n` calls."""
    max_file_bytes: int = 20 << 20
    """Maximum size of a fetched input image."""
    tasks: ImageTasks | None = None
    key_header: str = DEFAULT_KEY_HEADER
    """Default header for a provider's key: `authorization` with a Bearer token, or any other with the bare key."""
    provider_name: str = ""
    """Name in telemetry (`gen_ai.provider.name`)."""

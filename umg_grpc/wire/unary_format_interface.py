"""Interface of a format with one request and one response: functions for the bodies of its callers and providers. A
format is one module (or package) with these, and a row in its operation's table. `UnaryFace`: only callers use it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.account_object_detection import ObjectRules
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format_interface import BodyDecoder, Elapsed, UpstreamRequest

Request = TypeVar("Request")
Response = TypeVar("Response")
Request_contra = TypeVar("Request_contra", contravariant=True)
Message_co = TypeVar("Message_co", covariant=True)
Message_contra = TypeVar("Message_contra", contravariant=True)


class ClientShape(Enum):
    """Shape of a JSON response. One body cannot always satisfy both the specification and the official SDKs."""

    DOCUMENTED = "documented"
    SDK = "sdk"


class MessageDecoder(Protocol[Message_co]):
    """Decoder of the body of one streamed response of a provider."""

    @property
    def done(self) -> bool:
        """Whether the end of the stream was received."""
        ...

    def feed(self, received: bytes, /) -> Message_co | None:
        """Return the message that received bytes (cut anywhere) complete, if any. Raise UmgError for a stated error."""
        ...

    def close(self) -> Message_co | None:
        """Return the last message at the end of the body, if any. Raise UmgError(UPSTREAM_CUT) for a cut stream."""
        ...


class MessageEncoder(Protocol[Message_contra]):
    """Encoder of one streamed response for a caller."""

    @property
    def heartbeat(self) -> bytes:
        """Bytes that clients ignore and that keep an idle connection open; b"" for a format without them."""
        ...

    def content_type(self, first: Message_contra, /) -> str:
        """Return the media type of the response by its first message."""
        ...

    def feed(self, message: Message_contra, /) -> bytes:
        """Return the bytes of one message, for one write; b"" if it has no output in this format."""
        ...

    def close(self) -> bytes:
        """Return the bytes that end a complete response."""
        ...

    def error(self, error: UmgError, /) -> bytes | None:
        """Return the bytes that end a response after a failure; None if the format can only be cut off."""
        ...


class UnaryRequestEncoder(Protocol[Request_contra]):
    """Function that encodes a canonical request as an HTTP request to a provider."""

    def __call__(self, request: Request_contra, model: str, notes: RequestNotes = NO_NOTES, /) -> UpstreamRequest:
        """Encode the request for the provider's `model`. If the request's source document has this protocol, the JSON
        of the document is kept. `notes`: facts about the caller's body.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class UnaryFace(Generic[Request, Response]):
    """Format that callers of an operation with one request and one response use (`UnaryFace[pb.EmbedRequest, ...]`)."""

    name: str  # `SourceDocument.format` of the requests that it decodes
    protocol: str = ""
    """Protocol in a channel's `protocols`; "" for a format that only callers use. Faces may share one protocol."""
    source_headers: tuple[str, ...]
    """Lower-case names of request headers that change a body's meaning. Only these are forwarded with it."""
    decode_request: BodyDecoder[DecodedRequest[Request]]
    encode_response: Callable[[Response, Request, ClientShape], bytes]
    """(response, its request, shape) -> body: the provider's if it was kept in this format, otherwise a new one."""
    encode_error: Callable[[UmgError, int], bytes]  # (error, HTTP status) -> JSON body
    wire_path: Callable[[str], str]
    """Canonical path (`inputs[0].text`) -> path in a body of this format. Only for errors and reports."""
    key_headers: tuple[str, ...] = ()
    """Headers that may contain a caller's key besides `Authorization`, in the order in which they are read."""
    key_parameter: str = ""  # query parameter that holds a caller's key
    error_paths: tuple[str, ...] = ()
    """First parts of URL paths. A call of a path that begins so but has no route gets an error body of this format."""
    media_types: tuple[str, ...] = ("application/json",)
    """Media types of the bodies that `decode_request` reads; empty for any, as at the vendor's server."""
    decode_form: Callable[[Iterable[FormPart]], DecodedRequest[Request]] | None = None
    """Decoder of a body of type `multipart/form-data`; None for a format without forms."""
    content_type: Callable[[Response, Request], str] | None = None
    """(response, its request) -> media type of the encoded response; None for JSON."""
    has_shapes: bool = False
    """Whether the specification and the SDKs have different response shapes, so that callers may select one."""
    timed: "Callable[[Elapsed], UnaryFace[Request, Response]] | None" = None
    """Elapsed -> this format with encoders that state the duration of one call; None if responses state none."""
    encode_empty: Callable[[Request], tuple[str, bytes] | None] | None = None
    """(request) -> (its model, JSON body of its response) for a request without inputs, for which no provider is
    called; None for any other. Unset for a format whose requests all have inputs.
    """
    wants_stream: Callable[[bytes], bool] | None = None
    """Function that returns whether a source document requests a stream; None for a format without streams."""
    stream_encoder: Callable[[Request], MessageEncoder[Any]] | None = None
    """Function that returns the encoder of a streamed response; None for a format without streams."""
    encode_pieces: Callable[[Response, Request, ClientShape], Iterator[bytes]] | None = None
    """Variant of `encode_response` that yields large responses in pieces, each encoded when requested (about 1 ms)."""


@dataclass(frozen=True, kw_only=True)
class UnaryProviderFormat(Generic[Request, Response]):
    """Format of providers of an operation with one request and one response: request encoders, response decoders."""

    name: str
    protocol: str
    encode_request: UnaryRequestEncoder[Request]
    """(request, the provider's model id, facts about the caller's body) -> HTTP request."""
    decode_response: Callable[[bytes, Request, bool], Response]
    """(body, request, pass) -> response. If pass is true and callers can read the body unchanged, the response keeps
    the body as `source`, with the caller's model id, and only the fields that the service needs are decoded. Raises
    UmgError(UPSTREAM_FAILED) for a body that cannot be decoded.
    """
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, lower-case headers, body) of a failed call -> error; its `failure` decides on further attempts."""
    stream_decoder: Callable[[Request, str, bool], MessageDecoder[Any] | None] | None = None
    """(request, media type of the response, pass) -> decoder of a streamed response, or None if it is not streamed.
    Unset for a format without a stream decoder, whose responses are streamed as a whole.
    """
    is_binary: bool = False  # whether responses are binary files, not text
    read_headers: Callable[[Response, Mapping[str, str]], None] | None = None
    """Function that adds the facts in a response's headers to the response, in place; None if headers have none."""
    key_header: str = DEFAULT_KEY_HEADER
    """Default header for a provider's key: `authorization` with a Bearer token, or another with the bare key."""
    provider_name: str = ""
    """Name of the providers of the format in telemetry (`gen_ai.provider.name`); "" for `umg.<format>`."""
    takes_tokens: bool = False  # whether inputs may be token ids instead of texts
    base_url_end: str = ""
    """End of a provider's base URL that selects this version of the protocol; "" for the usual version."""
    max_items: int | None = None
    """Default maximum of inputs in one request to a provider of the format; None for no limit."""
    max_items_of: Callable[[str, str], int] | None = None
    """(provider's model id, caller's) -> maximum of inputs, which channels cannot raise; None if all share one."""


@dataclass(frozen=True, kw_only=True)
class UnaryFormat(UnaryFace[Request, Response], UnaryProviderFormat[Request, Response], Generic[Request, Response]):
    """Format that both callers and providers use: a body can pass unchanged from one to the other."""

    objects: ObjectRules  # to find the members of a body that name objects in the provider's account


def codecs_of(
    formats: Mapping[str, UnaryProviderFormat[Request, Response]], protocols: Sequence[str], base_url: str
) -> list[UnaryProviderFormat[Request, Response]]:
    """Return the formats in which a provider is called, in the order of `protocols`. The base URL may select one."""
    found = [codec for protocol in protocols for codec in formats.values() if codec.protocol == protocol]
    named = [codec for codec in found if codec.base_url_end and base_url.endswith(codec.base_url_end)]
    return named or [codec for codec in found if not codec.base_url_end]

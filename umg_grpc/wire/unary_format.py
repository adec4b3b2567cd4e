"""Interface of a format with one request and one response to the rest of the gateway: the functions that decode and
encode the bodies of its callers and of its providers.

A format is one module (or package) with these functions, and one row in the table that its operation names. A format
that callers alone have is a `UnaryFace`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.account_object_detection import ObjectRules
from umg_grpc.wire.core.key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.request_notes import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format import BodyDecoder, Elapsed, UpstreamRequest

Request = TypeVar("Request")
Response = TypeVar("Response")
Request_contra = TypeVar("Request_contra", contravariant=True)
Message_co = TypeVar("Message_co", covariant=True)
Message_contra = TypeVar("Message_contra", contravariant=True)


class ClientShape(Enum):
    """Shape of a JSON response, where one body cannot satisfy both the specification and the official SDKs."""

    DOCUMENTED = "documented"
    SDK = "sdk"


class MessageDecoder(Protocol[Message_co]):
    """Decoder of the body of one streamed response of a provider."""

    @property
    def done(self) -> bool:
        """Whether the end of the stream was received."""
        ...

    def feed(self, received: bytes, /) -> Message_co | None:
        """Return the message of received bytes, however these are cut; None if they complete none. Raise UmgError for
        an error that the provider states.
        """
        ...

    def close(self) -> Message_co | None:
        """Return the last message at the end of the body; None if all were returned. Raise UmgError(UPSTREAM_CUT) if
        the stream is incomplete.
        """
        ...


class MessageEncoder(Protocol[Message_contra]):
    """Encoder of one streamed response for a caller."""

    @property
    def heartbeat(self) -> bytes:
        """Bytes that clients ignore, which keep an idle connection open; b"" for a format without any."""
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
        """Return the bytes that end a response after a failure; None if the format can only break off."""
        ...


class UnaryRequestEncoder(Protocol[Request_contra]):
    """Function that encodes a canonical request as an HTTP request to a provider."""

    def __call__(self, request: Request_contra, model: str, notes: RequestNotes = NO_NOTES, /) -> UpstreamRequest:
        """Encode the request for the provider's `model`. A request whose source document has this protocol keeps the
        JSON of this document. `notes`: facts about the caller's body.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class UnaryFace(Generic[Request, Response]):
    """Format of the callers of an operation with one request and one response: the functions that decode and encode
    their bodies, for example `UnaryFace[pb.EmbedRequest, pb.EmbedResponse]`.
    """

    name: str
    """Name of the face: `SourceDocument.format` of the requests that it decodes."""
    protocol: str = ""
    """Name of the providers' protocol in a channel's `protocols`; "" for a format that callers alone have. Two faces of
    one protocol share the upstream side.
    """
    source_headers: tuple[str, ...]
    """Request headers, in lower case, that change the meaning of a body and are forwarded with it. No others are
    forwarded.
    """
    decode_request: BodyDecoder[DecodedRequest[Request]]
    encode_response: Callable[[Response, Request, ClientShape], bytes]
    """(response, its request, shape) -> body: the body that the response keeps, if it has this format, otherwise
    an encoding.
    """
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`inputs[0].text`) in this format. For errors and reports only."""
    key_headers: tuple[str, ...] = ()
    """Headers that may contain a caller's key besides `Authorization`, in the order in which they are read."""
    key_parameter: str = ""
    """Query parameter that holds a caller's key."""
    error_paths: tuple[str, ...] = ()
    """First parts of URL paths; a call of a path that begins so and has no route gets an error body of this format."""
    media_types: tuple[str, ...] = ("application/json",)
    """Media types of the bodies that `decode_request` reads; empty for any, as at the vendor's server."""
    decode_form: Callable[[Iterable[FormPart]], DecodedRequest[Request]] | None = None
    """Decoder of a body of type `multipart/form-data`; None for a format without forms."""
    content_type: Callable[[Response, Request], str] | None = None
    """(response, its request) -> media type of the encoded response; None for JSON."""
    has_shapes: bool = False
    """Whether the shape of a response differs between the specification and the SDKs, so that callers may choose it."""
    timed: "Callable[[Elapsed], UnaryFace[Request, Response]] | None" = None
    """Function that returns this format with encoders that state the duration of one call; None for a format whose
    responses state none.
    """
    encode_empty: Callable[[Request], tuple[str, bytes] | None] | None = None
    """(request) -> for a request without inputs its model and the JSON body of its response, for which no provider is
    called, else None; None for a format whose requests all have inputs.
    """
    wants_stream: Callable[[bytes], bool] | None = None
    """Function that returns whether a source document requests a stream; None for a format without streams."""
    stream_encoder: Callable[[Request], MessageEncoder[Any]] | None = None
    """Function that returns the encoder of a streamed response; None for a format without streams."""
    encode_pieces: Callable[[Response, Request, ClientShape], Iterator[bytes]] | None = None
    """Variant of `encode_response` for formats with very large responses: it yields pieces, each encoded when it is
    requested, in a millisecond. A small response is one piece.
    """


@dataclass(frozen=True, kw_only=True)
class UnaryProviderFormat(Generic[Request, Response]):
    """Format of the providers of an operation with one request and one response: the functions that encode requests to
    them, and decode their responses.
    """

    name: str
    """Name of the format."""
    protocol: str
    """Name of the protocol in a channel's `protocols`."""
    encode_request: UnaryRequestEncoder[Request]
    """(request, the provider's model id, facts about the caller's body) -> HTTP request."""
    decode_response: Callable[[bytes, Request, bool], Response]
    """(body, request, pass) -> response. If pass is true and callers can read the body unchanged, the response keeps
    it as `source`, under the caller's model id, and only the fields that the service needs are decoded. Raises
    UmgError(UPSTREAM_FAILED) for a body that cannot be decoded.
    """
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of a failed call -> error with its `failure`, the consequence for
    further attempts.
    """
    stream_decoder: Callable[[Request, str, bool], MessageDecoder[Any] | None] | None = None
    """(request, media type of the response, pass) -> decoder of a streamed response; None for a response that is not
    streamed. Unset for a format without streams, whose responses are streamed as a whole.
    """
    is_binary: bool = False
    """Whether responses are files, whose bytes are no text."""
    read_headers: Callable[[Response, Mapping[str, str]], None] | None = None
    """Function that adds the facts in the headers of a response to it, in place; None for a format without any."""
    key_header: str = DEFAULT_KEY_HEADER
    """Default header for a provider's key: `authorization` with a Bearer token, or any other header with the bare key.
    """
    provider_name: str = ""
    """Name of the providers of the format in telemetry (`gen_ai.provider.name`); "" for `umg.<format>`."""
    takes_tokens: bool = False
    """Whether inputs may be token ids instead of texts."""
    base_url_end: str = ""
    """End of the base URL of a provider that speaks this version of the protocol; "" for the usual version."""
    max_items: int | None = None
    """Default limit of the inputs in one request to a provider of the format; None for a format without a limit."""
    max_items_of: Callable[[str, str], int] | None = None
    """(the provider's model id, the caller's) -> limit of the inputs that a channel cannot raise; None for a format
    whose models have the same limit.
    """


@dataclass(frozen=True, kw_only=True)
class UnaryFormat(UnaryFace[Request, Response], UnaryProviderFormat[Request, Response], Generic[Request, Response]):
    """Format of callers and of providers: a body passes unchanged from one to the other."""

    objects: ObjectRules
    """Rules that find the members of a body which name objects in the provider's account."""


def codecs_of(
    formats: Mapping[str, UnaryProviderFormat[Request, Response]], protocols: Sequence[str], base_url: str
) -> list[UnaryProviderFormat[Request, Response]]:
    """Return the formats in which a provider with these protocols is called, in the order of its protocols. Of a
    protocol with several versions, its base URL names one.
    """
    found = [codec for protocol in protocols for codec in formats.values() if codec.protocol == protocol]
    named = [codec for codec in found if codec.base_url_end and base_url.endswith(codec.base_url_end)]
    return named or [codec for codec in found if not codec.base_url_end]

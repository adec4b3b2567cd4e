"""Interface of a text format: functions that decode and encode the bodies of its callers and providers.

A format is one module (or package) with these functions, without I/O. A format of providers, or of both, is a row in
`wire.provider_protocols.TEXT_PROTOCOLS`. A format that only callers use is a row in `wire.format_tables.FACES_ALONE`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.account_object_detection import ObjectRules
from umg_grpc.wire.core.prompt_cache_marks import PromptMark
from umg_grpc.wire.core.rate_limit_headers import RATE_LIMIT_PREFIX, RateLimitHeaders, rate_limit_headers
from umg_grpc.wire.core.sse import EVENT_STREAM
from umg_grpc.wire.core.tool_call_id_pairing import NO_CALL_IDS, CallIdPlaces
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS

BIG_BYTES = 512 * 2**10  # from which encoding takes milliseconds, and is done in a thread, not in the event loop

Elapsed = Callable[[], int]  # nanoseconds since the call began


class FaceRequest(NamedTuple):
    """Canonical request decoded from a caller's body, with the decoder's notes on fields without a canonical form."""

    canonical: pb.GenerateRequest  # with its source document
    stream: bool  # whether the body requests a stream
    notes: RequestNotes


class UpstreamRequest(msgspec.Struct, frozen=True, eq=False):
    """HTTP request to a provider, without the channel's address and credentials."""

    path: str  # below the channel's base URL, e.g. `/chat/completions`, with the query
    body: bytes
    headers: Mapping[str, str]  # the format's own, without credentials; `Content-Type`, spelled so, if not JSON
    report: Report  # fields that are not sent, or are sent with another value
    method: str = "POST"
    relayed_headers: Mapping[str, str] = {}
    """Headers for this request only, in addition to the format's. Configured headers of the channel override them."""
    local_stops: tuple[str, ...] = ()
    """Stop sequences that are not sent to the provider. The gateway itself ends the response's text at them."""
    is_whole: bool = False
    """Whether a complete response is requested although the caller gets a stream: the model cannot stream this one."""
    marks: Sequence[PromptMark] = ()
    """Prompt cache marks, for a provider that stores prompt prefixes instead of reading marks (native)."""


Decoded_co = TypeVar("Decoded_co", covariant=True)


class BodyDecoder(Protocol[Decoded_co]):
    """Function that decodes a caller's JSON body into a canonical request."""

    def __call__(self, body: bytes, headers: Mapping[str, str], model: str = "", /) -> Decoded_co:
        """Decode a JSON body. Raise UmgError that names the field as the caller wrote it. `headers`: by lower-case
        name, only those in the format's `source_headers`. `model`: id in the path, ignored if bodies contain the id.
        """
        ...


class ProviderRequestEncoder(Protocol):
    """Function that encodes a canonical text request as an HTTP request to a provider."""

    def __call__(
        self,
        request: pb.GenerateRequest,
        model: str,
        stream: bool,
        quirks: Quirks = NO_QUIRKS,
        notes: RequestNotes = NO_NOTES,
        /,
    ) -> UpstreamRequest:
        """Encode the request for the provider's `model`. It starts from the JSON of a source document of the same
        format. `quirks`: values that the model rejects; `notes`: facts about the caller's body. Raise UmgError for a
        field that cannot be expressed and must not be dropped.
        """
        ...


class StreamEncoder(Protocol):
    """Encoder of a canonical stream as bytes for a caller of the format. One instance per stream."""

    @property
    def retained_bytes(self) -> int:
        """Approximate bytes of text that the encoder keeps, because the format's last events repeat the response."""
        ...

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """Return the bytes for one canonical message, for one write; b"" if it has no output in this format."""
        ...

    def close(self) -> bytes:
        """Return the end of a complete stream: ends of open blocks, and the end marker; b"" if they were sent."""
        ...

    def closing(self) -> Iterator[bytes]:
        """Yield the bytes of `close` in pieces, each encoded when requested. Iterate large ones in a thread."""
        ...

    def error(self, error: UmgError) -> bytes:
        """Return the error event of the format, which ends a stream that has failed."""
        ...


class StreamDecoder(Protocol):
    """Decoder of the bytes of a provider's stream into canonical messages. One instance per stream."""

    @property
    def done(self) -> bool:
        """Whether the format's end marker was received. Later bytes do not belong to the response."""
        ...

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """Decode received bytes, cut anywhere. Return a message with the events that are complete, None if there are
        none. Raise UmgError for an error event and for an event that cannot be decoded.
        """
        ...

    def close(self) -> pb.StreamGenerateResponse | None:
        """Return the remaining events at the stream's end, if any. Raise UmgError(UPSTREAM_CUT) if it is incomplete."""
        ...


@dataclass(frozen=True, kw_only=True)
class TextFace:
    """Text format of callers: its properties, and the functions that decode and encode the callers' bodies."""

    name: str
    source_headers: tuple[str, ...]
    """Lower-case names of request headers that change a body's meaning. Only these are forwarded with it."""
    decode_request: BodyDecoder[FaceRequest]
    encode_response: Callable[[pb.GenerateResponse, pb.GenerateRequest], bytes]
    """(response, its request) -> JSON body: the provider's body if it was kept in this format, otherwise a new one."""
    can_express: Callable[[pb.Part], bool]
    """Function that returns whether a response can express the part, possibly in another form."""
    stream_encoder: Callable[[pb.GenerateRequest], StreamEncoder]
    encode_error: Callable[[UmgError, int], bytes]  # (error, HTTP status) -> JSON body
    wire_path: Callable[[str], str]
    """Canonical path (`messages[0].parts`) -> path in a body of this format. Only for errors."""
    heartbeat: bytes
    """Bytes sent while no event is ready. All clients of the format ignore them."""
    media_types: tuple[str, ...] = ("application/json",)
    """Media types under which bodies are read as JSON; empty for any, as at the vendor's server."""
    stream_type: str = EVENT_STREAM

    # only in some formats
    call_ids: CallIdPlaces = NO_CALL_IDS  # positions of the ids of tool calls in bodies
    request_id_header: str = ""
    """Response header from which clients of the format read the request id, besides `x-request-id`."""
    rate_limit_headers: RateLimitHeaders = rate_limit_headers
    """Encoder of the response headers from which clients of the format read the rate limits of their key."""
    rate_limit_prefix: str = RATE_LIMIT_PREFIX
    """First part of the names of the headers that state the rate limits of a caller's key."""
    key_headers: tuple[str, ...] = ()
    """Headers that may contain a caller's key besides `Authorization`, in the order in which they are read."""
    key_parameter: str = ""  # query parameter that holds a caller's key
    error_paths: tuple[str, ...] = ()
    """First parts of URL paths. A call of a path that begins so but has no route gets an error body of this format."""
    stores_by_default: bool = False
    """Whether responses are stored unless the request forbids it. Callers refer to them and to their items by id."""
    has_threads: bool = False  # whether a request may continue a message thread
    unknown_fields: Callable[[bytes], Sequence[str]] | None = None
    """Body -> paths of its unknown fields below the top level; None for a format whose decoder records them."""
    api_version: str = ""
    """Version of the vendor's API, which its clients compare; "" for a format that has no path to read it."""
    loses_call_ids: bool = False
    """Whether clients send tool calls back without ids. Then the decoder derives the ids from the calls' content."""
    timed: "Callable[[Elapsed], TextFace] | None" = None
    """Elapsed -> this format with encoders that state the durations of one call; None if responses state none."""
    encode_empty: Callable[[pb.GenerateRequest, str], bytes] | None = None
    """(request without messages, current time in RFC 3339) -> JSON body of its response, without a provider; None if
    all requests of the format have messages.
    """
    pass_frames: Callable[[Any, bytes], bytes] | None = None
    """(stream encoder, frames of a provider) -> bytes, as `feed` returns them for a message with these frames alone;
    None for a format whose frames all need a message.
    """
    array_encoder: Callable[[pb.GenerateRequest], StreamEncoder] | None = None
    """Encoder of a stream as one JSON array, for callers that do not request events (native without `alt=sse`)."""
    decode_count: BodyDecoder[DecodedRequest[pb.GenerateRequest]] | None = None
    """Decoder of a token counting call into the request whose tokens are counted; None without this call."""
    decode_compaction: BodyDecoder[DecodedRequest[pb.GenerateRequest]] | None = None
    """Decoder of the body of a call that compacts a conversation; None for a format without this call."""
    encode_count: Callable[[int, int | None], bytes] | None = None
    """(tokens of the prompt, tokens before edits of its conversation or None) -> JSON body of a token count."""


@dataclass(frozen=True, kw_only=True)
class TextProviderFormat:
    """Text format of providers: the functions that encode requests to providers and decode their responses."""

    name: str
    encode_request: ProviderRequestEncoder
    """(request, provider's model id, whether to stream, rejected values, facts about the body) -> HTTP request."""
    decode_response: Callable[[bytes, pb.GenerateRequest, bool], pb.GenerateResponse]
    """(body, request, pass) -> response. Only a `TextFormat` must accept a true pass: the response keeps the body as
    `source`, with the caller's model id; only fields that the service needs are decoded. Raises
    UmgError(UPSTREAM_FAILED).
    """
    translating_decoder: Callable[[pb.GenerateRequest], StreamDecoder]
    """Function that creates a decoder for callers of another format. It returns the whole stream as events."""
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, lower-case headers, body) of a failed call -> error; its `failure` decides on further attempts."""
    objects: ObjectRules  # to find the members of a body that name objects in the provider's account
    provider_name: str = ""
    """Telemetry's `gen_ai.provider.name` for providers of the format on unknown hosts; "" for `umg.<format>`."""
    state_identity: Callable[[str], str] = str
    """(data of a reasoning state) -> text that identifies the state even after a client has rewritten its JSON."""

    @cached_property
    def key_header(self) -> str:
        """Header for a provider's key: `authorization` with a Bearer token, or another with the bare key."""
        return TEXT_PROTOCOLS[self.name].key_header


@dataclass(frozen=True, kw_only=True)
class TextFormat(TextFace, TextProviderFormat):
    """Text format that both callers and providers use: a body can pass unchanged from one to the other."""

    passthrough_decoder: Callable[[pb.GenerateRequest], StreamDecoder]
    """Function that creates a decoder for callers of this format, which returns frames, and events for the service."""
    has_no_output: Callable[[bytes], bool]
    """Whether the first frames of a stream, complete as `passthrough_decoder` returns them, contain no output. False
    for frames that cannot be decoded.
    """
    conversation_field: str  # member of a body that contains the conversation
    instruction_fields: tuple[str, ...] = ()
    """Members of a body with instructions beside the conversation. They are encoded again when the conversation is."""
    has_unreturned_reasoning: Callable[[bytes], bool] | None = None
    """Whether a provider's body or frames contain reasoning, or its state, that clients do not send back; None if they
    send back all of it.
    """

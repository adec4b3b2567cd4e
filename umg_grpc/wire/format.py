"""What a text format is to the rest of the gateway: one face and one upstream, as functions without I/O.

A format is one module (or package) with these functions and one row in `wire.FORMATS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from umg_grpc.errors import UmgError
from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

BIG_BYTES = 512 * 2**10
"""From here on a body takes milliseconds to decode or encode: callers do it in a thread, the event loop has others."""


class FaceRequest(NamedTuple):
    """A caller's body, decoded."""

    canonical: pb.GenerateRequest  # with its source document
    stream: bool  # whether the body asks for a stream


class UpstreamRequest(NamedTuple):
    """A call to a provider, encoded."""

    path: str  # below the channel's base URL, e.g. `/chat/completions`
    body: bytes
    headers: Mapping[str, str]  # the format's own, without credentials and content type
    report: Report  # what the format could not say


class RequestEncoder(Protocol):
    """A canonical request -> a call to a provider."""

    def __call__(
        self, request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, /
    ) -> UpstreamRequest:
        """Encode the request for the provider's `model`. It starts from the source document when that is of the
        encoder's own format. Raise UmgError for what cannot be left out.
        """
        ...


class StreamEncoder(Protocol):
    """Canonical messages -> the face's bytes. One instance a stream."""

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        """All frames of one message, for one write; b"" when it says nothing in this format."""
        ...

    def close(self) -> bytes:
        """What ends a whole answer: open blocks ended, the end marker. b"" when it was sent already."""
        ...

    def error(self, error: UmgError) -> bytes:
        """What ends a broken answer: the format's error event. Nothing follows it."""
        ...


class StreamDecoder(Protocol):
    """A provider's bytes -> canonical messages. One instance a stream."""

    @property
    def done(self) -> bool:
        """Whether the format's end marker was seen: nothing that follows belongs to the answer."""
        ...

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """All that one read completed, None when it completed nothing. Raises UmgError for an error event or what
        cannot be read.
        """
        ...

    def close(self) -> pb.StreamGenerateResponse | None:
        """The rest, at the end of the body. Raises UmgError(UPSTREAM_CUT) when the answer was not whole."""
        ...


def name_model(request: pb.GenerateRequest, model: str) -> None:
    """Gives a request of a format that has the model in its path that model. Raises UmgError(INVALID_FIELD) where the
    body names another.
    """
    if request.model and model and request.model != model:
        named = f"the path names {model[:64]!r}, the body {request.model[:64]!r}"
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`model`: {named}; leave it out of the body", field="model")
    request.model = model or request.model


@dataclass(frozen=True)
class TextFormat:
    """One text format, both directions."""

    name: str

    # as a face
    source_headers: tuple[str, ...]
    """Request headers that change what a body means and go with it to a provider, in lower case. No others go."""
    decode_request: Callable[[bytes, Mapping[str, str]], FaceRequest]
    """(body, its allow-listed headers by lower-case name). Raises UmgError naming the field as the caller wrote it."""
    encode_response: Callable[[pb.GenerateResponse, pb.GenerateRequest], bytes]
    """(answer, what it answers). The answer's own body when it has one of this format."""
    shows: Callable[[pb.Part], bool]
    """Whether an answer can say the part, also in other words."""
    stream_encoder: Callable[[pb.GenerateRequest], StreamEncoder]
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`messages[0].parts`) as this format's callers know it. For errors only."""
    heartbeat: bytes
    """Bytes that every client of the format skips between events."""

    # as an upstream
    encode_request: RequestEncoder
    """(request, the provider's model id, whether to stream, the quirks of that model)."""
    decode_response: Callable[[bytes, pb.GenerateRequest, bool], pb.GenerateResponse]
    """(body, request, pass). With pass the answer keeps the body as `source`, under the caller's model id, and only
    what the service needs is decoded. Raises UmgError(UPSTREAM_FAILED) for what cannot be read.
    """
    translating_decoder: Callable[[pb.GenerateRequest], StreamDecoder]
    """Of a stream for callers of another format: all as events."""
    passing_decoder: Callable[[pb.GenerateRequest], StreamDecoder]
    """Of a stream for callers of this format: frames as they came, and what the service needs to know as events."""
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of a refused call: an error that says what it means for other
    attempts (`failure`).
    """
    preamble: Callable[[bytes], bool]
    """Whether whole frames that begin a stream, as `passing_decoder` gives them out, have nothing of the answer in them
    yet. False for what is not understood.
    """
    key_header: str = "authorization"
    """Where the format's providers take a key, unless the operator says otherwise: as a Bearer, or bare elsewhere."""

    # what only some formats have
    unknown_fields: Callable[[bytes], Sequence[str]] | None = None
    """Paths of the unknown fields below the top level of a body that was decoded; None where decoding notes them."""
    model_in_path: bool = False
    """Whether a face's path has the model and whether to stream. A body may repeat the model: see `name_model`."""
    array_encoder: Callable[[pb.GenerateRequest], StreamEncoder] | None = None
    """A stream as one JSON array, for callers who ask for no events (native without `alt=sse`)."""
    decode_count: Callable[[bytes, Mapping[str, str]], pb.GenerateRequest] | None = None
    """(body of a counting call, its allow-listed headers) -> what would be generated, with its source."""
    encode_count: Callable[[int], bytes] | None = None
    """Tokens of the prompt -> body."""

    def stream_decoder(self, request: pb.GenerateRequest, pass_: bool) -> StreamDecoder:
        """Of the answer to the request, which is passed on as it comes or is translated."""
        return self.passing_decoder(request) if pass_ else self.translating_decoder(request)

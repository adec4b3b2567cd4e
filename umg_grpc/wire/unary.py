"""What a format of one request and one answer is to the rest of the gateway: embeddings, reranking.

A format is one module (or package) with these functions and one row in `wire.EMBEDDING_FORMATS` or
`wire.RERANK_FORMATS`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.wire.format import UpstreamRequest

Request = TypeVar("Request")
Response = TypeVar("Response")


class ClientShape(Enum):
    """Whose form an answer has where one body cannot satisfy both (design, "Client shapes")."""

    DOCUMENTED = "documented"
    SDK = "sdk"


@dataclass(frozen=True)
class UnaryFormat(Generic[Request, Response]):
    """One format, both directions. Of `UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]` and its like."""

    name: str
    """Of the face: `SourceDocument.format` of what it decodes."""
    protocol: str
    """Of the providers: what a channel's `protocols` call it. Two faces of one protocol share its providers' side."""

    # as a face
    source_headers: tuple[str, ...]
    """Request headers that change what a body means and go with it to a provider, in lower case. No others go."""
    decode_request: Callable[[bytes, Mapping[str, str]], Request]
    """(body, its allow-listed headers by lower-case name) -> the request with its source document. Raises UmgError
    naming the field as the caller wrote it."""
    encode_response: Callable[[Response, Request, ClientShape], bytes]
    """(answer, what it answers, whose form). The answer's own body when it has one of this format."""
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`inputs[0].text`) as this format's callers know it. For errors and reports only."""

    # as an upstream
    encode_request: Callable[[Request, str], UpstreamRequest]
    """(request, the provider's model id). Starts from the source document when that is of this protocol."""
    decode_response: Callable[[bytes, Request, bool], Response]
    """(body, request, pass). With pass the answer keeps the body as `source`, under the caller's model id, if callers
    can read it as it is; only what the service needs is then decoded. Raises UmgError(UPSTREAM_FAILED) for what cannot
    be read.
    """
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of a refused call: an error that says what it means for other
    attempts (`failure`).
    """
    key_header: str = "authorization"
    """Where the format's providers take a key, unless the operator says otherwise: as a Bearer, or bare elsewhere."""
    name_model: Callable[[Request, str], None] | None = None
    """Of a face that has the model in its path: gives a request that model. Raises UmgError(INVALID_FIELD) where the
    body names another.
    """
    most_items: int | None = None
    """Most inputs that a provider of the format takes in one request, unless the operator says otherwise; None where
    the format has no limit.
    """
    encode_pieces: Callable[[Response, Request, ClientShape], Iterator[bytes]] | None = None
    """`encode_response` of a format whose answers can be very large: a piece is made when it is asked for, in a
    millisecond. Small answers are one piece.
    """

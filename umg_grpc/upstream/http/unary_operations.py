"""Embeddings and rerankings by a provider over HTTP: combines the provider's codec and the HTTP client."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from umg_grpc.knowledge.member_dialects import MemberDialect, dialect_of
from umg_grpc.upstream.http.provider_call import HasSource, HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format import BIG_BYTES, UpstreamRequest
from umg_grpc.wire.unary_format import UnaryProviderFormat
from umg_grpc.wire.vendor_members import fit_members

Request = TypeVar("Request", bound=HasSource)
Response = TypeVar("Response")


class HttpUnaryCall(HttpCall[Request, Response]):
    """Call of an operation with one request and one response that is ready to be sent."""

    format: UnaryProviderFormat[Request, Response]

    def read_headers(self, response: Response, headers: Mapping[str, str]) -> None:
        if self.format.read_headers is not None:
            self.format.read_headers(response, headers)


class HttpUnary(Generic[Request, Response]):
    """Embedding or reranking by the provider of one channel over HTTP. Its calls raise UmgError for failures of the
    connection and of the provider.
    """

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[UnaryProviderFormat[Request, Response]],
        max_bytes: int = MAX_RESPONSE_BYTES,
        dialects: tuple[MemberDialect, ...] = (),
    ) -> None:
        """Create the operation of a channel. `formats`: wire formats that the provider accepts, the preferred one
        first; `max_bytes`: maximum size of a response; `dialects`: rows of the provider's dialects.
        """
        self._channel = channel
        self._dialects = dialects
        self._max_bytes = max_bytes
        self._formats = {codec.name: codec for codec in formats}
        self._preferred = formats[0]

    def is_slow(self, size: int) -> bool:
        return size >= BIG_BYTES

    def codec_of(self, request: Request) -> UnaryProviderFormat[Request, Response]:
        """Return the wire format in which a request is sent: the caller's own if the provider accepts it, otherwise
        the preferred one.
        """
        return self._formats.get(request.source.format, self._preferred)

    def prepare(self, request: Request, model: str, notes: RequestNotes = NO_NOTES) -> HttpCall[Request, Response]:
        """Encode the request for the provider's `model`, in the caller's own format if the provider accepts it,
        otherwise in the preferred one. `notes`: facts about the caller's body.
        """
        codec = self.codec_of(request)
        encoded = self.encode(codec, request, model, notes)
        passes = codec.name == request.source.format
        return HttpUnaryCall(self._channel, codec, request, encoded, passes, self._max_bytes)

    def encode(
        self, codec: UnaryProviderFormat[Request, Response], request: Request, model: str, notes: RequestNotes
    ) -> UpstreamRequest:
        """Encode the request in a wire format, with the members that the provider accepts."""
        encoded = codec.encode_request(request, model, notes)
        if (dialect := dialect_of(self._dialects, model, codec.protocol)) is None:
            return encoded
        return fit_members(encoded, request, dialect)

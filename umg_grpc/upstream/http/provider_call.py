"""Call of a provider over HTTP: an encoded request, and the decoding of its response."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import decoded_body, refusal
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.text_format_interface import BIG_BYTES, UpstreamRequest


class HasSource(Protocol):
    """Request message whose field `source` has the caller's original body."""

    @property
    def source(self) -> pb.SourceDocument: ...
    def ByteSize(self) -> int: ...


Request = TypeVar("Request", bound=HasSource)
Response = TypeVar("Response")
Request_contra = TypeVar("Request_contra", bound=HasSource, contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class ProviderFormat(Protocol[Request_contra, Response_co]):
    """Functions of a wire format that decode a provider's responses and errors."""

    @property
    def key_header(self) -> str: ...
    @property
    def decode_response(self) -> Callable[[bytes, Request_contra, bool], Response_co]: ...
    @property
    def decode_error(self) -> Callable[[int, Mapping[str, str], bytes], UmgError]: ...


class HttpCall(msgspec.Struct, Generic[Request, Response], eq=False):
    """Call of a provider that is encoded for one channel. Raises UmgError if the connection or the provider fails."""

    channel: HttpChannel
    format: ProviderFormat[Request, Response]
    request: Request
    encoded: UpstreamRequest
    passes: bool
    """Whether the provider's body is kept in the response, because it has the caller's format."""
    max_bytes: int = MAX_RESPONSE_BYTES
    """Maximum size of the response in bytes."""
    before_send: Callable[[], None] | None = None
    """Function that is called once, before the request is sent, and may change the body; None if there is none."""

    @property
    def report(self) -> Report:
        return self.encoded.report

    def decode(self, body: bytes) -> Response:
        """Return the decoded response of a provider. Raise UmgError if the body is invalid in its format."""
        return self.format.decode_response(body, self.request, self.passes)

    def decode_guarded(self, body: bytes) -> Response:
        """Return the decoded response of a provider. Raise UmgError also for a failure of the decoder itself."""
        return decoded_body(body, self.decode)

    def read_headers(self, response: Response, headers: Mapping[str, str]) -> None:
        """Add the facts in a response's HTTP headers to the response, in place. Most formats have none there."""

    def prepare_send(self) -> None:
        """Call the function that may change the body before the call is sent, if there is one."""
        if (change := self.before_send) is not None:
            self.before_send = None
            change()

    async def send(self, seconds: float) -> Response:
        self.prepare_send()
        channel, codec, encoded = self.channel, self.format, self.encoded
        endpoint, outgoing = await channel.outgoing(encoded, codec.key_header, seconds, max_bytes=self.max_bytes)
        status, headers = 0, NO_HEADERS
        try:
            status, headers, body = await channel.client.fetch(outgoing)
            if status != 200:
                raise self._refusal(status, headers, body, is_forwarded=outgoing.is_forwarded)
            if len(body) < BIG_BYTES:
                response = self.decode_guarded(body)
            else:
                response = await asyncio.to_thread(self.decode_guarded, body)
            self.read_headers(response, headers)
        except UmgError as error:
            channel.record_failure(error, endpoint, encoded.path, status, headers)
            raise
        channel.record_success(endpoint, headers, encoded.report)
        return response

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes, *, is_forwarded: bool) -> UmgError:
        return refusal(self.format.decode_error, status, headers, body, is_forwarded=is_forwarded)

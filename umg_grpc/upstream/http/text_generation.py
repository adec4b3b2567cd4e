"""Text generation by a provider over HTTP: combines the provider's codec and the HTTP client."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import ProviderRefusal
from umg_grpc.knowledge.model_quirk_definitions import NO_CHANNEL_QUIRKS, NO_QUIRKS, ChannelQuirks
from umg_grpc.upstream.http.cached_contents import HttpPromptStorage
from umg_grpc.upstream.http.large_body_reader import read_rest
from umg_grpc.upstream.http.provider_call import HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import decoded_parts, guarded
from umg_grpc.upstream.http.session_headers import with_relayed
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD
from umg_grpc.wire.core.json_array_stream import ArrayReader, array_events, is_array
from umg_grpc.wire.core.local_stop_sequences import StoppingDecoder, cut_response
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.stream_aggregator import gather_events
from umg_grpc.wire.core.stream_decoder import FrameDecoder
from umg_grpc.wire.errors.rejection_reading import PATH_STATUSES, REFUSAL_STATUSES
from umg_grpc.wire.errors.secret_masking import body_without_secrets
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.protocol_choice import refusal_of
from umg_grpc.wire.text_format_interface import (
    BIG_BYTES,
    StreamDecoder,
    TextFormat,
    TextProviderFormat,
    UpstreamRequest,
)

SMALL_BYTES = 1 << 10
"""Size in bytes up to which a read of a stream is translated at once, without the limit of bytes per iteration of the
event loop: a few events, at the speed at which models generate them.
"""


REFUSED_STATUS = 400
"""Status of a refusal that a provider states in a stream."""
NO_CHANNELS: Mapping[str, HttpChannel] = MappingProxyType({})


class HttpText:
    """Text generation by the provider of one channel over HTTP."""

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[TextProviderFormat],
        *,
        elsewhere: Mapping[str, HttpChannel] = NO_CHANNELS,
        check: Callable[[pb.GenerateRequest], None] | None = None,
    ) -> None:
        """Create the text generation of a channel. `formats`: text formats that the provider accepts, the preferred
        one first; `elsewhere`: format -> connection, for formats at another address than that of `channel`; `check`:
        raises UmgError for a request that the channel's models cannot serve, None for no check.
        """
        self._channels = {each.name: elsewhere.get(each.name, channel) for each in formats}
        self._orders = {each.name: (each, *(other for other in formats if other is not each)) for each in formats}
        self._preferred = self._orders[formats[0].name]
        self._check = check

    def is_slow(self, request: pb.GenerateRequest, size: int) -> bool:
        return size >= BIG_BYTES

    def prepare(
        self,
        request: pb.GenerateRequest,
        model: str,
        notes: RequestNotes = NO_NOTES,
        *,
        stream: bool,
        quirks: ChannelQuirks = NO_CHANNEL_QUIRKS,
    ) -> "HttpTextCall":
        if self._check is not None:
            self._check(request)
        source_format = request.source.format
        text_format, encoded = self._encoded(request, model, notes, stream, quirks)
        name = text_format.name
        if notes.client_headers or notes.conversation:
            known = quirks.by_protocol.get(name, NO_QUIRKS)
            encoded = with_relayed(encoded, request, model, name, notes, known)
        # a response is passed through unchanged unless it has to be rewritten, guards read its stream, it would have to
        # name a previous response that was not sent to the provider, or to report edits of the conversation that the
        # gateway made
        passes = (
            source_format == name
            and not encoded.local_stops
            and not notes.reads_stream
            and not request.face_hints.thinking_to_content
            and ("previous_response_id" not in notes.edited or bool(request.previous_response_id))
            and EDITS_FIELD not in notes.edited
        )
        return HttpTextCall(self._channels[name], text_format, request, encoded, passes)

    def _encoded(
        self, request: pb.GenerateRequest, model: str, notes: RequestNotes, stream: bool, quirks: ChannelQuirks
    ) -> tuple[TextProviderFormat, UpstreamRequest]:
        """Return the format in which the request is sent, and the request encoded in it."""
        source_format = request.source.format
        first, *others = self._orders.get(source_format, self._preferred)

        def refused(each: TextProviderFormat) -> str:
            return refusal_of(request, quirks.by_protocol.get(each.name, NO_QUIRKS), each.name)

        def encode(each: TextProviderFormat) -> UpstreamRequest:
            return each.encode_request(request, model, stream, quirks.of(each.name, source_format), notes)

        reason = refused(first) if others else ""
        if not reason and (not others or first.name == source_format):
            return first, encode(first)  # the caller's body as it came, or the only way
        candidates = [*(() if reason else (first,)), *(each for each in others if not refused(each))] or [first]
        best, encoded, failure = first, None, None
        for each in candidates:
            try:
                attempt = encode(each)
            except UmgError as error:
                failure = failure or error
                continue
            if encoded is None or _cost(attempt) < _cost(encoded):
                best, encoded = each, attempt
            if _cost(encoded) == NOTHING_LOST:
                break
        if encoded is None:
            raise failure or AssertionError
        if best is not first:
            encoded.report.protocol = f"{best.name} ({reason or f'{first.name} loses more of the request'})"
        return best, encoded


NOTHING_LOST = (0, 0)


def _cost(encoded: UpstreamRequest) -> tuple[int, int]:
    return encoded.report.lost_for_choice, len(encoded.report.performed)


class HttpTextCall(HttpCall[pb.GenerateRequest, pb.GenerateResponse]):
    """Text generation call that is encoded for one channel and ready to be sent."""

    format: TextProviderFormat
    _opened: tuple[ProviderExchange, StreamDecoder] | None = None
    """Exchange and decoder of the stream, once it has begun; None if its reads are not events."""

    def relay_to(self, relay: Callable[[bytes], bool]) -> None:
        if self._opened is None:
            return
        exchange, decoder = self._opened
        if isinstance(decoder, FrameDecoder) and not exchange.response.encodings:
            exchange.relay = partial(_is_relayed, decoder, relay)

    @property
    def body(self) -> bytes:
        return self.encoded.body

    @property
    def protocol(self) -> str:
        return self.format.name

    @property
    def storage(self) -> HttpPromptStorage | None:
        return HttpPromptStorage(self) if self.encoded.marks else None

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        return self._whole(seconds) if self.encoded.is_whole else self._parts(seconds)

    async def _whole(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        yield response_to_events(await self.send(seconds))

    async def _parts(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        self.prepare_send()
        channel, codec = self.channel, self.format
        exchange: ProviderExchange | None = None
        endpoint, outgoing = await channel.outgoing(self.encoded, codec.key_header, seconds)
        try:
            exchange = await channel.client.open(outgoing)
            response = exchange.response
            if response.status != 200:
                body = await exchange.refusal()
                raise self._refusal(response.status, response.headers, body, is_forwarded=outgoing.is_forwarded)
            channel.record_success_status()
            chunk = await exchange.read()
            if (
                chunk.removeprefix(sse.BYTE_ORDER_MARK).lstrip()[:1] == b"{"
            ):  # no event begins so; the content type may be wrong
                exchange.deadline.has_begun = True
                parts = await read_rest(exchange, chunk, channel.client)
                yield response_to_events(await decoded_parts(parts, self._decode_whole, channel.client.decodes))
                channel.record_success(endpoint, response.headers, self.report)
                return
            decoder, begun = self._new_decoder(), False
            array = ArrayReader() if chunk[:1] == b"[" or is_array(chunk[:8]) else None
            self._opened = None if array is not None else (exchange, decoder)
            while chunk:
                chunk = chunk if array is None else array.feed(chunk)
                if len(chunk) > SMALL_BYTES:
                    await channel.client.streams.take(len(chunk))
                message = guarded(decoder.feed, chunk)
                if not begun and (begun := _begins(exchange, chunk, message)):
                    channel.record_success(endpoint, response.headers, self.report)
                if message is not None:
                    yield message
                if decoder.done:
                    break
                del chunk, message  # the next ones may take hours
                chunk = await exchange.read()
            if (message := guarded(decoder.close)) is not None:
                yield message
            if not exchange.done and not _is_stopped(decoder):
                await exchange.finish()
        except UmgError as error:
            self._keep_refusal(error)
            status, headers = (0, NO_HEADERS) if exchange is None else (response.status, response.headers)
            channel.record_failure(error, endpoint, self.encoded.path, status, headers)
            raise
        finally:
            if exchange is not None:
                exchange.close()

    def decode(self, body: bytes) -> pb.GenerateResponse:
        if body.startswith(b"{"):
            response = self.format.decode_response(body, self.request, self.passes)
        elif sse.is_event_stream(body):
            response = gather_events(self.format, self.request, body)
        elif is_array(body):
            response = gather_events(self.format, self.request, array_events(body))
        else:
            response = self.format.decode_response(body, self.request, self.passes)
        if self.encoded.local_stops:
            cut_response(response, self.encoded.local_stops)
        return response

    def _new_decoder(self) -> StreamDecoder:
        if self.passes and isinstance(self.format, TextFormat):
            return self.format.passthrough_decoder(self.request)
        decoder, stops = self.format.translating_decoder(self.request), self.encoded.local_stops
        return StoppingDecoder(decoder, stops, self.request.candidate_count) if stops else decoder

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes, *, is_forwarded: bool) -> UmgError:
        """Return the error for a status other than 200, with the refusal by which the request can be repaired."""
        error = super()._refusal(status, headers, body, is_forwarded=is_forwarded)
        if error.failure is None or (status not in REFUSAL_STATUSES and status not in PATH_STATUSES):
            return error
        return error.with_refusal(
            ProviderRefusal(self.format.name, status, body_without_secrets(body), self.encoded.body)
        )

    def _keep_refusal(self, error: UmgError) -> None:
        """Add the refusal in a provider's stream, after the status 200, to the error, for a repair of the request."""
        if error.refusal is None and error.reason == pb.ERROR_REASON_UPSTREAM_REJECTED and error.facts is not None:
            stated = msgspec.json.encode({"message": error.facts.message})
            error.with_refusal(
                ProviderRefusal(self.format.name, REFUSED_STATUS, body_without_secrets(stated), self.encoded.body)
            )

    def _decode_whole(self, body: bytes) -> pb.GenerateResponse:
        response = self.format.decode_response(body, self.request, False)
        cut_response(response, self.encoded.local_stops)
        return response


def _is_relayed(decoder: FrameDecoder, relay: Callable[[bytes], bool], chunk: bytes) -> bool:
    frames = decoder.plain_frames(chunk)
    return bool(frames) and relay(frames)


def _is_stopped(decoder: StreamDecoder) -> bool:
    """Return whether the response ended at a stop sequence that the gateway found: the provider still generates."""
    return isinstance(decoder, StoppingDecoder) and decoder.stopped


def _begins(exchange: ProviderExchange, chunk: bytes, message: pb.StreamGenerateResponse | None) -> bool:
    """Return whether a read contains the first event of a stream, and set the next time limit. It is `idle` after an
    event, `first_byte` again after a keep-alive. `message`: decoded from `chunk`; None without an event.
    """
    if message is not None and (message.events or _has_frames(message)):
        exchange.deadline.has_begun = True
        return True
    if sse.is_keep_alive(chunk):
        exchange.deadline.extend_first(asyncio.get_running_loop().time())
    return False


def _has_frames(message: pb.StreamGenerateResponse) -> bool:
    for event in sse.split(message.source_frames):  # noqa: SIM110  `any` over a generator takes longer
        if event.data is not None:
            return True
    return False

"""Images by a provider over HTTP: combines the provider's codec, the HTTP client, and the downloader for URLs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import has_images
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http.image_request_sender import STEP_BYTES, CallEnd, Held, ImageExchanges
from umg_grpc.upstream.http.image_task_polling import TaskRunner
from umg_grpc.upstream.http.image_url_inlining import addresses, with_inline_images, with_placeholders
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import guarded
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol, ImageStreamDecoder
from umg_grpc.wire.images.providers.response_decoding import add_result
from umg_grpc.wire.images.providers.stream_decoding import add_completed, add_started, finished_message, set_failure
from umg_grpc.wire.images.vendor_rule_checks import check_values
from umg_grpc.wire.text_format_interface import BIG_BYTES, UpstreamRequest

JSON_TYPE = "application/json"
MAX_CONCURRENT_CALLS = 4
"""Maximum requests in flight for one call that makes several images by separate requests."""
MAX_EVENT_BYTES = 48 << 20
"""Maximum bytes of one event of a stream, enough for an image of 4K pixels in base64."""

Outcome = pb.GenerateImageResponse | UmgError


class HttpImages:
    """Image generation by one channel's provider over HTTP. Raises UmgError if the connection or the provider fails."""

    def __init__(self, channel: HttpChannel, protocol: ImageProtocol, fetcher: Fetcher, budget: ResponseBudget) -> None:
        """Create the image generation of a channel. `fetcher`: downloads callers' image URLs for providers that accept
        only bytes; `budget`: memory for large responses.
        """
        exchanges = ImageExchanges(channel, protocol, budget)
        tasks = TaskRunner(exchanges, protocol.tasks) if protocol.tasks is not None else None
        self._parts = ChannelParts(exchanges, tasks, fetcher)

    def is_slow(self, size: int) -> bool:
        return size >= BIG_BYTES

    def prepare(self, request: pb.GenerateImageRequest, model: str, notes: RequestNotes = NO_NOTES) -> "HttpImageCall":
        parts, protocol = self._parts, self._parts.protocol
        check_values(protocol.name, model, request, notes)
        urls = list(addresses(request))
        for place in urls:
            parts.fetcher.check(place.image.url, field=place.path)
        fetches = bool(urls) and not protocol.takes_urls(request)
        encoded = protocol.encode_request(with_placeholders(request) if fetches else request, model, False, notes)
        return HttpImageCall(parts, request, model, notes, encoded, fetches)


class ChannelParts(NamedTuple):
    """Objects of a channel that all its image calls share."""

    exchanges: ImageExchanges
    tasks: TaskRunner | None
    """Runner of tasks, for models that accept only tasks; None for a protocol without tasks."""
    fetcher: Fetcher

    @property
    def protocol(self) -> ImageProtocol:
        """Codec of the provider's image format."""
        return self.exchanges.protocol


@dataclass(frozen=True, slots=True)
class HttpImageCall:
    """Image generation call that is encoded for one channel and ready to be sent."""

    parts: ChannelParts
    request: pb.GenerateImageRequest
    model: str
    notes: RequestNotes
    encoded: UpstreamRequest
    fetches: bool
    """Whether input images must be downloaded before sending; `encoded` then has placeholder bytes."""

    @property
    def report(self) -> Report:
        return self.encoded.report

    async def send(self, seconds: float) -> pb.GenerateImageResponse:
        end = CallEnd.of(seconds, self.parts.exchanges.channel)
        outcomes = dict[int, Outcome]()
        async with aclosing(self._outcomes(end)) as finished:
            async for position, outcome in finished:
                outcomes[position] = outcome
        made = [outcomes[position] for position in sorted(outcomes)]
        responses = [outcome for outcome in made if isinstance(outcome, pb.GenerateImageResponse)]
        if not responses:
            raise next(outcome for outcome in made if isinstance(outcome, UmgError))
        response = responses[0]
        for other in responses[1:]:
            add_result(response.result, other.result)
        self._complete(response.result)
        return response

    async def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        end = CallEnd.of(seconds, self.parts.exchanges.channel)
        decoder = self.parts.protocol.stream_decoder
        if decoder is None or self._calls > 1:
            messages = self._stream_whole(end)
        else:
            messages = self._stream_events(decoder(self.request), end)
        async with aclosing(messages):
            async for message in messages:
                yield message

    @property
    def _calls(self) -> int:
        return max(1, self.request.n) if self.parts.protocol.one_image else 1

    # --- whole responses

    async def _outcomes(self, end: CallEnd) -> AsyncGenerator[tuple[int, Outcome], None]:
        """Yield (position of the request, its response or error) for all requests, in the order in which they end."""
        request, encoded = await self._ready(end, stream=False)
        slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)

        async def call(position: int) -> tuple[int, Outcome]:
            async with slots:
                try:
                    return position, await self._call(request, encoded, end)
                except UmgError as error:
                    return position, error

        tasks = [asyncio.create_task(call(position)) for position in range(self._calls)]
        try:
            for finished in asyncio.as_completed(tasks):
                yield await finished
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _call(
        self, request: pb.GenerateImageRequest, encoded: UpstreamRequest, end: CallEnd
    ) -> pb.GenerateImageResponse:
        """Return the response to one request; for a model that accepts only tasks, run a task instead."""
        parts = self.parts
        tasks = parts.tasks
        if tasks is None:
            return await parts.exchanges.fetch_images(encoded, request, end, self.notes.files)
        create = tasks.encode(request, self.model, self.notes)
        if create is None or not tasks.is_known(self.model):
            try:
                is_expected = tasks.is_required if create is not None else None
                return await parts.exchanges.fetch_images(
                    encoded, request, end, self.notes.files, is_expected=is_expected
                )
            except UmgError as error:
                if create is None or not tasks.is_required(error):
                    raise
        return await tasks.run(request, self.model, create, end)

    async def _ready(self, end: CallEnd, *, stream: bool) -> tuple[pb.GenerateImageRequest, UpstreamRequest]:
        """Return the caller's request with downloaded images, and its encoding for the provider."""
        request = self.request
        if self.fetches:
            request = await with_inline_images(
                request, self.parts.fetcher, self.parts.protocol.max_file_bytes, end.left
            )
        elif not stream:
            return request, self.encoded
        encode = self.parts.protocol.encode_request
        if not has_images(request, with_mask=True):
            return request, encode(request, self.model, stream, self.notes)
        return request, await asyncio.to_thread(encode, request, self.model, stream, self.notes)

    def _complete(self, result: pb.ImageResult) -> None:
        if not result.HasField("create_time"):
            result.create_time.FromDatetime(datetime.now(UTC))

    # --- streams

    async def _stream_whole(self, end: CallEnd) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        """Yield the events of a provider without streams: an image as soon as its request finishes. Errors of single
        requests are yielded only after a first image, since before that another channel may make all images.
        """
        total, failures = pb.ImageResult(), dict[int, UmgError]()
        first = True
        async with aclosing(self._outcomes(end)) as finished:
            async for position, outcome in finished:
                message = pb.StreamGenerateImageResponse()
                if isinstance(outcome, UmgError):
                    failures[position] = outcome
                else:
                    self._complete(outcome.result)
                    if first:
                        add_started(message, outcome.result)
                    for number, image in enumerate(outcome.result.images):
                        add_completed(message, image, position + number)
                    del outcome.result.images[:]
                    add_result(total, outcome.result)
                    first = False
                if not first:
                    for failed_position, error in failures.items():
                        set_failure(message.events.add().failed, error, failed_position)
                    failures.clear()
                    yield message
        if first:
            raise failures[min(failures)]
        yield finished_message(total)

    async def _stream_events(
        self, decoder: ImageStreamDecoder, end: CallEnd
    ) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        exchanges = self.parts.exchanges
        request, encoded = await self._ready(end, stream=True)
        async with exchanges.opened(encoded, end) as (exchange, _):
            exchanges.channel.record_success_status()
            held, chunk = Held(exchanges.budget, end), await exchange.read()
            if (
                chunk.removeprefix(sse.BYTE_ORDER_MARK).lstrip()[:1] == b"{"
                and exchange.response.content_type == JSON_TYPE
            ):
                # the provider ignored the request to stream
                codec = self.parts.protocol
                response = await exchanges.decoded(
                    exchange, held, lambda body: codec.decode_response(body, request), chunk
                )
                for message in self._messages(response):
                    yield message
                return
            async with aclosing(self._decoded(decoder, exchange, held, chunk)) as messages:
                async for message in messages:
                    yield message
            await exchange.finish()

    async def _decoded(
        self, decoder: ImageStreamDecoder, exchange: ProviderExchange, held: Held, chunk: bytes
    ) -> AsyncGenerator[pb.StreamGenerateImageResponse, None]:
        splitter, received = sse.SseSplitter(MAX_EVENT_BYTES), 0
        while chunk and not decoder.done:
            received += len(chunk)
            if frames := splitter.whole(chunk):
                received = 0
                if (message := await _fed(decoder, frames)) is not None:
                    exchange.deadline.has_begun = True
                    yield message
            if not exchange.deadline.has_begun and sse.is_keep_alive(chunk):
                exchange.deadline.extend_first(asyncio.get_running_loop().time())
            if not decoder.done:
                await held.cover(received, ahead=STEP_BYTES)
                chunk = await exchange.read()
        if not decoder.done and (frames := splitter.rest()) and (message := await _fed(decoder, frames)) is not None:
            yield message
        last = guarded(decoder.close)
        self._complete(last.events[-1].finished.result)
        yield last

    def _messages(self, response: pb.GenerateImageResponse) -> list[pb.StreamGenerateImageResponse]:
        """Return a complete response as messages of a stream: one for each image, and one for the end."""
        self._complete(response.result)
        messages = list[pb.StreamGenerateImageResponse]()
        for index, image in enumerate(response.result.images):
            message = pb.StreamGenerateImageResponse()
            if not index:
                add_started(message, response.result)
            add_completed(message, image, index)
            messages.append(message)
        return [*messages, finished_message(response.result)]


async def _fed(decoder: ImageStreamDecoder, frames: bytes) -> pb.StreamGenerateImageResponse | None:
    if len(frames) < BIG_BYTES:
        return guarded(decoder.feed, frames)
    return await asyncio.to_thread(guarded, decoder.feed, frames)

"""Embedding and reranking by a provider over HTTP: codec and transport put together."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.http_channel import HttpChannel
from umg_grpc.v1 import pb
from umg_grpc.wire.embed import other_length, own_length
from umg_grpc.wire.format import BIG_BYTES, UpstreamRequest
from umg_grpc.wire.report import Report
from umg_grpc.wire.unary import UnaryFormat
from umg_grpc.wire.unknown import note_source

PARTS_AT_ONCE = 4
"""Of a batch that is split: so many requests are with the provider at a time."""


class HasSource(Protocol):
    """A request that may carry the body as its caller sent it."""

    @property
    def source(self) -> pb.SourceDocument: ...


Request = TypeVar("Request", bound=HasSource)
Response = TypeVar("Response")


@dataclass(frozen=True)
class HttpUnaryCall(Generic[Request, Response]):
    """A request as it goes to one channel."""

    channel: HttpChannel
    format: UnaryFormat[Request, Response]
    request: Request
    encoded: UpstreamRequest
    passes: bool  # whether the answer goes back as it comes, if callers can read it so

    @property
    def report(self) -> Report:
        """What the channel cannot be told."""
        return self.encoded.report

    async def send(self, seconds: float) -> Response:
        """See `UnaryCall`."""
        codec = self.format
        return await self.channel.fetch(self.encoded, codec.key_header, codec.decode_error, self._decode, seconds)

    def _decode(self, body: bytes) -> Response:
        return self.format.decode_response(body, self.request, self.passes)


class HttpUnary(Generic[Request, Response]):
    """One channel, for one operation. Raises what the transport and the codec raise."""

    def __init__(self, channel: HttpChannel, formats: Sequence[UnaryFormat[Request, Response]]) -> None:
        """`formats`: those that the provider speaks, the preferred one first; several may share a protocol."""
        self.slow_bytes = BIG_BYTES
        self._channel = channel
        self._formats = {codec.name: codec for codec in formats}
        self._preferred = formats[0]

    def codec_of(self, request: Request) -> UnaryFormat[Request, Response]:
        """The format in which the request goes."""
        return self._formats.get(request.source.format, self._preferred)

    def prepare(self, request: Request, model: str) -> HttpUnaryCall[Request, Response]:
        """The request in the caller's own format where the channel speaks it, else in the one that it prefers."""
        codec = self.codec_of(request)
        encoded = codec.encode_request(request, model)
        passes = codec.name == request.source.format
        return HttpUnaryCall(self._channel, codec, request, encoded, passes)


class HttpEmbedding:
    """One channel that embeds. What the provider does not take at once goes to it in parts."""

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]],
        *,
        most_items: int | None = None,
    ) -> None:
        """`most_items`: most inputs of one request, None for what the format says."""
        self.slow_bytes = BIG_BYTES
        self._channel = channel
        self._unary = HttpUnary(channel, formats)
        self._most_items = most_items

    def prepare(
        self, request: pb.EmbedRequest, model: str
    ) -> "HttpUnaryCall[pb.EmbedRequest, pb.EmbedResponse] | SplitCall":
        """See `UnaryUpstream`."""
        codec = self._unary.codec_of(request)
        most = self._most_items or codec.most_items or len(request.inputs)
        if len(request.inputs) <= most:
            return self._unary.prepare(request, model)
        if codec.name == request.source.format:  # what only the provider knows of the caller's body is in no part
            report = Report()
            note_source(request.source, report)
        else:  # by the places of the whole
            report = codec.encode_request(request, model).report
        parts = [self._unary.prepare(part, model) for part in _parts(request, most)]
        return SplitCall(report, parts, self._channel.total_seconds)


@dataclass(frozen=True)
class SplitCall:
    """A batch in parts."""

    report: Report
    parts: Sequence[HttpUnaryCall[pb.EmbedRequest, pb.EmbedResponse]]
    total_seconds: float
    """The channel's deadline for all of them."""

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """All vectors in the order of the inputs. When one part fails, the others are stopped and the call fails.

        Raises UmgError(UPSTREAM_FAILED) for parts with vectors of different lengths.
        """
        turn, joined = asyncio.Semaphore(PARTS_AT_ONCE), pb.EmbedResponse()
        is_channels = self.total_seconds <= seconds  # whose deadline the parts have
        deadline = asyncio.get_running_loop().time() + min(seconds, self.total_seconds)

        async def send(part: HttpUnaryCall[pb.EmbedRequest, pb.EmbedResponse]) -> pb.EmbedResponse:
            await turn.acquire()
            try:
                answer = await part.send(deadline - asyncio.get_running_loop().time())
            except UmgError as error:  # its provider counts from the beginning of the part
                error.metadata.pop("field", None)
                if is_channels and error.reason == pb.ERROR_REASON_UPSTREAM_TIMEOUT and error.failure is None:
                    error.of(Failure.AMBIGUOUS)
                raise
            turn.release()  # not after a failure: nobody is to begin then
            return answer

        tasks = [asyncio.create_task(send(part)) for part in self.parts]
        try:
            answers = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        own = {own_length(answer, part.request) for answer, part in zip(answers, self.parts, strict=True)} - {0}
        if len(own) > 1:
            raise other_length(max(own), 0, min(own))
        for answer in answers:
            joined.embeddings.extend(answer.embeddings)
        if all(answer.HasField("usage") for answer in answers):
            joined.usage.input_tokens = sum(answer.usage.input_tokens for answer in answers)
            joined.usage.total_tokens = sum(answer.usage.total_tokens for answer in answers)
        return joined


def _parts(request: pb.EmbedRequest, most: int) -> list[pb.EmbedRequest]:
    """The request without its inputs, several times over, each with some of them. No part is what the caller wrote."""
    rest = pb.EmbedRequest(
        model=request.model,
        dimensions=request.dimensions if request.HasField("dimensions") else None,
        task_type=request.task_type if request.HasField("task_type") else None,
        encoding=request.encoding,
        user=request.user if request.HasField("user") else None,
    )
    parts = []
    for start in range(0, len(request.inputs), most):
        part = pb.EmbedRequest(inputs=request.inputs[start : start + most])
        part.MergeFrom(rest)
        parts.append(part)
    return parts

"""Embeddings by a provider over HTTP, in several requests if one has too many inputs for the provider."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.vendor_member_dialects import MemberDialect
from umg_grpc.upstream.http.provider_call import HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.unary_operations import HttpUnary
from umg_grpc.v1 import pb
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.shared_embedding_checks import other_length, own_length
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

MAX_CONCURRENT_PARTS = 4
"""Maximum requests in flight for one batch of inputs that is split into several."""
MAX_EMBEDDINGS_BYTES = 192 << 20
"""Maximum bytes of a response with embeddings: 2048 vectors of 4096 numbers, 22 characters each."""


class HttpEmbedding:
    """Embedding by a channel's provider over HTTP. Several requests are sent if one would have too many inputs."""

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[UnaryProviderFormat[pb.EmbedRequest, pb.EmbedResponse]],
        *,
        max_items: int | None = None,
        dialects: tuple[MemberDialect, ...] = (),
    ) -> None:
        """Create the operation of a channel. `formats`: wire formats that the provider accepts, the preferred one
        first; `max_items`: maximum number of inputs in one request, None for the limit of the format.
        """
        self._channel = channel
        self._unary = HttpUnary(channel, formats, MAX_EMBEDDINGS_BYTES, dialects)
        self._max_items = max_items

    def is_slow(self, size: int) -> bool:
        return size >= BIG_BYTES

    def prepare(
        self, request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES
    ) -> "HttpCall[pb.EmbedRequest, pb.EmbedResponse] | SplitCall":
        codec = self._unary.codec_of(request)
        max_inputs = self._max_items or codec.max_items or len(request.inputs)
        if codec.max_items_of is not None:
            max_inputs = min(max_inputs, codec.max_items_of(model, request.model))
        if len(request.inputs) <= max_inputs:
            return self._unary.prepare(request, model, notes)
        if codec.name == request.source.format:
            report = Report()  # the parts omit fields of the caller's body that the gateway does not decode
            notes.report_uncarried(report)
        else:  # field paths with the positions of the whole batch
            report = self._unary.encode(codec, request, model, notes).report
        parts = [self._unary.prepare(part, model) for part in _parts(request, max_inputs)]
        return SplitCall(report, parts, self._channel.total_seconds)


@dataclass(frozen=True)
class SplitCall:
    """Embedding call with more inputs than one request to the provider may have; it is sent as several requests."""

    report: Report
    parts: Sequence[HttpCall[pb.EmbedRequest, pb.EmbedResponse]]
    total_seconds: float
    """Maximum seconds for all requests together, by the channel's config."""

    async def send(self, seconds: float) -> pb.EmbedResponse:
        """Send all requests, and return the vectors in the order of the inputs. If one fails, the others are cancelled
        and its error is raised. Raise UmgError(UPSTREAM_FAILED) if the vectors differ in length.
        """
        slots, response = asyncio.Semaphore(MAX_CONCURRENT_PARTS), pb.EmbedResponse()
        is_channels = self.total_seconds <= seconds  # whether the channel's deadline comes first
        deadline = asyncio.get_running_loop().time() + min(seconds, self.total_seconds)

        async def send(part: HttpCall[pb.EmbedRequest, pb.EmbedResponse]) -> pb.EmbedResponse:
            await slots.acquire()
            try:
                received = await part.send(deadline - asyncio.get_running_loop().time())
            except UmgError as error:  # the provider's field path counts from the beginning of the part
                error.metadata.pop("field", None)
                if is_channels and error.reason == pb.ERROR_REASON_DEADLINE_EXCEEDED:  # of the part, so the channel's
                    message = "the provider was too slow: the time for all parts of the response is over; try again"
                    late = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, **error.metadata)
                    raise late.with_failure(Failure.AMBIGUOUS) from error
                raise
            slots.release()  # not after a failure: no further part may begin then
            return received

        tasks = [asyncio.create_task(send(part)) for part in self.parts]
        try:
            responses = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        lengths = {own_length(received, part.request) for received, part in zip(responses, self.parts, strict=True)} - {
            0
        }
        if len(lengths) > 1:
            raise other_length(max(lengths), 0, min(lengths))
        for received in responses:
            response.embeddings.extend(received.embeddings)
        if all(received.HasField("usage") for received in responses):
            response.usage.input_tokens = count(sum(received.usage.input_tokens for received in responses))
            response.usage.total_tokens = count(sum(received.usage.total_tokens for received in responses))
        return response


def _parts(request: pb.EmbedRequest, max_inputs: int) -> list[pb.EmbedRequest]:
    """Return copies of a request with at most `max_inputs` inputs each, in order, without the caller's body."""
    rest = pb.EmbedRequest(
        model=request.model,
        dimensions=request.dimensions if request.HasField("dimensions") else None,
        task_type=request.task_type if request.HasField("task_type") else None,
        encoding=request.encoding,
        user=request.user if request.HasField("user") else None,
    )
    parts = []
    for start in range(0, len(request.inputs), max_inputs):
        part = pb.EmbedRequest(inputs=request.inputs[start : start + max_inputs])
        part.MergeFrom(rest)
        parts.append(part)
    return parts

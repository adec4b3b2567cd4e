"""Pipeline of the operations with one request and one response, which may be streamed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Generic

from google.protobuf.message import Message
from msgspec.structs import replace

from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, Prices
from umg_grpc.operations import StreamedMethod, UnaryOperation
from umg_grpc.routing import RoutePreferences, Target
from umg_grpc.service.conversations.account_object_ownership import AccountObject, check_ownership
from umg_grpc.service.guardrails.guard_driver import source_of, without_source
from umg_grpc.service.guardrails.guarded_bodies import FoundRest, found_rest
from umg_grpc.service.guardrails.guarded_texts import has_texts
from umg_grpc.service.operations.unary.streamed_unary_responses import StreamedMessages
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.service.pipeline.base_pipeline import Admitted, PipelineContext
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.pipeline.channel_attempt import Attempt, RequestEncoder, UnmendedRequests, finish_report
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.request_decoding import read_source
from umg_grpc.service.pipeline.response_pipeline import RequestT, ResponseStep, ResponseT, checked_message
from umg_grpc.service.pipeline.step_order import COMPLETE, GUARD_STREAM, SETTLE, Step
from umg_grpc.service.pipeline.stream_pipeline import StreamPipeline
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.upstream_interfaces import PreparedCall, UnaryUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import missing
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFace, UnaryFormat


class UnaryCall(Admitted[RequestT], kw_only=True):
    """Call that the pipeline has admitted, with its request; channels may be sent different forms of it."""

    adapt: Callable[[Target], Awaitable[RequestT]] | None = None
    """Function that returns the request for a target, if it differs between targets; None if it does not."""


class UnaryPipeline(
    StreamPipeline[RequestT, ResponseT, UnaryCall[RequestT], Attempt[PreparedCall[ResponseT]], Message],
    Generic[RequestT, ResponseT],
):
    """Pipeline of one operation, which the operation's row describes. Subclasses add checks or usage of their own."""

    def __init__(self, context: PipelineContext, operation: UnaryOperation[RequestT, ResponseT]) -> None:
        super().__init__(context, operation.value, operation.response, UnaryCall)
        self._row: UnaryOperation[RequestT, ResponseT] = operation
        self._faces: Mapping[str, UnaryFace[RequestT, ResponseT]] = operation.faces
        self._has_texts = has_texts(operation.response.DESCRIPTOR)

    async def respond(self, request: RequestT) -> ResponseT:
        """Return the cached response, or the response of the first channel that succeeds. Raise UmgError."""
        admitted = await self.admit(current(), request, request)
        response = await self.response_to(admitted)
        await self._settle(admitted, response)
        return response

    async def _settle(self, admitted: UnaryCall[RequestT], response: ResponseT) -> None:
        if not admitted.call.facts.is_cached:
            await self._record(admitted, self._row.usage(response))

    async def _record(self, admitted: UnaryCall[RequestT], usage: pb.Usage) -> None:
        admitted.call.facts.usage = usage
        prices = admitted.call.charges.prices or admitted.model.prices
        if any(prices.micro_credits.values()):
            await asyncio.to_thread(self._add_usage, admitted, usage, prices)

    def _add_usage(self, admitted: UnaryCall[RequestT], usage: pb.Usage, prices: Prices) -> None:
        row, model = self._row, admitted.model
        if not usage.input_tokens and prices.price_of(INPUT_TOKEN):
            counter, texts = TokenCounter(model.family, model.tokenizer), row.counted_texts(admitted.request)
            usage.input_tokens, usage.estimated = sum(map(counter.count_text, texts)), True
        row.add_usage(admitted.request, usage, prices)

    def _validate(self, admitted: UnaryCall[RequestT]) -> Awaitable[None] | None:
        if admitted.is_canonical and self._row.file_field:
            return asyncio.to_thread(schema_validation.check, checked_message(admitted))
        return super()._validate(admitted)

    async def _decode_body(self, admitted: UnaryCall[RequestT]) -> None:
        given = admitted.request
        admitted.request, admitted.notes = await read_source(
            given.source,
            self._faces,
            lambda codec, body, headers: codec.decode_request(body, headers, given.model),
            none=f"no format to {self._row.verb} in",
            limit=self._context.body_limit,
        )
        if name := self._row.file_field:
            _copy_file(name, given, admitted.request)

    async def _leave_model(self, admitted: UnaryCall[RequestT]) -> None:
        admitted.adapt = None

    async def _plan(
        self, admitted: UnaryCall[RequestT]
    ) -> tuple[RoutePreferences, RequestEncoder[Attempt[PreparedCall[ResponseT]]]]:
        face, context = self._faces.get(admitted.request.source.format), self._context
        protocol, pins = face.protocol if face else "", admitted.call.caller.channel_rules
        preferences = RoutePreferences(protocol=protocol, pins=pins, is_healthy=context.shared.is_healthy)
        if admitted.stream and not admitted.notes.is_streamed:
            admitted.notes = replace(admitted.notes, is_streamed=True)
        upstreams, has_file = context.channels.unary.of(self._row), bool(self._row.file_field)
        return preferences, UnaryEncoder(admitted, face, upstreams, has_file=has_file)

    def _enclosing_steps(self) -> Collection[Step]:
        # guards check streams as whole responses; `respond` settles a cached response, too
        return [*(step for step in super()._enclosing_steps() if step is not GUARD_STREAM), SETTLE]

    def _response_steps(
        self,
    ) -> Mapping[Step, ResponseStep[UnaryCall[RequestT], Attempt[PreparedCall[ResponseT]], ResponseT]]:
        return {COMPLETE: self._complete}

    def _complete(
        self, admitted: UnaryCall[RequestT], attempt: Attempt[PreparedCall[ResponseT]], response: ResponseT
    ) -> None:
        admitted.call.list_dropped(response)

    async def _rest(self, admitted: UnaryCall[RequestT], response: ResponseT) -> FoundRest | None:
        request, source = admitted.request, source_of(response)
        face = self._faces.get(request.source.format)
        if source is None or face is None or not self._has_texts:
            return None
        encode = face.encode_response
        return await found_rest(source.body, lambda: encode(without_source(response), request, ClientShape.SDK))

    def _charge_refused(
        self, admitted: UnaryCall[RequestT], attempt: Attempt[PreparedCall[ResponseT]], response: ResponseT
    ) -> Awaitable[None]:
        return self._settle(admitted, response)

    # --- streams

    def _may_cache(self, admitted: UnaryCall[RequestT]) -> bool:
        return super()._may_cache(admitted) or self._is_whole(admitted)

    def _is_whole(self, admitted: UnaryCall[RequestT]) -> bool:
        guards = admitted.access.guards
        return admitted.stream and guards is not None and bool(guards.response) and self._has_texts

    async def _cached(
        self, admitted: UnaryCall[RequestT], make: Callable[[], AsyncGenerator[Message, None]]
    ) -> AsyncGenerator[Message, None] | None:
        return self._messages(admitted) if self._is_whole(admitted) else None

    async def _messages(self, admitted: UnaryCall[RequestT]) -> AsyncGenerator[Message, None]:
        admitted.stream = False
        response = await self.response_to(admitted)
        await self._settle(admitted, response)
        for message in self._method.messages(response):
            yield message

    def _output_check(self, admitted: UnaryCall[RequestT]) -> Callable[[Message], bool]:
        has_output = self._method.has_output
        return lambda message: not has_output(message)

    def _streamed(
        self, admitted: UnaryCall[RequestT], attempts: FailoverLoop[Attempt[PreparedCall[ResponseT]]]
    ) -> StreamedMessages:
        return StreamedMessages(admitted.call, self._method, partial(self._record, admitted))

    @property
    def _method(self) -> StreamedMethod[ResponseT]:
        if (method := self._row.stream) is None:
            raise TypeError(f"{self._row.name} has no streams")
        return method


def _copy_file(name: str, given: Message, decoded: Message) -> None:
    if not given.HasField(name):
        raise missing(name)
    file: Message = getattr(decoded, name)
    file.CopyFrom(getattr(given, name))


class UnaryEncoder(UnmendedRequests, Generic[RequestT, ResponseT]):
    """Encoder of a request for each channel at which the call is tried."""

    def __init__(
        self,
        admitted: UnaryCall[RequestT],
        face: UnaryFace[RequestT, ResponseT] | None,
        upstreams: Mapping[str, UnaryUpstream[RequestT, ResponseT]],
        *,
        has_file: bool,
    ) -> None:
        self._admitted = admitted
        self._has_file = has_file
        self._face: UnaryFace[RequestT, ResponseT] | None = face
        self._upstreams: Mapping[str, UnaryUpstream[RequestT, ResponseT]] = upstreams

    async def encode(self, target: Target) -> Attempt[PreparedCall[ResponseT]]:
        admitted = self._admitted
        request = admitted.request if admitted.adapt is None else await admitted.adapt(target)
        size = (0 if self._has_file else len(request.source.body)) or request.ByteSize()
        if self._upstreams[target.channel.name].is_slow(size):
            prepared = await asyncio.to_thread(self._prepare, request, target)
        else:
            prepared = self._prepare(request, target)
        finish_report(admitted.call, prepared.report, self._face.wire_path if self._face else None)
        return Attempt(target.channel.name, target, prepared)

    def _prepare(self, request: RequestT, target: Target) -> PreparedCall[ResponseT]:
        channel, notes = target.channel, self._admitted.notes
        prepared = self._upstreams[channel.name].prepare(request, target.model, notes)
        if not isinstance(self._face, UnaryFormat) or channel.shared_objects or not notes.uncarried:
            return prepared
        if self._face.protocol in channel.protocols:
            objects = [AccountObject(*named) for named in self._face.objects.in_body(request.source.body)]
            check_ownership(objects, {}, channel.name)
        return prepared

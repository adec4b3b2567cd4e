"""Pipeline of operations with streams: attempts up to the first output, completion of messages, response cache."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.base_pipeline import AdmittedT
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.channel_attempt import AttemptT
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.hedged_requests import first_stream
from umg_grpc.service.pipeline.response_pipeline import RequestT, ResponsePipeline, ResponseT
from umg_grpc.service.pipeline.step_order import GUARD_STREAM, Step

HOLD_SECONDS = 60.0
"""Maximum seconds for which the start of a stream waits for its first output: until then another channel can be tried,
and most failures occur before. Afterwards clients need the provider's own events, since some time out on comments.
"""
MessageT = TypeVar("MessageT", bound=Message)


class StreamEndedError(Exception):
    """End of a response before the end of the provider's stream: a guard has refused the rest."""


class StreamedResponse(Protocol[MessageT]):
    """Streamed response of one attempt, which completes the provider's messages for the caller."""

    def feed(self, message: MessageT) -> Awaitable[bool] | bool:
        """Complete a message in place. Return whether to send it now; otherwise it is held back until `close`. The
        result is awaitable if the completion has to wait.
        """
        ...

    async def close(self) -> Sequence[MessageT]:
        """Complete the response after the end of the provider's stream. Return the messages to be sent now."""
        ...

    async def break_off(self, messages: AsyncGenerator[MessageT, None], error: BaseException) -> None:
        """End the response after an error, and close the provider's stream, `messages`."""
        ...


class StreamPipeline(
    ResponsePipeline[RequestT, ResponseT, AdmittedT, AttemptT],
    Generic[RequestT, ResponseT, AdmittedT, AttemptT, MessageT],
):
    """Base class of the pipelines of the operations with complete and streamed responses."""

    async def stream(  # noqa: PLR0912  a function for a part of it would be one more for each message
        self, call: Call, message: Message, request: RequestT, admitted: AdmittedT | None = None
    ) -> AsyncGenerator[MessageT, None]:
        """Admit the call, and yield its response: the cached response in one message, or else the stream of the first
        channel that answers. After the first message no other channel or model is tried. `admitted`: the admitted call
        of a stream for the cache. Raise UmgError.
        """
        is_inner, is_sent, is_answered = admitted is not None, False, False
        admitted = admitted or await self.admit(call, message, request, stream=True)
        attempts: FailoverLoop[AttemptT] | None = None
        try:
            while not is_answered:
                try:
                    if attempts is None:
                        if not is_inner and self._may_cache(admitted):
                            cached = await self._cached(admitted, lambda: self.stream(call, message, request, admitted))
                            if cached is not None:
                                async with aclosing(cached) as sent:
                                    async for each in sent:
                                        is_sent = True
                                        yield each
                                return
                        attempts, has_no_output = await self._planned(admitted), self._output_check(admitted)
                    async with attempts:
                        hedge = admitted.model.hedge
                        early, messages = await first_stream(attempts, hedge, has_no_output, HOLD_SECONDS)
                        streamed = self._streamed(admitted, attempts)
                        try:
                            try:
                                for each in early:
                                    if (now := streamed.feed(each)) is True or (now is not False and await now):
                                        is_sent = attempts.output_sent = True
                                        yield each
                                    del each
                                del early  # as each message that was sent, since the next one may take hours
                                async for each in messages:
                                    if (now := streamed.feed(each)) is True or (now is not False and await now):
                                        is_sent = attempts.output_sent = True
                                        yield each
                                    del each
                            except StreamEndedError:
                                await messages.aclose()  # stops the provider
                            for each in await streamed.close():
                                is_sent = attempts.output_sent = True
                                yield each
                            is_answered = not attempts.attempt.is_followed
                        except BaseException as error:  # also when the caller leaves
                            await streamed.break_off(messages, error)
                            raise
                except UmgError as error:
                    if is_inner or is_sent or admitted.fallbacks is None:
                        raise
                    attempts = None
                    await self._fall_back(admitted, admitted.fallbacks, error)
        finally:
            if not is_inner and (waiting := self._release(admitted)) is not None:
                await waiting

    async def _cached(
        self, admitted: AdmittedT, make: Callable[[], AsyncGenerator[MessageT, None]]
    ) -> AsyncGenerator[MessageT, None] | None:
        return None

    def _enclosing_steps(self) -> Collection[Step]:
        return [*super()._enclosing_steps(), GUARD_STREAM]  # `_streamed` puts the guards around the response

    @abstractmethod
    def _output_check(self, admitted: AdmittedT) -> Callable[[MessageT], bool]:
        """Return a function that checks whether a message contains no output of the model, and can be held back."""

    @abstractmethod
    def _streamed(self, admitted: AdmittedT, attempts: FailoverLoop[AttemptT]) -> StreamedResponse[MessageT]:
        """Return the state of the streamed response of the current attempt, including its guards."""

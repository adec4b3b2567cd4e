"""What becomes of an answer beside going to its caller: its cost, what its model thought, and its storage."""

import asyncio
import secrets
import time
from dataclasses import dataclass

from umg_grpc.service.admission import Admitted
from umg_grpc.service.attempts import Attempt
from umg_grpc.service.call import Call
from umg_grpc.service.conversations import Continued, Conversations, new_response_id
from umg_grpc.service.vault import Vault
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.gather import AnswerGatherer, FrameGatherer, Gatherer, read_answer


@dataclass(frozen=True)
class Asked:
    """What is answered."""

    call: Call
    admitted: Admitted
    continued: Continued | None

    @property
    def request(self) -> pb.GenerateRequest:
        """As its caller sent it."""
        return self.admitted.request


@dataclass(frozen=True)
class Memory:
    """What the gateway keeps between calls; None for what it does not."""

    conversations: Conversations | None = None
    reasoning: Vault | None = None


class Answer:
    """The answer of one channel."""

    def __init__(self, asked: Asked, attempt: Attempt, memory: Memory) -> None:
        self._asked = asked
        self._attempt = attempt
        self._memory = memory
        self._owner = asked.call.caller.key_id
        self._passed = False  # whether the provider's own words go to the caller
        request = asked.request
        store = request.store if request.HasField("store") else request.source.format == "responses"
        self._keeps = memory.conversations is not None and store
        self._remembers = memory.reasoning is not None and bool(request.tools)

    async def whole(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """The answer, complete; what is to be kept of it is."""
        self._passed = response.HasField("source")
        self._complete(response)
        if not response.HasField("complete_time"):
            response.complete_time.FromSeconds(int(time.time()))
        call = self._asked.call
        if response.HasField("usage"):
            call.usage = response.usage
        else:
            call.usage = await self._estimate(self._read(response))
            if not self._passed:  # else its body stays what it is
                response.usage.CopyFrom(call.usage)
        await self._remember(response)
        if self._keeps:
            await self._keep(self._read(response), streamed=False)
        return response

    def _read(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """With its candidates, also where it is passed on."""
        return (
            read_answer(FORMATS[response.source.format], self._attempt.request, response) if self._passed else response
        )

    def _complete(self, head: pb.GenerateResponse | pb.GenerationStarted) -> None:
        """Fills in what the provider left out and every format needs, under the id that the caller knows the model by.

        A response that can be looked up has an id that nobody can guess: a provider's own is only good where its body
        shows it.
        """
        request = self._asked.request
        head.model = request.model
        if request.source.format == "responses" and not self._passed:
            head.response_id = new_response_id()
        head.response_id = head.response_id or f"gen-{secrets.token_hex(16)}"
        if not head.HasField("create_time"):
            head.create_time.FromSeconds(int(time.time()))

    async def _estimate(self, response: pb.GenerateResponse) -> pb.Usage:
        """What it cost, counted here: its provider did not say."""
        model, request = self._asked.admitted.resolved.model, self._attempt.request
        counter = TokenCounter(model.family, model.tokenizer)
        if counter.needs_thread(request):
            return await asyncio.to_thread(counter.estimate_response, request, response)
        return counter.estimate_response(request, response)

    async def _remember(self, response: pb.GenerateResponse) -> None:
        """What was thought before tool calls, where every process finds it; a caller of the provider's own format was
        given it all.
        """
        if self._remembers and not self._passed and self._memory.reasoning is not None:
            for candidate in response.candidates:
                self._memory.reasoning.remember(self._owner, self._attempt.channel, candidate.message.parts)
            await self._memory.reasoning.flushed()

    async def _keep(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        if self._memory.conversations is not None:
            await self._memory.conversations.keep(
                self._owner,
                self._asked.request,
                response,
                channel=self._attempt.channel,
                streamed=streamed,
                continued=self._asked.continued,
                upstream_response_id=response.response_id if self._passed else "",
            )


class StreamedAnswer(Answer):
    """The messages of one stream on their way to the caller.

    The one that ends the answer is held back until the stream is over and what is to be kept is: a caller who goes on
    from it at once, on whichever process, finds it.
    """

    def __init__(self, asked: Asked, attempt: Attempt, memory: Memory) -> None:
        super().__init__(asked, attempt, memory)
        self._gatherer: AnswerGatherer | None = None
        self._unfinished = max(1, asked.request.candidate_count)
        self._held: list[pb.StreamGenerateResponse] = []

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        """Whether the message, completed, goes on now; else it is held back."""
        if self._gatherer is None:
            self._passed = bool(message.source_frames)
            request = self._attempt.request
            self._gatherer = FrameGatherer(FORMATS[request.source.format], request) if self._passed else Gatherer()
        for event in message.events:
            self._note(event)
        self._gatherer.feed(message)
        if self._held or (self._unfinished <= 0 and self._has_more_to_do):
            self._held.append(message)
            return False
        return True

    async def close(self) -> list[pb.StreamGenerateResponse]:
        """What was held back, complete; to be called when the stream is over and whole."""
        call = self._asked.call
        if self._gatherer is None:
            return []
        if call.usage is None:
            call.usage = await self._estimate(self._gatherer.response())
            if self._held and not self._passed:
                self._tell_usage(call.usage)
        if self._has_more_to_do:
            response = self._gatherer.response()
            await self._remember(response)
            if self._keeps:
                await self._keep(response, streamed=True)
        return self._held

    @property
    def _has_more_to_do(self) -> bool:
        return self._keeps or (not self._passed and (self._remembers or self._asked.call.usage is None))

    def _note(self, event: pb.GenerateEvent) -> None:
        """What the service itself needs of a stream."""
        if event.HasField("usage"):
            self._asked.call.usage = event.usage
        elif event.HasField("finished"):
            self._unfinished -= 1
            if not event.finished.HasField("complete_time"):
                event.finished.complete_time.FromSeconds(int(time.time()))
        elif event.HasField("started"):
            self._complete(event.started)

    def _tell_usage(self, usage: pb.Usage) -> None:
        """Before the end of the answer, as providers tell it."""
        first = self._held[0]
        events = list(first.events)
        place = next((at for at, event in enumerate(events) if event.HasField("finished")), len(events))
        first = pb.StreamGenerateResponse(events=[*events[:place], pb.GenerateEvent(usage=usage), *events[place:]])
        self._held[0] = first

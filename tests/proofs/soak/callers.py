"""Callers of the gateway, and the outcomes of their calls."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TypedDict
from urllib.parse import urlsplit

import grpc

from tests.pairs.table import TEXT_CLIENTS
from tests.proofs.soak import questions
from tests.proofs.soak.http import Client, Response, client
from tests.proofs.soak.questions import GRPC, Question
from tests.proofs.soak.reading import READERS, ReceivedAnswer, UnreadableError, packed_vectors, ranking, require
from tests.support.callers.text_format_clients import bearer
from tests.support.providers.faulty.image_answers import label_of
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

PATIENCE_SECONDS = 30.0
"""Seconds within which every call ends; a call that takes longer hangs."""

RETRIES = 3
"""Retries of a rejected call."""

OWN = (("grpc.use_local_subchannel_pool", 1),)
"""A channel with these options shares no connection with another."""


class Outcome(Enum):
    RIGHT = "right"
    """The complete right answer."""
    CUT = "cut off"
    """The beginning of the right answer, and then an error in the format."""
    FAILED = "failed"
    """An error in the format, and no part of a response."""
    REFUSED = "refused"
    """Status 503 or 429 with a retry time, and a body in the format."""
    WRONG = "wrong"
    """Anything else: a wrong answer, a part that looks complete, an unreadable answer, a hang."""


@dataclass(frozen=True)
class CallResult:
    """One call. `detail` describes an outcome other than RIGHT."""

    question: Question
    outcome: Outcome
    seconds: float
    detail: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class _How(TypedDict):
    """Options of every call over gRPC."""

    metadata: tuple[tuple[str, str], ...]
    timeout: float


class Callers:
    """All callers of one gateway: many connections over HTTP, and one of gRPC."""

    def __init__(self, client: Client | None, channel: grpc.aio.Channel, key: str) -> None:
        self._client = client
        self._key = key
        self._credentials = (("authorization", f"Bearer {key}"),)
        self._generation = rpc.GenerationServiceStub(channel)
        self._embedding = rpc.EmbeddingServiceStub(channel)
        self._rerank = rpc.RerankServiceStub(channel)
        self._images = rpc.ImageServiceStub(channel)

    async def call(self, question: Question, model: str, nonce: str) -> CallResult:
        """Call a model of the providers of `tests.support.providers.faulty`. Return the outcome. Never raises, except when cancelled."""
        return await self.call_with_prompt(question, model, questions.prompt(nonce), questions.right(question, nonce))

    async def call_with_retries(self, question: Question, model: str, nonce: str) -> CallResult:
        """Call, and call again when the call is rejected, as official clients do."""
        called = await self.call(question, model, nonce)
        for _ in range(RETRIES):
            if called.outcome is not Outcome.REFUSED:
                break
            await asyncio.sleep(float(called.headers["retry-after"]))
            called = await self.call(question, model, nonce)
        return called

    async def call_with_prompt(self, question: Question, model: str, prompt: str, right: str) -> CallResult:
        """Call a model whose right answer is this text. Return the outcome."""
        began = time.perf_counter()
        headers: dict[str, str] = {}
        try:
            call = self._over_grpc if question.over == GRPC else self._over_http
            outcome, detail = await call(question, model, prompt, right, headers)
        except (UnreadableError, ValueError, KeyError, TypeError, IndexError) as error:
            outcome, detail = Outcome.WRONG, f"unreadable: {type(error).__name__}: {error}"
        except OSError as error:  # TimeoutError is an OSError
            outcome, detail = Outcome.WRONG, f"the connection: {type(error).__name__}: {error}"
        return CallResult(question, outcome, time.perf_counter() - began, detail, headers)

    async def text(self, question: Question, model: str, prompt: str) -> str:
        """Call over HTTP. Return the text of the complete answer. Raises AssertionError on an error."""
        response = await self._post(question, model, prompt)
        assert response.status == 200, response.body
        return READERS[question.format].whole(json.loads(response.body)).text

    async def _over_http(
        self, question: Question, model: str, prompt: str, right: str, headers: dict[str, str]
    ) -> tuple[Outcome, str]:
        reader, response = READERS[question.format], await self._post(question, model, prompt)
        headers |= response.headers
        if response.status != 200:
            return _refusal(response.status, headers, reader.error(json.loads(response.body)))
        if question.stream:
            kind = headers.get("content-type", "")
            require(kind.startswith(reader.stream_type), f"a stream of {kind}")
            assert reader.stream is not None
            return _judged(reader.stream(response.body), right)
        return _judged(reader.whole(json.loads(response.body)), right)

    async def _post(self, question: Question, model: str, prompt: str) -> Response:
        assert self._client is not None
        path, body = questions.path(question, model), questions.body(question, model, prompt)
        return await self._client.post(path, self.headers(question), body)

    def headers(self, question: Question) -> dict[str, str]:
        """Return the headers that clients of the format send."""
        face = TEXT_CLIENTS.get(question.format)
        own = face.credentials(self._key) if face else bearer(self._key)
        return {"content-type": "application/json", **own}

    async def _over_grpc(
        self, question: Question, model: str, prompt: str, right: str, headers: dict[str, str]
    ) -> tuple[Outcome, str]:
        received = ReceivedAnswer()
        try:
            if question.stream and question.is_text:
                await self._stream(model, prompt, received)
            elif question.stream:
                await self._stream_images(question, model, prompt, received)
            else:
                received = await self._answer(question, model, prompt)
        except grpc.aio.AioRpcError as error:
            return _grpc_refusal(error, received, right, headers)
        return _judged(received, right)

    async def _answer(self, question: Question, model: str, prompt: str) -> ReceivedAnswer:
        how = _How(metadata=self._credentials, timeout=PATIENCE_SECONDS)
        match question.format:
            case questions.GENERATE:
                answer = await self._generation.Generate(questions.generate(model, prompt), **how)
                text = "".join(part.text.text for part in answer.candidates[0].message.parts)
                return ReceivedAnswer(text, pb.FinishReason.Name(answer.candidates[0].finish_reason), True)
            case questions.EMBED:
                made = await self._embedding.Embed(questions.embed(model, prompt), **how)
                return packed_vectors(each.values for each in made.embeddings)
            case questions.IMAGE | questions.IMAGE_BYTES | questions.IMAGE_GROUP:
                images = await self._images.GenerateImage(questions.make_images(question, model, prompt), **how)
                labels = [label_of(image.data, image.url) for image in images.result.images]
                return ReceivedAnswer("".join(labels), "stop", True)
            case _:
                ranked = await self._rerank.Rerank(questions.rerank(model, prompt), **how)
                return ranking([(each.index, each.relevance_score) for each in ranked.results])

    async def _stream(self, model: str, prompt: str, received: ReceivedAnswer) -> None:
        request = pb.StreamGenerateRequest(request=questions.generate(model, prompt))
        call = self._generation.StreamGenerate(request, metadata=self._credentials, timeout=PATIENCE_SECONDS)
        async for message in call:
            for event in message.events:
                match event.WhichOneof("kind"):
                    case "part_started":
                        received.text += event.part_started.text.text
                    case "text_delta":
                        received.text += event.text_delta
                    case "finished":
                        received.finish = pb.FinishReason.Name(event.finished.finish_reason)
        received.ended = True

    async def _stream_images(self, question: Question, model: str, prompt: str, received: ReceivedAnswer) -> None:
        request = pb.StreamGenerateImageRequest(request=questions.make_images(question, model, prompt))
        call = self._images.StreamGenerateImage(request, metadata=self._credentials, timeout=PATIENCE_SECONDS)
        async for message in call:
            for event in message.events:
                if event.HasField("completed"):
                    received.text += label_of(event.completed.image.data, event.completed.image.url)
                elif event.HasField("finished"):
                    received.finish = "stop"
        received.ended = True


def _judged(received: ReceivedAnswer, right: str) -> tuple[Outcome, str]:
    if received.is_whole and received.text == right:
        return Outcome.RIGHT, ""
    if received.error and not received.looks_whole and right.startswith(received.text):
        return (Outcome.CUT if received.text else Outcome.FAILED), received.error
    return Outcome.WRONG, f"{received} instead of {right!r}"


def _refusal(status: int, headers: Mapping[str, str], message: str) -> tuple[Outcome, str]:
    if status in (429, 503) and float(headers.get("retry-after", "0")) > 0:
        return Outcome.REFUSED, f"{status}: {message}"
    return (Outcome.FAILED if status >= 400 else Outcome.WRONG), f"{status}: {message}"


def _grpc_refusal(
    error: grpc.aio.AioRpcError, received: ReceivedAnswer, right: str, headers: dict[str, str]
) -> tuple[Outcome, str]:
    failure = from_rpc(error)
    detail = f"{error.code().name} {failure.name}: {failure.message}"
    if error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED):
        return Outcome.WRONG, detail
    if received.text:
        return (Outcome.CUT if right.startswith(received.text) else Outcome.WRONG), detail
    if failure.retry_after is not None:
        headers["retry-after"] = str(failure.retry_after)
        return Outcome.REFUSED, detail
    return Outcome.FAILED, detail


@asynccontextmanager
async def callers(url: str, grpc_address: str, key: str) -> AsyncGenerator[Callers, None]:
    """Callers of the gateway there. At the end all their connections are closed."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    async with (
        client(place.hostname, place.port, PATIENCE_SECONDS) as made,
        grpc.aio.insecure_channel(grpc_address, options=OWN) as channel,
    ):
        yield Callers(made, channel, key)

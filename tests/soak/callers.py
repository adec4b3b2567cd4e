"""Who asks, and what came of it."""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TypedDict
from urllib.parse import urlsplit

import grpc

from tests.matrix.faces import FACES
from tests.soak import questions
from tests.soak.http import Client, Response, client
from tests.soak.questions import GRPC, Question
from tests.soak.reading import READERS, Heard, UnreadableError, demand, packed_vectors, ranking
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb, rpc

PATIENCE_SECONDS = 30.0
"""Within which everything ends, well or not; what takes longer hangs."""

OWN = (("grpc.use_local_subchannel_pool", 1),)
"""A channel with these options shares no connection with another."""


class Outcome(Enum):
    """What came of a call."""

    RIGHT = "right"
    """The whole right answer."""
    CUT = "cut off"
    """The beginning of the right answer, and then an error that is the format's own."""
    FAILED = "failed"
    """An error that is the format's own, and nothing of an answer."""
    REFUSED = "refused"
    """503 or 429 with a time to come back, in the format's own body."""
    WRONG = "wrong"
    """Anything else: a wrong answer, a part that looks whole, what nobody can read, a hang."""


@dataclass(frozen=True)
class Called:
    """One call. `what` says more of what did not go right."""

    question: Question
    outcome: Outcome
    seconds: float
    what: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class _How(TypedDict):
    """What goes with every call over gRPC."""

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

    async def call(self, question: Question, model: str, nonce: str) -> Called:
        """What came of asking the providers of `tests.faults`. It never raises, save when it is cancelled."""
        return await self.say(question, model, questions.prompt(nonce), questions.right(question, nonce))

    async def say(self, question: Question, model: str, prompt: str, right: str) -> Called:
        """What came of asking whoever answers with this text."""
        began = time.perf_counter()
        headers: dict[str, str] = {}
        try:
            ask = self._over_grpc if question.over == GRPC else self._over_http
            outcome, what = await ask(question, model, prompt, right, headers)
        except (UnreadableError, ValueError, KeyError, TypeError, IndexError) as error:
            outcome, what = Outcome.WRONG, f"unreadable: {type(error).__name__}: {error}"
        except OSError as error:  # TimeoutError is an OSError
            outcome, what = Outcome.WRONG, f"the connection: {type(error).__name__}: {error}"
        return Called(question, outcome, time.perf_counter() - began, what, headers)

    async def text(self, question: Question, model: str, prompt: str) -> str:
        """What a whole answer over HTTP says. Raises AssertionError where there is none."""
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
            demand(kind.startswith("text/event-stream"), f"a stream of {kind}")
            assert reader.stream is not None
            return _judged(reader.stream(response.body), right)
        return _judged(reader.whole(json.loads(response.body)), right)

    async def _post(self, question: Question, model: str, prompt: str) -> Response:
        assert self._client is not None
        path, body = questions.path(question, model), questions.body(question, model, prompt)
        return await self._client.post(path, self.headers(question), body)

    def headers(self, question: Question) -> dict[str, str]:
        """What its format's clients send."""
        face = FACES.get(question.format)
        own = face.credentials(self._key) if face else {"authorization": f"Bearer {self._key}"}
        return {"content-type": "application/json", **own}

    async def _over_grpc(
        self, question: Question, model: str, prompt: str, right: str, headers: dict[str, str]
    ) -> tuple[Outcome, str]:
        heard = Heard()
        try:
            if question.stream:
                await self._stream(model, prompt, heard)
            else:
                heard = await self._answer(question, model, prompt)
        except grpc.aio.AioRpcError as error:
            return _grpc_refusal(error, heard, right, headers)
        return _judged(heard, right)

    async def _answer(self, question: Question, model: str, prompt: str) -> Heard:
        how = _How(metadata=self._credentials, timeout=PATIENCE_SECONDS)
        match question.format:
            case questions.GENERATE:
                answer = await self._generation.Generate(questions.generate(model, prompt), **how)
                text = "".join(part.text.text for part in answer.candidates[0].message.parts)
                return Heard(text, pb.FinishReason.Name(answer.candidates[0].finish_reason), True)
            case questions.EMBED:
                made = await self._embedding.Embed(questions.embed(model, prompt), **how)
                return packed_vectors(each.values for each in made.embeddings)
            case _:
                ranked = await self._rerank.Rerank(questions.rerank(model, prompt), **how)
                return ranking([(each.index, each.relevance_score) for each in ranked.results])

    async def _stream(self, model: str, prompt: str, heard: Heard) -> None:
        request = pb.StreamGenerateRequest(request=questions.generate(model, prompt))
        call = self._generation.StreamGenerate(request, metadata=self._credentials, timeout=PATIENCE_SECONDS)
        async for message in call:
            for event in message.events:
                match event.WhichOneof("kind"):
                    case "part_started":
                        heard.text += event.part_started.text.text
                    case "text_delta":
                        heard.text += event.text_delta
                    case "finished":
                        heard.finish = pb.FinishReason.Name(event.finished.finish_reason)
        heard.ended = True


def _judged(heard: Heard, right: str) -> tuple[Outcome, str]:
    """A stream or answer that was read to its end."""
    if heard.is_whole and heard.text == right:
        return Outcome.RIGHT, ""
    if heard.error and not heard.looks_whole and right.startswith(heard.text):
        return (Outcome.CUT if heard.text else Outcome.FAILED), heard.error
    return Outcome.WRONG, f"{heard} instead of {right!r}"


def _refusal(status: int, headers: Mapping[str, str], message: str) -> tuple[Outcome, str]:
    """An error with its status."""
    if status in (429, 503) and float(headers.get("retry-after", "0")) > 0:
        return Outcome.REFUSED, f"{status}: {message}"
    return (Outcome.FAILED if status >= 400 else Outcome.WRONG), f"{status}: {message}"


def _grpc_refusal(
    error: grpc.aio.AioRpcError, heard: Heard, right: str, headers: dict[str, str]
) -> tuple[Outcome, str]:
    told = from_rpc(error)
    what = f"{error.code().name} {told.name}: {told.message}"
    if error.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.CANCELLED):
        return Outcome.WRONG, what
    if heard.text:
        return (Outcome.CUT if right.startswith(heard.text) else Outcome.WRONG), what
    if told.retry_after is not None:
        headers["retry-after"] = str(told.retry_after)
        return Outcome.REFUSED, what
    return Outcome.FAILED, what


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

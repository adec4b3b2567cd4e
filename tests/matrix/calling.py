"""A caller without an SDK, and what it hears: an answer in the canonical form, whatever the face."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.matrix.faces import FACES, Json, Turn, Wish, asked_for_a_stream, events
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.gather import Gatherer


@dataclass(frozen=True)
class Got:
    """An answer as it came over HTTP."""

    face: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: bool

    @property
    def whole(self) -> Json:
        """The answer as one JSON body, put together by the face's client where it streamed."""
        return FACES[self.face].whole(events(self.body)) if self.stream else json.loads(self.body)

    @property
    def turn(self) -> Turn:
        return FACES[self.face].turn(self.whole)

    @property
    def canonical(self) -> pb.GenerateResponse:
        """The answer as who reads this format understands it. Raises UmgError for a stream that failed."""
        asked = pb.GenerateRequest(model="m")
        if not self.stream:
            return FORMATS[self.face].decode_response(self.body, asked, False)
        gatherer = Gatherer()
        for message in decoded(self.face, [self.body], asked):
            gatherer.feed(message)
        return gatherer.response()

    @property
    def error(self) -> UmgError:
        """Why it was refused, as who reads this format understands it."""
        return FORMATS[self.face].decode_error(self.status, self.headers, self.body)


def decoded(face: str, frames: list[bytes], asked: pb.GenerateRequest) -> list[pb.StreamGenerateResponse]:
    """The canonical messages that a stream makes. Raises UmgError for one that failed."""
    decoder = FORMATS[face].stream_decoder(asked, False)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def until_it_breaks(face: str, stream: bytes) -> Iterator[pb.GenerateEvent]:
    """What a stream says before its error."""
    decoder = FORMATS[face].stream_decoder(pb.GenerateRequest(model="m"), False)
    with suppress(UmgError):
        for byte in stream:
            if (message := decoder.feed(bytes([byte]))) is not None:
                yield from message.events


@dataclass(frozen=True)
class Caller:
    """Who calls one gateway."""

    session: aiohttp.ClientSession
    url: str
    key: str

    async def send(self, face: str, model: str, body: Json | bytes, *, stream: bool = False, **headers: str) -> Got:
        """The answer to a body as it stands."""
        speaks = FACES[face]
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        sent = {"content-type": "application/json", **speaks.credentials(self.key), **headers}
        async with self.session.post(
            self.url + speaks.path(model, stream), data=io.BytesIO(data), headers=sent
        ) as response:
            streamed = response.content_type == "text/event-stream"
            got = {name.lower(): value for name, value in response.headers.items()}
            return Got(face, response.status, got, await response.read(), streamed)

    async def ask(
        self, face: str, model: str, wish: Wish, *, stream: bool, before: Turn | None = None, **headers: str
    ) -> Got:
        """The answer to a wish, in the face's words."""
        body = FACES[face].body(wish, model, before)
        if stream:
            body = asked_for_a_stream(FACES[face], body)
        got = await self.send(face, model, body, stream=stream, **headers)
        assert got.status != 200 or got.stream == stream
        return got


@dataclass(frozen=True)
class Heard:
    """An answer, as far as every format can say it."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, Any], ...] = ()  # name, arguments
    sources: tuple[tuple[str, str, str], ...] = ()  # address, title, the words that it stands for
    refusal: str = ""
    notice: str = ""  # the provider's words on why it stopped
    finish: str = ""  # of FinishReason, without its prefix
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)  # prompt with the cached, cached, output with thoughts, thoughts
    media: tuple[tuple[str, bytes], ...] = field(default=())


def heard(answer: pb.GenerateResponse) -> Heard:
    """What an answer says. A blocked prompt, which has no candidates, is worded as the other faces do."""
    blocked = pb.Candidate(
        finish_reason=pb.FINISH_REASON_CONTENT_FILTER, finish_message=f"the prompt was blocked: {answer.block_reason}"
    )
    candidate = answer.candidates[0] if answer.candidates else blocked
    parts, usage = candidate.message.parts, answer.usage
    thoughts = [part.reasoning for part in parts if part.HasField("reasoning")]
    calls = [part.tool_call for part in parts if part.HasField("tool_call")]
    sources = []
    for part in parts:
        for citation in part.text.citations:
            end = citation.end_index if citation.HasField("end_index") else None
            sources.append((citation.web.url, citation.title, part.text.text[citation.start_index : end]))
    return Heard(
        text="".join(part.text.text for part in parts),
        thought="".join("".join([*each.texts, *each.summaries]) for each in thoughts),
        calls=tuple((call.name, json.loads(call.arguments_json)) for call in calls),
        sources=tuple(sources),
        refusal="".join(part.refusal.text for part in parts),
        notice=candidate.finish_message,
        finish=pb.FinishReason.Name(candidate.finish_reason).removeprefix("FINISH_REASON_"),
        usage=(usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.reasoning_tokens),
        media=tuple((part.media.mime_type, part.media.data) for part in parts if part.HasField("media")),
    )

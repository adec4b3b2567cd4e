"""Fuzz targets: callers' bodies, providers' answers and streams of each format, each with the property that must hold."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
from hypothesis.strategies import SearchStrategy

from tests.proofs.fuzz.media_targets import media_checks
from tests.proofs.fuzz.mutation import bodies, streams
from tests.unit.wire.converse.test_golden import CASES as ANSWERS
from tests.unit.wire.converse.test_golden import frames_of
from tests.unit.wire.test_golden import CASES
from tests.unit.wire.test_golden_of_callers import CASES as CASES_OF_CALLERS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS, TEXT_UPSTREAMS
from umg_grpc.wire.converse import CONVERSE_FORMAT
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.moderations import MODERATIONS_FORMAT
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.speech import SPEECH_FORMAT
from umg_grpc.wire.text_format_interface import StreamDecoder, StreamEncoder, TextFace, TextFormat, TextProviderFormat
from umg_grpc.wire.transcriptions import TRANSCRIPTIONS_FORMAT
from umg_grpc.wire.unary_format_interface import ClientShape, Request, Response, UnaryFormat

CORPUS = Path(__file__).parent / "corpus"
MODEL = "gemini-3-pro"
REQUEST = pb.GenerateRequest(model="public", face_hints=pb.FaceHints(include_usage=True))
END = {
    "chat": sse.DONE_DATA,
    "messages": b"message_stop",
    "native": b"finishReason",
    "responses": b"event: response.",
    "ollama_chat": b'"done":true',
    "ollama_generate": b'"done":true',
    "cohere": b"message-end",
}
"""Format -> words of the last event or line of a complete stream."""
CALLERS_ALONE = [face for name, face in TEXT_FACES.items() if name not in TEXT_FORMATS]
UNARY_SEEDS = {
    "embeddings": b'{"model":"m","input":["a","b"],"dimensions":2,"encoding_format":"float","user":"u"}',
    "native_embeddings": b'{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_QUERY","outputDimensionality":2}]}',
    "native_embedding": b'{"model":"models/m","content":{"parts":[{"text":"a"}]},"title":"t","embedContentConfig":{"outputDimensionality":2}}',
    "rerank": b'{"model":"m","query":"q","documents":["a",{"text":"b"}],"top_n":2,"return_documents":true,"rank_fields":["text"]}',
    "speech": b'{"model":"m","input":"a","voice":{"id":"v"},"speed":1.5,"response_format":"wav","stream_format":"sse"}',
    "transcriptions": b'{"model":"m","temperature":"0.5","include[]":["logprobs"],"stream":"true","chunking_strategy[type]":"x"}',
    "moderations": b'{"input":["a",{"type":"image_url","image_url":{"url":"https://a.test/a.png"}}]}',
    "rerank_v2": b'{"model":"m","query":"q","documents":["a","b"],"top_n":2,"max_tokens_per_doc":9}',
}


@dataclass(frozen=True)
class Target:
    name: str
    seeds: Sequence[bytes]
    mutated: Callable[[Sequence[bytes]], SearchStrategy[bytes]]
    check: Callable[[bytes], None]
    """Function that raises for a body that shows a fault."""

    def strategy(self) -> SearchStrategy[bytes]:
        """Return bodies close to the seeds and to the corpus."""
        return self.mutated([*self.seeds, *(path.read_bytes() for path in self.corpus())])

    def corpus(self) -> list[Path]:
        """Return the bodies that have shown a fault before."""
        return sorted((CORPUS / self.name).glob("*")) if (CORPUS / self.name).exists() else []


def check_request(codec: TextFace, body: bytes) -> None:
    """Check that a body is refused by UmgError, or its request can be encoded in each format and decoded again by its
    own.
    """
    for decode in (codec.decode_request, codec.decode_count):
        try:
            if decode is not None:
                decode(body, {})
        except UmgError:
            pass
    try:
        request, _, notes = codec.decode_request(body, {})
    except UmgError as error:
        codec.encode_error(error, 400)
        return
    if codec.unknown_fields is not None:
        codec.unknown_fields(body)
    request.SerializeToString()
    request.model = MODEL
    for target in TEXT_UPSTREAMS.values():
        try:
            sent = target.encode_request(request, MODEL, False, notes=notes)
        except UmgError:
            continue
        sent.report.header()
        msgspec.json.decode(sent.body)


def check_answer(codec: TextProviderFormat, body: bytes) -> None:
    """Check that a response is refused by UmgError, or can be encoded for callers of each format, unstreamed and
    streamed.
    """
    codec.decode_error(400, {}, body)
    if isinstance(codec, TextFormat):
        with suppress(UmgError):
            str(codec.encode_response(codec.decode_response(body, REQUEST, True), REQUEST), "utf-8")
    try:
        answer = codec.decode_response(body, REQUEST, False)
    except UmgError:
        return
    for target in TEXT_FORMATS.values():
        msgspec.json.decode(written := target.encode_response(answer, REQUEST))
        with suppress(UmgError):  # for example of a call without a name
            target.decode_response(written, REQUEST, False)
        check_written_stream(target, [response_to_events(answer)])
    for face in CALLERS_ALONE:
        check_written_for_callers(face, answer)


def check_stream(codec: TextProviderFormat, body: bytes) -> None:
    """Check that a stream ends, with an error or not, however it is cut, and that each format can encode its events."""
    step = 1 + len(body) % 97
    if isinstance(codec, TextFormat):
        messages, whole = read(codec.passthrough_decoder(REQUEST), body, step)
        _written(codec.stream_encoder(REQUEST), messages, whole=whole)
    messages, whole = read(codec.translating_decoder(REQUEST), body, step)
    for target in TEXT_FORMATS.values():
        if whole:
            check_written_stream(target, messages)
        else:
            _written(target.stream_encoder(REQUEST), messages, whole=False)


def check_frames(codec: TextProviderFormat, body: bytes) -> None:
    """Check the stream of AWS frames whose events a JSON body lists; bytes that list none are the stream itself."""
    try:
        frames = frames_of(body)
    except (ValueError, RecursionError):
        frames = body
    check_stream(codec, frames)


def read(decoder: StreamDecoder, body: bytes, step: int) -> tuple[list[pb.StreamGenerateResponse], bool]:
    """Return the messages of a stream that is read in pieces, and whether it was complete."""
    messages = list[pb.StreamGenerateResponse]()
    try:
        for at in range(0, len(body), step):
            if (message := decoder.feed(body[at : at + step])) is not None:
                messages.append(message)
        if (message := decoder.close()) is not None:
            messages.append(message)
    except UmgError:
        return messages, False
    return messages, True


def _written(encoder: StreamEncoder, messages: Sequence[pb.StreamGenerateResponse], *, whole: bool) -> bytes:
    frames = b"".join(map(encoder.feed, messages))
    end = encoder.close() if whole else encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "broken"))
    return frames + end


def check_written_stream(target: TextFormat, messages: Sequence[pb.StreamGenerateResponse]) -> None:
    """Check that the encoding of a complete stream has the format's end, and contains only JSON."""
    frames = _written(target.stream_encoder(REQUEST), messages, whole=True)
    events = list(sse.split(frames))
    for event in events:
        if event.data is not None and event.data != sse.DONE_DATA:
            msgspec.json.decode(event.data)
    assert END[target.name] in events[-1].raw, f"the {target.name} stream has no end"
    read(target.translating_decoder(REQUEST), frames, 2**20)


def check_written_for_callers(face: TextFace, answer: pb.GenerateResponse) -> None:
    """Check that the encodings of a response are JSON, and that the stream has the format's end."""
    msgspec.json.decode(face.encode_response(answer, REQUEST))
    frames = _written(face.stream_encoder(REQUEST), [response_to_events(answer)], whole=True)
    lines = [line.removeprefix(b"data: ") for line in frames.split(b"\n") if line and not line.startswith(b"event: ")]
    for line in lines:
        msgspec.json.decode(line)
    assert END[face.name] in lines[-1], f"the {face.name} stream has no end"


def check_unary(
    codec: UnaryFormat[Request, Response], formats: Sequence[UnaryFormat[Request, Response]], body: bytes
) -> None:
    """Check that a body is refused by UmgError, or its request can be encoded in each format."""
    try:
        request, notes = codec.decode_request(body, {})
    except UmgError as error:
        codec.encode_error(error, 400)
        return
    for target in formats:
        try:
            sent = target.encode_request(request, MODEL, notes)
            if "Content-Type" not in sent.headers:  # else a form
                msgspec.json.decode(sent.body)
        except UmgError:
            continue
    try:
        answer = codec.decode_response(body, request, False)
    except UmgError:
        return
    codec.encode_response(answer, request, ClientShape.SDK)


def _seeds(codec: TextFormat, name: str) -> list[bytes]:
    return [case.read(name) for case in CASES if case.codec is codec and case.has(name)]


def _targets() -> Iterator[Target]:
    for codec in TEXT_FORMATS.values():
        yield Target(f"{codec.name}-request", _seeds(codec, "request.json"), bodies, partial(check_request, codec))
        yield Target(f"{codec.name}-answer", _seeds(codec, "response.json"), bodies, partial(check_answer, codec))
        yield Target(f"{codec.name}-stream", _seeds(codec, "stream.sse"), streams, partial(check_stream, codec))
    answers = [case.read("response.json") for case in ANSWERS if case.has("response.json")]
    yield Target("converse-answer", answers, bodies, partial(check_answer, CONVERSE_FORMAT))
    events = [case.read("events.json") for case in ANSWERS if case.has("events.json")]
    yield Target("converse-stream", events, bodies, partial(check_frames, CONVERSE_FORMAT))
    for face in CALLERS_ALONE:
        seeds = [case.body for case in CASES_OF_CALLERS if case.face is face]
        yield Target(f"{face.name}-request", seeds, bodies, partial(check_request, face))
    for name, embed in EMBEDDING_FORMATS.items():
        yield Target(name, [UNARY_SEEDS[name]], bodies, partial(check_unary, embed, [*EMBEDDING_FORMATS.values()]))
    for name, rerank in RERANK_FORMATS.items():
        yield Target(name, [UNARY_SEEDS[name]], bodies, partial(check_unary, rerank, [*RERANK_FORMATS.values()]))
    yield Target(
        "moderations",
        [UNARY_SEEDS["moderations"]],
        bodies,
        partial(check_unary, MODERATIONS_FORMAT, [MODERATIONS_FORMAT]),
    )
    yield Target("speech", [UNARY_SEEDS["speech"]], bodies, partial(check_unary, SPEECH_FORMAT, [SPEECH_FORMAT]))
    seeds = [UNARY_SEEDS["transcriptions"]]
    yield Target("transcriptions", seeds, bodies, partial(check_unary, TRANSCRIPTIONS_FORMAT, [TRANSCRIPTIONS_FORMAT]))
    for name, seeds, kind, check in media_checks():
        yield Target(name, seeds, bodies if kind == "bodies" else streams, check)


TARGETS = {target.name: target for target in _targets()}

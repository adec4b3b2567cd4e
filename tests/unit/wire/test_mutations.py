"""Mutated bodies and answers of every format: for any content, a codec raises nothing but UmgError."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import TypeVar

import pytest

from tests.unit.wire.mutations import mutated, mutated_stream
from tests.unit.wire.streams import decoder_of, encoded
from tests.unit.wire.test_golden import CASES, STREAMED, Case
from umg_grpc.base.errors import UmgError
from umg_grpc.operations import UNARY_OPERATIONS as OPERATIONS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.moderations import MODERATION_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.speech import SPEECH_FORMATS
from umg_grpc.wire.text_format_interface import TextFormat
from umg_grpc.wire.transcriptions import TRANSCRIPTION_UPSTREAMS as TRANSCRIPTION_FORMATS
from umg_grpc.wire.unary_format_interface import UnaryFormat

ROUNDS = 25
UNARY = {**EMBEDDING_FORMATS, **RERANK_FORMATS, **MODERATION_FORMATS, **SPEECH_FORMATS, **TRANSCRIPTION_FORMATS}
PART = b'{"content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_QUERY","title":"t","outputDimensionality":3}'
REQUESTS: dict[str, tuple[bytes, ...]] = {
    "embeddings": (
        b'{"model":"m","input":["a","b"],"dimensions":3,"encoding_format":"base64","user":"u"}',
        b'{"model":"m","input":[[1,2],[3]]}',
    ),
    "native_embedding": (PART,),
    "native_embeddings": (b'{"requests":[%b]}' % PART.replace(b"{", b'{"model":"models/m",', 1),),
    "rerank": (b'{"model":"m","query":"q","documents":["a",{"text":"b","x":1}],"top_n":1,"rank_fields":["text"]}',),
    "rerank_v2": (b'{"model":"m","query":"q","documents":["a","b"],"top_n":1,"max_tokens_per_doc":3}',),
    "speech": (b'{"model":"m","input":"a","voice":"v"}', b'{"model":"m","input":"a","voice":{"id":"v"},"speed":1.5}'),
    "transcriptions": (b'{"model":"m","temperature":"0.5","include[]":["logprobs"],"chunking_strategy[type]":"x"}',),
    "moderations": (
        b'{"model":"m","input":["a","b"]}',
        b'{"input":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://a.test/a.png"}}]}',
    ),
}
RANKED = b'{"id":"x","results":[{"index":0,"relevance_score":0.9,"document":{"text":"a"}}],"meta":{"billed_units":{"search_units":1}}}'
RESPONSES: dict[str, bytes] = {
    "embeddings": b'{"data":[{"index":0,"embedding":[0.1,0.2]},{"index":1,"embedding":"zczMPc3MTD4="}],"usage":{"prompt_tokens":1,"total_tokens":1}}',
    "native_embedding": b'{"embedding":{"values":[0.1,0.2,0.3]},"usageMetadata":{"promptTokenCount":3}}',
    "native_embeddings": b'{"embeddings":[{"values":[0.1,0.2,0.3]},{"values":[0.1,0.2,0.3]}]}',
    "rerank": RANKED,
    "rerank_v2": RANKED,
    "speech": b'{"audio_data":"AAAA","usage":{"input_tokens":1}}',
    "transcriptions": b'{"text":"a","duration":1.5,"segments":[{"id":0,"start":0,"end":1,"text":"a","tokens":[1]}],"words":[{"word":"a"}],"usage":{"seconds":2}}',
    "moderations": b'{"id":"x","model":"m","results":[{"flagged":true,"categories":{"a":true},"category_scores":{"a":0.5},"category_applied_input_types":{"a":["text"]}},{"categories":{"a":false}}],"usage":{"prompt_tokens":1}}',
}
ERRORS = (
    b'{"error":{"message":"m","type":"t","param":"p","code":"c","innererror":{"code":"x"}}}',
    b'{"detail":[{"loc":["body","x"],"msg":"m","type":"t"}]}',
    b'[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"f"}]},{"retryDelay":"3s"},{"violations":[{"quotaId":"x"}]},{"unsupported":["a"]}]}}]',
)

Made = TypeVar("Made")


def tried(call: Callable[..., Made], *arguments: object) -> Made | None:
    with suppress(UmgError):
        return call(*arguments)
    return None


@pytest.mark.parametrize("case", [case for case in CASES if case.has("request.json")], ids=lambda case: case.id)
def test_a_mutated_request_is_decoded_or_refused(case: Case) -> None:
    random, codec = Random(case.id), case.codec
    for _ in range(ROUNDS):
        body = mutated(case.read("request.json"), random)
        if codec.decode_count is not None:
            tried(codec.decode_count, body, {})
        if (request := tried(codec.decode_request, body, {})) is None:
            continue
        for text_format in TEXT_FORMATS.values():
            tried(text_format.encode_request, request.canonical, "m", request.stream)


@pytest.mark.parametrize("case", [case for case in CASES if case.has("response.json")], ids=lambda case: case.id)
def test_a_mutated_answer_is_decoded_or_refused(case: Case) -> None:
    random, request = Random(case.id), case.request()
    for _ in range(ROUNDS):
        body = mutated(case.read("response.json"), random)
        tried(case.codec.decode_response, body, request, True)
        if (response := tried(case.codec.decode_response, body, request, False)) is not None:
            for text_format in TEXT_FORMATS.values():
                text_format.encode_response(response, request)


@pytest.mark.parametrize("case", STREAMED, ids=lambda case: case.id)
def test_a_mutated_stream_is_decoded_or_refused(case: Case) -> None:
    random, request = Random(case.id), case.request()
    for _ in range(ROUNDS):
        stream = mutated_stream(case.read("stream.sse"), random)
        for message in read(case.codec, stream, request, pass_=True):
            case.codec.has_no_output(message.source_frames)
        messages = read(case.codec, stream, request, pass_=False)
        for text_format in TEXT_FORMATS.values():
            encoded(text_format, messages, request)


def read(
    codec: TextFormat, stream: bytes, request: pb.GenerateRequest, *, pass_: bool
) -> list[pb.StreamGenerateResponse]:
    """Return the messages before an error."""
    decoder = decoder_of(codec, request, pass_)
    messages = [tried(decoder.feed, stream), tried(decoder.close)]
    return [message for message in messages if message is not None]


@pytest.mark.parametrize("name", UNARY)
def test_mutated_bodies_of_unary_formats_are_decoded_or_refused(name: str) -> None:
    random = Random(name)
    codec: UnaryFormat = UNARY[name]  # type: ignore[type-arg]
    request = codec.decode_request(REQUESTS[name][0], {}).canonical
    for _ in range(ROUNDS * 10):
        decoded = tried(codec.decode_request, mutated(random.choice(REQUESTS[name]), random), {})
        if decoded is not None:
            for other in next(row.provider_formats for row in OPERATIONS.values() if name in row.faces).values():
                tried(other.encode_request, decoded.canonical, "m")
        body = mutated(RESPONSES[name], random)
        tried(codec.decode_response, body, request, True)
        if (response := tried(codec.decode_response, body, request, False)) is not None:
            codec.encode_response(response, request, client_shape({}))


@pytest.mark.parametrize("name", [*TEXT_FORMATS, *UNARY])
def test_a_mutated_refusal_is_an_error(name: str) -> None:
    random, codec = Random(name), (TEXT_FORMATS | UNARY)[name]
    waits = ("3", "²", "1e999", "Fri, 31 Dec 99999 23:59:59 GMT", "Wed, 21 Oct 2015 07:28:00", "9" * 400, "nan")
    for _ in range(ROUNDS * 10):
        headers = {random.choice(("retry-after", "retry-after-ms")): random.choice(waits)}
        headers["date"] = random.choice(("Wed, 21 Oct 2015 07:28:00 -9999", "Fri, 31 Dec 1999 23:59:59 GMT"))
        error = codec.decode_error(random.choice((400, 404, 429, 500)), headers, mutated(random.choice(ERRORS), random))
        assert isinstance(error, UmgError)

"""Mutated answers of the formats without streams, and refusals of all formats: for any content, a codec raises nothing
but UmgError. `tests/proofs/fuzz` mutates all requests, and the answers and streams of the text formats.
"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proofs.fuzz.mutation import bodies
from tests.proofs.fuzz.targets import UNARY_SEEDS
from tests.unit.wire.laws import modest
from umg_grpc.base.errors import UmgError
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.moderations import MODERATION_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.speech import SPEECH_FORMATS
from umg_grpc.wire.transcriptions import TRANSCRIPTION_UPSTREAMS as TRANSCRIPTION_FORMATS
from umg_grpc.wire.unary_format_interface import UnaryFormat

UNARY = {**EMBEDDING_FORMATS, **RERANK_FORMATS, **MODERATION_FORMATS, **SPEECH_FORMATS, **TRANSCRIPTION_FORMATS}
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


@pytest.mark.parametrize("name", UNARY)
@modest
@given(st.data())
def test_a_mutated_answer_is_decoded_or_refused(name: str, data: st.DataObject) -> None:
    codec: UnaryFormat = UNARY[name]  # type: ignore[type-arg]
    request = codec.decode_request(UNARY_SEEDS[name], {}).canonical
    body = data.draw(bodies([RESPONSES[name]]))
    for pass_ in (True, False):
        with suppress(UmgError):
            response = codec.decode_response(body, request, pass_)
            codec.encode_response(response, request, client_shape({}))


WAITS = ("3", "²", "1e999", "Fri, 31 Dec 99999 23:59:59 GMT", "Wed, 21 Oct 2015 07:28:00", "9" * 400, "nan")
DATES = ("Wed, 21 Oct 2015 07:28:00 -9999", "Fri, 31 Dec 1999 23:59:59 GMT")
headers = st.builds(
    lambda name, wait, date: {name: wait, "date": date},
    st.sampled_from(("retry-after", "retry-after-ms")),
    st.sampled_from(WAITS),
    st.sampled_from(DATES),
)


@pytest.mark.parametrize("name", [*TEXT_FORMATS, *UNARY])
@modest
@given(st.sampled_from((400, 404, 429, 500)), headers, bodies(ERRORS))
def test_a_mutated_refusal_is_an_error(name: str, status: int, headers: dict[str, str], body: bytes) -> None:
    assert isinstance((TEXT_FORMATS | UNARY)[name].decode_error(status, headers, body), UmgError)

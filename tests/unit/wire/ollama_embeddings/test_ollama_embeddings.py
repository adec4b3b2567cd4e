"""Embeddings for Ollama's clients."""

import math
import struct
from dataclasses import dataclass, field

import msgspec
import pytest
from ollama import EmbeddingsResponse, EmbedResponse

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.ollama_embeddings import OLLAMA_EMBED, OLLAMA_EMBEDDINGS
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFace

Face = UnaryFace[pb.EmbedRequest, pb.EmbedResponse]
SHAPE = ClientShape.SDK


def decoded(face: Face = OLLAMA_EMBED, **body: object) -> DecodedRequest[pb.EmbedRequest]:
    given = {"input": "a"} if face is OLLAMA_EMBED else {"prompt": "a"}
    return face.decode_request(msgspec.json.encode({"model": "m", **given, **body}), {})


def response(*vectors: tuple[float, ...]) -> pb.EmbedResponse:
    packed = [pb.Embedding(values=struct.pack(f"<{len(vector)}f", *vector)) for vector in vectors]
    return pb.EmbedResponse(model="m", embeddings=packed, usage=pb.EmbeddingUsage(input_tokens=5))


def test_one_text_or_several_are_decoded() -> None:
    assert [each.text for each in decoded(input=["a", "b"]).canonical.inputs] == ["a", "b"]
    assert [each.text for each in decoded(input="a").canonical.inputs] == ["a"]
    request = decoded(OLLAMA_EMBEDDINGS, prompt="a").canonical
    assert ([each.text for each in request.inputs], request.source.format) == (["a"], "ollama_embeddings")


def test_options_without_a_canonical_form_are_reported() -> None:
    request, notes = decoded(dimensions=256.0, truncate=True, options={"num_ctx": 1}, keep_alive=0, x=1)
    assert request.dimensions == 256
    assert notes.uncarried == ["truncate", "options", "keep_alive", "x"]
    assert not decoded(dimensions=0).canonical.HasField("dimensions")


def test_vectors_have_the_length_one() -> None:
    body = OLLAMA_EMBED.encode_response(response((3.0, 4.0), (0.0, 0.0)), pb.EmbedRequest(), SHAPE)
    found = EmbedResponse(**msgspec.json.decode(body))
    assert [list(vector) for vector in found.embeddings] == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
    assert (found.model, found.prompt_eval_count, found.total_duration) == ("m", 5, None)


def test_durations_are_those_of_the_given_clock() -> None:
    assert OLLAMA_EMBED.timed is not None
    timed = OLLAMA_EMBED.timed(lambda: 7)
    body = msgspec.json.decode(timed.encode_response(response((1.0,)), pb.EmbedRequest(), SHAPE))
    assert (body["total_duration"], body["load_duration"]) == (7, 0)
    assert timed.encode_pieces is not None
    assert b"".join(timed.encode_pieces(response((1.0,)), pb.EmbedRequest(), SHAPE)) == msgspec.json.encode(body)


def test_a_large_answer_comes_in_pieces() -> None:
    assert OLLAMA_EMBED.encode_pieces is not None
    vectors = [tuple(float(number) for number in range(1, 1025))] * 100
    pieces = list(OLLAMA_EMBED.encode_pieces(response(*vectors), pb.EmbedRequest(), SHAPE))
    assert len(pieces) > 2
    found = msgspec.json.decode(b"".join(pieces))["embeddings"]
    assert [math.hypot(*vector) for vector in found] == pytest.approx([1.0] * 100)


def test_the_older_path_has_the_vector_as_it_is() -> None:
    body = OLLAMA_EMBEDDINGS.encode_response(response((3.0, 4.0)), pb.EmbedRequest(), SHAPE)
    assert list(EmbeddingsResponse(**msgspec.json.decode(body)).embedding) == [3.0, 4.0]


@pytest.mark.parametrize("given", [None, "", []])
def test_a_request_without_texts_has_a_response_without_vectors(given: object) -> None:
    assert OLLAMA_EMBED.encode_empty is not None
    found = OLLAMA_EMBED.encode_empty(decoded(input=given).canonical)
    assert found == ("m", b'{"model":"m","embeddings":[]}')
    assert OLLAMA_EMBED.encode_empty(decoded().canonical) is None


def test_the_older_path_has_an_empty_vector_for_no_prompt() -> None:
    assert OLLAMA_EMBEDDINGS.encode_empty is not None
    request = decoded(OLLAMA_EMBEDDINGS, prompt="").canonical
    assert OLLAMA_EMBEDDINGS.encode_empty(request) == ("m", b'{"embedding":[]}')


@dataclass(frozen=True)
class Rejection:
    id: str
    field: str
    body: dict[str, object] = field(default_factory=dict)
    face: Face = OLLAMA_EMBED


REJECTIONS = [
    Rejection("an empty text alone", "input[0]", {"input": [""]}),
    Rejection("an empty text among others", "input[1]", {"input": ["a", ""]}),
    Rejection("an input of another type", "input[0]", {"input": [1]}),
    Rejection("a fraction as a length", "dimensions", {"dimensions": 1.5}),
    Rejection("no model", "model", {"model": None}),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with raises_error(field=case.field):
        decoded(case.face, **case.body)

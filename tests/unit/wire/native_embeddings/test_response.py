"""A provider's answer and the caller's."""

import struct
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFormat

Codec = UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]
SHAPE = ClientShape.DOCUMENTED


def packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def make_request(inputs: int = 1, face: str = "") -> pb.EmbedRequest:
    request = pb.EmbedRequest(model="ours", inputs=[pb.EmbeddingInput(text="a")] * inputs)
    if face:
        request.source.format = face
    return request


ANSWER = pb.EmbedResponse(
    model="m",
    embeddings=[pb.Embedding(values=packed(0.5, -1)), pb.Embedding(values=packed(0.1))],
    usage=pb.EmbeddingUsage(input_tokens=7, total_tokens=8),
)
USAGE = b'"usageMetadata":{"promptTokenCount":7},"metadata":{"usage":{"prompt_tokens":7,"total_tokens":8}}'

# --- to a caller


def test_an_answer_has_its_cost_as_documented_and_as_sdks_read_it() -> None:
    assert (
        NATIVE_EMBEDDING.encode_response(ANSWER, make_request(), SHAPE)
        == b'{"embedding":{"values":[0.5,-1.0]},%b}' % USAGE
    )
    assert NATIVE_EMBEDDINGS.encode_response(ANSWER, make_request(2), SHAPE) == (
        b'{"embeddings":[{"values":[0.5,-1.0]},{"values":[0.1]}],%b}' % USAGE
    )


# --- from a provider


@pytest.mark.parametrize(
    ("body", "vectors"),
    [
        (b'{"embedding":{"values":[1,2.5]}}', [packed(1, 2.5)]),
        (b'{"embeddings":[{"values":[1,2.5]}]}', [packed(1, 2.5)]),
        (b'{"embeddings":[{"values":[1.0],"statistics":{"tokenCount":3}},{"values":[2e-3]}],"new":1}', [packed(1), packed(2e-3)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("codec", [NATIVE_EMBEDDING, NATIVE_EMBEDDINGS], ids=lambda codec: codec.name)
def test_an_answer_is_decoded_in_either_form(codec: Codec, body: bytes, vectors: list[bytes]) -> None:
    response = codec.decode_response(body, make_request(len(vectors)), False)
    assert response == pb.EmbedResponse(model="ours", embeddings=[pb.Embedding(values=each) for each in vectors])


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (b'"usageMetadata":{"promptTokenCount":3}', (3, 3)),
        (b'"usageMetadata":{"promptTokenCount":"3","totalTokenCount":4,"promptTokenDetails":[{}]}', (3, 4)),
        (b'"metadata":{"usage":{"prompt_tokens":3,"total_tokens":4}}', (3, 4)),
        (b'"metadata":{"billableCharacterCount":9},"usageMetadata":{"promptTokenCount":3}', (3, 3)),
        (b'"metadata":{"usage":{"prompt_tokens":-1}},"usageMetadata":{"promptTokenCount":3}', (3, 3)),
        (b'"metadata":"x","usageMetadata":{"promptTokenCount":3,"totalTokenCount":[]}', None),
        (b'"usageMetadata":{"promptTokenCount":"x"}', None),
        (b'"usageMetadata":{}', None),
        (b'"usageMetadata":null,"metadata":null', None),
    ],
)
@pytest.mark.parametrize("pass_", [False, True])
def test_usage_is_read_as_far_as_it_is_reported(usage: bytes, tokens: tuple[int, int] | None, pass_: bool) -> None:
    body = b'{"embedding":{"values":[1.0]},%b}' % usage
    response = NATIVE_EMBEDDING.decode_response(body, make_request(face="native_embedding"), pass_)
    counts = (response.usage.input_tokens, response.usage.total_tokens) if response.HasField("usage") else None
    assert counts == tokens


@dataclass(frozen=True)
class Unreadable:
    id: str
    body: bytes
    inputs: int = 1
    seen: bool = True
    """Whether passthrough finds the fault, too, without decoding the vectors."""
    reason: "pb.ErrorReason.ValueType" = pb.ERROR_REASON_UPSTREAM_FAILED


UNREADABLE = [
    Unreadable("nothing", b""),
    Unreadable("no JSON", b"<html>"),
    Unreadable("broken inside", b'{"embedding":{"values":[1.0,oops]}}'),
    Unreadable("a list", b'[{"embedding":{"values":[1.0]}}]'),
    Unreadable("no vectors", b"{}"),
    Unreadable("null as vectors", b'{"embeddings":null,"embedding":null}'),
    Unreadable(
        "an error",
        b'{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}',
        reason=pb.ERROR_REASON_UPSTREAM_OVERLOADED,
    ),
    Unreadable("a vector too few", b'{"embeddings":[{"values":[1.0]}]}', 2),
    Unreadable("one vector for two inputs", b'{"embedding":{"values":[1.0]}}', 2),
    Unreadable("a vector too many", b'{"embeddings":[{"values":[1.0]},{"values":[1.0]}]}'),
    Unreadable("no values", b'{"embedding":{}}'),
    Unreadable("an empty vector", b'{"embedding":{"values":[]}}'),
    Unreadable("base64", b'{"embedding":{"values":"AAAAAA=="}}'),
    Unreadable("a number beyond float32", b'{"embeddings":[{"values":[1e39]}],%b}' % USAGE, seen=False),
    Unreadable("no number", b'{"embedding":{"values":["NaN"]}}'),
    Unreadable("vectors of several lengths", b'{"embeddings":[{"values":[1.0]},{"values":[1.0,2.0]}],%b}' % USAGE, 2),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.id)
@pytest.mark.parametrize("pass_", [False, True], ids=["decoded", "passed"])
def test_a_body_that_is_no_answer_is_the_providers_failure(case: Unreadable, pass_: bool) -> None:
    request = make_request(case.inputs, "native_embeddings")
    if pass_ and not case.seen:
        assert NATIVE_EMBEDDINGS.decode_response(case.body, request, True).source.body == case.body
        return
    with raises_error(reason=case.reason):
        NATIVE_EMBEDDINGS.decode_response(case.body, request, pass_)


FORMS = {
    NATIVE_EMBEDDING.name: b'{ "embedding" : {"values":[0.10, 1E-3]}, "usageMetadata":{"promptTokenCount":3}, "zork": 1 }',
    NATIVE_EMBEDDINGS.name: b'{ "embeddings" : [{"values":[0.10, 1E-3]}], "metadata":{"usage":{"prompt_tokens":3,"total_tokens":3}} }',
}  # fmt: skip
every_face = pytest.mark.parametrize("face", [NATIVE_EMBEDDING, NATIVE_EMBEDDINGS], ids=lambda face: face.name)


@every_face
def test_a_passed_through_answer_is_returned_unchanged(face: Codec) -> None:
    response = face.decode_response(FORMS[face.name], make_request(face=face.name), True)
    assert (response.model, response.usage.input_tokens) == ("ours", 3)
    assert face.encode_response(response, make_request(face=face.name), SHAPE) == FORMS[face.name]


@every_face
def test_an_answer_in_another_form_is_encoded_in_the_form_of_the_face(face: Codec) -> None:
    (other,) = FORMS.keys() - {face.name}
    response = face.decode_response(FORMS[other], make_request(face=face.name), True)
    assert not response.HasField("source")
    encoded = msgspec.json.decode(face.encode_response(response, make_request(face=face.name), SHAPE))
    assert encoded.keys() >= {"embedding" if face is NATIVE_EMBEDDING else "embeddings", "usageMetadata"}


@every_face
def test_an_answer_without_usage_is_decoded_for_local_counting(face: Codec) -> None:
    for usage in (b"{}", b'{"promptTokenCount":-1}', b'{"promptTokenCount":"x"}'):
        body = b'{"embedding":{"values":[1.0]},"embeddings":null,"usageMetadata":%b}' % usage
        response = face.decode_response(body, make_request(face=face.name), True)
        assert (response.HasField("source"), response.HasField("usage")) == (False, False)
        assert [vector.values for vector in response.embeddings] == [packed(1)]


def test_vectors_of_another_length_than_requested_are_the_providers_failure() -> None:
    request = make_request(2, "native_embeddings")
    request.inputs[1].dimensions = 2
    good, bad = (b'{"embeddings":[{"values":[1.0]},{"values":%b}],%b}' % (each, USAGE) for each in (b"[1.0,2]", b"[1]"))
    for pass_ in (False, True):
        assert NATIVE_EMBEDDINGS.decode_response(good, request, pass_).HasField("source") == pass_
        with pytest.raises(UmgError, match="1 numbers, not of the 2 that were requested"):
            NATIVE_EMBEDDINGS.decode_response(bad, request, pass_)


# --- refusals


def test_the_field_of_a_too_long_input_has_the_callers_name() -> None:
    message = "The input token count (9000) exceeds the maximum number of tokens allowed (2048)."
    body = msgspec.json.encode({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}})
    error = NATIVE_EMBEDDINGS.decode_error(400, {}, body)
    assert error.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
    assert NATIVE_EMBEDDINGS.wire_path(error.metadata["field"]) == "requests"
    assert NATIVE_EMBEDDING.wire_path(error.metadata["field"]) == "content"
    encoded = msgspec.json.decode(NATIVE_EMBEDDINGS.encode_error(error, 400))
    assert (encoded["error"]["code"], encoded["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_the_faces_share_their_providers_and_the_requests_to_them() -> None:
    for face in (NATIVE_EMBEDDING, NATIVE_EMBEDDINGS):
        assert (face.protocol, face.key_header, face.max_items) == ("native_embeddings", "x-goog-api-key", 100)

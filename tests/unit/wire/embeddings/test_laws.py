"""The laws of every format that embeds: requests and answers come back unchanged, also through another format, and
accepted bodies keep the rules of the schema.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.bodies import Bodies
from tests.unit.wire.embeddings import strategies as some
from tests.unit.wire.laws import few, members, modest
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.v1 import pb
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT
from umg_grpc.wire.embeddings.schema import EmbeddingsBody
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.native_embeddings.schema import BatchBody, EmbedBody
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFormat

Codec = UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]
SHAPE = ClientShape.DOCUMENTED


@dataclass(frozen=True)
class Law:
    codec: Codec
    requests: st.SearchStrategy[pb.EmbedRequest]
    bodies: Callable[[], Iterator[dict[str, object]]]
    """Bodies that are valid except for a few fields."""
    body: bytes
    """A caller's body, with two inputs where the face takes them."""
    texts: Sequence[str]
    """The texts of the body."""


SINGLES = Bodies(EmbedBody, {"content": {"parts": [{"text": "a"}]}})
BATCHES = Bodies(BatchBody, {"requests": []})


def batches() -> Iterator[dict[str, object]]:
    """Yield bodies of a batch, each with up to three bodies of its items, or with any value in place of them."""
    yield from BATCHES.some()
    random = Random(0)
    for body in BATCHES.some():
        yield body | {"requests": [SINGLES.draw(random, 1) for _ in range(random.randint(0, 3))]}


LAWS = [
    Law(
        EMBEDDINGS_FORMAT,
        some.plain_requests,
        Bodies(EmbeddingsBody, {"model": "m", "input": ["a"]}).some,
        b'{"model":"m","input":["one","two"],"dimensions":3}',
        ["one", "two"],
    ),
    Law(
        NATIVE_EMBEDDINGS,
        some.native_requests(),
        batches,
        b'{"requests":[{"content":{"parts":[{"text":"one"}]},"outputDimensionality":3},'
        b'{"content":{"parts":[{"text":"two"}]},"outputDimensionality":3}]}',
        ["one", "two"],
    ),
    Law(
        NATIVE_EMBEDDING,
        some.native_requests(1),
        SINGLES.some,
        b'{"content":{"parts":[{"text":"one"}]},"outputDimensionality":3}',
        ["one"],
    ),
]
every_face = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.codec.name)
every_provider = pytest.mark.parametrize("provider", EMBEDDING_FORMATS.values(), ids=lambda codec: codec.name)


def as_caller(codec: Codec) -> Codec:
    """Return the face that reads a body that the format encodes without a source."""
    return NATIVE_EMBEDDINGS if codec is NATIVE_EMBEDDING else codec


def unsourced(request: pb.EmbedRequest) -> pb.EmbedRequest:
    plain = pb.EmbedRequest()
    plain.CopyFrom(request)
    plain.ClearField("source")
    return plain


def test_every_format_is_tried() -> None:
    assert {law.codec.name for law in LAWS} == EMBEDDING_FORMATS.keys()


@every_face
@modest
@given(st.data())
def test_a_request_survives_the_wire_and_back(law: Law, data: st.DataObject) -> None:
    request = data.draw(law.requests)
    upstream = law.codec.encode_request(request, "m")
    request.model = "m"
    assert unsourced(as_caller(law.codec).decode_request(upstream.body, {}).canonical) == request
    assert not upstream.report.lost


@every_face
@modest
@given(st.data())
def test_a_callers_body_reaches_its_provider_unchanged(law: Law, data: st.DataObject) -> None:
    written = data.draw(law.requests)
    body = as_caller(law.codec).encode_request(written, "ours").body
    if law.codec is NATIVE_EMBEDDING:
        (item,) = json.loads(body)["requests"]
        body = json.dumps(item).encode()
    request = law.codec.decode_request(body, {}).canonical
    upstream = law.codec.encode_request(request, "theirs")
    assert members(upstream.body).keys() == members(body).keys()
    decoded = law.codec.decode_request(upstream.body, {}).canonical
    assert (request.model, decoded.model) == ("ours", "theirs")
    request.model = "theirs"
    assert unsourced(decoded) == unsourced(request)
    assert not upstream.report.lost


@every_face
@modest
@given(st.data(), st.sampled_from([pb.EMBEDDING_ENCODING_BASE64, pb.EMBEDDING_ENCODING_FLOAT, 0]))
def test_an_answer_survives_the_wire_and_back(
    law: Law, data: st.DataObject, encoding: "pb.EmbeddingEncoding.ValueType"
) -> None:
    request = law.codec.decode_request(law.body, {}).canonical
    request.model, request.encoding = "m", encoding
    response = data.draw(some.responses(len(request.inputs), request.dimensions))
    body = law.codec.encode_response(response, request, SHAPE)
    assert law.codec.decode_response(body, request, False) == response


@every_face
@few
@given(st.data())
def test_a_passed_answer_is_the_providers_to_the_byte(law: Law, data: st.DataObject) -> None:
    request = law.codec.decode_request(law.body, {}).canonical
    request.model = "m"
    response = data.draw(some.responses(len(request.inputs), request.dimensions))
    body = law.codec.encode_response(response, request, SHAPE)
    passed = law.codec.decode_response(body, request, True)
    assert passed.usage == response.usage
    assert not passed.embeddings
    assert law.codec.encode_response(passed, request, SHAPE) == body


@every_face
@every_provider
@few
@given(st.data())
def test_a_call_is_the_same_through_every_provider(law: Law, provider: Codec, data: st.DataObject) -> None:
    request = law.codec.decode_request(law.body, {}).canonical
    request.model = "ours"
    sent = provider.encode_request(request, "theirs")
    served = law.codec if law.codec.protocol == provider.protocol else as_caller(provider)
    served_request = served.decode_request(sent.body, {}).canonical
    assert [item.text for item in served_request.inputs] == law.texts
    assert served_request.dimensions == 3
    assert not sent.report.lost

    response = data.draw(some.responses(len(request.inputs), request.dimensions))
    body = served.encode_response(response, served_request, SHAPE)
    answer = provider.decode_response(body, request, False)
    response.model = "ours"
    assert answer == response
    encoded = law.codec.encode_response(answer, request, SHAPE)
    assert law.codec.decode_response(encoded, request, False) == response


@every_face
def test_an_accepted_body_satisfies_the_rules(law: Law) -> None:
    accepted = sum(kept(law.codec, body) for body in law.bodies())
    assert accepted > 100  # otherwise nothing was tested


def kept(codec: Codec, body: object) -> bool:
    """Return whether the body is accepted; if so, check that it keeps the rules."""
    try:
        request = codec.decode_request(json.dumps(body).encode(), {}, "m").canonical
    except UmgError:
        return False
    check(request)
    return True

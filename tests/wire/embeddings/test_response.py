"""A provider's answer and what a caller is shown."""

import base64
import math
import struct
from dataclasses import dataclass

import msgspec
import pytest
from openai.types import CreateEmbeddingResponse

from tests.wire.timing import within
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.embeddings import EMBEDDINGS
from umg_grpc.wire.unary import ClientShape

SHAPE = ClientShape.DOCUMENTED
FAILED = pb.ERROR_REASON_UPSTREAM_FAILED


def packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def b64(*numbers: float) -> str:
    return base64.b64encode(packed(*numbers)).decode()


def asked(inputs: int = 1, model: str = "ours") -> pb.EmbedRequest:
    return pb.EmbedRequest(model=model, inputs=[pb.EmbeddingInput(text="a")] * inputs)


def answered(*data: object, **more: object) -> bytes:
    return msgspec.json.encode({"object": "list", "data": data, "model": "theirs", **more})


# --- to a caller

ANSWER = pb.EmbedResponse(
    model="m",
    embeddings=[pb.Embedding(values=packed(0.5, -1)), pb.Embedding(values=packed(0.1))],
    usage=pb.EmbeddingUsage(input_tokens=7, total_tokens=8),
)


@pytest.mark.parametrize("encoding", [pb.EMBEDDING_ENCODING_UNSPECIFIED, pb.EMBEDDING_ENCODING_FLOAT])
def test_vectors_are_numbers_unless_base64_was_asked_for(encoding: "pb.EmbeddingEncoding.ValueType") -> None:
    assert EMBEDDINGS.encode_response(ANSWER, pb.EmbedRequest(encoding=encoding), SHAPE) == (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1.0]},'
        b'{"object":"embedding","index":1,"embedding":[0.1]}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":8}}'
    )


def test_base64_is_that_of_the_packed_elements() -> None:
    request = pb.EmbedRequest(encoding=pb.EMBEDDING_ENCODING_BASE64)
    assert EMBEDDINGS.encode_response(ANSWER, request, SHAPE) == (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAAPwAAgL8="},'
        b'{"object":"embedding","index":1,"embedding":"zczMPQ=="}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":8}}'
    )


def test_the_body_is_one_of_the_official_client() -> None:
    body = EMBEDDINGS.encode_response(ANSWER, pb.EmbedRequest(encoding=pb.EMBEDDING_ENCODING_FLOAT), SHAPE)
    read = CreateEmbeddingResponse.model_validate_json(body, strict=True)
    assert [packed(*item.embedding) for item in read.data] == [item.values for item in ANSWER.embeddings]
    assert (read.usage.prompt_tokens, read.usage.total_tokens) == (7, 8)


def test_a_large_batch_is_written_and_read_at_once() -> None:
    vectors = [packed(*(math.sin(place + number) for number in range(256))) for place in range(2048)]
    response = pb.EmbedResponse(model="m", embeddings=[pb.Embedding(values=vector) for vector in vectors])
    request = asked(2048, "m")
    for encoding, seconds in ((pb.EMBEDDING_ENCODING_FLOAT, 0.6), (pb.EMBEDDING_ENCODING_BASE64, 0.15)):
        request.encoding = encoding
        with within(seconds):
            body = EMBEDDINGS.encode_response(response, request, SHAPE)
        with within(1):
            read = EMBEDDINGS.decode_response(body, request, False)
        assert [vector.values for vector in read.embeddings] == vectors


# --- of a provider

ONE, TWO = packed(1), packed(2, 3)


@pytest.mark.parametrize(
    "data",
    [
        [{"embedding": [1.0], "index": 0}, {"embedding": [2, 3], "index": 1}],
        [{"embedding": b64(1), "index": 0}, {"embedding": b64(2, 3), "index": 1}],
        [{"embedding": b64(1), "index": 0}, {"embedding": [2.0, 3.0], "index": 1}],
        [{"embedding": [2.0, 3.0], "index": 1}, {"embedding": [1.0], "index": 0}],
        [{"embedding": [1.0]}, {"embedding": [2.0, 3.0]}],
        [{"embedding": [1.0], "index": None}, {"embedding": [2.0, 3.0], "index": 1}],
        [{"object": "embedding", "embedding": [1.0], "new": {}}, {"embedding": [2.0, 3.0]}],
    ],
    ids=["numbers", "base64", "both", "another order", "no indexes", "an index", "more"],
)
def test_the_vectors_are_in_the_order_of_the_inputs(data: list[object]) -> None:
    response = EMBEDDINGS.decode_response(answered(*data), asked(2), False)
    assert [vector.values for vector in response.embeddings] == [ONE, TWO]
    assert (response.model, response.HasField("usage"), response.HasField("source")) == ("ours", False, False)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 3, "total_tokens": 4}, (3, 4)),
        ({"prompt_tokens": 3}, (3, 3)),
        ({"total_tokens": 4}, (4, 4)),
        ({"prompt_tokens": 3.0, "total_tokens": None, "new": {}}, (3, 3)),
        ({"prompt_tokens": 0, "total_tokens": 0}, (0, 0)),
        ({}, None),
        (None, None),
    ],
)
@pytest.mark.parametrize("pass_", [False, True])
def test_what_it_cost_is_read_as_far_as_it_is_told(usage: object, tokens: tuple[int, int] | None, pass_: bool) -> None:
    body = answered({"embedding": [1.0], "index": 0}, usage=usage)
    response = EMBEDDINGS.decode_response(body, asked(), pass_)
    told = (response.usage.input_tokens, response.usage.total_tokens) if response.HasField("usage") else None
    assert told == tokens


@dataclass(frozen=True)
class Unreadable:
    id: str
    body: bytes
    inputs: int = 1
    when_passed: bool = True
    """Whether it is also refused where nobody looks at the vectors."""


def vectors(id_: str, *data: object, inputs: int = 1, when_passed: bool = False) -> Unreadable:
    return Unreadable(id_, answered(*data), inputs, when_passed)


UNREADABLE = [
    Unreadable("nothing", b""),
    Unreadable("no JSON", b"<html>"),
    Unreadable("half of it", b'{"data":[{"embedding":[1.0'),
    Unreadable("JSON that is broken inside", b'{"data":[{"embedding":[1.0,oops]}],"model":"theirs"}'),
    Unreadable("a list", b'[{"embedding":[1.0]}]'),
    Unreadable("no vectors", b'{"object":"list","model":"theirs"}'),
    Unreadable("null as vectors", b'{"data":null}'),
    Unreadable("vectors of another type", b'{"data":{"embedding":[1.0]}}'),
    Unreadable("an error", b'{"error":{"message":"overloaded","code":503}}'),
    Unreadable("an error beside vectors", b'{"data":[{"embedding":[1.0]}],"error":"overloaded"}'),
    vectors("a vector too few", {"embedding": [1.0]}, inputs=2, when_passed=True),
    vectors("a vector too many", {"embedding": [1.0]}, {"embedding": [1.0]}, when_passed=True),
    vectors("none at all", when_passed=True),
    vectors("an item that is no object", [1.0], when_passed=True),
    vectors("no vector in an item", {"index": 0}),
    vectors("null as vector", {"embedding": None}),
    vectors("an empty vector", {"embedding": []}),
    vectors("an empty vector in base64", {"embedding": ""}),
    vectors("three bytes", {"embedding": "AAAA"}),
    vectors("no base64", {"embedding": "!!!!"}),
    vectors("no number", {"embedding": b64(1, math.nan)}),
    vectors("infinity", {"embedding": b64(math.inf)}),
    vectors("a number beyond float32", {"embedding": [1e39]}),
    vectors("null among numbers", {"embedding": [1.0, None]}),
    vectors("a text among numbers", {"embedding": [1.0, "2"]}),
    vectors("an index twice", {"embedding": [1.0], "index": 0}, {"embedding": [1.0], "index": 0}, inputs=2),
    vectors("an index out of range", {"embedding": [1.0], "index": 1}),
    vectors("a negative index", {"embedding": [1.0], "index": -1}),
    vectors("an index that another's place is", {"embedding": [1.0], "index": 1}, {"embedding": [1.0]}, inputs=2),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.id)
@pytest.mark.parametrize("pass_", [False, True], ids=["decoded", "passed"])
def test_what_is_no_answer_is_the_providers_failure(case: Unreadable, pass_: bool) -> None:
    if pass_ and not case.when_passed:
        assert EMBEDDINGS.decode_response(case.body, asked(case.inputs), True).source.body
        return
    with pytest.raises(UmgError) as caught:
        EMBEDDINGS.decode_response(case.body, asked(case.inputs), pass_)
    assert caught.value.reason == FAILED


# --- passed on

VECTOR = b'{"object":"embedding","index":0,"embedding":[0.1]}'
RENAMED = [
    (b'{"object":"list","data":[%b],"model":"theirs","usage":{}}', b'{"object":"list","data":[%b],"model":"ours","usage":{}}'),
    (b'{"model" : "theirs", "data" : [ %b ] }\n', b'{"model" : "ours", "data" : [ %b ] }\n'),
    (b'{"data":[%b],"model":"theirs","x":{"model":"theirs"}}', b'{"data":[%b],"model":"ours","x":{"model":"theirs"}}'),
    (b'{"x":{"model":"theirs"},"data":[%b],"model":"theirs"}', b'{"x":{"model":"theirs"},"data":[%b],"model":"ours"}'),
    (b'{"data":[%b],"model":"theirs","list":[1]}', b'{"data":[%b],"model":"ours","list":[1]}'),
    (b'{"list":[],"model":"theirs","data":[%b]}', b'{"list":[],"model":"ours","data":[%b]}'),
    (b'{"id":"a[]","data":[%b],"model":"theirs"}', b'{"id":"a[]","data":[%b],"model":"ours"}'),
    (b'{"data":[%b],"model":"theirs","id":"a]b["}', b'{"data":[%b],"model":"ours","id":"a]b["}'),
    (b'{"model":"first","data":[%b],"model":"theirs"}', b'{"model":"ours","data":[%b]}'),
    (b'{"data":[%b]}', b'{"data":[%b],"model":"ours"}'),
    (b'{"data":[%b],"model":null}', b'{"data":[%b],"model":"ours"}'),
    (b'{"data":[%b],"model":"the\\u0069rs"}', b'{"data":[%b],"model":"ours"}'),
    (b'{"data":[{"model":"theirs","embedding":[1]}],"model":"theirs"}', b'{"data":[{"model":"theirs","embedding":[1]}],"model":"ours"}'),
    (b'{"data":[%b],"model":"ours"}', b'{"data":[%b],"model":"ours"}'),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), RENAMED, ids=lambda body: body.decode())
def test_a_passed_answer_has_the_callers_model_and_all_else_to_the_byte(theirs: bytes, ours: bytes) -> None:
    body, expected = (each % VECTOR if b"%b" in each else each for each in (theirs, ours))
    response = EMBEDDINGS.decode_response(body, asked(), True)
    assert response.model == "ours"
    assert EMBEDDINGS.encode_response(response, asked(), SHAPE) == expected


def test_a_model_that_looks_like_an_empty_list_takes_no_vectors() -> None:
    body = b'{"model":"theirs","data":[%b]}' % VECTOR
    response = EMBEDDINGS.decode_response(body, asked(model="a[]"), True)
    assert response.source.body == b'{"model":"a[]","data":[%b]}' % VECTOR


def test_a_passed_answer_of_many_numbers_is_not_read() -> None:
    numbers = {"embedding": [math.sin(place) for place in range(1536)], "index": 0}
    body = answered(numbers, usage={"prompt_tokens": 1, "total_tokens": 1})
    with within(0.1):
        for _ in range(200):
            EMBEDDINGS.decode_response(body, asked(), True)


# --- refusals


def test_what_was_too_long_is_called_as_the_caller_knows_it() -> None:
    body = b'{"error":{"message":"This model\'s maximum context length is 8192 tokens","type":"invalid_request_error"}}'
    error = EMBEDDINGS.decode_error(400, {}, body)
    assert error.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
    assert EMBEDDINGS.wire_path(error.metadata["field"]) == "input"
    shown = msgspec.json.decode(EMBEDDINGS.encode_error(error, 400))
    assert shown["error"].keys() == {"message", "type", "param", "code"}


def test_a_refusal_keeps_what_the_provider_said_of_it() -> None:
    body = b'{"error":{"message":"no such dimensions","type":"invalid_request_error","param":"dimensions"}}'
    error = EMBEDDINGS.decode_error(400, {}, body)
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_UPSTREAM_REJECTED, "dimensions")

"""A provider's answer and the caller's."""

import base64
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from openai.types import CreateEmbeddingResponse

from tests.support.error_checks import raises_error
from tests.unit.wire.timing import within
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_grpc.wire.unary_format_interface import ClientShape

SHAPE = ClientShape.DOCUMENTED
FAILED = pb.ERROR_REASON_UPSTREAM_FAILED


def packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def b64(*numbers: float) -> str:
    return base64.b64encode(packed(*numbers)).decode()


def make_request(inputs: int = 1, model: str = "ours") -> pb.EmbedRequest:
    return pb.EmbedRequest(model=model, inputs=[pb.EmbeddingInput(text="a")] * inputs)


def request_of_lengths(*lengths: int, every: int = 0) -> pb.EmbedRequest:
    """Return a request for vectors of these lengths, 0 for the model's own."""
    inputs = [pb.EmbeddingInput(text="a", dimensions=length or None) for length in lengths]
    return pb.EmbedRequest(model="ours", inputs=inputs, dimensions=every or None)


def answered(*data: object, **more: object) -> bytes:
    return msgspec.json.encode({"object": "list", "data": data, "model": "theirs", **more})


# --- to a caller

ANSWER = pb.EmbedResponse(
    model="m",
    embeddings=[pb.Embedding(values=packed(0.5, -1)), pb.Embedding(values=packed(0.1))],
    usage=pb.EmbeddingUsage(input_tokens=7, total_tokens=8),
)


@pytest.mark.parametrize("encoding", [pb.EMBEDDING_ENCODING_UNSPECIFIED, pb.EMBEDDING_ENCODING_FLOAT])
def test_vectors_are_numbers_unless_base64_was_requested(encoding: "pb.EmbeddingEncoding.ValueType") -> None:
    assert EMBEDDINGS_FORMAT.encode_response(ANSWER, pb.EmbedRequest(encoding=encoding), SHAPE) == (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1.0]},'
        b'{"object":"embedding","index":1,"embedding":[0.1]}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":8}}'
    )


def test_base64_is_that_of_the_packed_elements() -> None:
    request = pb.EmbedRequest(encoding=pb.EMBEDDING_ENCODING_BASE64)
    assert EMBEDDINGS_FORMAT.encode_response(ANSWER, request, SHAPE) == (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAAPwAAgL8="},'
        b'{"object":"embedding","index":1,"embedding":"zczMPQ=="}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":8}}'
    )


def test_the_body_is_one_of_the_official_client() -> None:
    body = EMBEDDINGS_FORMAT.encode_response(ANSWER, pb.EmbedRequest(encoding=pb.EMBEDDING_ENCODING_FLOAT), SHAPE)
    read = CreateEmbeddingResponse.model_validate_json(body, strict=True)
    assert [packed(*item.embedding) for item in read.data] == [item.values for item in ANSWER.embeddings]
    assert (read.usage.prompt_tokens, read.usage.total_tokens) == (7, 8)


# --- from a provider

ONE, TWO = packed(1, 0), packed(2, 3)


@pytest.mark.parametrize(
    "data",
    [
        [{"embedding": [1.0, 0], "index": 0}, {"embedding": [2, 3], "index": 1}],
        [{"embedding": b64(1, 0), "index": 0}, {"embedding": b64(2, 3), "index": 1}],
        [{"embedding": b64(1, 0), "index": 0}, {"embedding": [2.0, 3.0], "index": 1}],
        [{"embedding": [2.0, 3.0], "index": 1}, {"embedding": [1.0, 0], "index": 0}],
        [{"embedding": [1.0, 0]}, {"embedding": [2.0, 3.0]}],
        [{"embedding": [1.0, 0], "index": None}, {"embedding": [2.0, 3.0], "index": 1}],
        [{"object": "embedding", "embedding": [1.0, 0], "new": {}}, {"embedding": [2.0, 3.0]}],
    ],
    ids=["numbers", "base64", "both", "another order", "no indexes", "an index", "more"],
)
@pytest.mark.parametrize("padding", [0, BIG_BYTES], ids=["small", "large"])
def test_the_vectors_are_in_the_order_of_the_inputs(data: list[object], padding: int) -> None:
    body = answered(*data, padding=" " * padding)
    response = EMBEDDINGS_FORMAT.decode_response(body, make_request(2), False)
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
        ({"prompt_tokens": 3, "total_tokens": -1}, (3, 3)),
        ({"prompt_tokens": "x", "total_tokens": 4}, (4, 4)),
        ({"prompt_tokens": "3"}, (3, 3)),
        ({"prompt_tokens": -5, "total_tokens": -5}, None),
        ({"prompt_tokens": 0.5}, None),
        ({"prompt_tokens": 1e300}, None),
        ({"prompt_tokens": 10**30}, None),
        ({"prompt_tokens": []}, None),
        ({}, None),
        ([], None),
        ("x", None),
        (None, None),
    ],
    ids=str,
)
@pytest.mark.parametrize("pass_", [False, True])
def test_usage_is_read_as_far_as_it_is_reported(usage: object, tokens: tuple[int, int] | None, pass_: bool) -> None:
    body = answered({"embedding": [1.0], "index": 0}, usage=usage)
    response = EMBEDDINGS_FORMAT.decode_response(body, make_request(), pass_)
    counts = (response.usage.input_tokens, response.usage.total_tokens) if response.HasField("usage") else None
    assert counts == tokens


@dataclass(frozen=True)
class Unreadable:
    id: str
    body: bytes
    inputs: int = 1
    seen: bool = True
    """Whether passthrough finds the fault, too, without decoding the vectors."""
    reason: "pb.ErrorReason.ValueType" = FAILED


def vectors(id_: str, *data: object, inputs: int = 1, seen: bool = True) -> Unreadable:
    placed = [{"index": place, **item} if isinstance(item, dict) else item for place, item in enumerate(data)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Unreadable(id_, answered(*placed, usage=usage), inputs, seen)


UNREADABLE = [
    Unreadable("nothing", b""),
    Unreadable("no JSON", b"<html>"),
    Unreadable("half of it", b'{"data":[{"embedding":[1.0'),
    Unreadable("JSON that is broken inside", b'{"data":[{"embedding":[1.0,oops]}],"model":"theirs"}'),
    Unreadable("a list", b'[{"embedding":[1.0]}]'),
    Unreadable("no vectors", b'{"object":"list","model":"theirs"}'),
    Unreadable("null as vectors", b'{"data":null}'),
    Unreadable("vectors of another type", b'{"data":{"embedding":[1.0]}}'),
    Unreadable(
        "an error", b'{"error":{"message":"overloaded","code":503}}', reason=pb.ERROR_REASON_UPSTREAM_OVERLOADED
    ),
    Unreadable("an error beside vectors", b'{"data":[{"embedding":[1.0]}],"error":"overloaded"}'),
    vectors("a vector too few", {"embedding": [1.0]}, inputs=2),
    vectors("a vector too many", {"embedding": [1.0]}, {"embedding": [1.0]}),
    vectors("none at all"),
    vectors("an item that is no object", [1.0]),
    vectors("no vector in an item", {"index": 0}),
    vectors("null as vector", {"embedding": None}),
    vectors("an empty vector", {"embedding": []}),
    vectors("an empty vector in base64", {"embedding": ""}),
    vectors("three bytes", {"embedding": "AAAA"}),
    vectors("no base64", {"embedding": "!!!!"}),
    vectors("no number", {"embedding": b64(1, math.nan)}, seen=False),
    vectors("infinity", {"embedding": b64(math.inf)}, seen=False),
    vectors("a number beyond float32", {"embedding": [1e39]}, seen=False),
    vectors("null among numbers", {"embedding": [1.0, None]}),
    vectors("a text among numbers", {"embedding": [1.0, "2"]}),
    vectors("true among numbers", {"embedding": [1.0, True]}),
    vectors("false among numbers", {"embedding": [1.0, False]}),
    vectors("a list of vectors", {"embedding": [[1.0, 2.0]]}),
    vectors("an object among numbers", {"embedding": [1.0, {}]}),
    vectors("an index in a text", {"embedding": [1.0], "index": "0"}),
    vectors("vectors of several lengths", {"embedding": [1.0]}, {"embedding": [1.0, 2.0]}, inputs=2),
    vectors("so in base64", {"embedding": b64(1)}, {"embedding": b64(1, 2)}, inputs=2),
    vectors("an index twice", {"embedding": [1.0], "index": 0}, {"embedding": [1.0], "index": 0}, inputs=2),
    vectors("an index out of range", {"embedding": [1.0], "index": 1}),
    vectors("a negative index", {"embedding": [1.0], "index": -1}),
    vectors("an index that another's place is", {"embedding": [1.0], "index": 1}, {"embedding": [1.0]}, inputs=2),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.id)
@pytest.mark.parametrize("pass_", [False, True], ids=["decoded", "passed"])
def test_a_body_that_is_no_answer_is_the_providers_failure(case: Unreadable, pass_: bool) -> None:
    if pass_ and not case.seen:
        request = make_request(case.inputs)
        if b'"embedding":"' in case.body.replace(b": ", b":"):
            request.encoding = pb.EMBEDDING_ENCODING_BASE64
        assert EMBEDDINGS_FORMAT.decode_response(case.body, request, True).source.body
        return
    with raises_error(reason=case.reason):
        EMBEDDINGS_FORMAT.decode_response(case.body, make_request(case.inputs), pass_)


LENGTHS = [
    ((0, 0), 0, (2, 2), ""),
    ((0, 0), 2, (2, 2), ""),
    ((1, 2), 0, (1, 2), ""),
    ((0, 2), 1, (1, 2), ""),
    ((0, 2, 0), 0, (4, 2, 4), ""),
    ((0, 0), 3, (2, 2), "2 numbers, not of the 3 that were requested"),
    ((0, 2), 1, (1, 1), "1 numbers, not of the 2 that were requested"),
    ((0, 0), 0, (4, 5), "4 and of 5 numbers in one response"),
    ((0, 2, 0), 0, (4, 2, 3), "4 and of 3 numbers in one response"),
]


@pytest.mark.parametrize(("requested", "every", "made", "problem"), LENGTHS)
@pytest.mark.parametrize("write", [b64, lambda *numbers: list(numbers)], ids=["base64", "numbers"])
@pytest.mark.parametrize("pass_", [False, True], ids=["decoded", "passed"])
def test_vectors_have_the_requested_length_and_else_all_one(
    requested: tuple[int, ...],
    every: int,
    made: tuple[int, ...],
    problem: str,
    write: Callable[..., object],
    pass_: bool,
) -> None:
    data = [{"embedding": write(*[0.5] * length), "index": place} for place, length in enumerate(made)]
    body = answered(*data, usage={"prompt_tokens": 1, "total_tokens": 1})
    request = request_of_lengths(*requested, every=every)
    if isinstance(write(0.5), str):
        request.encoding = pb.EMBEDDING_ENCODING_BASE64
    if not problem:
        response = EMBEDDINGS_FORMAT.decode_response(body, request, pass_)
        assert response.HasField("source") == pass_
        assert pass_ or [len(each.values) // 4 for each in response.embeddings] == list(made)
        return
    with pytest.raises(UmgError, match=problem) as caught:
        EMBEDDINGS_FORMAT.decode_response(body, request, pass_)
    assert caught.value.reason == FAILED


# --- passed on

SANE = {"prompt_tokens": 1, "total_tokens": 1}
STUMBLING = [
    ([{"embedding": [1.0], "index": 1}, {"embedding": [0.0], "index": 0}], SANE),
    ([{"embedding": [0.0]}, {"embedding": [1.0]}], SANE),
    ([{"embedding": [0.0], "index": 0}, {"embedding": [1.0], "index": 1}], None),
    ([{"embedding": [0.0], "index": 0}, {"embedding": [1.0], "index": 1}], {"prompt_tokens": 1}),
    ([{"embedding": [0.0], "index": 0}, {"embedding": [1.0], "index": 1}], {"prompt_tokens": -1, "total_tokens": 1}),
]


@pytest.mark.parametrize(("data", "usage"), STUMBLING, ids=str)
def test_an_answer_invalid_for_its_own_clients_is_decoded_instead_of_passed_through(
    data: list[object], usage: object
) -> None:
    body = answered(*data, **({} if usage is None else {"usage": usage}))
    response = EMBEDDINGS_FORMAT.decode_response(body, make_request(2), True)
    assert not response.HasField("source")
    assert [vector.values for vector in response.embeddings] == [packed(0), packed(1)]
    assert response.HasField("usage") == (usage is not None)


@pytest.mark.parametrize("written", ["[ 1.0 ,\n2 ]", "[1e-5,-2.5E+3]", '"AACAPwAAAEA="'])
def test_a_vector_is_passed_through_in_every_notation(written: str) -> None:
    body = b'{"data":[{"index":0,"embedding":%b}],"model":"ours","usage":%b}' % (
        written.encode(),
        msgspec.json.encode(SANE),
    )
    request = request_of_lengths(2)
    request.encoding = pb.EMBEDDING_ENCODING_BASE64 if '"' in written else pb.EMBEDDING_ENCODING_FLOAT
    assert EMBEDDINGS_FORMAT.decode_response(body, request, True).source.body == body


@pytest.mark.parametrize(
    ("written", "encoding"),
    [
        ("[1.0,2.0]", pb.EMBEDDING_ENCODING_BASE64),
        ('"AACAPwAAAEA="', pb.EMBEDDING_ENCODING_FLOAT),
        ('"AACAPwAAAEA="', pb.EMBEDDING_ENCODING_UNSPECIFIED),
    ],
)
def test_a_vector_in_another_form_than_the_caller_requested_is_decoded(
    written: str, encoding: "pb.EmbeddingEncoding.ValueType"
) -> None:
    vector, usage = written.encode(), msgspec.json.encode(SANE)
    body = b'{"data":[{"index":0,"embedding":%b}],"model":"ours","usage":%b}' % (vector, usage)
    request = request_of_lengths(2)
    request.encoding = encoding
    response = EMBEDDINGS_FORMAT.decode_response(body, request, True)
    assert not response.HasField("source")
    assert [each.values for each in response.embeddings] == [packed(1.0, 2.0)]


USAGE = b'"usage":{"prompt_tokens":1,"total_tokens":1}'
VECTOR = b'{"object":"embedding","index":0,"embedding":[0.1]}'
RENAMED = [
    (b'{"object":"list","data":[%v],"model":"theirs",%u}', b'{"object":"list","data":[%v],"model":"ours",%u}'),
    (b'{"model" : "theirs", "data" : [ %v ] ,%u}\n', b'{"model" : "ours", "data" : [ %v ] ,%u}\n'),
    (b'{"data":[%v],"model":"theirs","x":{"model":"theirs"},%u}', b'{"data":[%v],"model":"ours","x":{"model":"theirs"},%u}'),
    (b'{"x":{"model":"theirs"},"data":[%v],"model":"theirs",%u}', b'{"x":{"model":"theirs"},"data":[%v],"model":"ours",%u}'),
    (b'{"data":[%v],"model":"theirs","list":[1],%u}', b'{"data":[%v],"model":"ours","list":[1],%u}'),
    (b'{"list":[],"model":"theirs","data":[%v],%u}', b'{"list":[],"model":"ours","data":[%v],%u}'),
    (b'{"id":"a[]","data":[%v],"model":"theirs",%u}', b'{"id":"a[]","data":[%v],"model":"ours",%u}'),
    (b'{"data":[%v],"model":"theirs","id":"a]b[",%u}', b'{"data":[%v],"model":"ours","id":"a]b[",%u}'),
    (b'{"model":"first","data":[%v],"model":"theirs",%u}', b'{"model":"ours","data":[%v],%u}'),
    (b'{"data":[%v],%u}', b'{"data":[%v],%u,"model":"ours"}'),
    (b'{"data":[%v],"model":null,%u}', b'{"data":[%v],"model":"ours",%u}'),
    (b'{"data":[%v],"model":"the\\u0069rs",%u}', b'{"data":[%v],"model":"ours",%u}'),
    (b'{"data":[{"model":"theirs","index":0,"embedding":[1]}],"model":"theirs",%u}', b'{"data":[{"model":"theirs","index":0,"embedding":[1]}],"model":"ours",%u}'),
    (b'{"data":[%v],"model":"ours",%u}', b'{"data":[%v],"model":"ours",%u}'),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), RENAMED, ids=lambda body: body.decode())
def test_a_passed_answer_has_the_callers_model_and_all_else_to_the_byte(theirs: bytes, ours: bytes) -> None:
    body, expected = (each.replace(b"%v", VECTOR).replace(b"%u", USAGE) for each in (theirs, ours))
    response = EMBEDDINGS_FORMAT.decode_response(body, make_request(), True)
    assert response.model == "ours"
    assert EMBEDDINGS_FORMAT.encode_response(response, make_request(), SHAPE) == expected


def test_a_model_that_looks_like_an_empty_list_takes_no_vectors() -> None:
    body = b'{"model":"theirs","data":[%b],%b}' % (VECTOR, USAGE)
    response = EMBEDDINGS_FORMAT.decode_response(body, make_request(model="a[]"), True)
    assert response.source.body == b'{"model":"a[]","data":[%b],%b}' % (VECTOR, USAGE)


def test_a_passed_answer_of_many_numbers_is_not_read() -> None:
    numbers = {"embedding": [math.sin(place) for place in range(1536)], "index": 0}
    body = answered(numbers, usage={"prompt_tokens": 1, "total_tokens": 1})
    with within(0.1):
        for _ in range(200):
            EMBEDDINGS_FORMAT.decode_response(body, make_request(), True)


# --- refusals


def test_the_field_of_a_too_long_input_has_the_callers_name() -> None:
    body = b'{"error":{"message":"This model\'s maximum context length is 8192 tokens","type":"invalid_request_error"}}'
    error = EMBEDDINGS_FORMAT.decode_error(400, {}, body)
    assert error.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
    assert EMBEDDINGS_FORMAT.wire_path(error.metadata["field"]) == "input"
    encoded = msgspec.json.decode(EMBEDDINGS_FORMAT.encode_error(error, 400))
    assert encoded["error"].keys() == {"message", "type", "param", "code"}


def test_a_refusal_keeps_the_providers_explanation() -> None:
    body = b'{"error":{"message":"no such dimensions","type":"invalid_request_error","param":"dimensions"}}'
    error = EMBEDDINGS_FORMAT.decode_error(400, {}, body)
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_UPSTREAM_REJECTED, "dimensions")


# --- vectors of other numbers, and models with vectors that may be cut


@dataclass(frozen=True)
class OtherNumbers:
    id: str
    selected: dict[str, object]
    embedding: object
    passes: bool


OTHER_NUMBERS = [
    OtherNumbers("bits as bytes", {"output_dtype": "ubinary", "dimensions": 16}, [1, 255], passes=True),
    OtherNumbers("bytes in base64", {"output_dtype": "int8", "encoding_format": "base64"}, "AQIDBAUG", passes=True),
    OtherNumbers("another vendor's member", {"embedding_type": "binary", "dimensions": 16}, [1, 2], passes=True),
    OtherNumbers("floats", {"output_dtype": "float", "encoding_format": "base64"}, [0.5, -1.0], passes=False),
]


@pytest.mark.parametrize("case", OTHER_NUMBERS, ids=lambda case: case.id)
def test_vectors_of_other_numbers_that_a_caller_selects_pass_unchanged(case: OtherNumbers) -> None:
    body = msgspec.json.encode({"model": "ours", "input": "a", **case.selected})
    request = EMBEDDINGS_FORMAT.decode_request(body, {}).canonical
    provided = answered({"index": 0, "embedding": case.embedding}, usage={"prompt_tokens": 1, "total_tokens": 1})
    response = EMBEDDINGS_FORMAT.decode_response(provided, request, True)
    assert (response.source.format == "embeddings") == case.passes
    if not case.passes:
        assert msgspec.json.decode(EMBEDDINGS_FORMAT.encode_response(response, request, SHAPE))["data"][0][
            "embedding"
        ] == b64(0.5, -1.0)


@pytest.mark.parametrize(
    ("model", "requested", "length"),
    [
        ("openai/text-embedding-3-small", 2, 2),
        ("text-embedding-ada-002", 2, None),
        ("embeddinggemma-300m", 2, None),
        ("text-embedding-3-small", 4, None),
    ],
    ids=["a model that allows it", "another model", "shorter than its vendor documents", "longer than the vector"],
)
def test_a_longer_vector_is_cut_where_the_model_allows_it(model: str, requested: int, length: int | None) -> None:
    provided = msgspec.json.encode({"data": [{"index": 0, "embedding": [0.6, 0.0, 0.8]}], "model": model})
    request = request_of_lengths(0, every=requested)
    if length is None:
        with pytest.raises(UmgError) as raised:
            EMBEDDINGS_FORMAT.decode_response(provided, request, False)
        assert f"not of the {requested} that were requested" in raised.value.message
    else:
        response = EMBEDDINGS_FORMAT.decode_response(provided, request, False)
        assert len(response.embeddings[0].values) == 4 * length

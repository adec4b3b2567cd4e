"""A caller's body and the provider's."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.error_checks import raises_error
from tests.unit.wire.laws import few, members, present_members, sprinkled
from umg_grpc.v1 import pb
from umg_grpc.wire.embeddings import EMBEDDINGS_FORMAT
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDINGS
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryFormat

Codec = UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]

FLOAT, BASE64 = pb.EMBEDDING_ENCODING_FLOAT, pb.EMBEDDING_ENCODING_BASE64


def text(*texts: str) -> list[pb.EmbeddingInput]:
    return [pb.EmbeddingInput(text=each) for each in texts]


def tokens(*lists: list[int]) -> list[pb.EmbeddingInput]:
    return [pb.EmbeddingInput(tokens=pb.EmbeddingTokens(ids=each)) for each in lists]


@dataclass(frozen=True)
class Reading:
    id: str
    body: bytes
    request: pb.EmbedRequest


READINGS = [
    Reading("a text", b'{"model":"m","input":"a"}', pb.EmbedRequest(inputs=text("a"))),
    Reading("a blank", b'{"model":"m","input":" "}', pb.EmbedRequest(inputs=text(" "))),
    Reading("texts", b'{"model":"m","input":["a","\\u00e9","\\ud83d\\ude00"]}', pb.EmbedRequest(inputs=text("a", "é", "😀"))),
    Reading("the tokens of a text", b'{"model":"m","input":[5,0,4294967295]}', pb.EmbedRequest(inputs=tokens([5, 0, 2**32 - 1]))),
    Reading("lists of tokens", b'{"model":"m","input":[[5],[6,7]]}', pb.EmbedRequest(inputs=tokens([5], [6, 7]))),
    Reading("numbers", b'{"model":"m","input":"a","encoding_format":"float"}', pb.EmbedRequest(inputs=text("a"), encoding=FLOAT)),
    Reading("base64", b'{"model":"m","input":"a","encoding_format":"base64"}', pb.EmbedRequest(inputs=text("a"), encoding=BASE64)),
    Reading("dimensions", b'{"model":"m","input":"a","dimensions":256}', pb.EmbedRequest(inputs=text("a"), dimensions=256)),
    Reading("whole dimensions", b'{"model":"m","input":"a","dimensions":256.0}', pb.EmbedRequest(inputs=text("a"), dimensions=256)),
    Reading("a user", b'{"model":"m","input":"a","user":"u"}', pb.EmbedRequest(inputs=text("a"), user="u")),
    Reading("nulls", b'{"model":"m","input":"a","user":null,"dimensions":null,"encoding_format":null}', pb.EmbedRequest(inputs=text("a"))),
]  # fmt: skip


def sent(face: Codec, provider: Codec, body: bytes) -> UpstreamRequest:
    request, notes = face.decode_request(body, {})
    return provider.encode_request(request, "theirs", notes)


@pytest.mark.parametrize("case", READINGS, ids=lambda case: case.id)
def test_a_body_is_read(case: Reading) -> None:
    request = EMBEDDINGS_FORMAT.decode_request(case.body, {}).canonical
    case.request.model = "m"
    case.request.source.CopyFrom(pb.SourceDocument(format="embeddings", body=case.body))
    assert request == case.request


# --- to a provider of the same format


@few
@given(st.data())
def test_every_field_except_the_model_is_forwarded_byte_for_byte(data: st.DataObject) -> None:
    whole = {"model": "ours", "input": ["a", "é"], "dimensions": 8, "encoding_format": "float", "user": None}
    body = msgspec.json.encode(sprinkled(whole, data))
    upstream = sent(EMBEDDINGS_FORMAT, EMBEDDINGS_FORMAT, body)
    assert members(upstream.body) == present_members(body) | {"model": b'"theirs"'}
    assert (upstream.path, upstream.headers, upstream.report.lost) == ("/embeddings", {}, 0)


def test_spaces_and_escapes_are_unchanged() -> None:
    body = b'{ "input" : [ "\\u0061" , "b\\/c" ], "model":"ours", "x": {"b": 1.0, "a": 1e2} }'
    upstream = sent(EMBEDDINGS_FORMAT, EMBEDDINGS_FORMAT, body)
    assert upstream.body == b'{"input":[ "\\u0061" , "b\\/c" ],"model":"theirs","x":{"b": 1.0, "a": 1e2}}'


def test_a_sent_batch_has_one_model_and_one_length() -> None:
    body = b'{"model":"a","model":"ours","input":"a","dimensions":1,"dimensions":256.0}'
    upstream = sent(EMBEDDINGS_FORMAT, EMBEDDINGS_FORMAT, body)
    assert upstream.body == b'{"model":"theirs","input":"a","dimensions":256}'


# --- unknown fields


@pytest.mark.parametrize("more", [b"", b',"user":"u"'])
def test_an_unknown_field_is_reported_by_name_where_the_body_is_translated(more: bytes) -> None:
    body = b'{"model":"m","input":"a","zork":1,"absent":null%b}' % more
    request, notes = EMBEDDINGS_FORMAT.decode_request(body, {})
    assert notes.uncarried == ["zork"]
    assert "zork" in NATIVE_EMBEDDINGS.encode_request(request, "m", notes).report.dropped
    assert not EMBEDDINGS_FORMAT.encode_request(request, "m", notes).report.lost


# --- to a provider, without a source body


def test_vectors_are_requested_in_base64() -> None:
    request = pb.EmbedRequest(model="m", inputs=text("a", "b"), dimensions=4, user="u")
    upstream = EMBEDDINGS_FORMAT.encode_request(request, "theirs")
    assert upstream.body == (
        b'{"model":"theirs","input":["a","b"],"encoding_format":"base64","dimensions":4,"user":"u"}'
    )


def test_tokens_go_as_they_are() -> None:
    request = pb.EmbedRequest(model="m", inputs=tokens([1, 2], [3]))
    assert members(EMBEDDINGS_FORMAT.encode_request(request, "m").body)["input"] == b"[[1,2],[3]]"


def test_task_types_and_titles_are_reported() -> None:
    request = pb.EmbedRequest(inputs=text("a", "b", "c"), task_type="CLUSTERING")
    request.inputs[1].task_type, request.inputs[2].title, request.inputs[0].title = "RETRIEVAL_QUERY", "t", ""
    report = EMBEDDINGS_FORMAT.encode_request(request, "m").report
    assert list(report.dropped) == ["task_type", "inputs[1].task_type", "inputs[2].title"]
    report.rename(NATIVE_EMBEDDINGS.wire_path)
    assert report.header() == "requests.taskType x2, requests.title"


@pytest.mark.parametrize(
    ("whole", "each", "sent"),
    [(0, (4, 4), b"4"), (4, (0, 4), b"4"), (8, (4, 4), b"4"), (8, (0, 0), b"8"), (0, (0, 0), None)],
)
def test_inputs_that_agree_on_a_length_get_it(whole: int, each: tuple[int, int], sent: bytes | None) -> None:
    body = EMBEDDINGS_FORMAT.encode_request(lengths(whole, *each), "m").body
    assert members(body).get("dimensions") == sent


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: lengths(0, 4, 4, 8), "inputs[2].dimensions"),
        (lambda: lengths(4, 0, 8), "inputs[1].dimensions"),
        (lambda: lengths(0, 4, 0), "inputs[1].dimensions"),
        (lambda: pb.EmbedRequest(inputs=[*text("a", "b"), *tokens([1])]), "inputs[2]"),
        (lambda: pb.EmbedRequest(inputs=[*tokens([1]), *text("a")]), "inputs[1]"),
    ],
    ids=["several lengths", "one beside the request's", "one beside the model's own", "tokens beside texts", "a text beside tokens"],
)  # fmt: skip
def test_a_loss_that_would_change_the_vectors_is_refused(make: Callable[[], pb.EmbedRequest], field: str) -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, metadata={"field": field}):
        EMBEDDINGS_FORMAT.encode_request(make(), "m")


def lengths(whole: int, *each: int) -> pb.EmbedRequest:
    """Return a request with a number of dimensions, and inputs with their own; 0 is unset."""
    inputs = [pb.EmbeddingInput(text="a", dimensions=length or None) for length in each]
    return pb.EmbedRequest(inputs=inputs, dimensions=whole or None)

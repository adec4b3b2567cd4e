"""Bodies that both faces refuse, and the path in each error."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.rerank.strategies import FORMATS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

INVALID, MISSING = pb.ERROR_REASON_INVALID_FIELD, pb.ERROR_REASON_MISSING_FIELD


@dataclass(frozen=True)
class Rejection:
    id: str
    field: str
    body: dict[str, object]  # beside a model, a query and a document
    reason: "pb.ErrorReason.ValueType" = INVALID
    message: str = ""


def documents(*given: object, **more: object) -> dict[str, object]:
    return {"documents": ["a", *given], **more}


REJECTIONS = [
    Rejection("no model", "model", {"model": msgspec.UNSET}, MISSING),
    Rejection("null for a model", "model", {"model": None}, message="expected a string"),
    Rejection("no query", "query", {"query": msgspec.UNSET}, MISSING),
    Rejection("a query of another type", "query", {"query": ["a"]}, message="expected a string, got an array"),
    Rejection("no documents", "documents", {"documents": msgspec.UNSET}, MISSING),
    Rejection("null for documents", "documents", {"documents": None}),
    Rejection("an empty list of documents", "documents", {"documents": []}, message="at least 1"),
    Rejection("more documents than may be set", "documents", {"documents": [""] * 1_000_001}, message="at most 1000000"),
    Rejection("one document without a list", "documents", {"documents": "a"}, message="expected an array, got a string"),
    Rejection("null for a document", "documents[1]", documents(None), message="a string or an object, got null"),
    Rejection("a number for a document", "documents[2]", documents("b", 7), message="got a number"),
    Rejection("a boolean for a document", "documents[1]", documents(True), message="got a boolean"),
    Rejection("an array for a document", "documents[1]", documents(["b"]), message="got an array"),
    Rejection("an object without text", "documents[1]", documents({"title": "b"}), message="no `text`"),
    Rejection("an image", "documents[1]", documents({"image": "https://images.test/a.png"})),
    Rejection("a number for the text of an object", "documents[1]", documents({"text": 7}), message="to be a string"),
    Rejection("an object without the fields to rank", "documents[1]", documents({"body": "b"}, rank_fields=["title"]), message="no `title` or `text`"),
    Rejection("a field to rank that is null", "documents[1]", documents({"title": None}, rank_fields=["title"])),
    Rejection("a number for a text that is named", "documents[1]", documents({"text": 7}, rank_fields=["text"]), message="string"),
    Rejection("rank_fields of another type", "rank_fields", {"rank_fields": "title"}),
    Rejection(
        "an object without any of many fields",
        "documents[1]",
        documents({"body": "b"}, rank_fields=["f1", "f2", "f3", "f4"]),
        message="no member of `rank_fields` or `text`",
    ),
    Rejection("too many fields to rank", "rank_fields", {"rank_fields": ["f"] * 101}, message="at most 100"),
    Rejection("an empty field to rank", "rank_fields[1]", {"rank_fields": ["title", ""]}),
    Rejection("a top_n of 0", "top_n", {"top_n": 0}, message="at least 1"),
    Rejection("a fraction of top_n", "top_n", {"top_n": 1.5}, message="whole number"),
    Rejection("a huge top_n", "top_n", {"top_n": 1e300}),
    Rejection("a fraction of a chunk", "max_chunks_per_doc", {"max_chunks_per_doc": 1.5}),
    Rejection("too many chunks", "max_chunks_per_doc", {"max_chunks_per_doc": 2**31}),
    Rejection("no token", "max_tokens_per_doc", {"max_tokens_per_doc": 0}),
    Rejection("too many tokens", "max_tokens_per_doc", {"max_tokens_per_doc": 2.0**31}),
    Rejection("a negative priority", "priority", {"priority": -1}),
    Rejection("a priority above 999", "priority", {"priority": 1000}, message="at most 999"),
    Rejection("a fraction of a priority", "priority", {"priority": 0.5}),
    Rejection("spans without a mode", "relevant_spans.mode", {"relevant_spans": {}}, MISSING),
    Rejection("spans of another mode", "relevant_spans.mode", {"relevant_spans": {"mode": "on"}}),
    Rejection("spans of another type", "relevant_spans", {"relevant_spans": True}),
]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection, name: str) -> None:
    whole = {"model": "m", "query": "q", "documents": ["a"], **case.body}
    body = msgspec.json.encode({key: value for key, value in whole.items() if value is not msgspec.UNSET})
    with pytest.raises(UmgError) as caught:
        FORMATS[name].decode_request(body, {})
    assert (caught.value.reason, caught.value.metadata) == (case.reason, {"field": case.field})
    assert case.message in caught.value.message
    assert f"`{case.field}`" in caught.value.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"a"',
        b'{"model":"m"',
        b'{"model":"m","query":"q","documents":["\xff"]}',
        b'{"model":"m","query":"q","documents":[{"text":"a","b":"\xff"}]}',
        b'{"model":"m","query":"q","documents":["\\ud83d"]}',
        b'{"model":"m","query":"q","documents":["a",{"text":"\\ud83d"}]}',
        b'{"model":"m","query":"q","documents":[' + b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:60]),
)
def test_a_body_that_is_no_json_object_is_malformed(body: bytes) -> None:
    for codec in FORMATS.values():
        with raises_error(reason=pb.ERROR_REASON_MALFORMED_BODY):
            codec.decode_request(body, {})


@pytest.mark.parametrize(
    ("canonical", "wire"),
    [
        ("documents[3].object_json", "documents[3]"),
        ("documents[3].text", "documents[3]"),
        ("documents[3]", "documents[3]"),
        ("documents", "documents"),
        ("max_chunks_per_document", "max_chunks_per_doc"),
        ("max_tokens_per_document", "max_tokens_per_doc"),
        ("max_tokens_per_doc", "max_tokens_per_doc"),
        ("top_n", "top_n"),
        ("rank_fields[0]", "rank_fields[0]"),
    ],
)
def test_errors_have_the_callers_names_of_fields(canonical: str, wire: str) -> None:
    assert {codec.wire_path(canonical) for codec in FORMATS.values()} == {wire}

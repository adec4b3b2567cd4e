"""Bodies that both faces refuse, and the path in each error."""

import msgspec
import pytest

from tests.unit.wire.rejections import Rejection, check_rejection
from tests.unit.wire.rerank.strategies import FORMATS
from umg_grpc.v1 import pb

MISSING = pb.ERROR_REASON_MISSING_FIELD


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
    check_rejection(FORMATS[name].decode_request, {"model": "m", "query": "q", "documents": ["a"]}, case)


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

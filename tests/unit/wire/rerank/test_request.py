"""Requests beyond the laws: bodies of real clients, and those for providers."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.unit.wire.rerank.strategies import FORMATS
from tests.unit.wire.timing import within
from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2

LEAST: dict[str, object] = {"model": "m", "query": "q", "documents": ["a", "b"]}


@dataclass(frozen=True)
class Client:
    """A body as an unmodified client writes it, beside model, query and documents."""

    id: str
    body: dict[str, object]
    expected: pb.RerankRequest


CLIENTS = [
    Client("cohere 7 v2, LangChain", {"top_n": 3, "max_tokens_per_doc": None}, pb.RerankRequest(top_n=3)),
    Client("cohere 7 v2", {"max_tokens_per_doc": 512, "priority": 0}, pb.RerankRequest(max_tokens_per_document=512, priority=0)),
    Client(
        "cohere 5 v1",
        {"return_documents": True, "rank_fields": ["text"], "max_chunks_per_doc": 10},
        pb.RerankRequest(return_documents=True, rank_fields=["text"], max_chunks_per_document=10),
    ),
    Client("jina", {"top_n": 2, "return_documents": False}, pb.RerankRequest(top_n=2, return_documents=False)),
    Client("floats of JavaScript", {"top_n": 2.0, "priority": 9.0}, pb.RerankRequest(top_n=2, priority=9)),
    Client("nulls", dict.fromkeys(["top_n", "return_documents", "rank_fields", "max_chunks_per_doc", "priority", "relevant_spans"]), pb.RerankRequest()),
    Client("a top_n beyond all counts", {"top_n": 2**40}, pb.RerankRequest(top_n=2**31 - 1)),
    Client("spans that are not wanted", {"relevant_spans": {"mode": "disabled"}}, pb.RerankRequest()),
]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", CLIENTS, ids=lambda case: case.id)
def test_the_bodies_of_clients_are_read(case: Client, name: str) -> None:
    request, notes = FORMATS[name].decode_request(msgspec.json.encode(LEAST | case.body), {})
    assert not notes.uncarried
    request.ClearField("source")
    expected = pb.RerankRequest(model="m", query="q", documents=[pb.RerankDocument(text=text) for text in "ab"])
    expected.MergeFrom(case.expected)
    assert request == expected


def test_texts_and_objects_may_be_mixed() -> None:
    body = b'{"model":"m","query":"q","documents":["", {"text": "b",  "n": 1.0} ,"c\\u00e9"]}'
    request = RERANK_FORMAT.decode_request(body, {}).canonical
    assert [document.WhichOneof("content") for document in request.documents] == ["text", "object_json", "text"]
    assert request.documents[1].object_json == '{"text": "b",  "n": 1.0}'
    assert request.documents[2].text == "cé"


def usage(name: str, face: str, **body: object) -> tuple[dict[str, object], dict[str, str | None]]:
    """Return a provider's body in the shape, without the required fields, and the report."""
    request, notes = FORMATS[face].decode_request(msgspec.json.encode(LEAST | body), {})
    encoded = FORMATS[name].encode_request(request, "theirs", notes)
    fields = msgspec.json.decode(encoded.body)
    assert {fields.pop("model"), fields.pop("query")} == {"theirs", "q"}
    return fields, encoded.report.dropped


def test_providers_get_strings_and_send_no_documents_back() -> None:
    documents = ["a", {"text": "b", "id": 1}, {"title": "c", "year": 2020, "text": "d"}]
    make_request = {"documents": documents, "rank_fields": ["title", "year"], "return_documents": True}
    ranked = ["a", "b", "c\n2020"]
    for face in FORMATS:
        assert usage("rerank", face, **make_request) == ({"documents": ranked, "return_documents": False}, {})
        assert usage("rerank_v2", face, **make_request) == ({"documents": ranked}, {})


def test_whole_numbers_are_encoded_as_integers_and_nulls_are_dropped() -> None:
    fields, dropped = usage("rerank", "rerank", top_n=2.0, max_chunks_per_doc=None, max_tokens_per_doc=7.0, zork=1.0)
    encoded = b'{"documents":["a","b"],"zork":1.0,"top_n":2,"max_tokens_per_doc":7,"return_documents":false}'
    assert (msgspec.json.encode(fields), dropped) == (encoded, {})


def test_fields_of_the_other_version_are_reported() -> None:
    make_request: dict[str, object] = {"top_n": 1, "max_chunks_per_doc": 2, "max_tokens_per_doc": 3, "priority": 4}
    fields, dropped = usage("rerank_v2", "rerank", **make_request)
    assert (fields, dropped) == (
        {"documents": ["a", "b"], "top_n": 1, "max_tokens_per_doc": 3, "priority": 4},
        {"max_chunks_per_document": None},
    )
    fields, dropped = usage("rerank", "rerank_v2", **make_request)
    assert (fields, dropped) == (
        {"documents": ["a", "b"], "top_n": 1, "max_chunks_per_doc": 2, "return_documents": False},
        {"max_tokens_per_document": None, "priority": None},
    )


def test_the_default_priority_is_not_reported() -> None:
    assert usage("rerank", "rerank_v2", priority=0)[1] == {}
    assert usage("rerank_v2", "rerank", priority=0)[0]["priority"] == 0


@pytest.mark.parametrize("face", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_at_most_as_many_results_as_documents_are_requested(face: str, name: str) -> None:
    for top_n, expected in ((1, 1), (2, 2), (3, 2), (2**40, 2)):
        assert usage(name, face, top_n=top_n)[0]["top_n"] == expected


@pytest.mark.parametrize("face", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_spans_are_requested_of_no_provider_for_answers_have_no_room_for_them(face: str, name: str) -> None:
    fields, dropped = usage(name, face, relevant_spans={"mode": "enabled", "max_spans": 2})
    assert "relevant_spans" not in fields
    assert dropped == {"relevant_spans": None}


def test_dropped_fields_of_a_grpc_caller_are_reported() -> None:
    request = pb.RerankRequest(
        model="m", query="q", documents=[pb.RerankDocument(object_json='{"a":"b"}')], rank_fields=["a"], priority=1
    )
    encoded = RERANK_FORMAT.encode_request(request, "theirs")
    assert msgspec.json.decode(encoded.body) == {
        "model": "theirs",
        "query": "q",
        "documents": ["b"],
        "return_documents": False,
    }
    assert encoded.report.dropped == {"priority": None}


def test_many_fields_to_rank_take_no_more_time_than_the_documents_have_members() -> None:
    names = [f"{index}{'x' * 10_000}" for index in range(100)]
    body = msgspec.json.encode(LEAST | {"documents": [{"text": "a"}] * 20_000, "rank_fields": names})
    with within(1.5):
        RERANK_V2.encode_request(RERANK_FORMAT.decode_request(body, {}).canonical, "theirs")

"""The text of a document that is ranked."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import ranked_texts


@dataclass(frozen=True)
class Ranked:
    id: str
    json: str
    fields: tuple[str, ...]
    text: str


RANKED = [
    Ranked("its text", '{"text":"a","b":1}', (), "a"),
    Ranked("an empty text", '{"text":""}', (), ""),
    Ranked("a text with escapes", '{"text":"a\\n\\u00e9\\ud83d\\ude00"}', (), "a\né😀"),
    Ranked("the last of several texts", '{"text":1,"text":"b"}', (), "b"),
    Ranked("the fields in the order in which they are named", '{"a":"1","b":"2","c":"3"}', ("c", "a"), "3\n1"),
    Ranked("the fields that it has", '{"a":"1","text":"t"}', ("b", "a"), "1"),
    Ranked("its text where it has none of the fields", '{"a":"1","text":"t"}', ("b",), "t"),
    Ranked("its text where the field is null", '{"a":null,"text":"t"}', ("a",), "t"),
    Ranked("its text among the fields", '{"a":"1","text":"t"}', ("text", "a"), "t\n1"),
    Ranked("numbers and nested values as JSON", '{"n":1.50,"o":{ "b":[1] },"f":false}', ("n", "o", "f"), '1.50\n{ "b":[1] }\nfalse'),
    Ranked("a field that is named twice once", '{"a":"1","b":"2"}', ("b", "a", "b"), "2\n1"),
    Ranked("empty fields", '{"a":"","b":"2"}', ("a", "b"), "\n2"),
]  # fmt: skip


@pytest.mark.parametrize("case", RANKED, ids=lambda case: case.id)
def test_an_object_is_ranked_by(case: Ranked) -> None:
    document = pb.RerankDocument(object_json=case.json)
    assert ranked_texts(pb.RerankRequest(documents=[document], rank_fields=case.fields)) == [case.text]


@pytest.mark.parametrize("text", ["", "a", '{"text":"b"}'])
def test_a_text_is_ranked_as_it_is(text: str) -> None:
    assert ranked_texts(pb.RerankRequest(documents=[pb.RerankDocument(text=text)], rank_fields=["text"])) == [text]


def test_the_texts_of_a_request_are_in_its_order() -> None:
    documents = [pb.RerankDocument(object_json='{"a":"1"}'), pb.RerankDocument(text=""), pb.RerankDocument(text="2")]
    assert ranked_texts(pb.RerankRequest(documents=documents, rank_fields=["a"])) == ["1", "", "2"]


@pytest.mark.parametrize("json", ["[]", "1", "{", '{"text":"a"} {}', '{"text":"\\ud83d"}', '{"b":"a"}', "{" * 100_000])
def test_the_error_of_a_document_that_cannot_be_ranked_names_it(json: str) -> None:
    documents = [pb.RerankDocument(text="a"), pb.RerankDocument(object_json=json)]
    with pytest.raises(UmgError) as caught:
        ranked_texts(pb.RerankRequest(documents=documents))
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
    assert caught.value.metadata == {"field": "documents[1]"}

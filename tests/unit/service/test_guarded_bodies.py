"""Members of a body that have no place in the canonical request, and changes of texts in a body."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from umg_grpc.service.guardrails.guarded_bodies import edit_body, rest_of, unread_members
from umg_grpc.v1 import pb
from umg_grpc.wire.core.unknown_field_detection import MAX_PATHS


def source(body: Any) -> pb.SourceDocument:
    return pb.SourceDocument(format="chat", body=json.dumps(body).encode())


@dataclass(frozen=True)
class Paths:
    """Paths of members in a body, and the found ones with their texts."""

    id: str
    body: Any
    paths: tuple[str, ...]
    found: dict[str, Any]


WHOLE = {"a": "x", "b": [{"c": "y"}]}
CASES = [
    Paths("a member", WHOLE, ("a",), {"source.body.a": {"a": "x"}}),
    Paths("an element", WHOLE, ("b[0].c",), {"source.body.b[0].c": {"c": "y"}}),
    Paths("a list without an index", WHOLE, ("b.c",), {"source.body.b[0].c": {"c": "y"}}),
    Paths("a name with a dot", {"a.b[0]": "x"}, ("a.b[0]",), {"source.body.a.b[0]": {"a.b[0]": "x"}}),
    Paths("a member within another", WHOLE, ("b", "b[0].c"), {"source.body.b": {"b": [{"c": "y"}]}}),
    Paths("an index", {"a": ["x", "y"]}, ("a[1]",), {"source.body.a": {"a": ["x", "y"]}}),
    Paths("no text", {"a": True, "b": 7, "c": None}, ("a", "b", "c"), {}),
    Paths("a place that is not found", WHOLE, ("z",), {"source.body": WHOLE}),
    Paths("more than are recorded", WHOLE, ("a",) * MAX_PATHS, {"source.body": WHOLE}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_members_are_found_by_their_paths(case: Paths) -> None:
    found = {each.guarded.path: json.loads(each.guarded.text) for each in unread_members(source(case.body), case.paths)}
    assert found == case.found


REPLACED = {
    ("a",): {"a": "new", "b": [{"c": "y"}]},
    ("b[0].c",): {"a": "x", "b": [{"c": "new"}]},
    ("a", "b.c"): {"a": "new", "b": [{"c": "new"}]},
    ("z",): {"a": "new", "b": [{"c": "new"}]},
}
"""Paths of members of `WHOLE` -> the body after their texts were replaced."""


@pytest.mark.parametrize("paths", REPLACED)
def test_a_member_is_replaced_in_its_place(paths: tuple[str, ...]) -> None:
    document = source(WHOLE)
    for each in unread_members(document, paths):
        each.replace(each.guarded.text.replace('"x"', '"new"').replace('"y"', '"new"'))
    assert json.loads(document.body) == REPLACED[paths]


def test_a_text_is_changed_everywhere_in_a_body() -> None:
    document = source({"user": "a", "metadata": {"b": "a", "c": 1.0}, "schema": {"x": "s"}})
    texts = [
        (pb.GuardedText(path="user", text="a"), "new"),
        (pb.GuardedText(path="schema_json", text='{"x": "s"}', is_json=True), '{"x": "t"}'),
    ]
    assert edit_body(document, texts)
    assert json.loads(document.body) == {"user": "new", "metadata": {"b": "new", "c": 1.0}, "schema": {"x": "t"}}


@pytest.mark.parametrize("body", ['{"user": "b"}', "no JSON", '{"user": "a"}'])
def test_a_body_that_lacks_a_changed_text_is_not_complete(body: str) -> None:
    document = pb.SourceDocument(format="chat", body=body.encode())
    twice = [(pb.GuardedText(path=path, text="a"), "new") for path in ("user", "metadata.b")]
    assert not edit_body(document, twice)


def test_the_rest_of_a_body_is_its_texts_that_the_encoding_lacks() -> None:
    body = json.dumps({"id": "a", "n": 7, "new": {"b": ["x", "known"]}, "number": 4111111111111111}).encode()
    rest = rest_of(body, b'{"id":"a","content":"known"}')
    assert rest is not None
    assert json.loads(rest.guarded.text) == {"new.b[0]": "x", "number": 4111111111111111}
    assert rest_of(body, body) is None
    assert rest_of(b"WEBVTT", b"WEBVTT") is None

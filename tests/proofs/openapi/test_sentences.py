"""Every member, parameter and value in the OpenAPI document has a sentence, and every row of sentences is used."""

from collections.abc import Iterator
from typing import Any

import pytest

from http_facade.openapi.member_sentences import names_of, sentences
from http_facade.openapi.openapi_document import document
from umg_grpc.v1.comments import comments

Schema = dict[str, Any]
HELP = "no sentence: add a row to http_facade/openapi/member_sentences.json, or a comment to the field in proto/"
OF_THE_SCHEMA = ("umg.v1.", "admin.umg.v1.")
"""Prefixes of components whose texts are the comments of the schema."""
FREE = {
    "additionalProperties": "objects of callers and providers: metadata, labels, tags, vectors by type, model facts",
}
"""Parts of schemas whose names are not those of a format, with the reason. They have no members to describe."""


@pytest.fixture(scope="module")
def made() -> Schema:
    return document()


def members(schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield (path, schema) of all members below a schema."""
    for name, member in schema.get("properties", {}).items():
        yield (*path, name), member
        yield from members(member, (*path, name))
    inner = [schema[key] for key in ("items", *FREE) if isinstance(schema.get(key), dict)]
    for part in (*inner, *schema.get("anyOf", ())):
        yield from members(part, path)


def all_members(made: Schema) -> Iterator[tuple[tuple[str, ...], Schema]]:
    for name, schema in made["components"]["schemas"].items():
        yield from members(schema, (name,))


def values(schema: Schema) -> Iterator[str]:
    """Yield the texts that a member may be, if they are listed."""
    for part in (schema, *schema.get("anyOf", ())):
        yield from (value for value in part.get("enum", ()) if value)


def test_every_member_has_a_sentence(made: Schema) -> None:
    absent = [".".join(path) for path, member in all_members(made) if not member.get("description")]
    assert absent == [], HELP


def test_every_listed_value_is_in_the_sentence_of_its_member(made: Schema) -> None:
    unnamed = [
        (".".join(path), value)
        for path, member in all_members(made)
        for value in values(member)
        if not path[0].startswith(OF_THE_SCHEMA) and f"`{value}`" not in member["description"]
    ]
    assert unnamed == []


def test_every_value_of_an_enum_of_the_schema_has_its_sentence(made: Schema) -> None:
    for name, schema in made["components"]["schemas"].items():
        if name.startswith("umg.v1.") and (names := [*values(schema)]):
            lines = dict(line.split(": ", 1) for line in schema["description"].splitlines() if line.startswith("- "))
            assert lines.keys() == {f"- `{value}`" for value in names}
            assert all(lines.values())


def test_every_parameter_has_a_sentence(made: Schema) -> None:
    absent = [
        (path, parameter["name"])
        for path, operations in made["paths"].items()
        for operation in operations.values()
        for parameter in operation["parameters"]
        if not parameter.get("description")
    ]
    assert absent == []


def test_every_row_of_sentences_is_used_and_its_comment_is_there(made: Schema) -> None:
    rows = sentences()
    used = {next((name for name in names_of(path) if name in rows), "") for path, _ in all_members(made)}
    assert rows.keys() - used == set()
    assert {name for name, text in rows.items() if not text} == set()


def test_rules_and_defaults_of_the_schema_are_in_the_document(made: Schema) -> None:
    schemas = made["components"]["schemas"]
    request = schemas["umg.v1.GenerateRequest"]
    assert request["properties"]["temperature"].items() >= {"minimum": 0, "maximum": 2, "type": "number"}.items()
    assert "model" in request["required"]
    ranks = schemas["umg.v1.RerankRequest"]["properties"]
    assert ranks["documents"]["minItems"] == 1
    assert ranks["rankFields"]["items"]["minLength"] == 1
    assert (
        schemas["chat.ChatRequest"]["properties"]["temperature"]["description"]
        == (comments()["umg.v1.GenerateRequest.temperature"])
    )
    assert schemas["cohere.FunctionTool"]["properties"]["type"]["default"] == "function"

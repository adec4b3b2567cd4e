"""Schemas of the native subset as JSON schemas."""

import json
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.error_checks import raises_error
from umg_grpc.wire.core.native_schema_conversion import json_schema


@dataclass(frozen=True)
class Case:
    id: str
    native: object
    plain: object


CASES = [
    Case("types in upper case", {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}}}}, {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
    Case("an unspecified type", {"type": "TYPE_UNSPECIFIED", "description": "d"}, {"description": "d"}),
    Case("nullable", {"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
    Case("not nullable", {"type": "STRING", "nullable": False}, {"type": "string"}),
    Case("nullable with an enum", {"type": "STRING", "enum": ["A"], "nullable": True}, {"type": ["string", "null"], "enum": ["A", None]}),
    Case("nullable alternatives", {"anyOf": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    Case("nullable null", {"type": "NULL", "nullable": True}, {"type": "null"}),
    Case("counts as text", {"type": "ARRAY", "minItems": "1", "max_items": "20"}, {"type": "array", "minItems": 1, "maxItems": 20}),
    Case("a count that is none", {"minItems": "many"}, {"minItems": "many"}),
    Case("keys in snake_case", {"any_of": [{"type": "STRING", "max_length": 3}]}, {"anyOf": [{"type": "string", "maxLength": 3}]}),
    Case("an order", {"properties": {"a": {}, "b": {}, "c": {}}, "propertyOrdering": ["c", "a", "x", 3]}, {"properties": {"c": {}, "a": {}, "b": {}}}),
    Case("definitions", {"defs": {"N": {"type": "OBJECT", "properties": {"next": {"ref": "#/defs/N"}}}}, "ref": "#/defs/N"}, {"$defs": {"N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N"}),
    Case("full JSON schema", {"$defs": {"N": {"type": "OBJECT"}}, "$ref": "#/$defs/N"}, {"$defs": {"N": {"type": "object"}}, "$ref": "#/$defs/N"}),
    Case("values that look like schemas", {"default": {"type": "STRING"}, "enum": ["STRING"], "example": {"nullable": True}}, {"default": {"type": "STRING"}, "enum": ["STRING"], "example": {"nullable": True}}),
    Case("properties called like keywords",
        {"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "nullable": {"type": "BOOLEAN"}, "properties": {"type": "OBJECT", "properties": {"enum": {"type": "STRING", "nullable": True}}}, "default": {"type": "NUMBER"}, "any_of": {"type": "STRING"}, "defs": {}, "minItems": {"type": "INTEGER"}}, "required": ["type"]},
        {"type": "object", "properties": {"type": {"type": "string"}, "nullable": {"type": "boolean"}, "properties": {"type": "object", "properties": {"enum": {"type": ["string", "null"]}}}, "default": {"type": "number"}, "any_of": {"type": "string"}, "defs": {}, "minItems": {"type": "integer"}}, "required": ["type"]}),
    Case("no schema", {"properties": ["a"], "type": 3, "nullable": "yes", "items": None, "propertyOrdering": 1, "ref": 4}, {"properties": ["a"], "type": 3, "items": None, "$ref": 4}),
    Case("types in a list", {"type": ["STRING", "NULL", 3], "nullable": True}, {"type": ["string", "null", 3]}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_native_schema_is_converted_to_an_equivalent_json_schema(case: Case) -> None:
    plain = json_schema(json.dumps(case.native), True, "f")
    assert plain == case.plain
    assert json.dumps(plain, sort_keys=False) == json.dumps(case.plain, sort_keys=False), "in the same order"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_json_schema_is_kept_byte_for_byte(case: Case) -> None:
    text = json.dumps(case.native)
    assert msgspec.json.encode(json_schema(text, False, "f")) == text.encode()


KEYWORDS = ["type", "nullable", "enum", "anyOf", "properties", "defs", "ref", "minItems", "propertyOrdering", "items"]
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["STRING", "x", "3", "#/defs/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=12,
)


@given(odd)
def test_every_json_schema_is_converted(schema: object) -> None:
    msgspec.json.encode(json_schema(json.dumps(schema), True, "f"))


def test_invalid_json_is_refused_and_its_field_named() -> None:
    for text in ('{"a":', '{"a":' + "[" * 5000 + "]" * 5000 + "}", '{} "b"'):
        with raises_error(metadata={"field": "tools[0].parameters"}):
            json_schema(text, True, "tools[0].parameters")

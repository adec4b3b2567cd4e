"""Schemas that no real client writes: each codec carries them or refuses them by their path."""

import json
from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.native_schema_conversion import MAX_LEVELS, json_schema


def nested(levels: int) -> str:
    return '{"items":' * levels + '{"type":"STRING"}' + "}" * levels


@dataclass(frozen=True)
class Case:
    id: str
    schema: str


CASES = [
    *(Case(f"{levels} schemas inside each other", nested(levels)) for levels in (150, 198, 203, 400, 700, 900, 960, 990, 5_000)),
    *(Case(f"{levels} lists inside each other", '{"anyOf":' + "[" * levels + "]" * levels + "}") for levels in (150, 400, 985, 5_000)),
    Case("a count of 5000 digits", '{"minItems":"' + "1" * 5_000 + '"}'),
    Case("a number of 400 digits", '{"minimum":' + "1" * 400 + "}"),
    Case("a number of 5000 digits", '{"minimum":' + "1" * 5_000 + "}"),
    Case("types that are no names", '{"type":[["string"],{"a":1},null],"nullable":true}'),
    Case("a type that is an object", '{"type":{"a":1},"nullable":true}'),
    Case("an order of lists", '{"propertyOrdering":[["a"],{}],"properties":{"a":{}}}'),
    Case("properties that are a list", '{"properties":[{"type":"STRING"}],"propertyOrdering":["a"]}'),
    Case("an enum of objects", '{"enum":[{},[null]],"nullable":true}'),
    Case("choices that are none", '{"anyOf":"x","any_of":{"a":1},"nullable":true}'),
    Case("a reference that is a list", '{"$ref":["#"],"ref":{"a":1},"defs":[1],"$defs":"x"}'),
    Case("a reference to itself", '{"$ref":"#","defs":{"a":{"ref":"#/defs/a"}}}'),
]  # fmt: skip


def request(schema: str, source: str) -> pb.GenerateRequest:
    native = source == "native"
    described = pb.JsonSchemaFormat(name="s", schema_json=schema, native_schema=native)
    function = pb.FunctionTool(name="f", parameters_json=schema, native_schema=native)
    text = pb.Part(text=pb.TextPart(text="Hi"))
    return pb.GenerateRequest(
        model="m",
        messages=[pb.Message(role=pb.ROLE_USER, parts=[text])],
        tools=[pb.Tool(function=function)],
        response_format=pb.ResponseFormat(json_schema=described),
        max_output_tokens=100,
    )


@pytest.mark.parametrize("upstream", sorted(TEXT_FORMATS))
@pytest.mark.parametrize("source", ["", "native"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_schema_is_carried_or_refused_by_its_field(case: Case, source: str, upstream: str) -> None:
    try:
        encoded = TEXT_FORMATS[upstream].encode_request(request(case.schema, source), "m", False)
    except UmgError as error:
        field, reason = error.metadata["field"], error.reason
        assert reason == pb.ERROR_REASON_INVALID_FIELD
        assert field.startswith(("tools[0]", "response_format"))
    else:
        assert encoded.body.startswith(b"{")


@pytest.mark.parametrize("levels", [MAX_LEVELS - 1, MAX_LEVELS + 1])
def test_a_native_schema_has_at_most_200_values_inside_each_other(levels: int) -> None:
    try:
        read = json_schema(nested(levels), True, "at")
    except UmgError as error:
        read = error.metadata
    assert (read == {"field": "at"}) == (levels > MAX_LEVELS)


def test_counts_are_text_of_at_most_64_bits() -> None:
    assert json_schema('{"minItems":"12","maxItems":"' + "9" * 20 + '"}', True, "at") == {
        "minItems": 12,
        "maxItems": "9" * 20,
    }
    assert json.loads(json.dumps(json_schema('{"minLength":"\u0663"}', True, "at"))) == {"minLength": "\u0663"}

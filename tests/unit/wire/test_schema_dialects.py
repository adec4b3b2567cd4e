"""JSON schemas in the dialects of vendors, judged by the vendors' own SDKs and by a validator of JSON schema."""

import copy
import json
from dataclasses import dataclass
from typing import Any

import jsonschema
import msgspec
import pytest
from anthropic import transform_schema
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.timing import within
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import SchemaDialect
from umg_grpc.wire.core.schema_dialects import fit_schema
from umg_grpc.wire.dropped_fields_report import Report

Json = Any
STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


def fitted(
    schema: Json, dialect: SchemaDialect | None, *, native: bool = False, strict: bool = True
) -> tuple[Json, str]:
    """The schema in the dialect, None if the dialect cannot express it, and the report."""
    report = Report()
    encoded = fit_schema(json.dumps(schema), dialect, report, "at", native=native, strict=strict)
    return json.loads(msgspec.json.encode(encoded)), report.header()


def closed(required: list[str] | None = None, **properties: Json) -> dict[str, Json]:
    listed = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "additionalProperties": False, **({"required": listed} if listed else {})}  # fmt: skip


def opened(**properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(properties)}


SHAPES = [opened(kind={"const": "circle"}, radius=INTEGER), opened(kind={"const": "square"}, side=INTEGER)]
NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]}}, "required": ["next"]}
BOUNDED: dict[str, Json] = {
    "score": {"type": "integer", "minimum": 1, "maximum": 10},
    "word": {"type": "string", "maxLength": 20},
}


@dataclass(frozen=True)
class Case:
    id: str
    schema: Json
    expected: Json
    """None where the dialect cannot express the schema."""
    dropped: str = ""


CLAUDE = [
    Case("an object is closed", opened(a=STRING), closed(a=STRING)),
    Case("objects inside are closed", opened(list={"type": "array", "items": opened(a=STRING)}), closed(list={"type": "array", "items": closed(a=STRING)})),
    Case("bounds are described", opened(**BOUNDED), closed(score={"type": "integer", "description": "Constraints: at least 1, at most 10."}, word={"type": "string", "description": "Constraints: at most 20 characters."}), "at.minimum, at.maximum, at.maxLength"),
    Case("a constraint follows the description", {"type": "string", "description": "A word.", "pattern": "^[A-Z]"}, {"type": "string", "description": "A word.\n\nConstraints: matching the regular expression ^[A-Z]."}, "at.pattern"),
    Case("each keyword is named once", opened(a={"type": "string", "minLength": 1}, b={"type": "string", "minLength": 2}), closed(a={"type": "string", "description": "Constraints: at least 1 characters."}, b={"type": "string", "description": "Constraints: at least 2 characters."}), "at.minLength"),
    Case("one item may be required", {"type": "array", "items": STRING, "minItems": 1}, {"type": "array", "items": STRING, "minItems": 1}),
    Case("two items may not", {"type": "array", "items": STRING, "minItems": 2, "uniqueItems": True}, {"type": "array", "items": STRING, "description": "Constraints: at least 2 items, no item twice."}, "at.minItems, at.uniqueItems"),
    Case("known formats stay", {"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
    Case("other formats are described", {"type": "string", "format": "uri-reference"}, {"type": "string", "description": "Constraints: of the format uri-reference."}, "at.format"),
    Case("exclusive alternatives", opened(shape={"oneOf": SHAPES}), closed(shape={"anyOf": [closed(kind={"const": "circle"}, radius=INTEGER), closed(kind={"const": "square"}, side=INTEGER)]})),
    Case("alternatives that overlap", {"oneOf": [STRING, {"type": "string", "format": "date"}]}, {"anyOf": [STRING, {"type": "string", "format": "date"}], "description": "Constraints: exactly one of the alternatives."}, "at.oneOf"),
    Case("exclusive alternatives by references", {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": SHAPES[0], "B": SHAPES[1]}}, {"$defs": {"A": closed(kind={"const": "circle"}, radius=INTEGER), "B": closed(kind={"const": "square"}, side=INTEGER)}, "anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}),
    Case("lists of types", {"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
    Case("lists of types with their keywords", {"type": ["array", "null"], "items": STRING, "default": None}, {"anyOf": [{"type": "array", "items": STRING}, NULL], "default": None}),
    Case("nullable of OpenAPI", {"type": "string", "nullable": True}, {"anyOf": [STRING, NULL]}),
    Case("listed values have no type", {"type": "string", "enum": ["a", "b"]}, {"enum": ["a", "b"]}),
    Case("one value", {"const": 5, "title": "Five"}, {"const": 5, "title": "Five"}),
    Case("values of the type only", {"type": "string", "enum": ["a", 1, "b"]}, {"enum": ["a", "b"]}),
    Case("a type that is not stated", {"properties": {"a": STRING}, "required": ["a"]}, closed(a=STRING)),
    Case("definitions that are used", {"$defs": {"A": opened(b={"$ref": "#/$defs/B"}), "B": STRING, "C": {}}, **opened(a={"$ref": "#/$defs/A"})}, {"$defs": {"A": closed(b={"$ref": "#/$defs/B"}), "B": STRING}, **closed(a={"$ref": "#/$defs/A"})}),
    Case("definitions of older drafts", {"definitions": {"A": STRING}, **opened(a={"$ref": "#/definitions/A"})}, {"$defs": {"A": STRING}, **closed(a={"$ref": "#/$defs/A"})}),
    Case("a root that is a reference", {"$ref": "#/$defs/A", "$defs": {"A": opened(a=STRING)}}, {"$ref": "#/$defs/A", "$defs": {"A": closed(a=STRING)}}),
    Case("a description beside a reference", {"$defs": {"A": STRING}, **opened(a={"$ref": "#/$defs/A", "description": "d"})}, {"$defs": {"A": STRING}, **closed(a={"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"})}),
    Case("allOf with one schema", {"$defs": {"A": STRING}, **opened(a={"allOf": [{"$ref": "#/$defs/A"}], "default": "x"})}, {"$defs": {"A": STRING}, **closed(a={"anyOf": [{"$ref": "#/$defs/A"}], "default": "x"})}),
    Case("allOf of objects", {"$defs": {"Base": opened(id=INTEGER)}, "allOf": [{"$ref": "#/$defs/Base"}, opened(a=STRING)]}, closed(id=INTEGER, a=STRING)),
    Case("alternatives of required properties", {**opened(), "properties": {"a": STRING, "b": STRING}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {**closed([], a=STRING, b=STRING), "description": 'Constraints: one of [{"required":["a"]},{"required":["b"]}] at least.'}, "at.anyOf"),
    Case("a type beside alternatives", {"type": "string", "anyOf": [{"format": "date"}, {"enum": ["never"]}]}, {"anyOf": [{"type": "string", "format": "date"}, {"enum": ["never"]}]}),
    Case("tuples", {"type": "array", "prefixItems": [STRING, INTEGER]}, {"type": "array", "items": {"anyOf": [STRING, INTEGER]}, "description": 'Constraints: the first items in order: [{"type":"string"},{"type":"integer"}].'}, "at.prefixItems"),
    Case("optional properties stay optional", {"type": "object", "properties": {"a": STRING}}, closed([], a=STRING)),
    Case("further properties are named", {**opened(a=STRING), "additionalProperties": True}, closed(a=STRING), "at.additionalProperties"),
    Case("examples are described", {"type": "string", "examples": ["x"]}, {"type": "string", "description": 'Examples: ["x"]'}),
    Case("keywords without a meaning", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "minimum": 1, "x-order": 2}, STRING),
    Case("a map", {"type": "object", "additionalProperties": STRING}, None),
    Case("an object of any kind", {"type": "object"}, None),
    Case("patterns of names", {**opened(a=STRING), "patternProperties": {"^x": STRING}}, None),
    Case("any value", opened(a={}), None),
    Case("a schema that is true", opened(a=True), None),
    Case("a definition that contains itself", {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}}, None),
    Case("a schema that contains itself", opened(a={"anyOf": [{"$ref": "#"}, NULL]}), None),
    Case("a reference to another document", opened(a={"$ref": "https://example.com/a.json"}), None),
    Case("a reference to nothing", opened(a={"$ref": "#/$defs/A"}), None),
    Case("values that are objects", {"enum": [{"a": 1}, {"a": 2}]}, None),
    Case("11 optional properties", {"type": "object", "properties": {f"p{n}": STRING for n in range(11)}}, None),
    Case("6 optional properties at two places", {"$defs": {"A": {"type": "object", "properties": {f"p{n}": STRING for n in range(6)}}}, **opened(a={"$ref": "#/$defs/A"}, b={"$ref": "#/$defs/A"})}, None),
    Case("allOf of objects that exclude each other", {"allOf": [closed(a=STRING), closed(b=STRING)]}, None),
]  # fmt: skip

OPENAI = [
    Case("all properties are required", {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["a"]}, closed(a=STRING, b={"anyOf": [INTEGER, NULL]}), "at.required"),
    Case("an optional property that may be null", {"type": "object", "properties": {"a": {"type": ["string", "null"], "default": None}}}, closed(a={"type": ["string", "null"]})),
    Case("bounds stay, lengths are described", opened(**BOUNDED), closed(score=BOUNDED["score"], word={"type": "string", "description": "Constraints: at most 20 characters."}), "at.maxLength"),
    Case("alternatives", opened(shape={"oneOf": SHAPES}), closed(shape={"anyOf": [closed(kind={"type": "string", "const": "circle"}, radius=INTEGER), closed(kind={"type": "string", "const": "square"}, side=INTEGER)]})),
    Case("listed values have a type", opened(a={"enum": ["x", None]}), closed(a={"type": ["string", "null"], "enum": ["x", None]})),
    Case("a root that is a reference", {"$ref": "#/$defs/A", "$defs": {"A": opened(a=STRING)}}, closed(a=STRING)),
    Case("a definition that contains itself", {**opened(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}, {**closed(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": closed(next={"anyOf": [{"$ref": "#/$defs/Node"}, NULL]})}}),
    Case("a default is described", opened(a={"type": "string", "default": "x"}), closed(a={"type": "string", "description": 'Default: "x"'})),
    Case("a map", opened(a={"type": "object", "additionalProperties": STRING}), None),
    Case("alternatives at the root", {"anyOf": SHAPES}, None),
    Case("a list at the root", {"type": "array", "items": STRING}, None),
    Case("a list of any items", opened(a={"type": "array"}), None),
]  # fmt: skip

GEMINI = [
    Case("a value", opened(a={"const": "x", "description": "d"}), opened(a={"enum": ["x"], "description": "d"})),
    Case("values inside", opened(a={"oneOf": SHAPES, "minItems": 2}), opened(a={"oneOf": [opened(kind={"enum": ["circle"]}, radius=INTEGER), opened(kind={"enum": ["square"]}, side=INTEGER)], "minItems": 2})),
    Case("a property with the name", opened(const={"default": {"const": 1}}), opened(const={"default": {"const": 1}})),
]  # fmt: skip

MOONSHOT = [
    Case("the version of the dialect", {"$schema": "http://json-schema.org/draft-07/schema#", **opened(a=STRING)}, opened(a=STRING)),
    Case("tuples", opened(a={"type": "array", "items": [STRING, INTEGER]}), opened(a={"type": "array", "prefixItems": [STRING, INTEGER]})),
    Case("a type beside alternatives", opened(a={"type": "string", "anyOf": [{"format": "date"}, {"type": "string"}]}), opened(a={"anyOf": [{"type": "string", "format": "date"}, STRING]})),
    Case("a root that is a reference", {"$ref": "#/$defs/A", "$defs": {"A": opened(a=STRING)}}, {**opened(a=STRING), "$defs": {"A": opened(a=STRING)}}),
    Case("a root without a type", {"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
    Case("a list at the root", {"type": "array", "items": STRING}, None),
]  # fmt: skip

TABLES: dict[SchemaDialect, list[Case]] = {"claude": CLAUDE, "openai": OPENAI, "gemini": GEMINI, "moonshot": MOONSHOT}
CASES = [pytest.param(dialect, case, id=f"{dialect}: {case.id}") for dialect, cases in TABLES.items() for case in cases]


def without(schema: Json, name: str) -> Json:
    """The schema without a keyword."""
    if isinstance(schema, dict):
        return {key: without(value, name) for key, value in schema.items() if key != name}
    return [without(value, name) for value in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize(("dialect", "case"), CASES)
def test_a_schema_is_written_in_the_dialect(dialect: SchemaDialect, case: Case) -> None:
    given_schema = copy.deepcopy(case.schema)
    schema, dropped = fitted(case.schema, dialect)
    assert (schema, dropped) == (case.expected, case.dropped)
    assert case.schema == given_schema
    if schema is not None:
        assert json.dumps(list(schema.get("properties", {}))) == json.dumps(list(case.expected.get("properties", {})))


@pytest.mark.parametrize("case", CLAUDE, ids=lambda case: case.id)
def test_the_sdk_of_claude_changes_nothing_in_a_fitted_schema(case: Case) -> None:
    schema, _ = fitted(case.schema, "claude")
    if schema is not None:
        plain = without(schema, "default")  # accepted by the API; the SDK writes it into the description
        assert transform_schema(copy.deepcopy(plain)) == plain


def check_strict(schema: Json) -> None:
    """OpenAI's rules for strict schemas, read from its page on structured outputs."""
    if not isinstance(schema, dict):
        return
    assert schema.keys() <= {"type", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "enum", "const", "description", "title", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}  # fmt: skip
    assert len(schema) == 1 or "$ref" not in schema
    if "properties" in schema:
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    for inner in [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", []), schema.get("items")]:  # fmt: skip
        assert inner is None or "type" in inner or "anyOf" in inner or "$ref" in inner
        check_strict(inner)


@pytest.mark.parametrize("case", OPENAI, ids=lambda case: case.id)
def test_a_fitted_schema_keeps_the_strict_rules_of_openai(case: Case) -> None:
    schema, _ = fitted(case.schema, "openai")
    if schema is not None:
        assert schema["type"] == "object"
        check_strict(schema)


@pytest.mark.parametrize("dialect", ["openai", "json_object", "none", None])
def test_a_schema_without_rules_stays_as_it_was_written(dialect: SchemaDialect | None) -> None:
    text = '{"type": "object", "minimum": 1.50}'
    assert bytes(fit_schema(text, dialect, Report(), "at", native=False, strict=False) or b"") == text.encode()  # type: ignore[call-overload]


def test_a_schema_of_the_native_format_is_converted_first() -> None:
    native = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}, "b": {"type": "INTEGER", "minItems": "2"}}, "required": ["a", "b"], "propertyOrdering": ["b", "a"]}  # fmt: skip
    schema, dropped = fitted(native, "claude", native=True)
    assert schema == closed(["a", "b"], b=INTEGER, a={"anyOf": [STRING, NULL]})
    assert (list(schema["properties"]), dropped) == (["b", "a"], "")


# --- laws


def members(schemas: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    properties = st.dictionaries(st.sampled_from("abcd"), schemas, min_size=1, max_size=3)
    return st.builds(
        lambda named, cut, extra: {"type": "object", "properties": named, "required": list(named)[cut:], **extra},
        properties,
        st.integers(0, 2),
        st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}, {"minProperties": 1}]),
    )


LEAVES: list[Json] = [
    STRING,
    INTEGER,
    {"type": "number"},
    {"type": "boolean"},
    NULL,
    {"type": ["string", "null"], "maxLength": 3},
    {"type": "integer", "minimum": 1},
    {"type": "string", "format": "date"},
    {"enum": ["a", 1, None]},
    {"type": "string", "enum": ["a", 1]},
    {"const": True},
    {"$ref": "#/$defs/A"},
    {"$ref": "#/$defs/A", "description": "d"},
    {"$ref": "#/$defs/B", "minimum": 2},
    {},
]
SCHEMAS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        members(inner),
        st.builds(lambda items, extra: {"type": "array", "items": items, **extra}, inner, st.sampled_from([{}, {"minItems": 1}, {"uniqueItems": True}])),
        st.builds(lambda name, branches: {name: branches}, st.sampled_from(["anyOf", "oneOf"]), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda schema: {**schema, "nullable": False}, inner),
        st.builds(lambda first, second: {"allOf": [first, second]}, members(inner), members(inner)),
        st.builds(lambda kind, branches: {"type": kind, "anyOf": branches}, st.sampled_from(["string", ["string", "null"]]), st.lists(st.sampled_from([{"maxLength": 2}, STRING, {"enum": ["a"]}]), min_size=1)),
    ),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.builds(
    lambda schema, own: {**schema, "$defs": {"A": own, "B": INTEGER}},
    SCHEMAS,
    st.sampled_from([STRING, opened(kind={"const": 1}), {"anyOf": [STRING, {"$ref": "#/$defs/B"}]}]),
)


def instances(schema: Json, definitions: Json) -> st.SearchStrategy[Json]:
    """Values that are valid for a schema of a vendor's subset."""
    if "$ref" in schema:
        return instances(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        return st.one_of([instances(branch, definitions) for branch in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if isinstance(schema["type"], list):
        return st.one_of([instances({**schema, "type": kind}, definitions) for kind in schema["type"]])
    match schema["type"]:
        case "object":
            named = {name: instances(inner, definitions) for name, inner in schema["properties"].items()}
            required = {name: value for name, value in named.items() if name in schema.get("required", [])}
            optional = {name: value for name, value in named.items() if name not in required}
            return st.fixed_dictionaries(required, optional=optional)
        case "array":
            items = instances(schema["items"], definitions) if "items" in schema else st.none() | st.text(max_size=2)
            return st.lists(items, min_size=schema.get("minItems", 0), max_size=2)
        case "string":
            return st.text(max_size=4)
        case "integer":
            return st.integers(schema.get("minimum"), 5)
        case "number":
            return st.floats(schema.get("minimum"), 5, allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case _:
            return st.none()


@pytest.mark.parametrize("dialect", ["claude", "openai"])
@given(schema=DOCUMENTS, data=st.data())
def test_values_of_a_fitted_schema_are_valid_for_the_callers_unless_a_loss_is_reported(
    dialect: SchemaDialect, schema: Json, data: st.DataObject
) -> None:
    own, dropped = fitted(schema, dialect)
    if own is None:
        return
    if dialect == "claude":
        assert transform_schema(without(own, "default")) == without(own, "default")
    else:
        check_strict(own)
    if not dropped:
        jsonschema.Draft202012Validator(schema).validate(data.draw(instances(own, own.get("$defs"))))


@given(DOCUMENTS)
def test_gemini_and_moonshot_get_a_schema_of_the_same_meaning(schema: Json) -> None:
    gemini, dropped = fitted(schema, "gemini")
    assert ("const" in json.dumps(gemini), dropped) == (False, "")
    moonshot, dropped = fitted(opened(a=without(schema, "$defs")) | {"$defs": schema["$defs"]}, "moonshot")
    assert dropped == ""
    assert not any("type" in inner and "anyOf" in inner for inner in objects_of(moonshot))


def objects_of(value: Json) -> list[dict[str, Json]]:
    if isinstance(value, list):
        return [found for item in value for found in objects_of(item)]
    return [value, *objects_of(list(value.values()))] if isinstance(value, dict) else []


# --- hostile schemas


def nested(levels: int, keyword: str) -> str:
    return f'{{"type":"array","{keyword}":' * levels + "{}" + "}" * levels


HOSTILE = [
    *(nested(levels, keyword) for levels in (60, 70, 100, 150, 400, 900, 5_000) for keyword in ("items", "not", "anyOf")),
    '{"type":[["a"],{}]}',
    '{"type":"object","properties":[1],"required":{"a":1},"additionalProperties":0}',
    '{"enum":[[1],{}],"const":{}}',
    '{"anyOf":[],"oneOf":[1],"allOf":["x",null]}',
    '{"$ref":["#"],"$defs":[1],"definitions":"x"}',
    '{"type":"array","items":[1,null,[]],"prefixItems":{"a":1},"minItems":[1]}',
    '{"type":"string","format":[1],"pattern":{},"minLength":true}',
    '{"allOf":[{"$ref":"#"},{"$ref":"#"}]}',
    '{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"properties":{"b":{"$ref":"#/$defs/a"}}}]}},"$ref":"#/$defs/a"}',
    '{"type":"integer","minimum":' + "1" * 5_000 + "}",
    '{"nullable":true}',
]  # fmt: skip


@pytest.mark.parametrize("dialect", ["claude", "openai", "gemini", "moonshot"])
@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: schema[:40])
def test_a_hostile_schema_is_fitted_or_not_expressible_or_refused(schema: str, dialect: SchemaDialect) -> None:
    for text in (schema, '{"type":"object","properties":{"a":' + schema + '},"required":["a"]}'):
        try:
            encoded = fit_schema(text, dialect, Report(), "at", native=False, strict=True)
        except UmgError as error:
            field = error.metadata["field"]
        else:
            field = "at"
            msgspec.json.encode(encoded)
        assert field == "at"


MANY = 1_000
REQUIRED = {"type": "object", "properties": {f"p{n}": {"const": n} for n in range(MANY)}, "required": [f"p{n}" for n in range(MANY)]}  # fmt: skip
GROWING = {
    "alternatives of one definition": {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
    "alternatives of one definition twice": {"oneOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}]},
    "a type beside alternatives": {"type": "string", "anyOf": [{"$ref": "#/$defs/C"}]},
    "one object of many": {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/B"}]},
}


@pytest.mark.parametrize("dialect", TABLES)
@pytest.mark.parametrize("schema", GROWING.values(), ids=GROWING)
def test_large_definitions_at_many_places_cost_little(schema: Json, dialect: SchemaDialect) -> None:
    definitions = {"A": {"enum": [f"v{n}" for n in range(MANY)]}, "B": REQUIRED, "C": {"type": ["string"] * MANY}}
    whole = {"$defs": definitions, **opened(**{f"q{n}": schema for n in range(MANY)})}
    with within(2):  # a hundred times as much if each place examined its definition
        fitted(whole, dialect)


def test_definitions_that_use_each_other_many_times_cost_little() -> None:
    chain = {f"d{n}": opened(**{name: {"$ref": f"#/$defs/d{n + 1}"} for name in "ab"}) for n in range(2_000)}
    schema = {"$defs": {**chain, "d2000": {"type": "object", "properties": {"a": STRING}}}, "$ref": "#/$defs/d0"}
    assert fitted(schema, "claude") == (None, "")
    assert fitted(schema, "openai")[0] is not None

"""Simulated values for a JSON schema: each is valid for its schema."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema import Draft202012Validator

from tests.unit.umg_sandbox.steps import MAX_CALLS, counted
from tests.unit.umg_sandbox.validity import problems
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_sandbox.regular_expressions import compiled, matching_sample
from umg_sandbox.schema_value_generation import instance, json_of
from umg_sandbox.words_from_prompt import Words

PROMPT = (
    'What is the weather in Paris on 2026-03-04 for 3 people? Write to ann@mail.test or see https://a.test/b "red car"'
)


@dataclass(frozen=True)
class Case:
    id: str
    schema: object
    prompt: str = PROMPT
    made: object = field(default=...)  # where the exact value matters
    unfit: str = ""  # path of the keyword that the error names


def an_object(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(required)}


TREE = {
    "$defs": {"node": an_object("value", "children", value={"type": "integer"}, children={"type": "array", "items": {"$ref": "#/$defs/node"}})},
    "$ref": "#/$defs/node",
}  # fmt: skip
LINKED = an_object("name", "next", name={"type": "string"}, next={"anyOf": [{"$ref": "#"}, {"type": "null"}]})
EXPRESSION = {
    "$ref": "#/$defs/expression",
    "$defs": {
        "expression": {"oneOf": [{"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/literal"}]},
        "sum": an_object("left", "right", left={"$ref": "#/$defs/expression"}, right={"$ref": "#/$defs/expression"}) | {"additionalProperties": False},
        "literal": an_object("value", value={"type": "number"}) | {"additionalProperties": False},
    },
}  # fmt: skip
EVENT = {
    "oneOf": [
        an_object("kind", "x", kind={"const": "click"}, x={"type": "integer"}),
        an_object("kind", "key", kind={"const": "press"}, key={"type": "string"}),
    ]
}
PASSWORD = r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,12}$"

CASES = [
    Case(id="anything", schema={}),
    Case(id="true", schema=True),
    Case(id="an object without properties", schema={"type": "object"}, made={}),
    Case(id="words of the prompt", schema=an_object(city={"type": "string"}), prompt="weather in Paris", made={"city": "Paris"}),
    Case(id="a number of the prompt", schema=an_object(days={"type": "integer"}), prompt="for 3 days", made={"days": 3}),
    Case(id="an enum that the prompt names", schema={"enum": ["red", "green"]}, prompt="make it green", made="green"),
    Case(id="an enum of mixed kinds", schema={"enum": [None, 1, "a", {"b": []}]}),
    Case(id="a const object", schema={"const": {"a": [1, None]}}, made={"a": [1, None]}),
    Case(id="a date of the prompt", schema={"type": "string", "format": "date"}, made="2026-03-04"),
    Case(id="an email of the prompt", schema={"type": "string", "format": "email"}, made="ann@mail.test"),
    Case(id="an address of the prompt", schema={"type": "string", "format": "uri"}, made="https://a.test/b"),
    *(
        Case(id=f"format {name}", schema={"type": "string", "format": name}, prompt="émile")
        for name in ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")
    ),
    Case(id="nested objects", schema=an_object("a", a=an_object("b", b=an_object("c", c={"type": "boolean"})))),
    Case(id="additional properties only", schema={"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 3}),
    Case(id="no additional properties", schema=an_object("a", a={"type": "string"}) | {"additionalProperties": False}),
    Case(id="required but not described", schema={"type": "object", "required": ["a", "b"]}),
    Case(id="names by a pattern", schema={"type": "object", "patternProperties": {"^s_[a-z]{3}$": {"type": "string"}}, "additionalProperties": False, "minProperties": 2}),
    Case(id="names by a rule", schema={"type": "object", "propertyNames": {"pattern": "^[A-Z]{2,4}$"}, "minProperties": 2}),
    Case(id="few properties", schema=an_object("c", a={}, b={}, c={}) | {"maxProperties": 2}),
    Case(id="an array with bounds", schema={"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 5}),
    Case(id="an empty array", schema={"type": "array", "maxItems": 0}, made=[]),
    Case(id="a tuple", schema={"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}),
    Case(id="unique items", schema={"type": "array", "items": {"type": "string"}, "minItems": 6, "uniqueItems": True}),
    Case(id="unique items of an enum", schema={"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True}),
    Case(id="unique numbers in a small range", schema={"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 4}, "minItems": 4, "uniqueItems": True}),
    Case(id="an item of a kind", schema={"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 500}, "minItems": 2}),
    Case(id="a range", schema={"type": "integer", "minimum": 18, "maximum": 20}),
    Case(id="an open range", schema={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5}),
    Case(id="a negative range", schema={"type": "integer", "maximum": -5}),
    Case(id="multiples", schema={"type": "integer", "multipleOf": 7, "minimum": 50}),
    Case(id="multiples of a fraction", schema={"type": "number", "multipleOf": 0.01, "minimum": 0.005, "maximum": 0.03}),
    Case(id="whole multiples of a fraction", schema={"type": "integer", "multipleOf": 0.4, "minimum": 1}),
    Case(id="a long string", schema={"type": "string", "minLength": 300, "maxLength": 301}),
    Case(id="a short string", schema={"type": "string", "maxLength": 2}),
    Case(id="an exact string", schema={"type": "string", "minLength": 11, "maxLength": 11}),
    Case(id="a country", schema={"type": "string", "pattern": "^[A-Z]{2}$"}),
    Case(id="a phone number", schema={"type": "string", "pattern": r"^\+?[1-9]\d{6,14}$"}),
    Case(id="a slug", schema={"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$", "minLength": 12}),
    Case(id="a version", schema={"type": "string", "pattern": r"^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$"}),
    Case(id="a pattern inside", schema={"type": "string", "pattern": "x{3}", "minLength": 5}),
    Case(id="a count in a class", schema={"type": "string", "pattern": "^[{2000}]{3}$"}),
    Case(id="two patterns", schema={"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "^[ab]{4}$"}]}),
    Case(id="a tree", schema=TREE),
    Case(id="a linked list", schema=LINKED),
    Case(id="an expression", schema=EXPRESSION),
    Case(id="variants", schema=EVENT),
    Case(id="overlapping variants", schema={"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 1000}]}),
    Case(id="any of, null first", schema={"anyOf": [{"type": "null"}, {"type": "string"}]}),
    Case(id="all of", schema={"allOf": [an_object("a", a={"type": "integer", "minimum": 5}), an_object("b", a={"maximum": 6}, b={"type": "string"})]}),
    Case(id="all of with variants", schema={"allOf": [EVENT, an_object("at", at={"type": "string", "format": "date"})]}),
    Case(id="a reference with more beside it", schema={"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 77}),
    Case(id="a reference into properties", schema=an_object("a", "b", a={"type": "boolean"}, b={"$ref": "#/properties/a"})),
    Case(id="a reference into another keyword", schema={"$ref": "#/components/a", "components": {"a": an_object("n", n={"anyOf": [{"$ref": "#/components/a"}, {"type": "null"}]})}}),
    Case(id="requirements beside a reference to them", schema={"$ref": "#/$defs/a", "$defs": {"a": {"dependentRequired": {"a": ["b"]}}}, "dependentRequired": {"a": ["c"]}}),
    Case(id="excluded beside a reference to the same", schema={"$ref": "#/$defs/a", "$defs": {"a": {"not": {"type": "string"}}}, "not": {"type": "null"}, "anyOf": [{"type": "integer"}]}),
    Case(id="not null", schema={"not": {"type": "string"}}),
    Case(id="not the first", schema={"type": "string", "enum": ["a", "b"], "not": {"const": "a"}}),
    Case(id="several types", schema={"type": ["null", "integer"], "minimum": 3}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_instance_is_valid_under_its_schema(case: Case) -> None:
    made = instance(case.schema, Words(case.prompt))
    assert made == instance(case.schema, Words(case.prompt)), "the same prompt makes the same value"
    assert list(problems(made, case.schema)) == [], made
    assert json.loads(json_of(made)) == made
    if case.made is not ...:
        assert made == case.made


OUTSIDE = [
    Case(id="one property requires another", schema={"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"], "b": ["c"]}}, unfit="dependentRequired"),
    Case(id="a password", schema={"type": "string", "pattern": PASSWORD}, unfit="pattern"),
    Case(id="if, then", schema=an_object("a", a={"const": 1}) | {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}}, unfit="then.required"),
    Case(id="if, else", schema=an_object("a", a={"const": 2}) | {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, unfit="else.required"),
    Case(id="a look-ahead beside a format whose values are too long", schema={"type": "string", "format": "email", "pattern": "^(?!x)", "maxLength": 3}, unfit="maxLength"),
    Case(id="a back reference", schema={"type": "string", "pattern": r"^(a)\1$"}, unfit="pattern"),
    Case(id="a back reference inside", schema=an_object("a", a={"type": "string", "pattern": r"^(a)\1$"}), unfit="properties.a.pattern"),
    Case(id="an item of a kind", schema={"type": "array", "items": {"type": "string"}, "contains": {"type": "integer"}}, unfit="contains"),
]  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE, ids=lambda case: case.id)
def test_a_schema_for_which_no_value_is_found_is_refused_by_the_keyword_that_none_fits(case: Case) -> None:
    error = made_or_refused(case.schema)
    assert isinstance(error, UmgError), error
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "at"})
    assert f"fits `{case.unfit}` of the JSON schema" in error.message


SELF = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": {"$ref": "#/$defs/x"}}}]}
HOSTILE: list[object] = [
    {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 500, "uniqueItems": True, "$defs": {"x": SELF}},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    an_object("a", "b", a={"$ref": "#"}, b={"$ref": "#"}),
    {"type": "string", "pattern": "^(a+)+$", "minLength": 5000},
    {"type": "string", "pattern": "^((a{100}){100}){100}b$"},
    {"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 10**9}},
    {"type": "string", "minLength": 10**12},
    {"type": "string", "minLength": int("1" * 401)},
    {"$defs": {f"d{n}": {"type": "array", "minItems": 2, "items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(60)} | {"d60": {}}, "$ref": "#/$defs/d0"},
    {"$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{(7 * n + k) % 500}"} for k in range(5)]} for n in range(500)}, "$ref": "#/$defs/d0"},
    {"type": "array", "minItems": 400, "items": {"enum": [f"value {n}" for n in range(20_000)]}},
    {"type": "array", "minItems": 2000, "uniqueItems": True, "items": {"type": "number", "minimum": -1e308, "multipleOf": 1e-300}},
    {"type": "array", "minItems": 50, "items": {"anyOf": [{"maxProperties": 0, "required": [f"a{n}"]} for n in range(300)]}},
    {"type": "object", "minProperties": 500, "patternProperties": {f"^[a-z]{{{n}}}": {"maxLength": n} for n in range(1, 300)}},
    {"type": "object", "anyOf": [{"not": {"$ref": "#"}}, {"type": "array"}]},
    {"enum": [1], "not": {"not": {"allOf": [{"$ref": "#"}, {"type": ["string", "null"]}]}}},
    {"type": "object", "allOf": [{"properties": {"a": {"minLength": n, "anyOf": [{}, {"type": "string"}]}}, "required": ["a"]} for n in range(300)]},
    {"minimum": 3, "maximum": 1, "type": "integer"},
    {"type": "array", "minItems": 1000, "items": {"type": "string", "pattern": "(a|b|ab)*" * 500, "minLength": 1000}},
    {"type": "array", "minItems": 1000, "items": {"type": "object", "required": ["n" * 100_000]}},
    {"type": "array", "minItems": 10_000, "items": {"type": "string", "required": ["n"] * 500_000}},
    {"type": "object", "allOf": [{"type": ["string"] * 7}, {"enum": [*range(20_000)]}, {"enum": [*range(20_000)]}]},
    {"$defs": {f"d{n}": {"$ref": f"#/enum/{n}"} for n in range(1000)}, "enum": [{}] * 20_000, "$ref": "#/$defs/d0"},
    {"type": "array", "minItems": 1000, "items": {"const": ["c" * 100_000]}},
    False,
]  # fmt: skip


@pytest.mark.parametrize("schema", HOSTILE, ids=lambda schema: json.dumps(schema)[:60])
def test_a_hostile_schema_ends_within_its_budget(schema: object) -> None:
    with counted() as calls:
        made = made_or_refused(schema)
    assert calls.count < MAX_CALLS
    if isinstance(made, UmgError):
        assert made.reason == pb.ERROR_REASON_INVALID_FIELD
        assert made.metadata["field"].startswith("at")
    else:
        assert Draft202012Validator(schema).is_valid(made)


def deeper(levels: int, schema: object) -> object:
    return deeper(levels - 1, schema) if levels else made_or_refused(schema)


@pytest.mark.parametrize("schema", [{"enum": [1], "not": {"$ref": "#"}}, {"$ref": "#"}], ids=str)
def test_a_schema_that_holds_itself_is_refused_wherever_the_stack_ends(schema: object) -> None:
    for levels in range(40):
        made = deeper(levels, schema)
        assert isinstance(made, UmgError), made
        assert made.metadata == {"field": "at"}


def made_or_refused(schema: object) -> object:
    try:
        return instance(schema, Words(PROMPT), field="at")
    except UmgError as error:
        return error


@dataclass(frozen=True)
class Malformed:
    id: str
    schema: object
    field: str


MALFORMED = [
    Malformed("a dependency that is no name", an_object("e", e={}) | {"dependentRequired": {"e": [[{}]]}}, "at.dependentRequired[0]"),
    Malformed("a dependency that is no list", {"dependentRequired": {"e": 1}}, "at.dependentRequired"),
    Malformed("a required list", {"type": "object", "required": [["t"]]}, "at.required[0]"),
    Malformed("required without a list", an_object("a", a={"type": "string", "required": True}), "at.properties.a.required"),
    Malformed("a negative step", {"type": "integer", "allOf": [{"multipleOf": -1e308}, {"multipleOf": 7}]}, "at.allOf[0].multipleOf"),
    Malformed("a negative count", {"type": "string", "minLength": -1}, "at.minLength"),
    Malformed("a broken count", {"type": "array", "maxItems": 1.5}, "at.maxItems"),
    Malformed("a type that does not exist", {"type": "text"}, "at.type"),
    Malformed("a type in a list", {"type": [["string"]]}, "at.type[0]"),
    Malformed("no types", {"type": []}, "at.type"),
    Malformed("properties in a list", {"properties": [{}]}, "at.properties"),
    Malformed("a property that is no schema", {"properties": {"a": "string"}}, "at.properties.a"),
    Malformed("choices without any", {"anyOf": []}, "at.anyOf"),
    Malformed("a choice that is no schema", {"oneOf": [{}, 1]}, "at.oneOf[1]"),
    Malformed("an enum that is no list", {"enum": "a"}, "at.enum"),
    Malformed("a step of zero", {"multipleOf": 0}, "at.multipleOf"),
    Malformed("a definition that is no schema", {"$defs": {"a": 5}}, "at.$defs.a"),
    Malformed("definitions in a list", {"properties": {"a": {"$defs": []}}}, "at.properties.a.$defs"),
    Malformed("a malformed definition of draft 7", {"definitions": {"a": {"type": "text"}}}, "at.definitions.a.type"),
    Malformed("a long pattern", {"pattern": "a" * 5_001}, "at.pattern"),
    Malformed("uniqueness by a word", {"uniqueItems": "yes"}, "at.uniqueItems"),
    Malformed("a reference to elsewhere", {"$ref": "https://nowhere.test/schema"}, "at.$ref"),
    Malformed("a reference to nothing", {"items": {"$ref": "#/$defs/a"}}, "at.items.$ref"),
    Malformed("a reference to no schema", {"$ref": "#/required", "required": ["a"]}, "at.$ref"),
    Malformed("a malformed target", {"$ref": "#/$defs/a", "$defs": {"a": {"items": 1}}}, "at.$defs.a.items"),
]  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.id)
def test_a_malformed_keyword_is_rejected_by_its_path(case: Malformed) -> None:
    with pytest.raises(UmgError) as caught:
        instance(case.schema, Words(PROMPT), field="at")
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": case.field})
    assert caught.value.message.startswith(f"`{case.field}`: ")


def test_a_step_of_zero_is_refused_with_its_bound() -> None:
    with pytest.raises(UmgError, match="a number above 0"):
        instance({"multipleOf": 0}, Words(PROMPT), field="at")


OLDER = [
    Case(id="an exclusive bound of draft 4", schema={"type": "integer", "minimum": 5, "exclusiveMinimum": True, "maximum": 6}, made=6),
    Case(id="a tuple of draft 7", schema={"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}, "minItems": 2}, made=[1, 2]),
    Case(id="dependencies of draft 7", schema={"type": "object", "required": ["a"], "dependencies": {"a": ["b"]}, "properties": {"a": {"const": 1}, "b": {"const": 2}}}, made={"a": 1, "b": 2}),
    Case(id="a reference into a tuple of draft 7", schema={"type": "array", "items": [{"const": 1}, {"$ref": "#/items/0"}], "minItems": 2}, made=[1, 1]),
    Case(id="definitions of draft 7", schema={"$ref": "#/definitions/a", "definitions": {"a": {"const": 1}}}, made=1),
]  # fmt: skip


@pytest.mark.parametrize("case", OLDER, ids=lambda case: case.id)
def test_older_drafts_are_read(case: Case) -> None:
    assert instance(case.schema, Words(PROMPT)) == case.made


PATTERNS = [r"^\d{3}-\w+$", r"a|b(c|d)+", r"[^a-z]{2}", r"^\u0041[\x42-\x44]\.$", r"(?:ab){2,3}?c*", r"^\s\S$", r"\bfoo\b", r"^[\w.+-]+@\w+\.\w{2,}$", "^(?<year>[0-9]{4})$", "[]-]", "^a{,2}$"]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS[:-2])
def test_a_sample_of_a_pattern_matches_it(pattern: str) -> None:
    sample = matching_sample(pattern)
    assert sample is not None
    assert re.search(pattern.replace("?<year>", ""), sample)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PATTERNS[:8]), st.text("abcdfo 1-.@AB", max_size=8))
def test_a_text_matches_a_pattern_as_in_python(pattern: str, text: str) -> None:
    expression = compiled(pattern)
    assert expression is not None
    assert bool(expression.search(text)) == bool(re.search(pattern, text))


@pytest.mark.parametrize("pattern", [PASSWORD, "(?<!a)b", r"(a)\1", "(", "a" * 5001])
def test_an_unsupported_pattern_has_no_sample(pattern: str) -> None:
    assert (compiled(pattern), matching_sample(pattern)) == (None, None)


def test_the_search_for_a_name_in_many_words_is_bounded() -> None:
    words = Words("ab" * 2000)
    with counted() as calls:
        assert words.mentioned(["a"] * 1000) is None
    assert calls.count < 200_000


names = st.sampled_from(["".join(name) for length in (1, 2, 3) for name in product("abcdef", repeat=length)])
"""Names as of `st.text("abcdef", min_size=1, max_size=3)`, which draws each letter."""


@st.composite
def ranges(draw: DrawFn, low: str, high: str, values: SearchStrategy[int]) -> dict[str, object]:
    bounds = sorted([draw(values), draw(values)])
    return {name: bound for name, bound in zip((low, high), bounds, strict=True) if draw(st.booleans())}


texts = ranges("minLength", "maxLength", st.integers(0, 30)).map(lambda keywords: {"type": "string"} | keywords)
formats = st.sampled_from(["date", "date-time", "email", "uri", "uuid", "ipv4", "time"]).map(
    lambda name: {"type": "string", "format": name}
)
patterned = st.sampled_from([r"^[A-Z]{3}\d?$", "^x", "y$", r"^\d{2,4}-[a-f]+$", "^(red|green) car$"]).map(
    lambda pattern: {"type": "string", "pattern": pattern}
)
numbers = st.builds(
    lambda kind, keywords: {"type": kind} | keywords,
    st.sampled_from(["integer", "number"]),
    ranges("minimum", "maximum", st.integers(-50, 50)) | st.integers(1, 9).map(lambda step: {"multipleOf": step}),
)
enums = st.lists(st.none() | st.booleans() | st.integers(-9, 9) | names, min_size=1, max_size=4).map(
    lambda values: {"enum": values}
)
others = st.sampled_from(
    [{"type": "boolean"}, {"type": "null"}, {}, True, {"const": "c"}, {"type": ["string", "null"]}]
)
references = st.sampled_from([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"$ref": "#"}])


@st.composite
def objects(draw: DrawFn, inner: SearchStrategy[object]) -> dict[str, object]:
    properties = draw(st.dictionaries(names, inner, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    keywords: dict[str, object] = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        keywords["additionalProperties"] = draw(st.just(False) | inner)
    return keywords


@st.composite
def arrays(draw: DrawFn, inner: SearchStrategy[object]) -> dict[str, object]:
    keywords = {"type": "array", "items": draw(inner)} | draw(ranges("minItems", "maxItems", st.integers(0, 5)))
    if draw(st.booleans()):
        keywords["prefixItems"] = draw(st.lists(inner, max_size=2))
    return keywords


plain = texts | formats | patterned | numbers | enums | others
schemas = st.recursive(
    plain,
    lambda inner: (
        objects(inner)
        | objects(inner | references)
        | arrays(inner)
        | st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
        | st.lists(objects(inner), min_size=1, max_size=2).map(lambda branches: {"allOf": [{**b, "additionalProperties": True} for b in branches[:1]]})
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(schemas, plain, objects(plain), st.text(max_size=60))
def test_an_instance_is_valid_under_any_schema(schema: object, a: object, b: object, prompt: str) -> None:
    root = {"type": "object", "properties": {"it": schema}, "$defs": {"a": a, "b": b}}
    made = instance(root, Words(prompt))
    assert list(problems(made, root)) == [], made
    assert json.loads(json_of(made)) == made


FRESH = """
import sys
import umg_sandbox
from umg_sandbox.schema_value_generation import instance
from umg_sandbox.words_from_prompt import Words
assert "jsonschema" not in sys.modules
instance({"type": "integer"}, Words("a prompt"))
assert "jsonschema" in sys.modules
"""


def test_a_process_without_schemas_does_not_load_their_library() -> None:
    subprocess.run([sys.executable, "-c", FRESH], check=True)

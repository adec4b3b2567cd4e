"""Generated JSON schemas: each gives a valid value, or an error that names a field, in a bounded number of calls."""

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema import Draft202012Validator, SchemaError

from tests.unit.umg_sandbox.steps import MAX_CALLS, counted
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_sandbox.schema_reader import KEYWORD_NAMES
from umg_sandbox.schema_value_generation import instance, json_of
from umg_sandbox.words_from_prompt import Words

IGNORED = {"$id", "$schema", "$anchor", "$defs", "definitions", "dependencies", "unevaluatedProperties", "nullable"}
SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
names = st.sampled_from(["a", "b", "x1", "", "$ref", "properties", "é"])
numbers = (
    st.sampled_from([0, 1, -1, 3, 0.1, 1e308, -1e308, 5e-324, 10**15, 10**400, -(10**400), 2**53, 12, 500, 10**12])
    | st.integers(-5, 20)
    | st.floats(allow_nan=False, allow_infinity=False)
)
counts = st.integers(0, 5)
references = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/$defs/a/items", "#/nowhere", "http://x"]
)
patterns = st.sampled_from(
    ["^a+$", "^(a|b){3,9}$", "(x{100}){100}", "^(?=.*1)[a-z1]{4}$", "(?<!a)b", "(", "[\\ud800]", "\\p{L}+", "^$", "a{1}{1}{1}"]
) | st.text("ab([{^$\\.*?+|)}]1,-dp", max_size=8)  # fmt: skip
values = st.recursive(st.none() | st.booleans() | numbers | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=4)  # fmt: skip


def keyword_values(inner: SearchStrategy[object]) -> SearchStrategy[object]:
    """Return values of any keyword, also malformed ones."""
    return (
        inner
        | st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(names, inner, max_size=3)
        | st.dictionaries(names, st.lists(names, max_size=2), max_size=2)
        | st.lists(names, max_size=3)
        | values
        | references
        | patterns
    )


def fitting(inner: SearchStrategy[object]) -> dict[str, SearchStrategy[object]]:
    """Return well-formed values, by keyword."""
    kinds = st.sampled_from(["string", "number", "integer", "boolean", "object", "array", "null"])
    schemas = st.lists(inner, min_size=1, max_size=3)
    made: dict[str, SearchStrategy[object]] = dict.fromkeys(KEYWORD_NAMES, inner)
    made |= {name: st.dictionaries(names, inner, max_size=3) for name in SCHEMAS_BY_NAME}
    made |= dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), schemas)
    made |= dict.fromkeys(("minLength", "minItems", "minProperties", "minContains"), st.integers(0, 6))
    made |= dict.fromkeys(("maxLength", "maxItems", "maxProperties", "maxContains"), st.integers(0, 9))
    made |= dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"), numbers)
    return made | {
        "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
        "multipleOf": st.sampled_from([1, 7, 0.5, 0.01, 1e-300, 1e300]),
        "enum": st.lists(values, max_size=3),
        "const": values,
        "required": st.lists(names, max_size=3),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2), max_size=2),
        "uniqueItems": st.booleans(),
        "pattern": patterns,
        "format": st.sampled_from(["date", "uuid", "email", "unknown"]),
        "$ref": references,
    }


def schema_of(inner: SearchStrategy[object]) -> SearchStrategy[object]:
    well_formed = fitting(inner)
    well_formed_names = st.sampled_from(sorted(well_formed))
    all_names = st.sampled_from(sorted(KEYWORD_NAMES | IGNORED))
    any_value = keyword_values(inner)

    @st.composite
    def keywords(draw: DrawFn, *, may_be_malformed: bool) -> dict[str, object]:
        """Return a schema. Faster than tuples and `flatmap`, which make a strategy for each keyword."""
        made = dict[str, object]()
        for _ in range(draw(counts)):
            if may_be_malformed and draw(st.booleans()):
                made[draw(all_names)] = draw(any_value)
            else:
                name = draw(well_formed_names)
                made[name] = draw(well_formed[name])
        return made

    return keywords(may_be_malformed=False) | keywords(may_be_malformed=True)


schemas = st.recursive(st.booleans() | st.just({"type": "string"}) | references.map(lambda to: {"$ref": to}), schema_of, max_leaves=12)  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, st.dictionaries(st.sampled_from(["a", "b"]), schemas), st.text(max_size=40))
@example({"allOf": [{"type": "integer", "multipleOf": -1e308}, {"multipleOf": 7}]}, {}, "")
@example({"type": "object", "dependentRequired": {"e": [[{}]]}}, {}, "")
@example({"type": "object", "required": [["t"]]}, {}, "")
@example({"type": "string", "minLength": int("1" * 401)}, {}, "")
@example({"multipleOf": 1e300}, {}, "a")
def test_any_schema_makes_a_valid_value_or_is_refused(schema: object, defs: dict[str, object], prompt: str) -> None:
    root = {**schema, "$defs": defs} if isinstance(schema, dict) else schema
    with counted() as calls:
        made = made_or_refused(root, prompt)
    assert calls.count < MAX_CALLS
    if isinstance(made, UmgError):
        assert made.reason == pb.ERROR_REASON_INVALID_FIELD
        assert made.metadata["field"].startswith("at")
    else:
        json_of(made).encode()
        if understood(root):
            assert json.loads(json_of(made)) == made
            assert Draft202012Validator(root).is_valid(made), made


def made_or_refused(schema: object, prompt: str) -> object:
    try:
        return instance(schema, Words(prompt), field="at")
    except UmgError as error:
        return error


def understood(schema: object) -> bool:
    """Return whether every keyword takes effect: a schema of 2020-12 without patterns, which jsonschema searches for by
    Python's engine, and without the keywords that are ignored or rewritten.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return False
    text = json.dumps(schema)
    return not any(f'"{name}"' in text for name in ("pattern", "patternProperties", *(IGNORED - {"$defs"})))

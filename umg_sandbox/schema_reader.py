"""Reader of callers' JSON schemas: checks the form of keywords, resolves references, converts older drafts to
2020-12.

Keywords that are not listed here are ignored, as the standard requires for unknown keywords; so are `$id`, `$anchor`,
`$dynamicRef` and `unevaluated*`. `format` is only a hint for the generator.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, field

from umg_grpc.wire.core.json import convert, echo, invalid
from umg_sandbox.regular_expressions import MAX_PATTERN, MAX_PATTERNS, matches, problem
from umg_sandbox.schema_work_budget import WorkBudget

MAX_LEVELS = 100
"""Maximum depth of nested schemas."""
MAX_PATH = 200
"""Maximum characters of a path inside a schema in an error."""

EXACT = 2**53
"""Smallest integer from which one float may represent several integers."""

Kind = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Count = Annotated[int, Meta(ge=0)]
Number = int | float
Pattern = Annotated[str, Meta(max_length=MAX_PATTERN)]


class Schema(dict[str, object]):
    """JSON schema as a mapping of its keywords, as jsonschema requires, with `$ref` already resolved."""

    def __init__(self, raw: object = None, **keywords: object) -> None:
        super().__init__(keywords)
        self.raw = raw  # the caller's value, from which a document reads the keywords
        self.target: Schema | None = None  # of `$ref`
        self.height = math.inf  # nesting depth of the flattest valid value; infinite if every value contains itself

    @cached_property
    def keywords(self) -> "Keywords":
        """Keywords of the schema as typed attributes."""
        return msgspec.convert(dict(self), Keywords)

    @cached_property
    def size(self) -> int:
        """Steps of the work budget that reading the keywords takes."""
        return 1 + sum(members(value) for value in self.values()) // 16

    def __repr__(self) -> str:
        return "Schema"  # short, since jsonschema writes it into messages, which are never shown


ANY = Schema()
ANY.height = 0
Branches = Annotated[list[Schema], Meta(min_length=1)]


class Keywords(msgspec.Struct, rename="camel", kw_only=True):
    """Keywords of one schema as typed attributes, with defaults for absent ones."""

    type: Kind | Annotated[list[Kind], Meta(min_length=1, max_length=7)] | None = None
    enum: list[object] | None = None
    const: object = UNSET
    properties: dict[str, Schema] = {}
    required: list[str] = []
    additional_properties: Schema = ANY
    pattern_properties: dict[Pattern, Schema] = {}
    property_names: Schema = ANY
    dependent_required: dict[str, list[str]] = {}
    dependent_schemas: dict[str, Schema] = {}
    min_properties: Count = 0
    max_properties: Count | None = None
    items: Schema = ANY
    prefix_items: list[Schema] = []
    contains: Schema = ANY
    min_contains: Count = 1
    max_contains: Count | None = None
    unique_items: bool = False
    min_items: Count = 0
    max_items: Count | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    multiple_of: Number | None = None
    min_length: Count = 0
    max_length: Count | None = None
    pattern: Pattern | None = None
    format: str | None = None
    all_of: Branches = []
    any_of: Branches = []
    one_of: Branches = []
    not_: Schema = field(default=ANY, name="not")
    if_: Schema = field(default=ANY, name="if")
    then: Schema = ANY
    else_: Schema = field(default=ANY, name="else")
    ref: object = field(default=None, name="$ref")
    defs: dict[str, Schema] = field(default_factory=dict, name="$defs")
    definitions: dict[str, Schema] = {}

    @property
    def types(self) -> list[Kind]:
        """Allowed JSON types; an empty list for any type."""
        return self.type if isinstance(self.type, list) else [self.type] if self.type else []

    def of_pattern(self, name: str, budget: WorkBudget) -> list[Schema]:
        """Return the schemas in `patternProperties` that apply to the property `name`. Raise Exhausted if the budget
        has no steps left.
        """
        return [inner for pattern, inner in self.pattern_properties.items() if matches(pattern, name, budget)]

    def of_property(self, name: str, budget: WorkBudget) -> list[Schema]:
        """Return all schemas that apply to the value of the property `name`. Raise Exhausted if the budget has no
        steps left.
        """
        found = self.of_pattern(name, budget)
        if name in self.properties:
            return [*found, self.properties[name]]
        return found or [self.additional_properties]

    def height(self, target: Schema | None) -> float:
        """Return the nesting depth of the valid value with the least nesting, from the depths of the inner schemas.
        `target`: schema to which `$ref` refers, None without one.
        """
        if self.const is not UNSET or self.enum is not None:
            return 0 if self.enum != [] else math.inf
        heights = [part.height for part in self.all_of]
        heights += [min(branch.height for branch in branches) for branches in (self.any_of, self.one_of) if branches]
        if target is not None:
            heights.append(target.height)
        if "null" not in self.types:
            heights += [1 + self.properties.get(name, ANY).height for name in self.required]
            heights += [1 + self.items.height] if self.min_items else []
        return max(heights, default=0)


NAMES = dict(zip(Keywords.__struct_encode_fields__, Keywords.__struct_fields__, strict=True))
"""Name of a keyword -> attribute of `Keywords`."""
CHOICES = ("anyOf", "oneOf")


def members(value: object) -> int:
    """Return the number of members of a list or an object; 0 for any other value."""
    return len(value) if isinstance(value, list | dict) else 0


def key(value: object) -> object:
    """Return a hashable value that is equal for equal JSON values: 1 equals 1.0, true does not equal 1."""
    if isinstance(value, dict):
        return "object", frozenset((name, key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(key, value))
    return isinstance(value, bool), value


class SchemaDocument:
    """JSON schema of a caller with all schemas inside it, whose references are resolved."""

    def __init__(self, raw: object, field: str, budget: WorkBudget) -> None:
        """Read a schema. `raw`: decoded JSON; `field`: its path in the request. Raise UmgError(INVALID_FIELD) with
        the path of a malformed keyword, and Exhausted if the budget has no steps left.
        """
        self.root = Schema(raw)
        self._field = field
        self._budget = budget
        self._patterns = set[str]()
        self._schemas = {id(raw): self.root}  # by the identity of the caller's value
        self._unread = [(self.root, field)]
        schemas = list[Schema]()
        while self._unread:
            schema, at = self._unread.pop()
            self._read(schema, at)
            schemas.append(schema)
        self._measure(schemas)

    def _measure(self, schemas: list[Schema]) -> None:
        """Compute the nesting depth of each schema, repeatedly until no depth changes. `schemas`: outer ones before
        inner ones.
        """
        for _ in range(MAX_LEVELS):
            before = [schema.height for schema in schemas]
            for schema in reversed(schemas):
                self._budget.spend(schema.size)
                schema.height = schema.keywords.height(schema.target)
            if before == [schema.height for schema in schemas]:
                break

    def _read(self, schema: Schema, at: str) -> None:
        raw = ({} if schema.raw else {"enum": []}) if isinstance(schema.raw, bool) else schema.raw
        if not isinstance(raw, dict):
            raise invalid(at, "expected a JSON schema, which is an object or a boolean; correct it")
        modern = _modern(raw)
        schema.keywords = known = convert(Keywords, modern, at, _unread)
        for name, attribute in NAMES.items():
            if name in modern:
                schema[name] = value = getattr(known, attribute)
                for place, inner in _inner(value):
                    self._schemas[id(inner.raw)] = inner
                    self._unread.append((inner, _path(at, name + place)))
        self._budget.spend(schema.size)
        self._check_numbers_and_patterns(known, at)
        if known.ref is not None:
            schema["$ref"] = schema.target = self._target(str(known.ref), _path(at, "$ref"))

    def _check_numbers_and_patterns(self, known: Keywords, at: str) -> None:
        if known.multiple_of is not None and known.multiple_of <= 0:
            raise invalid(_path(at, "multipleOf"), "expected a number above 0; correct its value")
        names = dict.fromkeys(known.pattern_properties, "patternProperties")
        names |= {known.pattern: "pattern"} if known.pattern else {}
        for pattern in [each for each in names if each not in self._patterns]:
            self._patterns.add(pattern)
            self._budget.spend(100 + len(pattern) // 10)
            if len(self._patterns) > MAX_PATTERNS:
                raise invalid(self._field, f"expected at most {MAX_PATTERNS} different patterns; simplify the schema")
            if (why := problem(pattern)) is not None:
                raise invalid(_path(at, names[pattern]), why)

    def _target(self, reference: str, at: str) -> Schema:
        """Return the schema to which `reference` refers, a JSON pointer like `#/$defs/x`. `at`: path of the
        reference, for errors. Raise UmgError(INVALID_FIELD) if there is none.
        """
        found, place = self.root.raw, self._field
        beginning, *steps = unquote(reference).split("/")
        try:
            if beginning != "#":
                raise LookupError(beginning)
            for step in steps:
                self._budget.spend(1)
                name = step.replace("~1", "/").replace("~0", "~")
                is_index = isinstance(found, list) and name.isdecimal()
                found = found[int(name) if is_index else name]  # type: ignore[index]  # a TypeError is caught
                place = f"{place}[{name}]" if is_index else _path(place, echo(name))
        except (LookupError, TypeError, ValueError):
            message = "expected a reference to a schema in the same document, such as `#/$defs/name`; correct it"
            raise invalid(at, message) from None
        if id(found) not in self._schemas:
            self._schemas[id(found)] = Schema(found)
            self._unread.append((self._schemas[id(found)], place))
        return self._schemas[id(found)]


def _unread(kind: type, raw: object) -> object:
    """Return the value of a field while keywords are decoded: for a field of the type Schema a schema that is read
    later, otherwise the value unchanged.
    """
    return Schema(raw) if kind is Schema else raw


def _inner(value: object) -> Iterator[tuple[str, Schema]]:
    """Yield (path, schema) for each schema in the value of a keyword."""
    if isinstance(value, Schema):
        yield "", value
    elif isinstance(value, dict):
        yield from ((f".{echo(name)}", inner) for name, inner in value.items() if isinstance(inner, Schema))
    elif isinstance(value, list):
        yield from ((f"[{index}]", inner) for index, inner in enumerate(value) if isinstance(inner, Schema))


def _modern(raw: dict[str, object]) -> dict[str, object]:
    """Return the known keywords of a schema, with those of the drafts 4 to 7 converted to 2020-12. A keyword that is
    null counts as absent, except `const`.
    """
    modern = {name: value for name, value in raw.items() if value is not None or name == "const"}
    if isinstance(modern.get("items"), list):
        modern["prefixItems"] = modern.pop("items")
        modern["items"] = modern.get("additionalItems", True)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(modern.get(exclusive), bool) and modern.pop(exclusive) and bound in modern:
            modern[exclusive] = modern.pop(bound)
    if isinstance(dependencies := modern.get("dependencies"), dict):
        for keyword, kind in (("dependentRequired", list), ("dependentSchemas", dict | bool)):
            modern[keyword] = {name: needs for name, needs in dependencies.items() if isinstance(needs, kind)}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() and abs(value) < EXACT else value
        for name, value in modern.items()
        if name in NAMES
    }


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if len(at) + len(name) < MAX_PATH else at

"""Reading of callers' JSON schemas: the form of keywords, references, and older drafts as 2020-12.

All other keywords are annotations and are ignored, as the standard requires for unknown keywords: formats are hints for
the generator; `$id`, `$anchor`, `$dynamicRef` and `unevaluated*` have no effect.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, field

from umg_grpc.errors import UmgError
from umg_grpc.upstream.sandbox.budget import Budget
from umg_grpc.upstream.sandbox.patterns import MAX_PATTERN, MAX_PATTERNS, matches, problem
from umg_grpc.wire.core.json import convert, echo, invalid

MAX_LEVELS = 100
"""Maximum depth of nested schemas."""
MAX_PATH = 200
"""Maximum characters of a path inside a schema in an error."""

Kind = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Count = Annotated[int, Meta(ge=0)]
Number = int | float
Branches = Annotated[list[object], Meta(min_length=1)]


class Keywords(msgspec.Struct, rename="camel", kw_only=True):
    """Keywords of one schema that have an effect, with their defaults. Inner schemas are `object`."""

    type: Kind | Annotated[list[Kind], Meta(min_length=1, max_length=7)] | None = None
    enum: list[object] | None = None
    const: object = UNSET
    properties: dict[str, object] = {}
    required: list[str] = []
    additional_properties: object = True
    pattern_properties: dict[Annotated[str, Meta(max_length=MAX_PATTERN)], object] = {}
    property_names: object = True
    dependent_required: dict[str, list[str]] = {}
    dependent_schemas: dict[str, object] = {}
    min_properties: Count = 0
    max_properties: Count | None = None
    items: object = True
    prefix_items: list[object] = []
    contains: object = True
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
    pattern: Annotated[str, Meta(max_length=MAX_PATTERN)] | None = None
    format: str | None = None
    all_of: Branches = []
    any_of: Branches = []
    one_of: Branches = []
    not_: object = field(default=False, name="not")
    if_: object = field(default=True, name="if")
    then: object = True
    else_: object = field(default=True, name="else")
    ref: object = field(default=None, name="$ref")

    @property
    def types(self) -> list[Kind]:
        """`type` as a list, empty by default."""
        return self.type if isinstance(self.type, list) else [self.type] if self.type else []


KNOWN = frozenset(Keywords.__struct_encode_fields__)
SINGLE = {"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"}
SEVERAL = {"allOf", "anyOf", "oneOf", "prefixItems"}
CHOICES = ("anyOf", "oneOf")
DEFINITIONS = ("$defs", "definitions")
NAMED = {"properties", "patternProperties", "dependentSchemas"}


class Schema(dict[str, object]):
    """Parsed keywords of one schema; `$ref` is a Reference."""

    @cached_property
    def keywords(self) -> Keywords:
        """The keywords with their types."""
        return msgspec.convert(self, Keywords)

    def __repr__(self) -> str:
        return "Schema"  # short, since jsonschema writes it into messages, which are never shown


@dataclass(eq=False)
class Reference:
    """Resolved `$ref`: the target schema, and the nesting depth of the flattest value of that schema."""

    target: object = True
    height: float = math.inf


def keywords(schema: object) -> Keywords:
    """Return the keywords of a schema that was read; none for a boolean."""
    return schema.keywords if isinstance(schema, Schema) else Keywords()


def members(value: object) -> int:
    """Return the number of members of a list or an object; 0 for another value."""
    return len(value) if isinstance(value, list | dict) else 0


def height(schema: object, budget: Budget) -> float:
    """Return the nesting depth of the flattest valid value; infinite if every value contains itself. Raise
    Exhausted.
    """
    budget.spend(1)
    known = keywords(schema)
    if schema is False or known.const is not UNSET or known.enum is not None:
        return math.inf if schema is False else 0
    heights = [height(part, budget) for part in known.all_of]
    heights += [
        min(height(branch, budget) for branch in branches) for branches in (known.any_of, known.one_of) if branches
    ]
    if isinstance(known.ref, Reference):
        heights.append(known.ref.height)
    if "null" not in known.types:
        heights += [1 + height(known.properties.get(name, True), budget) for name in known.required]
        if known.min_items:
            heights.append(1 + height(known.items, budget))
    return max(heights, default=0)


def pattern_schemas(name: str, known: Keywords, budget: Budget) -> list[object]:
    """Return the schemas of `patternProperties` that apply to a property of that name. Raise Exhausted."""
    return [inner for pattern, inner in known.pattern_properties.items() if matches(pattern, name, budget)]


def key(value: object) -> object:
    """Return a hashable key: equal for equal JSON values, where 1 equals 1.0 and true equals no number."""
    if isinstance(value, dict):
        return "object", frozenset((name, key(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return "array", tuple(map(key, value))
    return isinstance(value, bool), value


class Document:
    """Schema with all targets of its references."""

    def __init__(self, raw: object, field: str, budget: Budget) -> None:
        """Read the schema in the field of that path. Raise UmgError(INVALID_FIELD) with the path of a malformed
        keyword, Exhausted.
        """
        self.references = dict[str, Reference]()
        self._raw = raw
        self._field = field
        self._budget = budget
        self._read = dict[int, Schema]()
        self._patterns = set[str]()
        self._pending = list[tuple[str, str]]()
        self.root = self._schema(raw, field, 0)
        while self._pending:
            self._resolve(*self._pending.pop())
        self._measure()

    def _measure(self) -> None:
        """Compute the heights of all references, repeatedly until none changes: the height of a reference is that of
        its target.
        """
        references = self.references.values()
        for _ in range(MAX_LEVELS):
            before = [reference.height for reference in references]
            for reference in references:
                reference.height = height(reference.target, self._budget)
            if before == [reference.height for reference in references]:
                break

    def _schema(self, raw: object, at: str, level: int) -> object:
        self._budget.spend(1)
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict):
            raise invalid(at, "expected a JSON schema, which is an object or a boolean; correct it")
        if level > MAX_LEVELS:
            raise invalid(self._field, "the schema is nested too deeply; simplify it")
        if id(raw) in self._read:
            return self._read[id(raw)]
        self._read[id(raw)] = schema = Schema()
        modern = _modern(raw)
        known = convert(Keywords, modern, at)
        if known.multiple_of is not None and known.multiple_of <= 0:
            raise invalid(_path(at, "multipleOf"), "expected a number above 0; correct its value")
        self._check_patterns({pattern: _path(at, "patternProperties") for pattern in known.pattern_properties})
        self._check_patterns({known.pattern: _path(at, "pattern")} if known.pattern else {})
        for name in DEFINITIONS:
            self._definitions(raw.get(name), _path(at, name), level + 1)
        for name, value in modern.items():
            self._budget.spend(1 + members(value) // 16)
            schema[name] = self._keyword(name, value, _path(at, name), level + 1)
        return schema

    def _check_patterns(self, places: dict[str, str]) -> None:
        """Check patterns, each with its path. Raise UmgError(INVALID_FIELD) for a malformed one or too many."""
        for pattern, at in places.items():
            if pattern in self._patterns:
                continue
            self._patterns.add(pattern)
            self._budget.spend(100 + len(pattern) // 10)
            if len(self._patterns) > MAX_PATTERNS:
                raise invalid(self._field, f"expected at most {MAX_PATTERNS} different patterns; simplify the schema")
            if (why := problem(pattern)) is not None:
                raise invalid(at, why)

    def _definitions(self, definitions: object, at: str, level: int) -> None:
        """Read the schemas to which references may point, also those to which none points."""
        if definitions is None:
            return
        if not isinstance(definitions, dict):
            raise invalid(at, "expected an object of JSON schemas; correct its type")
        for name, inner in definitions.items():
            self._schema(inner, _path(at, echo(str(name))), level)

    def _keyword(self, name: str, value: object, at: str, level: int) -> object:
        if name in SINGLE:
            return self._schema(value, at, level)
        if name in SEVERAL and isinstance(value, list):
            return [self._schema(inner, f"{at}[{index}]", level) for index, inner in enumerate(value)]
        if name in NAMED and isinstance(value, dict):
            return {key: self._schema(inner, _path(at, echo(str(key))), level) for key, inner in value.items()}
        if name == "$ref":
            return self._reference(value, at)
        return [value] if name == "type" and isinstance(value, str) else value

    def _reference(self, value: object, at: str) -> Reference:
        if not isinstance(value, str) or (value != "#" and not value.startswith("#/")):
            raise _unresolved(at)
        if value not in self.references:
            self.references[value] = Reference()
            self._pending.append((value, at))
        return self.references[value]

    def _resolve(self, pointer: str, at: str) -> None:
        """Read the target of a JSON pointer (`#/$defs/x`)."""
        target, place = self._raw, self._field
        for step in pointer.split("/")[1:]:
            self._budget.spend(1)
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and name in target:
                target, place = target[name], _path(place, echo(name))
            elif isinstance(target, list) and name.isdecimal() and len(name) < 10 and int(name) < len(target):
                target, place = target[int(name)], f"{place}[{name}]"
            else:
                raise _unresolved(at)
        self.references[pointer].target = self._schema(target, place, 0)


def _modern(raw: dict[str, object]) -> dict[str, object]:
    """Return the known keywords, those of drafts 4 to 7 as in 2020-12. Null is an absent keyword, save in `const`."""
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
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in modern.items()
        if name in KNOWN
    }


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if len(at) + len(name) < MAX_PATH else at


def _unresolved(at: str) -> UmgError:
    return invalid(at, "expected a reference to a schema in the same document, such as `#/$defs/name`; correct it")

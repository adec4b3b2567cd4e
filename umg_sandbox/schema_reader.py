"""Reader of callers' JSON schemas: checks keywords, resolves references, converts older drafts to 2020-12. As the
standard requires, unknown keywords are ignored; `$id`, `$anchor`, `$dynamicRef` and `unevaluated*` are, too. `format`
is only a hint for the generator.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, field

from umg_grpc.wire.core.json_decoding import convert, echo, invalid
from umg_sandbox.regular_expressions import MAX_PATTERN, matches
from umg_sandbox.schema_work_budget import WorkBudget

MAX_PLACE = 4_000
"""Maximum characters of a path inside a schema, whose nesting they limit."""

Kind = Literal["string", "number", "integer", "boolean", "object", "array", "null"]
Count = Annotated[int, Meta(ge=0)]
Number = int | float
Pattern = Annotated[str, Meta(max_length=MAX_PATTERN)]


class Schema(dict[str, object]):
    """JSON schema as a mapping of keywords, as jsonschema requires. `$ref` has the schema that it refers to."""

    @cached_property
    def keywords(self) -> "Keywords":
        return msgspec.convert(dict(self), Keywords)

    def __repr__(self) -> str:
        return "Schema"  # short, since jsonschema writes it into messages, which are never shown


ANY_SCHEMA = Schema()
Branches = Annotated[list[Schema], Meta(min_length=1)]


class Keywords(msgspec.Struct, rename="camel", kw_only=True):
    """Keywords of one schema as typed attributes, with defaults for absent ones."""

    type: Kind | Annotated[list[Kind], Meta(min_length=1, max_length=7)] | None = None
    enum: list[object] | None = None
    const: object = UNSET
    properties: dict[str, Schema] = {}
    required: list[str] = []
    additional_properties: Schema = ANY_SCHEMA
    pattern_properties: dict[Pattern, Schema] = {}
    property_names: Schema = ANY_SCHEMA
    dependent_required: dict[str, list[str]] = {}
    dependent_schemas: dict[str, Schema] = {}
    min_properties: Count = 0
    max_properties: Count | None = None
    items: Schema = ANY_SCHEMA
    prefix_items: list[Schema] = []
    contains: Schema = ANY_SCHEMA
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
    not_: Schema = field(default=ANY_SCHEMA, name="not")
    if_: Schema = field(default=ANY_SCHEMA, name="if")
    then: Schema = ANY_SCHEMA
    else_: Schema = field(default=ANY_SCHEMA, name="else")
    ref: Schema | None = field(default=None, name="$ref")
    defs: dict[str, Schema] = field(default_factory=dict, name="$defs")
    definitions: dict[str, Schema] = {}

    @property
    def types(self) -> list[Kind]:
        """Allowed JSON types; an empty list for any type."""
        return self.type if isinstance(self.type, list) else [self.type] if self.type else []

    def of_property(self, name: str, budget: WorkBudget) -> Schema:
        """Return the schema for the value of a property. Raise Exhausted if the budget has no steps left."""
        found = [inner for pattern, inner in self.pattern_properties.items() if matches(pattern, name, budget)]
        found += [self.properties[name]] if name in self.properties else []
        return Schema(allOf=found) if found else self.additional_properties


KEYWORD_NAMES = frozenset(Keywords.__struct_encode_fields__)


def joined(schemas: Sequence[Schema]) -> Keywords:
    """Return the keywords of schemas that all apply: `properties` and `required` combined, of others the first one."""
    if len(schemas) == 1:
        return schemas[0].keywords
    keywords, properties, required = dict[str, object](), dict[str, Schema](), list[str]()
    for schema in schemas:
        keywords = {**schema, **keywords}
        for name, inner in schema.keywords.properties.items():
            properties[name] = Schema(allOf=[properties[name], inner]) if name in properties else inner
        required += schema.keywords.required
    return msgspec.convert({**keywords, "properties": properties, "required": required}, Keywords)


def members(value: object) -> int:
    """Return the number of members of a list or an object; 0 for any other value."""
    return len(value) if isinstance(value, list | dict) else 0


def read_schema(raw: object, field: str, budget: WorkBudget) -> Schema:
    """Return a caller's schema. `raw`: decoded JSON; `field`: its path in the request. Raise UmgError(INVALID_FIELD)
    with the path of a malformed keyword, and Exhausted if the budget has no steps left.
    """
    references = list[tuple[str, Schema, str]]()
    root = _read(raw, field, budget, references)
    targets = dict[str, Schema]()
    for at, schema, reference in references:  # grows while targets outside of known keywords are read
        if reference not in targets:
            targets[reference] = _read(_target(root, reference, at, budget), at, budget, references)
        schema["$ref"] = targets[reference]
    return root


def _read(raw: object, at: str, budget: WorkBudget, references: list[tuple[str, Schema, str]]) -> Schema:
    if isinstance(raw, Schema):
        return raw
    if isinstance(raw, bool):
        return Schema() if raw else Schema(enum=[])
    if not isinstance(raw, dict):
        raise invalid(at, "expected a JSON schema, which is an object or a boolean; correct it")
    if len(at) > MAX_PLACE:
        raise RecursionError
    schema = Schema(_modern(raw))
    budget.spend(1 + sum(map(members, schema.values())) // 16)
    for name, value in schema.items():
        if name in _SCHEMAS:
            schema[name] = _read(value, f"{at}.{name}", budget, references)
        elif name in _MAPS and isinstance(value, dict):
            schema[name] = {key: _read(it, f"{at}.{name}.{echo(key)}", budget, references) for key, it in value.items()}
        elif name in _LISTS and isinstance(value, list):
            schema[name] = [_read(it, f"{at}.{name}[{index}]", budget, references) for index, it in enumerate(value)]
    if "$ref" in schema:
        references.append((f"{at}.$ref", schema, str(schema.pop("$ref"))))
    multiple = convert(Keywords, dict(schema), at).multiple_of
    if multiple is not None and multiple <= 0:
        raise invalid(f"{at}.multipleOf", "expected a number above 0; correct its value")
    return schema


_SCHEMAS = frozenset(("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"))
_MAPS = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_TUPLE = re.compile(r"/items/(\d+)")  # place in a list of schemas, as drafts 4 to 7 have it


def _target(root: Schema, reference: str, at: str, budget: WorkBudget) -> object:
    modern = _TUPLE.sub(r"/prefixItems/\1", unquote(reference))
    beginning, *steps = modern.split("/")
    found: object = root if beginning == "#" else None
    for step in steps:
        budget.spend(1)
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(name)] if re.fullmatch("[0-9]{1,9}", name) and int(name) < len(found) else None
        else:
            found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, dict | bool):
        message = "expected a reference to a schema in the same document, such as `#/$defs/name`; correct it"
        raise invalid(at, message)
    return found


def _modern(raw: dict[str, object]) -> dict[str, object]:
    """Return the keywords of a schema, with those of the drafts 4 to 7 converted to 2020-12."""
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
    ignored = ("$", "unevaluated")
    return {name: value for name, value in modern.items() if name in KEYWORD_NAMES or not name.startswith(ignored)}

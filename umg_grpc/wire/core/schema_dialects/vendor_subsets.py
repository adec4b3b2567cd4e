"""Conversion of a JSON schema to the subset of a vendor that enforces it while the model writes: Claude's, and OpenAI's
strict one.

Constraints outside the subset become a sentence of the description, and are reported. Apart from these, the result
accepts no value that the caller's schema rejects.
"""

from collections import Counter
from dataclasses import dataclass, field

from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.schema_dialects.schema_keywords import KEYWORD_CONSTRAINTS, described, json_of, sentence
from umg_grpc.wire.core.schema_dialects.schema_literals import are_disjoint, literals_of, type_of, types_of
from umg_grpc.wire.core.schema_dialects.schema_references import (
    ROOT_POINTER,
    definition_name,
    definitions_of,
    reference_to,
    uses_by_definition,
)
from umg_grpc.wire.core.schema_dialects.subset_rules import Subset

UNION_KEYWORDS = ("anyOf", "oneOf", "allOf")
ANNOTATION_KEYWORDS = ("description", "title", "default")
STRUCTURE_KEYWORDS = frozenset(
    {"type", "properties", "items", "$ref", *UNION_KEYWORDS, "enum", "const", "patternProperties"}
)
"""Keywords that describe a value by themselves; a schema without any of them only constrains another one."""
OBJECT_PARTS = frozenset({"properties", "patternProperties", "additionalProperties", "required"})
MAX_LEVELS = 64
"""Depth of nested schemas; vendors accept far fewer."""
MAX_MERGES = 16
"""Maximum number of schemas in an `allOf` that are merged, since a definition may be merged in many positions."""


class UnrepresentableError(Exception):
    """Error of a schema that the subset cannot express without excluding values that the caller wants."""


@dataclass
class SubsetEncoder:
    """Encoder of one schema in a vendor's subset. One instance per schema."""

    schema: JsonObject
    subset: Subset
    lost: dict[str, None] = field(default_factory=dict)
    """Keywords whose constraint or meaning is lost, in order."""

    def encode(self) -> JsonObject:
        """Return the schema in the subset. Raise UnrepresentableError."""
        self._definitions = definitions_of(self.schema)
        self._references = dict[str, Counter[str]]()
        self._optional = dict[str, int]()
        self._merges = 0
        root = self.schema
        if self.subset.object_root and isinstance(target := self._resolve(root), dict):
            root = target
        root = {key: value for key, value in root.items() if key not in {"$defs", "definitions"}}
        encoded = self._encode_definition(ROOT_POINTER, root)
        definitions = self._encode_definitions()
        if definitions:
            encoded = {"$defs": definitions, **encoded}
        self._check()
        if self.subset.object_root and encoded.get("type") != "object":
            raise UnrepresentableError
        return encoded

    def _check(self) -> None:
        maximum = self.subset.max_optional
        uses = uses_by_definition(self._references, 1 if maximum is None else maximum + 1)
        if uses is None:
            if not self.subset.recursive:
                raise UnrepresentableError
        elif maximum is not None and sum(uses[name] * count for name, count in self._optional.items()) > maximum:
            raise UnrepresentableError

    def _encode_definitions(self) -> JsonObject:
        encoded = JsonObject()
        waiting = list(self._references[ROOT_POINTER])
        while waiting:
            name = waiting.pop()
            if name in self._references:
                continue
            if name not in self._definitions:
                raise UnrepresentableError
            encoded[name] = self._encode_definition(name, self._definitions[name])
            waiting += self._references[name]
        return {name: encoded[name] for name in self._definitions if name in encoded}

    def _encode_definition(self, name: str, schema: object) -> JsonObject:
        self._name = name
        self._references[name], self._optional[name] = Counter(), 0
        return self._encode(schema, 0)

    def _encode(self, schema: object, level: int) -> JsonObject:
        if level > MAX_LEVELS or not isinstance(schema, dict):
            raise UnrepresentableError
        if schema.get("nullable") is True:
            rest = {key: value for key, value in schema.items() if key != "nullable"}
            return nullable(self._encode(rest, level + 1))
        branches = _branches(schema, "allOf")
        if len(branches) > 1 and not all(map(_only_constrains, branches)):
            return self._encode(self._merged(schema, branches), level + 1)
        left = dict(schema)
        encoded = self._encode_shape(left, level)
        notes = self._annotate(encoded, left)
        constraints = {name: left[name] for name in KEYWORD_CONSTRAINTS if _constrains(name, left, encoded)}
        self.lost |= dict.fromkeys(constraints)
        if constraints:
            notes.insert(0, sentence(constraints))
        return described(encoded, "\n".join(notes)) if notes else encoded

    def _encode_shape(self, left: JsonObject, level: int) -> JsonObject:
        if "$ref" in left:
            return self._encode_reference(left)
        if literals := literals_of(left):
            values: JsonObject = {"const": literals[0]} if "const" in left else {"enum": literals}
            for name in ("enum", "const", "type"):
                left.pop(name, None)
            kinds = list(dict.fromkeys(map(type_of, literals)))
            return {"type": kinds[0] if len(kinds) == 1 else kinds, **values} if self.subset.names_types else values
        if "enum" in left or "const" in left:
            raise UnrepresentableError
        unions = [name for name in UNION_KEYWORDS if _branches(left, name)]
        if unions and all(_only_constrains(branch) for name in unions for branch in _branches(left, name)):
            unions = []  # a sentence
        if len(unions) > 1:
            raise UnrepresentableError
        return self._encode_union(left, unions[0], level) if unions else self._encode_typed(left, level)

    def _encode_reference(self, left: JsonObject) -> JsonObject:
        """Return a `$ref`. Vendors ignore or reject it beside other keywords: then it is a union's only alternative."""
        name = definition_name(left.pop("$ref"))
        if name is None or left.keys() & (STRUCTURE_KEYWORDS | OBJECT_PARTS):
            raise UnrepresentableError
        self._references[self._name][name] += 1
        reference: JsonObject = {"$ref": reference_to(name)}
        return {"anyOf": [reference]} if left.keys() & {*ANNOTATION_KEYWORDS, *KEYWORD_CONSTRAINTS} else reference

    def _encode_union(self, left: JsonObject, name: str, level: int) -> JsonObject:
        """Return `anyOf` for a union, and for `allOf` with one schema."""
        branches = _branches(left, name)
        if left.keys() & (OBJECT_PARTS | {"items"}):
            raise UnrepresentableError
        if name != "oneOf" or are_disjoint(branches, self._resolve):
            del left[name]  # else its sentence remains
        else:
            left[name] = True
        if "type" in left:
            stated = types_of(left)
            branches = [self._typed_branch(branch, left["type"], stated or []) for branch in branches]
            del left["type"]
        return {"anyOf": [self._encode(branch, level + 1) for branch in branches]}

    def _typed_branch(self, branch: object, stated: object, types: list[str]) -> object:
        """Return a schema of a union, restricted to the type that is stated beside the union."""
        target = self._resolve(branch)
        if not isinstance(branch, dict) or not isinstance(target, dict):
            raise UnrepresentableError
        own = types_of(target)
        if own is None and "$ref" not in branch and not any(union in branch for union in UNION_KEYWORDS):
            return {"type": stated, **branch}
        if own is None or not all(kind in types or (kind == "integer" and "number" in types) for kind in own):
            raise UnrepresentableError
        return branch

    def _encode_typed(self, left: JsonObject, level: int) -> JsonObject:
        types = types_of(left)
        if types is None and left.get("type") is None:
            types = ["object"] if "properties" in left else ["array"] if "items" in left else None
        left.pop("type", None)
        if types is None:
            raise UnrepresentableError
        if len(types) == 1:
            return {"type": types[0], **self._encode_type(types[0], left, level)}
        if self.subset.names_types:
            encoded: JsonObject = {"type": types}
            for kind in types:
                encoded |= self._encode_type(kind, left, level)
            return encoded
        variants = list[JsonObject]()
        for kind in types:
            own = {name: value for name, value in left.items() if name not in ANNOTATION_KEYWORDS}
            variants.append({"type": kind, **self._encode_type(kind, own, level)})
            for name in left.keys() - own.keys() - set(ANNOTATION_KEYWORDS):
                del left[name]
        return {"anyOf": variants}

    def _encode_type(self, kind: str, left: JsonObject, level: int) -> JsonObject:
        """Return the keywords of one type that the subset accepts, and remove them from `left`."""
        if kind == "object":
            encoded = self._encode_object(left, level)
        elif kind == "array":
            encoded = self._encode_array(left, level)
        else:
            encoded = JsonObject()
        for name in self.subset.constraints.get(kind, ()):
            maximum = self.subset.max_minimum_items
            if name in left and not isinstance(left[name], bool) and (
                name != "minItems" or maximum is None or left[name] in range(maximum + 1)
            ):  # fmt: skip
                encoded[name] = left.pop(name)
        form = left.get("format")
        if kind == "string" and isinstance(form, str) and form in self.subset.formats:
            encoded["format"] = left.pop("format")
        return encoded

    def _encode_array(self, left: JsonObject, level: int) -> JsonObject:
        items, first = left.pop("items", True), left.get("prefixItems")
        if isinstance(items, list):  # a tuple of older drafts
            first, items = [*first, *items] if isinstance(first, list) else items, left.pop("additionalItems", True)
            left["prefixItems"] = first
        if isinstance(first, list) and first:
            places = [json_of(schema) for schema in first]
            rest = [items] if items not in (True, {}, False) else []
            distinct = dict(zip(places, first, strict=True))
            items = first[0] if len(distinct) == 1 and not rest else {"anyOf": [*distinct.values(), *rest]}
        is_any = items in (True, {})
        if items is False or (is_any and not self.subset.any_items):
            raise UnrepresentableError
        return {} if is_any else {"items": self._encode(items, level + 1)}

    def _encode_object(self, left: JsonObject, level: int) -> JsonObject:
        properties, extra = left.pop("properties", None), left.pop("additionalProperties", None)
        required = left.pop("required", None)
        if left.pop("patternProperties", None) or (isinstance(extra, dict) and extra):
            raise UnrepresentableError
        if not isinstance(properties, dict) or not properties:
            if extra is not False:
                raise UnrepresentableError
            properties = JsonObject()
        if extra is True or extra == {}:
            self.lost["additionalProperties"] = None
        names = dict.fromkeys(required) if isinstance(required, list) and _are_texts(required) else {}
        encoded = JsonObject()
        for name, schema in properties.items():
            if schema is False and name not in names:
                continue
            encoded[name] = self._encode(schema, level + 1)
            if name not in names:
                self._optional[self._name] += 1
                if self.subset.requires_all:
                    encoded[name] = self._null_if_absent(encoded[name])
        if any(name not in encoded for name in names):
            raise UnrepresentableError
        fields: JsonObject = {"properties": encoded, "additionalProperties": False}
        if self.subset.requires_all:
            fields["required"] = list(encoded)
        elif names:
            fields["required"] = list(names)
        return fields

    def _null_if_absent(self, schema: object) -> object:
        if not isinstance(schema, dict) or (allowing := nullable(schema)) == schema:
            return schema
        self.lost["required"] = None
        return allowing

    def _annotate(self, encoded: JsonObject, left: JsonObject) -> list[str]:
        """Add the annotations of a schema to its encoding. Return annotations that only a description can express."""
        notes = list[str]()
        for name in ("description", "title"):
            if isinstance(text := left.get(name), str):
                encoded[name] = text
        if "default" in left and self.subset.takes_defaults:
            encoded["default"] = left["default"]
        elif left.get("default") is not None:
            notes.append(f"Default: {json_of(left['default'])}")
        for name in ("examples", "example"):
            if name in left:
                notes.append(f"Examples: {json_of(left[name])}")
        return notes

    def _resolve(self, schema: object) -> object:
        """Return the schema to which a schema with only a `$ref` (and annotations) refers; other schemas unchanged."""
        for _ in range(MAX_MERGES):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            name = definition_name(schema["$ref"])
            schema = self.schema if name == ROOT_POINTER else self._definitions.get(name) if name else None
        return None

    def _merged(self, schema: JsonObject, branches: list[object]) -> JsonObject:
        """Return a schema whose `allOf` describes one object by several schemas, merged into one object schema."""
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        if merged.keys() & {"$ref", "anyOf", "oneOf", "enum", "const"}:
            raise UnrepresentableError
        properties = dict(_named(merged.get("properties")))
        required = _texts(merged.get("required"))
        waiting = list(branches)
        while waiting:
            self._merges += 1
            branch = self._resolve(waiting.pop(0))
            if self._merges > MAX_MERGES or not isinstance(branch, dict):
                raise UnrepresentableError
            own = dict(branch)
            waiting[:0] = _branches(own, "allOf")
            is_open = own.get("additionalProperties", True) in (True, {})  # else it excludes the others' properties
            if types_of(own) not in (None, ["object"]) or own.keys() - _MERGEABLE or not is_open:
                raise UnrepresentableError
            for name, described_property in _named(own.get("properties")).items():
                if properties.setdefault(name, described_property) != described_property:
                    raise UnrepresentableError
            required += _texts(own.get("required"))
        return {**merged, "type": "object", "properties": properties, "required": list(dict.fromkeys(required))}


_OBJECT_KEYWORDS = ("allOf", "type", "properties", "required", "additionalProperties", "$defs", "definitions")
_MERGEABLE = {*_OBJECT_KEYWORDS, *ANNOTATION_KEYWORDS}


def nullable(schema: JsonObject) -> JsonObject:
    """Return a schema that also accepts null."""
    kinds, values, branches = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(branches, list):
        return schema if {"type": "null"} in branches else {**schema, "anyOf": [*branches, {"type": "null"}]}
    if "null" in (kinds if isinstance(kinds, list) else [kinds]) or (isinstance(values, list) and None in values):
        return schema
    about = {name: schema[name] for name in ANNOTATION_KEYWORDS if name in schema}
    own = {name: value for name, value in schema.items() if name not in about}
    return {"anyOf": [own, {"type": "null"}], **about}


def _branches(schema: JsonObject, name: str) -> list[object]:
    branches = schema.get(name)
    return branches if isinstance(branches, list) else []


def _only_constrains(schema: object) -> bool:
    return isinstance(schema, dict) and schema.keys().isdisjoint(STRUCTURE_KEYWORDS)


def _constrains(name: str, left: JsonObject, encoded: JsonObject) -> bool:
    if name not in left or left[name] is False or left[name] is None:
        return False
    kinds = types_of(encoded)
    return kinds is None or not set(kinds).isdisjoint(KEYWORD_CONSTRAINTS[name][0])


def _named(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _are_texts(values: list[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []

"""JSON schemas as the sandbox reads them: references resolved, and what holds together put together."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from urllib.parse import unquote

Said = dict[str, object]
"""Keywords of one schema object."""

MAX_LEVELS = 100
"""Of references and combinations around one value."""

REFERENCES = ("$ref", "$dynamicRef", "ref")
CHOICES = ("anyOf", "oneOf")
HIGHEST = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
LOWEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
INNER = ("items", "additionalProperties", "propertyNames", "contains", "unevaluatedProperties", "unevaluatedItems")


@dataclass
class Flat:
    """All that holds for one value, whatever it was said by."""

    said: Said = field(default_factory=dict)
    patterns: list[str] = field(default_factory=list)
    choices: list[list[object]] = field(default_factory=list)
    """Of each, one branch holds too."""
    conditions: list[tuple[object, object, object]] = field(default_factory=list)
    """`if`, `then`, `else`."""
    impossible: bool = False


class Document:
    """A schema with what it refers to."""

    def __init__(self, root: object) -> None:
        self.root = root
        self._named: dict[str, object] | None = None
        self._heights: dict[str, float] | None = None

    def target(self, reference: str) -> object:
        """What a reference means; anything where it leads nowhere."""
        address, _, place = reference.partition("#")
        if not address and not place:
            return self.root
        if place.startswith("/") and (not address or address == self._root_name()):
            return _at(self.root, place)
        if self._named is None:
            self._named = {}
            _index(self.root, self._named, 0)
        if reference in self._named:
            return self._named[reference]
        if address in self._named and place.startswith("/"):
            return _at(self._named[address], place)
        return self._named.get(address, True) if not place else self._named.get("#" + place, True)

    def flat(self, schema: object) -> Flat:
        """The schema without references and `allOf`."""
        flat = Flat()
        self._flatten(schema, flat, 0, set())
        return flat

    def _root_name(self) -> str:
        return str(self.root.get("$id", "")) if isinstance(self.root, dict) else ""

    def _flatten(self, schema: object, flat: Flat, level: int, followed: set[str]) -> None:
        if schema is False or level > MAX_LEVELS:
            flat.impossible = True
        if not isinstance(schema, dict):
            return
        for keyword, value in schema.items():
            if keyword in REFERENCES and isinstance(value, str):
                if value not in followed:
                    followed.add(value)
                    self._flatten(self.target(value), flat, level + 1, followed)
            elif keyword == "allOf" and isinstance(value, list):
                for part in value:
                    self._flatten(part, flat, level + 1, followed)
            elif keyword in CHOICES and isinstance(value, list):
                flat.choices.append(value)
            elif keyword == "if":
                flat.conditions.append((value, schema.get("then", True), schema.get("else", True)))
            elif keyword == "pattern" and isinstance(value, str):
                flat.patterns.append(value)
            elif keyword in flat.said:
                flat.said[keyword] = _both(keyword, flat.said[keyword], value, flat)
            else:
                flat.said[keyword] = value

    def height(self, schema: object) -> float:
        """How deep the flattest value that fits is nested; infinite where every value would hold itself."""
        if self._heights is None:
            self._heights = dict.fromkeys(_references(self.root), math.inf)
            for _ in range(MAX_LEVELS):  # until nothing gets flatter: a reference is as high as what it leads to
                before = dict(self._heights)
                for reference in before:
                    self._heights[reference] = self._measure(self.target(reference))
                if self._heights == before:
                    break
        return self._measure(schema)

    def _measure(self, schema: object) -> float:
        if not isinstance(schema, dict):
            return math.inf if schema is False else 0
        if "const" in schema or "enum" in schema:
            return 0
        heights, known = [0.0], self._heights or {}
        heights += [known.get(reference, math.inf) for reference in referred(schema)]
        heights += [self._measure(part) for part in listed(schema.get("allOf"))]
        for keyword in CHOICES:
            if branches := listed(schema.get(keyword)):
                heights.append(min(map(self._measure, branches)))
        kind = kind_of(schema)
        if nullable(schema):
            pass
        elif kind == "object":
            properties = named(schema.get("properties"))
            heights += [1 + self._measure(properties.get(str(name), True)) for name in listed(schema.get("required"))]
        elif kind == "array" and size(schema.get("minItems")) > 0:
            heights.append(1 + self._measure(schema.get("items", True)))
        return max(heights)


def referred(schema: Said) -> list[str]:
    """What the schema itself refers to."""
    return [reference for keyword in REFERENCES if isinstance(reference := schema.get(keyword), str)]


def _references(value: object) -> Iterator[str]:
    """All references of a document."""
    if isinstance(value, dict):
        yield from referred(value)
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _at(value: object, pointer: str) -> object:
    for step in pointer.split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return True
    return value


def _index(value: object, into: dict[str, object], level: int) -> None:
    """All schemas that have an id or an anchor."""
    if isinstance(value, dict) and level <= MAX_LEVELS:
        for keyword, prefix in (("$id", ""), ("id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
            if isinstance(name := value.get(keyword), str):
                into.setdefault(prefix + name, value)
        for inner in value.values():
            _index(inner, into, level + 1)
    elif isinstance(value, list) and level <= MAX_LEVELS:
        for inner in value:
            _index(inner, into, level + 1)


def _both(keyword: str, one: object, other: object, flat: Flat) -> object:
    """What a keyword says where two schemas that say it hold together."""
    if one == other and type(one) is type(other):
        return one
    if keyword == "properties" and isinstance(one, dict) and isinstance(other, dict):
        return one | {name: {"allOf": [one[name], other[name]]} if name in one else other[name] for name in other}
    if keyword == "patternProperties" and isinstance(one, dict) and isinstance(other, dict):
        return one | {name: {"allOf": [one[name], other[name]]} if name in one else other[name] for name in other}
    if keyword == "required" and isinstance(one, list) and isinstance(other, list):
        return list(dict.fromkeys([*map(str, one), *map(str, other)]))
    if keyword in INNER:
        return {"allOf": [one, other]}
    if keyword in HIGHEST and number(one) and number(other):
        return max(value_of(one), value_of(other))
    if keyword in LOWEST and number(one) and number(other):
        return min(value_of(one), value_of(other))
    if keyword == "multipleOf" and number(one) and number(other):
        first, second = exact(one), exact(other)
        return float(
            Fraction(math.lcm(first.numerator, second.numerator), math.gcd(first.denominator, second.denominator))
        )
    if keyword in ("enum", "type"):
        kept = [
            value for value in listed_or_one(one) if any(_same_kind(value, choice) for choice in listed_or_one(other))
        ]
        if keyword == "type" and "number" in listed_or_one(one) and "integer" in listed_or_one(other):
            kept.append("integer")
        flat.impossible |= not kept
        return kept
    if keyword == "const":
        flat.impossible = True
    return one if keyword in ("title", "description", "default", "examples") else other


def _same_kind(one: object, other: object) -> bool:
    return same(one, other) or (one == "integer" and other == "number")


def listed(value: object) -> list[object]:
    """The list, or none."""
    return value if isinstance(value, list) else []


def listed_or_one(value: object) -> list[object]:
    """The list, or the value alone."""
    return value if isinstance(value, list) else [value]


def named(value: object) -> dict[str, object]:
    """The object, or none."""
    return value if isinstance(value, dict) else {}


def number(value: object) -> bool:
    """Whether it is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_of(value: object) -> int | float:
    """The number; 0 for what is none."""
    return value if isinstance(value, int | float) else 0


def exact(value: object) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(str(value))


def size(value: object) -> int:
    """A number of things; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else 0


def nullable(said: Said) -> bool:
    """Whether null is among several types."""
    return isinstance(kinds := said.get("type"), list) and "null" in kinds


def kind_of(said: Said) -> str:
    """The type of value to make: the first that is not null, else what the keywords speak of; "" for any."""
    kinds = [str(kind) for kind in listed_or_one(said["type"])] if "type" in said else []
    if kinds:
        return next((kind for kind in kinds if kind != "null"), "null")
    for kind, keywords in _SPOKEN_OF.items():
        if any(keyword in said for keyword in keywords):
            return kind
    return ""


_SPOKEN_OF = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def same(one: object, other: object) -> bool:
    """Equality of JSON values: 1 equals 1.0, and true is no number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return one == other


class Bounds:
    """Range of a number. `above` and `below`: whether the bound itself is outside."""

    def __init__(self, said: Said) -> None:
        self.low, self.above = _bound(said, "minimum", "exclusiveMinimum", max)
        self.high, self.below = _bound(said, "maximum", "exclusiveMaximum", min)
        step = said.get("multipleOf")
        self.step = exact(step) if number(step) and value_of(step) > 0 else None


def _bound(
    said: Said, closed: str, opened: str, stricter: Callable[[Fraction, Fraction], Fraction]
) -> tuple[Fraction | None, bool]:
    inside = exact(said[closed]) if number(said.get(closed)) else None
    if said.get(opened) is True:  # draft 4
        return inside, True
    if not number(said.get(opened)):
        return inside, False
    outside = exact(said[opened])
    if inside is None or stricter(inside, outside) == outside:
        return outside, True
    return inside, False


def limits(said: Said, least: str, most: str) -> tuple[int, int | None]:
    """Two sizes: the least, the most (None without)."""
    return size(said.get(least)), size(said[most]) if number(said.get(most)) else None


def tuple_items(said: Said) -> tuple[list[object], object]:
    """Schemas of the first items, and of all that follow; older drafts write the former as a list of `items`."""
    items = said.get("items", True)
    if isinstance(items, list):
        return items, said.get("additionalItems", True)
    return listed(said.get("prefixItems")), items

"""Generation of values that are valid for a JSON schema, from the words of the prompt.

Generated are the keywords that SDKs write for types: `type`, `enum`, `const`, `properties`, `required`, `anyOf`,
`oneOf`, `allOf`, `$ref`, the bounds, `pattern` and `format`. For other keywords a few values are tried.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from fractions import Fraction
from itertools import chain, islice

from msgspec import UNSET

from umg_grpc.upstream.sandbox.budget import STEP_SIZE, Budget, Exhausted
from umg_grpc.upstream.sandbox.patterns import compiled, samples
from umg_grpc.upstream.sandbox.schemas import (
    CHOICES,
    Document,
    Keywords,
    Reference,
    Schema,
    height,
    key,
    keywords,
    members,
    pattern_schemas,
)
from umg_grpc.upstream.sandbox.string_formats import FORMATS, slug
from umg_grpc.upstream.sandbox.vocabulary import Words
from umg_grpc.wire.core.json import invalid

RICH_DEPTH = 4
"""Depth down to which optional properties are included; below only required ones."""
RICH_NODES = 1000
"""Number of values of one instance with optional properties; all further values have required ones only."""
MAX_DEPTH = 40
TRIES = 12
NUMBERS = 100
"""Maximum number of numbers tried for one value."""
STEPS = 40_000
"""Maximum steps for reading a schema, and for each of two attempts at a value (the second with required properties
only). Each step takes some microseconds.
"""
REQUEST_STEPS = 5 * STEPS
"""Maximum steps for all values of one request, since a caller may request many answers and tool calls."""

PLAIN = {"type", "format"}
"""Keywords of a schema for whose type every text is valid."""
ABOUT = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "uniqueItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that apply to one type only."""


def instance(
    schema: object, words: Words, *, field: str = "schema", only_mentioned: bool = False, budget: Budget | None = None
) -> object:
    """Return a value that is valid for the schema. `field`: its path in the request. `only_mentioned`: include only the
    optional properties that the prompt names. `budget`: of all values of the request.

    Raise UmgError(INVALID_FIELD) with the path of a malformed keyword, or with `field` if no valid value is found
    within the budget.
    """
    budget = budget or Budget(REQUEST_STEPS)
    try:
        with budget.part(STEPS) as part:
            document = Document(schema, field, part)
        for minimal in (False, True):
            with budget.part(STEPS) as part:
                generator = _Generator(part, words, only_mentioned=only_mentioned, minimal=minimal)
                if (made := generator.attempt(document.root)) is not None:
                    return made[0]
    except Exhausted:
        raise invalid(
            field,
            "no value of the JSON schema is made within the steps that are allowed; lower its counts, or simplify it",
        ) from None
    except RecursionError:
        raise invalid(field, "the JSON schema is nested too deeply, or refers to itself; simplify it") from None
    raise invalid(field, "no value was found that fits the JSON schema; simplify it, or correct it if nothing can fit")


def json_of(value: object) -> str:
    """Return the value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Generator:
    """Generator of one instance. Its methods raise Exhausted."""

    def __init__(self, budget: Budget, words: Words, *, only_mentioned: bool, minimal: bool) -> None:
        self._only_mentioned = only_mentioned
        self._minimal = minimal
        self._budget = budget
        self._words = words
        self._nodes = RICH_NODES if minimal else 0
        self._used = set[object]()  # numbers of the prompt that were used; each is used once

    def attempt(self, schema: object) -> tuple[object] | None:
        """Return a valid value, None if none was found. A minimal value is made with required properties only; if it is
        not valid the simplest values of some types are tried.
        """
        simplest: list[object] = [{}, [], "", 0, True, None] if self._minimal else []
        try:
            made = self._make(schema, "", 0)
            return next(((value,) for value in (made, *simplest) if self._fits(value, schema)), None)
        except OverflowError:  # a fraction between integers beyond the range of doubles
            return None
        except (Exhausted, RecursionError):
            if self._minimal:
                raise
            return None

    def _make(self, schema: object, at: str, depth: int, others: Collection[object] = ()) -> object:
        """Return a value for the place `at`: the first candidate that is valid and whose key is not among the others;
        the first of all if there is none. Plain texts, objects and arrays are validated only in the whole instance.
        """
        self._budget.spend(1)
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise RecursionError
        merged = self._merged(schema, set())
        candidates = self._candidates(merged, at, depth)
        first = next(candidates, None)
        is_plain = merged.keys().isdisjoint(CHOICES) if isinstance(first, dict | list) else merged.keys() <= PLAIN
        if is_plain and not others and not isinstance(first, int | float):
            return first
        for value in chain([first], candidates):
            self._budget.spend(1)
            if (not others or key(value) not in others) and self._fits(value, schema):
                if type(value) in {int, float}:
                    self._used.add(value)
                return value
        return first

    def _fits(self, value: object, schema: object) -> bool:
        """Return whether the value is valid. Raise Exhausted, RecursionError."""
        from umg_grpc.upstream.sandbox.schema_validation import fits  # imported with the first schema: it is slow

        return fits(value, schema, self._budget)

    def _merged(self, schema: object, followed: set[Reference]) -> Schema:
        """Return all keywords that apply to a value of the schema, without `$ref` and `allOf`."""
        self._budget.spend(1)
        if not isinstance(schema, Schema):
            return Schema(enum=[]) if schema is False else Schema()
        known, merged = keywords(schema), Schema()
        parts = [self._merged(part, followed) for part in known.all_of]
        if isinstance(known.ref, Reference) and known.ref not in followed:
            followed.add(known.ref)
            parts.append(self._merged(known.ref.target, followed))
        for part in (*parts, schema):
            for name, value in part.items():
                self._budget.spend(1 + members(value) // 16)
                if name not in {"$ref", "allOf"}:
                    merged[name] = _both(name, merged[name], value) if name in merged else value
        return merged

    def _candidates(self, merged: Schema, at: str, depth: int) -> Iterator[object]:
        """Yield values that may be valid, the most likely first."""
        known = keywords(merged)
        if choice := next((name for name in CHOICES if name in merged), None):
            rest = Schema({name: value for name, value in merged.items() if name != choice})
            for branch in self._ordered(known.any_of or known.one_of, depth):
                yield self._make(Schema(allOf=[rest, branch]), at, depth)
        elif known.const is not UNSET:
            yield from self._listed([known.const], at)
        elif known.enum is not None:
            yield from self._listed(known.enum, at)
        elif self._is_minimal(depth) and "null" in known.types:
            yield None
        else:
            yield from self._of_kind(_kind_of(merged, known), known, at, depth)

    def _of_kind(self, kind: str, known: Keywords, at: str, depth: int) -> Iterator[object]:
        match kind:
            case "object":
                yield from (self._object(known, at, depth) for _ in range(TRIES))
            case "array":
                yield from (self._array(known, at, depth) for _ in range(TRIES))
            case "integer" | "number":
                yield from self._numbers(known, at, whole=kind == "integer")
            case "boolean":
                chosen = self._words.pick(at, 2) == 0
                yield from (chosen, not chosen)
            case "null":
                yield None
            case _:  # a string, or any type
                yield from self._texts(known, at)
                if kind != "string":
                    yield from (1, True, {}, [], None)

    def _ordered(self, branches: list[object], depth: int) -> list[object]:
        """Return the alternative schemas in the order in which they are tried: null last; deep inside a value those
        with the flattest values first.
        """
        self._budget.spend(len(branches))
        ordered = sorted(branches, key=lambda branch: keywords(branch).types == ["null"])
        return sorted(ordered, key=lambda branch: height(branch, self._budget)) if self._is_minimal(depth) else ordered

    def _is_minimal(self, depth: int) -> bool:
        return depth >= RICH_DEPTH or self._nodes > RICH_NODES

    def _mentioned(self, names: Iterable[str]) -> str | None:
        """Return the first of the names that the prompt contains."""
        searched = list(names)
        self._budget.spend(sum(1 + len(name) // 100 for name in searched))
        return self._words.mentioned(searched)

    def _listed(self, values: list[object], at: str) -> Iterator[object]:
        """Yield the listed values: first the one that the prompt names, then all from a chosen position on."""
        self._budget.spend(len(repr(values)) // STEP_SIZE)
        if (mentioned := self._mentioned(value for value in values if isinstance(value, str))) is not None:
            yield mentioned
        start = self._words.pick(at, len(values) or 1)
        yield from values[start:] + values[:start]

    def _object(self, known: Keywords, at: str, depth: int) -> dict[str, object]:
        names = dict.fromkeys(known.required)
        optional = [name for name in known.properties if name not in names]
        self._budget.spend(len(optional) // 16)
        if not self._is_minimal(depth):
            chosen = (name for name in optional if not self._only_mentioned or self._mentioned([name]) is not None)
            names |= dict.fromkeys(name for name in chosen if height(known.properties[name], self._budget) < math.inf)
        if known.max_properties is not None:
            names = dict.fromkeys([*names][: max(known.max_properties, len(known.required))])
        spare = (name for name in optional if name not in names)
        names |= dict.fromkeys(islice(spare, max(0, min(known.min_properties - len(names), len(optional)))))
        made = {name: self._property(name, known, at, depth) for name in names}
        while len(made) < known.min_properties:
            made_up = self._made_up_name(known, at, made)
            if made_up in made:
                break
            made[made_up] = self._property(made_up, known, at, depth)
        return {name: made[name] for name in [*known.properties, *made] if name in made}

    def _made_up_name(self, known: Keywords, at: str, others: Collection[str]) -> str:
        """Return a name for a property that is not described, one of the others if none is found."""
        self._budget.spend(len(others) // STEP_SIZE)
        patterns = [Schema(pattern=pattern) for pattern in known.pattern_properties]
        rules = [Schema(type=["string"]), known.property_names, *patterns[:1]]
        return str(self._make(Schema(allOf=rules), f"{at}#", 0, {key(name) for name in others}))

    def _property(self, name: str, known: Keywords, at: str, depth: int) -> object:
        self._budget.spend(len(name) // STEP_SIZE)
        inner = pattern_schemas(name, known, self._budget)
        if name in known.properties or not inner:
            inner.append(known.properties.get(name, known.additional_properties))
        schema = Schema(allOf=inner) if len(inner) > 1 else inner[0]
        return self._make(schema, f"{at}/{name[:80]}", depth + 1)

    def _array(self, known: Keywords, at: str, depth: int) -> list[object]:
        first = known.prefix_items
        endless = height(known.items, self._budget) == math.inf
        some = 0 if self._is_minimal(depth) or (endless and not first) else len(first) or (1 if depth else 2)
        wanted = max(known.min_items, some if known.max_items is None else min(some, known.max_items))
        made, keys = list[object](), set[object]()
        for index in range(wanted):
            schema = first[index] if index < len(first) else known.items
            made.append(self._make(schema, f"{at}/{index}", depth + 1, keys))
            if known.unique_items:
                if key(made[-1]) in keys and len(made) > known.min_items:
                    return made[:-1]
                keys.add(key(made[-1]))
        return made

    def _numbers(self, known: Keywords, at: str, *, whole: bool) -> Iterator[int | float]:
        self._budget.spend(10)  # the numbers may have hundreds of digits
        for mentioned in self._words.numbers:
            if mentioned not in self._used:
                yield mentioned
        low = _furthest(max, known.minimum, known.exclusive_minimum)
        high = _furthest(min, known.maximum, known.exclusive_maximum)
        picked, step = self._words.pick(at, NUMBERS), _exact(known.multiple_of or (1 if whole else 0))
        made: Iterable[Fraction]
        if step:
            step = Fraction(step.numerator) if whole else step
            last = math.floor(high / step) if high is not None else None
            minimum = math.ceil(low / step) if low is not None else 1 if last is None else last - NUMBERS
            count = NUMBERS if last is None else min(NUMBERS, last - minimum + 1)
            made = ((minimum + (picked + offset) % count) * step for offset in range(count))
        elif low is not None and high is not None:
            made = (low + (high - low) * Fraction(share, 200) for share in (picked + 50, 100, 0, 200))
        elif low is not None:
            made = (low + 1 + picked, low)
        else:
            made = (high - 1 - picked, high) if high is not None else (Fraction(1 + picked),)
        yield from (int(value) if value.denominator == 1 else float(value) for value in made)

    def _texts(self, known: Keywords, at: str) -> Iterator[str]:
        minimum, maximum = known.min_length, known.max_length
        self._budget.spend(minimum // 10)
        if known.format in FORMATS:
            yield FORMATS[known.format](self._words, at)
        if known.pattern is None:
            for attempt in range(TRIES):
                yield self._words.phrase(minimum + 10 * attempt, maximum)
            return
        if compiled(known.pattern) is None:
            return
        phrase = self._words.phrase(minimum, maximum)
        yield from (phrase, slug(phrase), phrase.title())
        yield from (make(self._words, at) for make in FORMATS.values())
        self._budget.spend(20 + len(known.pattern) // 10)
        for sample in samples(known.pattern):
            missing = range(max(0, minimum - len(sample)), max(0, minimum - len(sample)) + TRIES)
            yield from (sample + sample[-1:] * count for count in missing)
            yield from (sample[:1] * count + sample for count in missing)


def _both(name: str, one: object, other: object) -> object:
    """Return the value of a keyword that applies in two schemas, combined; the second schema's value if the two cannot
    be combined.
    """
    match one, other:
        case Schema(), Schema() if name == "not":
            return Schema(anyOf=[one, other])
        case Schema(), Schema():
            return Schema(allOf=[one, other]) if name in {"items", "additionalProperties", "propertyNames"} else other
        case dict(), dict() if name == "dependentRequired":
            return one | {key: [*one.get(key, ()), *needs] for key, needs in other.items()}
        case dict(), dict():
            return one | {key: Schema(allOf=[one[key], inner]) if key in one else inner for key, inner in other.items()}
        case list(), list() if name == "required":
            return [*one, *other]
        case list(), list() if name == "type":
            return [value for value in other if value in one] or other
        case int() | float(), int() | float():
            return max(one, other) if "min" in name.lower() else min(one, other)
        case _:  # two values that cannot be combined
            return other


def _kind_of(merged: Schema, known: Keywords) -> str:
    """Return the type of value to generate: the first that is not null, else the type to which the keywords apply; ""
    for any.
    """
    if known.types:
        return next((kind for kind in known.types if kind != "null"), "null")
    return next((kind for kind, about in ABOUT.items() if not merged.keys().isdisjoint(about)), "")


def _furthest(choose: Callable[[list[Fraction]], Fraction], *bounds: float | None) -> Fraction | None:
    """Return the greatest or least (`choose`) of the bounds that are not None; None if all are None."""
    given = [_exact(bound) for bound in bounds if bound is not None]
    return choose(given) if given else None


def _exact(value: float) -> Fraction:
    """Return a number as the fraction that its decimal digits state: 0.1 is exactly a tenth."""
    return Fraction(str(value))

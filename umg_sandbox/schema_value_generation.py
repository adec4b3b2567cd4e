"""Generation of JSON values that are valid for a caller's schema, from the words of the prompt.

The generator follows the keywords that SDKs derive from types: `type`, `enum`, `const`, `properties`, `required`,
`anyOf`, `oneOf`, `allOf`, `$ref`, the bounds, `pattern` and `format`. For other keywords it tries a few values.
"""

import json
import math
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice
from typing import assert_never

from msgspec import UNSET

from umg_grpc.wire.core.json import invalid
from umg_sandbox.prompt_words import Words
from umg_sandbox.regular_expressions import compiled, samples
from umg_sandbox.schema_reader import CHOICES, Keywords, Kind, Schema, SchemaDocument, key
from umg_sandbox.schema_work_budget import STEP_SIZE, Exhausted, WorkBudget
from umg_sandbox.string_formats import FORMATS, slug

RICH_DEPTH = 4
"""Depth of nesting down to which optional properties are generated; below it only required ones are."""
RICH_NODES = 1000
"""Number of generated values up to which optional properties are included in a value; after it only required ones
are.
"""
MAX_DEPTH = 40
TRIES = 12
NUMBERS = 100
"""Maximum candidates that are tried for a number."""
STEPS = 40_000
"""Maximum steps for reading a schema, and for each of two attempts at a value (the second with required properties
only). Each step takes some microseconds.
"""
REQUEST_STEPS = 5 * STEPS
"""Maximum steps for all values of one request, since a caller may request many responses and tool calls."""

PLAIN = {"type", "format", "$ref", "allOf", "$defs", "definitions"}
"""Keywords of a schema for whose type every text is valid."""
ABOUT: dict[Kind, tuple[str, ...]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "uniqueItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""JSON type -> keywords that apply to values of this type only."""
TEXT = Schema(type=["string"])
SIMPLEST: tuple[object, ...] = ({}, [], "", 0, True, None)
"""Candidates for a value that are tried last."""


def instance(
    schema: object,
    words: Words,
    *,
    field: str = "schema",
    only_mentioned: bool = False,
    budget: WorkBudget | None = None,
) -> object:
    """Return a JSON value that is valid for a schema. `words`: source of its texts; `field`: path of the schema in
    the request; `only_mentioned`: whether to leave out optional properties that the prompt does not name;
    `budget`: remaining work for the values of the request, None for one of its own.

    Raise UmgError(INVALID_FIELD): for a malformed keyword with its path, and if no valid value is found within the
    budget; the message then names the keyword that no value satisfies.
    """
    budget = budget or WorkBudget(REQUEST_STEPS)
    try:
        with budget.part(STEPS) as part:
            root = SchemaDocument(schema, field, part).root
        for is_minimal in (False, True):
            with budget.part(STEPS) as part:
                generator = _Generator(part, words, only_mentioned=only_mentioned, is_minimal=is_minimal)
                made, unfit = generator.attempt(root)
                if not unfit:
                    return made
    except Exhausted:
        message = "the JSON schema has no value within the steps that are allowed; lower its counts, or simplify it"
        raise invalid(field, message) from None
    except RecursionError:
        raise invalid(field, "the JSON schema is nested too deeply, or refers to itself; simplify it") from None
    message = f"no value was found that fits {unfit} of the JSON schema; simplify it, or correct it if nothing can fit"
    raise invalid(field, message)


def json_of(value: object) -> str:
    """Return a value as JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Generator:
    """Generator of one JSON value for a schema. Its methods raise Exhausted at the end of the budget, and
    RecursionError for schemas that are nested too deep.
    """

    def __init__(self, budget: WorkBudget, words: Words, *, only_mentioned: bool, is_minimal: bool) -> None:
        self._budget = budget
        self._words = words
        self._only_mentioned = only_mentioned
        self._is_minimal = is_minimal
        self._nodes = 0
        self._used = set[object]()  # numbers of the prompt that were used; each is used once

    def attempt(self, root: Schema) -> tuple[object, str]:
        """Return (a value, path of a keyword that it violates, "" for a valid one). If a value with only its required
        properties is not valid, the simplest values of some types are tried.
        """
        try:
            made = self._make([root], "", 0)
            unfit = self._unfit(made, root)
            simplest = SIMPLEST if unfit and self._is_minimal else ()
            return next(((value, "") for value in simplest if not self._unfit(value, root)), (made, unfit))
        except OverflowError:  # a fraction between integers beyond the range of doubles
            return None, "`multipleOf`"
        except (Exhausted, RecursionError):
            if self._is_minimal:
                raise
            return None, "the limits"

    def _unfit(self, value: object, schema: Schema) -> str:
        from umg_sandbox.json_schema_validation import unfit  # imported with the first schema: it is slow

        return unfit(value, schema, self._budget)

    def _make(self, schemas: Sequence[Schema], at: str, depth: int, others: Collection[object] = ()) -> object:
        """Return a value for which all schemas are valid: the first candidate that they accept and that is not in
        `others`, or the first of all if there is none.

        `at`: path of the value; `depth`: depth of nesting. Texts, objects and arrays without special keywords are
        checked only as parts of the whole value.
        """
        self._budget.spend(1)
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise RecursionError
        first: object = UNSET
        for chosen, applied in self._alternatives(schemas, depth, frozenset()):
            names = {name for each in applied for name in each}
            for value in self._candidates(applied, names, at, depth):
                is_plain = names.isdisjoint(CHOICES) if isinstance(value, dict | list) else names <= PLAIN
                if first is UNSET and is_plain and not others and not isinstance(value, int | float):
                    return value
                first = value if first is UNSET else first
                self._budget.spend(1)
                if (not others or key(value) not in others) and not any(self._unfit(value, each) for each in chosen):
                    if type(value) in {int, float}:
                        self._used.add(value)
                    return value
        return None if first is UNSET else first

    def _alternatives(
        self, schemas: Sequence[Schema], depth: int, chosen: frozenset[int]
    ) -> Iterator[tuple[Sequence[Schema], Sequence[Schema]]]:
        """Yield each way to choose branches of `anyOf` and `oneOf`: (schemas with the chosen branches, the same with
        the schemas of `$ref` and `allOf`).

        Null is chosen last, and deep inside a value the branches with the least nesting first. `chosen`: ids of the
        lists of branches from which one was chosen before.
        """
        applied, waiting = dict[int, Schema](), [*schemas]
        while waiting:
            schema = waiting.pop()
            if id(schema) not in applied:
                self._budget.spend(schema.size)
                applied[id(schema)] = schema
                waiting += schema.keywords.all_of if schema.target is None else [*schema.keywords.all_of, schema.target]
        choices = (branches for each in applied.values() for branches in (each.keywords.any_of, each.keywords.one_of))
        branches = next((each for each in choices if each and id(each) not in chosen), None)
        if branches is None:
            yield schemas, [*applied.values()]
            return
        self._budget.spend(len(branches))
        is_flat = self._is_flat(depth)
        ordered = sorted(branches, key=lambda each: (each.height if is_flat else 0, each.keywords.types == ["null"]))
        for branch in ordered:
            yield from self._alternatives([*schemas, branch], depth, chosen | {id(branches)})

    def _is_flat(self, depth: int) -> bool:
        """Return whether a value at this depth should have as little nesting as possible."""
        return self._is_minimal or depth >= RICH_DEPTH or self._nodes > RICH_NODES

    def _candidates(self, schemas: Sequence[Schema], names: Collection[str], at: str, depth: int) -> Iterator[object]:
        """Yield candidates for a value, the most probable first. `schemas`: all must accept the value; `names`:
        keywords that apply to it; `at`: its path.
        """
        known = [each.keywords for each in schemas]
        listed = next((each for each in known if each.const is not UNSET or each.enum is not None), None)
        if listed is not None:
            yield from self._listed([listed.const] if listed.enum is None else listed.enum, at)
            return
        match kind := _kind_of(known, names, is_flat=self._is_flat(depth)):
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
            case "string" | None:
                yield from self._texts(known, at)
                yield from () if kind else (1, True, {}, [], None)
            case unhandled:
                assert_never(unhandled)

    def _listed(self, values: list[object], at: str) -> Iterator[object]:
        """Yield the values of `enum`: first one that the prompt contains, then all, from a position on that depends
        on the prompt.
        """
        self._budget.spend(len(values) + len(repr(values)) // STEP_SIZE)
        if (mentioned := self._words.mentioned(value for value in values if isinstance(value, str))) is not None:
            yield mentioned
        start = self._words.pick(at, len(values) or 1)
        yield from values[start:] + values[:start]

    def _object(self, known: Sequence[Keywords], at: str, depth: int) -> dict[str, object]:
        names = dict.fromkeys(name for each in known for name in each.required)
        described = dict.fromkeys(name for each in known for name in each.properties)
        optional = [name for name in described if name not in names]
        maximum = min(
            (each.max_properties for each in known if each.max_properties is not None), default=len(described)
        )
        minimum = max(each.min_properties for each in known)
        self._budget.spend(len(optional) // 16)
        if not self._is_flat(depth):
            wanted = [name for name in optional if self._is_wanted(name, known)]
            names |= dict.fromkeys(wanted[: max(0, maximum - len(names))])
        spare = (name for name in optional if name not in names)
        names |= dict.fromkeys(islice(spare, max(0, min(minimum - len(names), len(optional)))))
        made = {name: self._property(name, known, at, depth) for name in names}
        while len(made) < minimum:
            self._budget.spend(len(made) // STEP_SIZE)
            patterns = [Schema(pattern=pattern) for each in known for pattern in each.pattern_properties]
            rules = [TEXT, *(each.property_names for each in known), *patterns[:1]]
            made_up = str(self._make(rules, f"{at}#", 0, {key(name) for name in made}))
            if made_up in made:
                break
            made[made_up] = self._property(made_up, known, at, depth)
        return {name: made[name] for name in [*described, *made] if name in made}

    def _is_wanted(self, name: str, known: Sequence[Keywords]) -> bool:
        """Return whether to generate the optional property `name` if the object may have it."""
        self._budget.spend(1 + len(name) // STEP_SIZE)
        if self._only_mentioned and self._words.mentioned([name]) is None:
            return False
        return max(each.properties[name].height for each in known if name in each.properties) < math.inf

    def _property(self, name: str, known: Sequence[Keywords], at: str, depth: int) -> object:
        self._budget.spend(len(name) // STEP_SIZE)
        schemas = [schema for each in known for schema in each.of_property(name, self._budget)]
        return self._make(schemas, f"{at}/{name[:80]}", depth + 1)

    def _array(self, known: Sequence[Keywords], at: str, depth: int) -> list[object]:
        first = max(len(each.prefix_items) for each in known)
        minimum = max(each.min_items for each in known)
        is_endless = any(each.items.height == math.inf for each in known)
        some = 0 if self._is_flat(depth) or (is_endless and not first) else first or (1 if depth else 2)
        maximum = min((each.max_items for each in known if each.max_items is not None), default=some)
        is_unique = any(each.unique_items for each in known)
        made, keys = list[object](), set[object]()
        for index in range(max(minimum, min(some, maximum))):
            schemas = [each.prefix_items[index] if index < len(each.prefix_items) else each.items for each in known]
            made.append(self._make(schemas, f"{at}/{index}", depth + 1, keys))
            if is_unique:
                if key(made[-1]) in keys and len(made) > minimum:
                    return made[:-1]
                keys.add(key(made[-1]))
        return made

    def _numbers(self, known: Sequence[Keywords], at: str, *, whole: bool) -> Iterator[int | float]:
        self._budget.spend(10)  # the numbers may have hundreds of digits
        yield from (mentioned for mentioned in self._words.numbers if mentioned not in self._used)
        low = max(_bounds(known, "minimum", "exclusive_minimum"), default=None)
        high = min(_bounds(known, "maximum", "exclusive_maximum"), default=None)
        multiple = max(_bounds(known, "multiple_of"), default=Fraction(whole))
        step = Fraction(multiple.numerator) if whole else multiple
        if not step:  # any number: in steps of the range
            step = (high - low) / NUMBERS if low is not None and high is not None and low < high else Fraction(1)
        last = math.floor(high / step) if high is not None else None
        minimum = math.ceil(low / step) if low is not None else 1 if last is None else last - NUMBERS
        count = NUMBERS if last is None else min(NUMBERS, last - minimum + 1)
        picked = self._words.pick(at, NUMBERS)
        made = ((minimum + (picked + offset) % count) * step for offset in range(count))
        for value in chain(made, filter(None, (low, high))):
            yield int(value) if value.denominator == 1 else float(value)

    def _texts(self, known: Sequence[Keywords], at: str) -> Iterator[str]:
        minimum = max(each.min_length for each in known)
        maximum = min((each.max_length for each in known if each.max_length is not None), default=None)
        patterns = [each.pattern for each in known if each.pattern is not None]
        self._budget.spend(minimum // 10)
        formats = [FORMATS[each.format] for each in known if each.format in FORMATS]
        yield from (make(self._words, at) for make in formats)
        if not patterns:
            yield from (self._words.phrase(minimum + 10 * attempt, maximum) for attempt in range(TRIES))
        elif not formats or all(map(compiled, patterns)):  # only a format's own texts match an unsupported pattern
            phrase = self._words.phrase(minimum, maximum)
            yield from (phrase, slug(phrase), phrase.title())
            yield from (make(self._words, at) for make in FORMATS.values())
            for pattern in patterns:
                self._budget.spend(20 + len(pattern) // 10)
                for sample in samples(pattern):
                    missing = range(max(0, minimum - len(sample)), max(0, minimum - len(sample)) + TRIES)
                    yield from (sample + sample[-1:] * count for count in missing)
                    yield from (sample[:1] * count + sample for count in missing)


def _kind_of(known: Sequence[Keywords], names: Collection[str], *, is_flat: bool) -> Kind | None:
    """Return the JSON type of the value to generate; None for any type.

    It is null if `is_flat` and null is allowed; otherwise the first allowed type other than null; otherwise the type
    to which the keywords `names` apply.
    """
    stated = [each.types for each in known if each.types]
    if stated:
        kinds = [kind for kind in stated[0] if all(kind in each for each in stated)] or stated[-1]
        return next((kind for kind in kinds if (kind == "null") == is_flat), kinds[0])
    return next((kind for kind, about in ABOUT.items() if any(name in names for name in about)), None)


def _bounds(known: Sequence[Keywords], *names: str) -> list[Fraction]:
    """Return the values of the numeric keywords `names` as exact fractions of their decimal digits (0.1 is a tenth)."""
    values = (getattr(each, name) for each in known for name in names)
    return [Fraction(str(value)) for value in values if value is not None]

"""Generation of JSON values that are valid for a caller's schema, from the words of the prompt. It follows the keywords
that SDKs derive from types: `type`, `enum`, `const`, `properties`, `required`, `anyOf`, `oneOf`, `allOf`, `$ref`, the
bounds, `pattern` and `format`. For other keywords it tries a few values.
"""

import json
import math
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import chain, islice
from typing import assert_never

from msgspec import UNSET

from umg_grpc.wire.core.json_decoding import invalid
from umg_sandbox.regular_expressions import compiled, samples
from umg_sandbox.schema_reader import Keywords, Kind, Schema, joined, members, read_schema
from umg_sandbox.schema_work_budget import MAX_STEPS, STEP_SIZE, Exhausted, WorkBudget
from umg_sandbox.string_formats import STRING_FORMATS, slug
from umg_sandbox.words_from_prompt import Words

RICH_DEPTH = 4
"""Depth of nesting down to which optional properties are generated; below it only required ones are."""
RICH_NODES = 1000
"""Number of generated values up to which optional properties are generated; after it only required ones are."""
TRIED_DEPTHS = (6, 40)
"""Depths of nesting that are tried; a value with fewer levels is preferred."""
MAX_CHOICES = 50
"""Maximum lists of branches for one value: each takes a frame of the stack."""
MAX_TRIES = 12
"""Maximum candidates that are tried for a text; a quarter of them for an object or array."""
MAX_NUMBERS = 100


class _NoValueError(Exception):
    """Exception for a schema that has no value within the permitted depth."""


def instance(
    schema: object,
    words: Words,
    *,
    field: str = "schema",
    only_mentioned: bool = False,
    budget: WorkBudget | None = None,
) -> object:
    """Return a JSON value that is valid for a schema. `words`: source of its texts; `field`: path of the schema in the
    request; `only_mentioned`: leave out optional properties that the prompt does not name; `budget`: remaining work for
    the request, None for a new budget. Raise UmgError(INVALID_FIELD) with the path of a malformed keyword or, if no
    valid value is found within the budget, of the keyword that no value satisfies.
    """
    budget = budget or WorkBudget()
    try:
        root = read_schema(schema, field, WorkBudget(MAX_STEPS, budget))
        for depth in TRIED_DEPTHS:
            made, problem = _attempt(root, words, WorkBudget(MAX_STEPS, budget), depth, only_mentioned=only_mentioned)
            if not problem:
                return made
    except (Exhausted, RecursionError):
        problem = "the limits of depth and work"
    raise invalid(field, f"no value was found that fits {problem} of the JSON schema; simplify or correct it")


def _attempt(root: Schema, words: Words, budget: WorkBudget, depth: int, *, only_mentioned: bool) -> tuple[object, str]:
    """Return a value, and the path of a keyword that it violates ("" for a valid value). `depth`: its maximum depth."""
    generator = _Generator(budget, words, depth, only_mentioned=only_mentioned)
    try:
        made = generator.make(root, "", 0)
        return made, generator.unfit(made, root)
    except OverflowError:  # a fraction between integers beyond the range of doubles
        return None, "`multipleOf`"
    except _NoValueError:
        return None, "the types"
    except Exhausted:
        return None, "the limits of depth and work"


def json_of(value: object) -> str:
    """Return a value as JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Generator:
    """Generator of one JSON value for a schema. Its methods raise Exhausted at the end of the budget, and
    _NoValueError for a schema without a value of the permitted depth.
    """

    def __init__(self, budget: WorkBudget, words: Words, depth: int, *, only_mentioned: bool) -> None:
        self._budget = budget
        self._words = words
        self._depth = depth
        self._only_mentioned = only_mentioned
        self._nodes = 0
        self._used = set[object]()  # numbers of the prompt that were used; each is used once

    def unfit(self, value: object, schema: Schema) -> str:
        """Return the path of a keyword that the value violates; "" for a valid value."""
        from umg_sandbox.json_schema_validation import unfit  # imported with the first schema: it is slow

        return unfit(value, schema, self._budget)

    def make(self, schema: Schema, at: str, depth: int, others: Collection[str] = ()) -> object:
        """Return a value for a schema: the first candidate that is valid and whose JSON is not in `others`, else the
        first candidate. `at`, `depth`: path and nesting of the value. Objects and arrays without choices are checked
        only as parts of the whole value.
        """
        self._budget.spend(1)
        self._nodes += 1
        if depth > self._depth:
            raise _NoValueError
        first: object = UNSET
        for known, is_chosen in self._alternatives([schema], frozenset()):
            try:
                for value in self._candidates(known, at, depth):
                    first = value if first is UNSET else first
                    is_plain = isinstance(value, dict | list) and not is_chosen
                    if (not others or json_of(value) not in others) and (is_plain or not self.unfit(value, schema)):
                        if type(value) in {int, float}:
                            self._used.add(value)
                        return value
            except _NoValueError:
                continue
        if first is UNSET:
            raise _NoValueError
        return first

    def _alternatives(self, schemas: Sequence[Schema], chosen: frozenset[int]) -> Iterator[tuple[Keywords, bool]]:
        """Yield each way to choose branches of `anyOf` and `oneOf`, and one of several types, null last. Each way has
        the keywords of all schemas that apply, and whether anything was chosen.
        """
        applied, waiting = dict[int, Schema](), [*schemas]
        while waiting:
            schema = waiting.pop(0)
            if id(schema) not in applied:
                self._budget.spend(1 + sum(map(members, schema.values())) // 16)
                applied[id(schema)] = schema
                waiting += schema.keywords.all_of
                waiting += [schema.keywords.ref] if schema.keywords.ref is not None else []
        choices = (branches for each in applied.values() for branches in (each.keywords.any_of, each.keywords.one_of))
        branches = next((each for each in choices if each and id(each) not in chosen), None)
        if branches is not None:
            if len(chosen) > MAX_CHOICES:
                raise RecursionError
            self._budget.spend(len(branches))
            for branch in sorted(branches, key=lambda each: each.keywords.types == ["null"]):
                yield from self._alternatives([*schemas, branch], chosen | {id(branches)})
            return
        stated = [each.keywords.types for each in applied.values() if each.keywords.types]
        kinds = [kind for kind in stated[0] if all(kind in each for each in stated)] if stated else []
        for kind in sorted(kinds, key="null".__eq__) if len(kinds) > 1 else ():
            yield joined([Schema(type=kind), *applied.values()]), True
        if len(kinds) == 1 or not stated:
            yield joined([*applied.values()]), bool(chosen)

    def _is_flat(self, depth: int) -> bool:
        return depth >= RICH_DEPTH or self._nodes > RICH_NODES or self._depth == TRIED_DEPTHS[-1]

    def _candidates(self, known: Keywords, at: str, depth: int) -> Iterator[object]:
        """Yield candidates for a value, the most probable first. `at`: its path."""
        if known.const is not UNSET:
            yield known.const
            return
        if known.enum is not None:
            yield from self._listed(known.enum, at)
            return
        match kind := _kind_of(known):
            case "object":
                yield from (self._object(known, at, depth) for _ in range(MAX_TRIES // 4))
            case "array":
                yield from (self._array(known, at, depth) for _ in range(MAX_TRIES // 4))
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
        self._budget.spend(len(values) + len(repr(values)) // STEP_SIZE)
        if (mentioned := self._words.mentioned(value for value in values if isinstance(value, str))) is not None:
            yield mentioned
        start = self._words.pick(at, len(values) or 1)
        yield from values[start:] + values[:start]

    def _object(self, known: Keywords, at: str, depth: int) -> dict[str, object]:
        required = dict.fromkeys(known.required)
        optional = [name for name in known.properties if name not in required]
        room = math.inf if known.max_properties is None else known.max_properties - len(required)
        lacking = known.min_properties - len(required)
        self._budget.spend(len(optional) // 16)
        wanted = [] if self._is_flat(depth) else [name for name in optional if self._is_wanted(name)]
        spare = [name for name in optional if name not in set(wanted)]
        made = dict[str, object]()
        for name in chain(required, wanted, spare[: max(0, lacking - len(wanted))]):
            try:
                if name in required or len(made) - len(required) < room:
                    made[name] = self._property(name, known, at, depth)
            except _NoValueError:
                if name in required:
                    raise
        while len(made) < known.min_properties:
            self._budget.spend(len(made) // STEP_SIZE)
            patterns = [Schema(pattern=pattern) for pattern in islice(known.pattern_properties, 1)]
            rule = Schema(type="string", allOf=[known.property_names, *patterns])
            made_up = str(self.make(rule, f"{at}#", depth, {json_of(name) for name in made}))
            if made_up in made:
                break
            made[made_up] = self._property(made_up, known, at, depth)
        return {name: made[name] for name in [*known.properties, *made] if name in made}

    def _is_wanted(self, name: str) -> bool:
        self._budget.spend(1 + len(name) // STEP_SIZE)
        return not self._only_mentioned or self._words.mentioned([name]) is not None

    def _property(self, name: str, known: Keywords, at: str, depth: int) -> object:
        self._budget.spend(len(name) // STEP_SIZE)
        return self.make(known.of_property(name, self._budget), f"{at}/{name[:80]}", depth + 1)

    def _array(self, known: Keywords, at: str, depth: int) -> list[object]:
        some = len(known.prefix_items) or (0 if self._is_flat(depth) else 1 if depth else 2)
        most = some if known.max_items is None else known.max_items
        made, keys = list[object](), set[str]()
        for index in range(max(known.min_items, min(some, most))):
            inner = known.prefix_items[index] if index < len(known.prefix_items) else known.items
            try:
                value = self.make(inner, f"{at}/{index}", depth + 1, keys)
            except _NoValueError:
                if index < known.min_items:
                    raise
                break
            if known.unique_items:
                if json_of(value) in keys and index >= known.min_items:
                    break
                keys.add(json_of(value))
            made.append(value)
        return made

    def _numbers(self, known: Keywords, at: str, *, whole: bool) -> Iterator[int | float]:
        yield from (mentioned for mentioned in self._words.numbers if mentioned not in self._used)
        self._budget.spend(10)  # the numbers may have hundreds of digits
        low = max(_fractions(known.minimum, known.exclusive_minimum), default=None)
        high = min(_fractions(known.maximum, known.exclusive_maximum), default=None)
        multiple = max(_fractions(known.multiple_of), default=Fraction(whole))
        step = Fraction(multiple.numerator) if whole else multiple
        if not step:  # any number: in steps of the range
            step = (high - low) / MAX_NUMBERS if low is not None and high is not None and low < high else Fraction(1)
        last = math.floor(high / step) if high is not None else None
        minimum = math.ceil(low / step) if low is not None else 1 if last is None else last - MAX_NUMBERS
        count = MAX_NUMBERS if last is None else min(MAX_NUMBERS, last - minimum + 1)
        picked = self._words.pick(at, MAX_NUMBERS)
        made = ((minimum + (picked + offset) % count) * step for offset in range(count))
        for value in chain(made, filter(None, (low, high))):
            self._budget.spend(1)
            yield int(value) if value.denominator == 1 else float(value)

    def _texts(self, known: Keywords, at: str) -> Iterator[str]:
        minimum, maximum, pattern = known.min_length, known.max_length, known.pattern
        self._budget.spend(minimum // 10)
        if known.format in STRING_FORMATS:
            yield STRING_FORMATS[known.format](self._words, at)
        if pattern is None:
            yield from (self._words.phrase(minimum + 10 * attempt, maximum) for attempt in range(MAX_TRIES))
        elif known.format not in STRING_FORMATS or compiled(
            pattern
        ):  # only a format's text matches an unsupported pattern
            phrase = self._words.phrase(minimum, maximum)
            yield from (phrase, slug(phrase), phrase.title())
            self._budget.spend(20 + len(pattern) // 10)
            for sample in samples(pattern):
                missing = range(max(0, minimum - len(sample)), max(0, minimum - len(sample)) + MAX_TRIES)
                yield from (sample + sample[-1:] * count for count in missing)
                yield from (sample[:1] * count + sample for count in missing)


def _kind_of(known: Keywords) -> Kind | None:
    """Return the JSON type of a schema's value, by `type` or by keywords that apply to one type; None for any type."""
    if known.types:
        return known.types[0]
    if known.properties or known.required or known.pattern_properties or known.min_properties:
        return "object"
    if known.prefix_items or known.min_items or known.items:
        return "array"
    bounds = (known.minimum, known.maximum, known.exclusive_minimum, known.exclusive_maximum, known.multiple_of)
    return None if bounds == (None,) * len(bounds) else "number"


def _fractions(*values: float | None) -> list[Fraction]:
    return [Fraction(str(value)) for value in values if value is not None]

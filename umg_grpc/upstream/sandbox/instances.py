"""Values that fit a JSON schema, made of the words of the prompt."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import chain, islice

from umg_grpc.upstream.sandbox.formats import formatted
from umg_grpc.upstream.sandbox.judging import Judge
from umg_grpc.upstream.sandbox.schemas import (
    Bounds,
    Document,
    Flat,
    Said,
    kind_of,
    limits,
    listed,
    named,
    nullable,
    same,
    tuple_items,
)
from umg_grpc.upstream.sandbox.words import Words

RICH_DEPTH = 4
"""Down to here optional properties are filled in too; below only what must be."""
MAX_DEPTH = 40
MAX_NODES = 1000
"""Values of one instance that are made with care; all that follow only so that it ends."""
MOST_NODES = 8_000
MAX_ITEMS = 500
MAX_LENGTH = 100_000
TRIES = 12


def instance(schema: object, words: Words, *, sparing: bool = False) -> object:
    """A value that is valid for the schema; the best that was found for one that nothing fits, or that takes too long.
    `sparing`: of the optional properties only those that the prompt names. Raises RecursionError for a schema that is
    nested too deeply.
    """
    return _Maker(Document(schema), words, sparing).make(schema, "", 0)


def json_of(value: object) -> str:
    """The value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Maker:
    """One instance."""

    def __init__(self, document: Document, words: Words, sparing: bool) -> None:
        self._sparing = sparing
        self._document = document
        self._judge = Judge(document)
        self._words = words
        self._nodes = 0
        self._used = set[int | float]()  # numbers of the prompt: each is said once

    def make(self, schema: object, at: str, depth: int) -> object:
        """A value for the place `at`."""
        self._nodes += 1
        if self._nodes > MOST_NODES:
            return None
        flat = self._document.flat(schema)
        candidates = islice(self._candidates(flat, at, depth), TRIES)
        first = next(candidates, None)
        for value in chain([first], candidates):
            if not _doubtful(flat) or self._nodes > 2 * MAX_NODES or self._judge.fits(value, schema):
                return value
        return first

    def _candidates(self, flat: Flat, at: str, depth: int) -> Iterator[object]:
        """Values that may fit, the likeliest first."""
        if flat.choices:
            rest = _schema(flat, flat.choices[1:])
            ordered = self._ordered(flat.choices[0], depth)
            for attempt in range(3):  # what fits a branch may fit another too, and must not
                for branch in ordered:
                    yield self.make({"allOf": [rest, branch]}, f"{at}~{attempt}" if attempt else at, depth)
        elif flat.conditions:
            plain = _schema(Flat(flat.said, flat.patterns), [])
            for if_, then, else_ in flat.conditions:
                yield self.make({"allOf": [plain, if_, then]}, at, depth)
                yield self.make({"allOf": [plain, else_]}, at, depth)
            yield self.make(plain, at, depth)
        elif "const" in flat.said:
            yield flat.said["const"]
        elif isinstance(values := flat.said.get("enum"), list) and values:
            yield from self._enumerated(values, at)
        else:
            yield from self._of_kind(flat, at, depth)

    def _ordered(self, branches: list[object], depth: int) -> list[object]:
        """As they stand, null last; where it is deep, the flattest first."""
        ordered = sorted(branches, key=lambda branch: isinstance(branch, dict) and branch.get("type") == "null")
        return sorted(ordered, key=self._document.height) if self._poor(depth) else ordered

    def _poor(self, depth: int) -> bool:
        return depth >= RICH_DEPTH or self._nodes > MAX_NODES

    def _enumerated(self, values: list[object], at: str) -> Iterator[object]:
        """The one that the prompt names, else one by chance; then the others."""
        texts = [value for value in values if isinstance(value, str)]
        if (named_value := self._words.mentioned(texts)) is not None:
            yield named_value
        start = self._words.pick(at, len(values))
        yield from values[start:] + values[:start]

    def _of_kind(self, flat: Flat, at: str, depth: int) -> Iterator[object]:
        if self._poor(depth) and nullable(flat.said):
            yield None
        match kind_of(flat.said | ({"pattern": True} if flat.patterns else {})):
            case "object":
                yield self._object(flat.said, at, depth, rich=not self._poor(depth))
                yield self._object(flat.said, at, depth, rich=False)
            case "array":
                yield self._array(flat.said, at, depth)
            case "integer":
                yield from self._numbers(flat.said, at, whole=True)
            case "number":
                yield from self._numbers(flat.said, at, whole=False)
            case "boolean":
                chosen = self._words.pick(at, 2) == 0
                yield from (chosen, not chosen)
            case "null":
                yield None
            case _:
                yield from self._texts(flat, at)
                if "type" not in flat.said:  # all that is said forbids: try the other kinds
                    yield from (1, True, {}, [], None)

    def _object(self, said: Said, at: str, depth: int, *, rich: bool) -> object:
        if depth > MAX_DEPTH:
            return {}
        properties = named(said.get("properties"))
        required = [str(name) for name in listed(said.get("required"))]
        least, most = limits(said, "minProperties", "maxProperties")
        wanted = [*properties, *(name for name in required if name not in properties)]
        if not rich:
            wanted = [name for name in wanted if name in required]
        elif self._sparing:
            wanted = [name for name in wanted if name in required or self._words.mentioned([name]) is not None]
        needed = self._needed(said, required)
        wanted = [name for name in wanted if name in needed] + [name for name in wanted if name not in needed]
        wanted = list(dict.fromkeys([*wanted, *needed]))
        if most is not None:
            wanted = wanted[: max(most, len(needed))]
        made: dict[str, object] = {}
        for name in wanted:
            parts = self._judge.parts(name, said)
            if name in needed or not any(self._document.height(part) == math.inf for part in parts):
                made[name] = self.make({"allOf": parts}, f"{at}/{name}", depth + 1)
        for name in self._further(said, made, least):
            made[name] = self.make({"allOf": self._judge.parts(name, said)}, f"{at}/{name}", depth + 1)
        order = [*properties, *made]
        return {name: made[name] for name in dict.fromkeys(order) if name in made}

    def _needed(self, said: Said, required: list[str]) -> list[str]:
        """What is required, with what that in turn requires."""
        dependent = named(said.get("dependentRequired"))
        needed = list(required)
        for name in needed:
            needed += [str(more) for more in listed(dependent.get(name)) if more not in needed]
        return needed

    def _further(self, said: Said, made: dict[str, object], least: int) -> Iterator[str]:
        """Names for as many properties as are missing to the least number."""
        optional = (name for name in named(said.get("properties")) if name not in made)
        patterned = list(named(said.get("patternProperties")))
        closed = said.get("additionalProperties") is False
        for attempt in range(2 * min(least, MAX_ITEMS) + 1):
            if len(made) >= min(least, MAX_ITEMS):
                return
            name = next(optional, None)
            if name is None and "propertyNames" in said:
                name = str(self.make({"allOf": [{"type": "string"}, said["propertyNames"]]}, f"#{attempt}", MAX_DEPTH))
            elif name is None and patterned:
                pattern = patterned[attempt % len(patterned)]
                name = self._judge.sample(pattern, partial(self._picked, str(attempt)), attempt)
            elif name is None and not closed:
                name = f"extra_{attempt + 1}"
            if name is not None and name not in made:
                yield name

    def _array(self, said: Said, at: str, depth: int) -> object:
        first, rest = tuple_items(said)
        least, most = limits(said, "minItems", "maxItems")
        unique = said.get("uniqueItems") is True
        contained = _contained(said) if "contains" in said else 0
        endless = self._document.height(rest) == math.inf
        some = 0 if self._poor(depth) or (endless and not first) else len(first) or (1 if depth else 2)
        wanted = max(least, some, len(first) + contained if contained else 0)
        wanted = min(wanted, MAX_ITEMS if most is None else min(most, MAX_ITEMS)) if depth <= MAX_DEPTH else 0
        made = list[object]()
        for index in range(wanted):
            schema = first[index] if index < len(first) else rest
            if len(first) <= index < len(first) + contained:
                schema = {"allOf": [schema, said["contains"]]}
            made.append(self._item(schema, made if unique else [], f"{at}/{index}", depth + 1))
        if unique:
            while len(made) > least and any(same(made[-1], other) for other in made[:-1]):
                made.pop()
        return made

    def _item(self, schema: object, others: list[object], at: str, depth: int) -> object:
        """An item that is none of the others, as far as that can be had."""
        for attempt in range(TRIES):
            place = f"{at}~{attempt}" if attempt else at
            value = self.make(schema, place, depth)
            if not any(same(value, other) for other in others):
                return value
        flat = self._document.flat(schema)
        choices = [*listed(flat.said.get("enum")), *range(len(others) + 1), True, False]
        for value in [*choices, *(f"{self._words.phrase()} {count}" for count in range(len(others) + 1))]:
            if self._judge.fits(value, schema) and not any(same(value, other) for other in others):
                return value
        return self.make(schema, at, depth)

    def _numbers(self, said: Said, at: str, *, whole: bool) -> Iterator[int | float]:
        bounds = Bounds(said)
        step = bounds.step
        if whole and (step is None or step.denominator > 1):
            step = Fraction((step or Fraction(1)).numerator)
        low, high = bounds.low, bounds.high
        for mentioned in self._words.numbers:
            if mentioned in self._used:
                continue
            exactly = Fraction(str(mentioned))
            if (
                (low is None or exactly > low or (exactly == low and not bounds.above))
                and (high is None or exactly < high or (exactly == high and not bounds.below))
                and (step is None or (exactly / step).denominator == 1)
            ):
                self._used.add(mentioned)
                yield _number(exactly)
        picked = self._words.pick(at, 100)
        if step is not None:
            yield from (_number(value) for value in _stepped(bounds, step, picked))
        elif low is not None and high is not None:
            yield from (_number(low + (high - low) * Fraction(share, 200)) for share in (picked + 50, 100, 0, 200))
        elif low is not None:
            yield from (_number(low + 1 + picked), _number(low))
        elif high is not None:
            yield from (_number(high - 1 - picked), _number(high))
        else:
            yield 1 + picked

    def _texts(self, flat: Flat, at: str) -> Iterator[str]:
        least, most = limits(flat.said, "minLength", "maxLength")
        least = min(least, MAX_LENGTH)
        fallback: str | None = None
        for text in self._all_texts(flat, at, least, most):
            if len(text) >= least and (most is None or len(text) <= most):
                fallback = fallback or text
                if all(self._judge.found(pattern, text) for pattern in flat.patterns):
                    yield text
        yield fallback if fallback is not None else self._words.phrase(least, most)

    def _all_texts(self, flat: Flat, at: str, least: int, most: int | None) -> Iterator[str]:
        """Texts of the format, then of each pattern, with a few more repeats each time; words where nothing is said."""
        if isinstance(kind := flat.said.get("format"), str) and (text := formatted(kind, self._words, at)) is not None:
            yield text
        for pattern in flat.patterns:
            for attempt in range(2 * TRIES):
                more = (0, 1, 2, 4, 8)[attempt % 5] if attempt < TRIES else max(least, 1)
                sample = self._judge.sample(pattern, partial(self._picked, f"{at}{attempt}"), more)
                if sample is None:
                    break
                yield sample
                if len(sample) < least:
                    yield sample + self._words.phrase(least - len(sample))
        if not flat.patterns:
            yield self._words.phrase(least, most)

    def _picked(self, at: str, place: str, among: int) -> int:
        return self._words.pick(at + place, among)


def _doubtful(flat: Flat) -> bool:
    """Whether what is made may not fit: all but the plainest schemas."""
    return bool(
        flat.choices
        or flat.conditions
        or flat.patterns
        or flat.impossible
        or not flat.said.keys().isdisjoint(_CHECKED)
        or (flat.said.get("additionalProperties", True) is not True)
        or ("type" not in flat.said and flat.said)
    )


_CHECKED = {
    *("not", "propertyNames", "patternProperties", "dependentRequired", "dependentSchemas", "dependencies"),
    *("minProperties", "maxProperties", "contains", "uniqueItems", "multipleOf", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "enum", "const", "unevaluatedProperties"),
}


def _schema(flat: Flat, choices: list[list[object]]) -> Said:
    """The flat schema with other choices, as a schema again."""
    parts = list[object]([flat.said])
    parts += [{"pattern": pattern} for pattern in flat.patterns]
    parts += [{"anyOf": branches} for branches in choices]
    parts += [{"if": if_, "then": then, "else": else_} for if_, then, else_ in flat.conditions]
    return {"allOf": parts} if not flat.impossible else {"allOf": [*parts, False]}


def _contained(said: Said) -> int:
    least, _ = limits(said, "minContains", "maxContains")
    return least if "minContains" in said else 1


def _number(value: Fraction) -> int | float:
    if value.denominator == 1:
        return int(value)
    return float(value)


def _stepped(bounds: Bounds, step: Fraction, picked: int) -> Iterator[Fraction]:
    """Multiples of the step inside the bounds; whole numbers first, which stay exact when they are divided again."""
    low, high = bounds.low, bounds.high
    if low is None:
        low = high - step * 200 if high is not None else Fraction(0)
    first = math.ceil(low / step) + (bounds.above and (low / step).denominator == 1)
    last = math.floor(high / step) if high is not None else first + 200
    last -= high is not None and bounds.below and (high / step).denominator == 1
    if last < first:
        return
    count = last - first + 1
    tried = [first + (picked + offset) % count for offset in range(min(count, 200))]
    tried.sort(key=lambda times: (times * step).denominator != 1)
    yield from (times * step for times in tried[:TRIES])

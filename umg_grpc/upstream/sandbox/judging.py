"""Whether values fit JSON schemas."""

from collections.abc import Callable, Iterable

from umg_grpc.upstream.sandbox import patterns
from umg_grpc.upstream.sandbox.schemas import (
    MAX_LEVELS,
    Bounds,
    Document,
    Said,
    exact,
    limits,
    listed,
    listed_or_one,
    named,
    number,
    referred,
    same,
    size,
    tuple_items,
    value_of,
)

MAX_STEPS = 200_000
"""Of looking whether values fit, for one instance."""


class Judge:
    """Whether values fit schemas of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._patterns: dict[str, patterns.Pattern | None] = {}
        self._budget = patterns.Budget(MAX_STEPS)

    def pattern(self, text: str) -> patterns.Pattern | None:
        """The pattern, read once; None for one that is not understood."""
        if text not in self._patterns:
            self._patterns[text] = patterns.parse(text, self._budget)
        return self._patterns[text]

    def found(self, pattern: str, text: str) -> bool:
        """Whether the pattern is found in the text, or cannot be told."""
        read = self.pattern(pattern)
        try:
            return read is None or read.matches(text)
        except patterns.Exhausted:
            return True

    def sample(self, pattern: str, pick: patterns.Pick, more: int) -> str | None:
        """A text in which the pattern should be found; None where none can be made."""
        read = self.pattern(pattern)
        try:
            return read.sample(pick, more) if read else None
        except patterns.Exhausted:
            return None

    def fits(self, value: object, schema: object) -> bool:
        """Whether the value is valid, or that would take too long to tell. Formats are not checked: they only
        describe.
        """
        try:
            return self._fits(value, schema, 0)
        except patterns.Exhausted:
            return True

    def _fits(self, value: object, schema: object, level: int) -> bool:
        self._budget.spend(1)
        if not isinstance(schema, dict):
            return schema is not False
        if level > MAX_LEVELS:
            return True
        inner = level + 1
        if not self._all(value, map(self._document.target, referred(schema)), inner):
            return False
        return (
            self._combined(value, schema, inner)
            and self._plain(value, schema)
            and (not isinstance(value, str) or self._text(value, schema))
            and (not number(value) or _in_range(value, schema))
            and (not isinstance(value, list) or self._array(value, schema, inner))
            and (not isinstance(value, dict) or self._object(value, schema, inner))
        )

    def _all(self, value: object, schemas: Iterable[object], level: int) -> bool:
        return all(self._fits(value, schema, level) for schema in schemas)

    def _combined(self, value: object, schema: Said, level: int) -> bool:
        if not self._all(value, listed(schema.get("allOf")), level):
            return False
        for keyword, enough in (("anyOf", _any), ("oneOf", _one)):
            branches = schema.get(keyword)
            if isinstance(branches, list) and not enough(self._fits(value, branch, level) for branch in branches):
                return False
        if "not" in schema and self._fits(value, schema["not"], level):
            return False
        if "if" in schema:
            holds = self._fits(value, schema["if"], level)
            return self._fits(value, schema.get("then" if holds else "else", True), level)
        return True

    def _plain(self, value: object, schema: Said) -> bool:
        if "type" in schema and not any(_is(value, str(kind)) for kind in listed_or_one(schema["type"])):
            return False
        if isinstance(values := schema.get("enum"), list) and not any(same(value, each) for each in values):
            return False
        return "const" not in schema or same(value, schema["const"])

    def _text(self, value: str, schema: Said) -> bool:
        least, most = limits(schema, "minLength", "maxLength")
        if len(value) < least or (most is not None and len(value) > most):
            return False
        pattern = schema.get("pattern")
        return not isinstance(pattern, str) or self.found(pattern, value)

    def _array(self, value: list[object], schema: Said, level: int) -> bool:
        least, most = limits(schema, "minItems", "maxItems")
        if len(value) < least or (most is not None and len(value) > most):
            return False
        if schema.get("uniqueItems") is True and any(
            same(value[one], value[other]) for one in range(len(value)) for other in range(one)
        ):
            return False
        first, rest = tuple_items(schema)
        if not all(self._fits(item, part, level) for item, part in zip(value, first, strict=False)):
            return False
        if not all(self._fits(item, rest, level) for item in value[len(first) :]):
            return False
        if "contains" in schema:
            fitting = sum(self._fits(item, schema["contains"], level) for item in value)
            least = size(schema.get("minContains", 1))
            return least <= fitting and ("maxContains" not in schema or fitting <= size(schema["maxContains"]))
        return True

    def _object(self, value: dict[str, object], schema: Said, level: int) -> bool:
        least, most = limits(schema, "minProperties", "maxProperties")
        if len(value) < least or (most is not None and len(value) > most):
            return False
        if not all(name in value for name in listed(schema.get("required"))):
            return False
        for name, needs in named(schema.get("dependentRequired", schema.get("dependencies"))).items():
            if name in value and isinstance(needs, list) and not all(need in value for need in needs):
                return False
        for name, needs in named(schema.get("dependentSchemas", schema.get("dependencies"))).items():
            if name in value and not isinstance(needs, list) and not self._fits(value, needs, level):
                return False
        return all(
            self._fits(item, part, level) for name, item in value.items() for part in self.parts(name, schema)
        ) and self._all_names(value, schema, level)

    def _all_names(self, value: dict[str, object], schema: Said, level: int) -> bool:
        return "propertyNames" not in schema or all(self._fits(name, schema["propertyNames"], level) for name in value)

    def parts(self, name: str, schema: Said) -> list[object]:
        """The schemas that hold for a property of that name."""
        parts = [part for known, part in named(schema.get("properties")).items() if known == name]
        parts += [part for pattern, part in named(schema.get("patternProperties")).items() if self.found(pattern, name)]
        return parts or [schema.get("additionalProperties", True)]


def _any(fitting: Iterable[bool]) -> bool:
    return any(fitting)


def _one(fitting: Iterable[bool]) -> bool:
    return sum(fitting) == 1


_KINDS: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": number,
    "integer": lambda value: number(value) and float(value_of(value)).is_integer(),
}


def _is(value: object, kind: str) -> bool:
    return kind not in _KINDS or _KINDS[kind](value)


def _in_range(value: object, schema: Said) -> bool:
    bounds, given = Bounds(schema), exact(value)
    if (bounds.low is not None and (given < bounds.low or (bounds.above and given == bounds.low))) or (
        bounds.high is not None and (given > bounds.high or (bounds.below and given == bounds.high))
    ):
        return False
    return bounds.step is None or (given / bounds.step).denominator == 1

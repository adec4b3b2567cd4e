"""Mappings of another gateway's config that record which keys were converted, so that others can be reported."""

import re
from collections.abc import Iterator, Mapping, Sequence

from umg_grpc.config.importers.config_text_builder import literal, mapping, number, sequence

VARIABLE_REFERENCE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")
SURROGATE_CHARACTER = re.compile(r"[\ud800-\udfff]")
MAX_VALUES = 1_000_000
"""Most values in a config. A YAML alias counts as all the values that it repeats."""
MAX_DEPTH = 100


class SourceMapping:
    """Mapping of another gateway's config. `take` marks a key as converted; `rest` yields the unmarked keys."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._taken: set[str] = set()

    def has(self, key: str) -> bool:
        """Return whether the key has a value."""
        return self._values.get(key) is not None

    def peek(self, key: str) -> object:
        """Return the value of a key (None for no value) without marking the key as converted."""
        return self._values.get(key)

    def take(self, key: str) -> object:
        """Return the value of a key (None for no value), and mark the key as converted."""
        self._taken.add(key)
        return self._values.get(key)

    def text(self, key: str) -> str:
        """Take a text, with `os.environ/NAME` as `${NAME}`; "" for no value. A list or mapping stays unconverted."""
        value = self._values.get(key)
        if isinstance(value, list | dict):
            return ""
        return text_of(self.take(key))

    def number(self, key: str) -> float | None:
        """Take a number; None for any other value, which stays unconverted."""
        found = number(self._values.get(key))
        if found is not None:
            self._taken.add(key)
        return found

    def peek_number(self, key: str) -> float | None:
        """Return the number of a key without marking it as converted; None if the value is no number."""
        return number(self._values.get(key))

    def over(self, defaults: Mapping[str, object]) -> "SourceMapping":
        """Return a copy in which `defaults` supplies missing keys. Both mappings share the record of converted keys."""
        merged = SourceMapping({**defaults, **self._values})
        merged._taken = self._taken
        return merged

    def child(self, key: str) -> "SourceMapping":
        """Take a mapping, which records its converted keys. Any other value is left, and gives an empty one."""
        value = self._values.get(key)
        if isinstance(value, dict):
            self._taken.add(key)
        return SourceMapping(mapping(value))

    def children(self, key: str) -> "Sequence[SourceMapping]":
        """Take a list of mappings. Any other value gives an empty list and stays unconverted."""
        value = self._values.get(key)
        if isinstance(value, list):
            self._taken.add(key)
        return [SourceMapping(mapping(each)) for each in sequence(value)]

    def rest(self) -> Iterator[str]:
        """Yield the keys with a value that were not converted."""
        return (key for key, value in self._values.items() if key not in self._taken and value is not None)


def text_of(value: object) -> str:
    """Return a value as text, with `os.environ/NAME` changed to `${NAME}`; "" for None."""
    if value is None:
        return ""
    match = VARIABLE_REFERENCE.fullmatch(str(value))
    return f"${{{match[1]}}}" if match is not None else literal(str(value))


def check_values(root: object) -> None:
    """Raise ValueError for values that no config has: too many, too deep, recursive, or text that is no Unicode."""
    values, count = [(root, 0)], 0
    while values:
        value, depth = values.pop()
        count += 1
        if count > MAX_VALUES or depth > MAX_DEPTH:
            raise ValueError(f"expected at most {MAX_VALUES:,} values and {MAX_DEPTH} levels; an alias repeats values")
        if isinstance(value, str) and SURROGATE_CHARACTER.search(value):
            raise ValueError("expected text of Unicode characters, without surrogates")
        if isinstance(value, dict):
            values += [(each, depth + 1) for pair in value.items() for each in pair]
        elif isinstance(value, list | tuple | set):
            values += [(each, depth + 1) for each in value]

"""Regular expressions (ECMA 262) in callers' JSON schemas: checks texts, and finds texts that match. RE2 does this in
linear time. It has neither look-arounds nor back references; a pattern with these matches nothing.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import re2

from umg_sandbox.schema_work_budget import WorkBudget

MAX_PATTERN = 5_000
MAX_SAMPLE = 1_000
MAX_MEMORY = 2**20
"""Maximum bytes that RE2 may use for one pattern; a pattern that needs more is not supported."""

_CODE = re.compile(r"(\\[^u])|\\u([0-9a-fA-F]{4})", re.DOTALL)
_REPEAT = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|[*+]", re.DOTALL)  # group 1: where * and + are literal
_ONCE = {"*": "{0}", "+": "{1}"}
_CONTROLS = dict.fromkeys((*range(32), 127), "x")


class Expression(Protocol):
    """Interface of a compiled regular expression of RE2."""

    programsize: int

    def search(self, text: str) -> object: ...

    def possiblematchrange(self, max_bytes: int) -> tuple[bytes, bytes]:
        """Return the first `max_bytes` bytes of the smallest, and of the greatest, text that may match."""
        ...


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Expression | None:
    """Return a compiled pattern; None for a pattern that RE2 does not support."""
    if len(pattern) > MAX_PATTERN or re.search(r"\{\d*,?\d{5}", pattern):  # RE2 reads large counts as literal text
        return None
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = MAX_MEMORY, False, True
    escaped = _CODE.sub(lambda found: found[1] or rf"\x{{{found[2]}}}", pattern)
    try:
        expression: Expression = re2.compile(escaped, options)
    except re2.error:
        return None
    return expression


def matches(pattern: str, text: str, budget: WorkBudget) -> bool:
    """Return whether a supported pattern matches a part of the text. Raise Exhausted if the budget is empty."""
    budget.spend(1 + len(pattern) // 10)
    expression = compiled(pattern)
    if expression is None:
        return False
    budget.spend(len(text) * expression.programsize // 1000)
    return expression.search(text) is not None


def samples(pattern: str) -> Iterator[str]:
    """Yield texts that may match the pattern. First come the smallest and the greatest match with as few repetitions as
    possible, then those of the unchanged pattern.
    """
    shortest = _REPEAT.sub(lambda found: found[1] or _ONCE[found[0]], pattern)
    for expression in filter(None, map(compiled, (shortest, pattern))):
        try:
            bounds = expression.possiblematchrange(MAX_SAMPLE)
        except re2.error:  # more memory is needed, or the pattern is unbounded at its beginning
            continue
        for text in (bound.decode("utf-8", "ignore") for bound in bounds):
            yield from (text.translate(_CONTROLS), text)


def matching_sample(pattern: str) -> str | None:
    """Return a text that matches the pattern; None if none was found."""
    expression = compiled(pattern)
    return next((text for text in samples(pattern) if expression and expression.search(text)), None)

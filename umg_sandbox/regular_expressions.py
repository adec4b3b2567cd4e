"""Regular expressions (ECMA 262) in callers' JSON schemas: matching, and generation of matching texts, by RE2, whose
time is linear.

RE2 has neither look-arounds nor back references; a pattern with these is treated as matching nothing.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

import re2

from umg_sandbox.schema_work_budget import WorkBudget

MAX_PATTERN = 5_000
"""Maximum characters of a pattern."""
MAX_PATTERNS = 32
"""Maximum number of different patterns in one schema."""
MAX_REPEAT = 1_000
"""Maximum count of a repetition (`{1000}`), by the limit of RE2, which treats some larger counts as literal text."""
MAX_SAMPLE = 1_000
MAX_MEMORY = 2**20
"""Maximum bytes that RE2 may use for one pattern; a pattern that needs more is not supported."""

_CODE = re.compile(r"(\\[^u])|\\u([0-9a-fA-F]{4})", re.DOTALL)
_REPEAT = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|[*+]", re.DOTALL)  # group 1: where * and + are literal
_COUNT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}", re.DOTALL)
_MALFORMED = ("missing ", "unexpected ", "no argument ")  # beginnings of the errors of RE2 that ECMA 262 has too
_OF_ECMA = ("[]", "[^]")  # classes that RE2 reads differently
_ONCE = {"*": "{0}", "+": "{1}"}
_CONTROLS = dict.fromkeys((*range(32), 127), "x")


class Expression(Protocol):
    """Interface of a compiled regular expression of RE2."""

    programsize: int
    """Number of instructions."""

    def search(self, text: str) -> object:
        """Return the first match in the text, or None."""
        ...

    def possiblematchrange(self, max_bytes: int) -> tuple[bytes, bytes]:
        """Return the first `max_bytes` bytes of (the smallest, the greatest) text that may match."""
        ...


def compiled(pattern: str) -> Expression | None:
    """Return a compiled pattern; None for a pattern that RE2 does not support."""
    expression = _compile(pattern)
    return None if isinstance(expression, str) else expression


def problem(pattern: str) -> str | None:
    """Return the reason why a pattern is malformed, for an error message; None for a valid pattern and for one that
    is only unsupported.
    """
    if _repeats_too_often(pattern):
        return f"expected repeats of at most {MAX_REPEAT}; lower their counts"
    failure = _compile(pattern)
    if isinstance(failure, str) and failure.startswith(_MALFORMED) and not any(each in pattern for each in _OF_ECMA):
        return "expected a regular expression of ECMA 262; correct it"
    return None


@lru_cache(maxsize=2 * MAX_PATTERNS)  # twice: `samples` rewrites a pattern
def _compile(pattern: str) -> Expression | str:
    """Return the compiled pattern, or the error message of RE2."""
    if len(pattern) > MAX_PATTERN or _repeats_too_often(pattern):
        return "too large"
    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = MAX_MEMORY, False, True
    try:
        expression: Expression = re2.compile(_CODE.sub(_with_code_in_braces, pattern), options)
    except re2.error as error:
        reason = error.args[0]
        return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    return expression


def _repeats_too_often(pattern: str) -> bool:
    counts = (count.lstrip("0") for found in _COUNT.finditer(pattern) for count in found.groups() if count)
    return any(len(count) > 4 or int(count or 0) > MAX_REPEAT for count in counts)


def matches(pattern: str, text: str, budget: WorkBudget) -> bool:
    """Return whether the pattern is supported and matches any part of the text. Raise Exhausted if the budget has no
    steps left.
    """
    expression = compiled(pattern)
    if expression is None:
        return False
    budget.spend(1 + len(text) * expression.programsize // 1000)
    return expression.search(text) is not None


def samples(pattern: str) -> Iterator[str]:
    """Yield texts that may match the pattern: the smallest and the greatest match with as few repetitions as
    possible, then those of the unchanged pattern.
    """
    if compiled(pattern) is None:
        return
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


def _with_code_in_braces(found: re.Match[str]) -> str:
    r"""Return an escape sequence like `\u12ab` in the notation of RE2, `\x{12ab}`; any other escape unchanged."""
    return found[1] or rf"\x{{{found[2]}}}"

"""Comparison of a response with an expectation of a check: one function for each subject and predicate."""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import UNSET

from umg_conformance import event_order, response_paths
from umg_conformance.call_responses import CallResponse
from umg_conformance.check_files import Expectation

Document = Mapping[str, object]
Problem = str | None
"""Description of a difference; None if there is none."""

MAX_SHOWN = 120


def problem(expectation: Expectation, response: CallResponse) -> Problem:
    """Compare a response with an expectation. Return a description of the first difference; None if there is none."""
    if expectation.order is not UNSET:
        return _order(expectation.order, response)
    if expectation.each_line is not UNSET:
        return _each_line(expectation.each_line, response.text)
    if expectation.no_line is not UNSET:
        return _no_line(expectation.no_line, response.text)
    document = response.document
    path = str(expectation.path) if expectation.path is not UNSET else f"headers.{str(expectation.header).lower()}"
    try:
        found = response_paths.find(document, response_paths.parse(path))
    except response_paths.AbsentError as error:
        if expectation.absent is True or expectation.optional:
            return None
        return str(error)
    if expectation.absent is True:
        return f"{path}: expected to be absent, got {shown(found[0])}" if found else None
    counted = expectation.count is not UNSET or expectation.min_count is not UNSET
    if not found and not counted and not expectation.optional:
        return f"{path}: there is none"
    return _first(expectation, found, document, path)


def _first(expectation: Expectation, found: list[object], document: Document, path: str) -> Problem:
    for name, of_value in OF_EACH.items():
        wanted = getattr(expectation, name)
        if wanted is UNSET:
            continue
        for value in found:
            difference = of_value(value, wanted)
            if difference is not None:
                return f"{path}: {difference}"
    for name, of_all in OF_ALL.items():
        wanted = getattr(expectation, name)
        difference = of_all(found, wanted, document) if wanted is not UNSET else None
        if difference is not None:
            return f"{path}: {difference}"
    return None


def shown(value: object) -> str:
    """Return a value as JSON for reports, cut after 120 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def type_name(value: object) -> str:
    """Return the JSON type of a value, for example `string` or `null`; `integer` for an int, `number` for a float."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:  # JSON has no other type
            return "object"


def _order(order: Sequence[object], response: CallResponse) -> Problem:
    names = [str(event.get("name", "")) for event in response.events]
    if event_order.matches(event_order.parse(order), names):
        return None
    return f"events: expected {shown(list(order))}, got {shown(_folded(names))}"


def _folded(names: Iterable[str]) -> list[str]:
    """Return event names for reports, each run of equal names as one with `+`: `a`, `b`, `b` becomes `a`, `b+`."""
    folded: list[str] = []
    for name in names:
        if folded and folded[-1].rstrip("+") == name:
            folded[-1] = f"{name}+"
        else:
            folded.append(name)
    return folded


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _each_line(pattern: str, text: str) -> Problem:
    wrong = next((line for line in _lines(text) if re.fullmatch(pattern, line) is None), None)
    return None if wrong is None else f"expected lines that match {pattern}, got {shown(wrong)}"


def _no_line(pattern: str, text: str) -> Problem:
    wrong = next((line for line in _lines(text) if re.search(pattern, line) is not None), None)
    return None if wrong is None else f"expected no line that matches {pattern}, got {shown(wrong)}"


def _expected(condition: bool, wanted: str, value: object) -> Problem:
    return None if condition else f"expected {wanted}, got {shown(value)}"


def _type(value: object, wanted: str | list[str]) -> Problem:
    names = [wanted] if isinstance(wanted, str) else wanted
    got = type_name(value)
    return _expected(got in names or (got == "integer" and "number" in names), " or ".join(names), value)


def _same(value: object, other: object) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _matches(value: object, pattern: str) -> Problem:
    return _expected(isinstance(value, str) and re.search(pattern, value) is not None, f"a match of {pattern}", value)


def _not_matches(value: object, pattern: str) -> Problem:
    fine = isinstance(value, str) and re.search(pattern, value) is None
    return _expected(fine, f"a text without a match of {pattern}", value)


def _number(value: object) -> float | None:
    """Return the value as a float, also from text, as in headers and protobuf's JSON; None for other values."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _limit(argument: object) -> float:
    number = _number(argument)
    return math.nan if number is None else number


def _at_least(value: object, least: object) -> Problem:
    number, limit = _number(value), _limit(least)
    return _expected(number is not None and number >= limit, f"at least {limit:.15g}", value)


def _at_most(value: object, most: object) -> Problem:
    number, limit = _number(value), _limit(most)
    return _expected(number is not None and number <= limit, f"at most {limit:.15g}", value)


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | list | dict) else -1


def _contains(value: object, part: object) -> Problem:
    fine = part in value if isinstance(value, list) else isinstance(value, str) and str(part) in value
    return _expected(fine, f"to contain {shown(part)}", value)


def _keys(value: object, names: list[str]) -> Problem:
    missing = [name for name in names if not isinstance(value, dict) or name not in value]
    return _expected(not missing, f"an object with {', '.join(missing)}", value)


def _only_keys(value: object, names: list[str]) -> Problem:
    more = [name for name in value if name not in names] if isinstance(value, dict) else []
    return _expected(isinstance(value, dict) and not more, f"an object without {', '.join(more)}", value)


def _json(value: object, wanted: str) -> Problem:
    try:
        parsed = json.loads(value) if isinstance(value, str) else UNSET
    except ValueError:
        parsed = UNSET
    fine = parsed is not UNSET and _type(parsed, wanted) is None
    return _expected(fine, f"a text that holds JSON of type {wanted}", value)


def _base64_multiple(value: object, multiple: int) -> Problem:
    try:
        decoded = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        decoded = b""
    return _expected(bool(decoded) and not len(decoded) % multiple, f"base64 of a multiple of {multiple} bytes", value)


def _length(value: object, length: int) -> Problem:
    return _expected(_size(value) == length, f"a length of {length}", value)


def _min_length(value: object, length: int) -> Problem:
    return _expected(_size(value) >= length, f"a length of at least {length}", value)


def _equals(value: object, wanted: object) -> Problem:
    return _expected(_same(value, wanted), shown(wanted), value)


def _not_equals(value: object, wanted: object) -> Problem:
    return _expected(not _same(value, wanted), f"another value than {shown(wanted)}", value)


def _one_of(value: object, wanted: list[object]) -> Problem:
    return _expected(any(_same(value, one) for one in wanted), f"one of {shown(wanted)}", value)


def _same_as(found: list[object], path: str, document: Document) -> Problem:
    try:
        others = response_paths.find(document, response_paths.parse(path))
    except response_paths.AbsentError as error:
        return f"expected the value of {path}, but {error}"
    return _expected(found == others, f"the value of {path}, {shown(_one(others))}", _one(found))


def _one(values: list[object]) -> object:
    return values[0] if len(values) == 1 else values


def _sum(names: Sequence[str], document: Document) -> float:
    total = 0.0
    for name in names:
        with suppress(response_paths.AbsentError):
            total += sum(_number(value) or 0 for value in response_paths.find(document, response_paths.parse(name)))
    return total


def _sum_of(found: list[object], names: list[str], document: Document) -> Problem:
    total = _sum(names, document)
    return _expected(_number(_one(found)) == total, f"the sum of {' and '.join(names)}, {total:.15g}", _one(found))


def _at_least_sum_of(found: list[object], names: list[str], document: Document) -> Problem:
    total, number = _sum(names, document), _number(_one(found))
    fine = number is not None and number >= total
    return _expected(fine, f"at least the sum of {' and '.join(names)}, {total:.15g}", _one(found))


def _count(found: list[object], number: int, document: Document) -> Problem:
    return _expected(len(found) == number, f"{number} values", found)


def _min_count(found: list[object], number: int, document: Document) -> Problem:
    return _expected(len(found) >= number, f"at least {number} values", found)


def _sorted(found: list[object], direction: str, document: Document) -> Problem:
    numbers = [number for value in found if (number := _number(value)) is not None]
    fine = len(numbers) == len(found) and numbers == sorted(numbers, reverse=direction == "descending")
    return _expected(fine, f"{direction} numbers", found)


def _unique(found: list[object], wanted: bool, document: Document) -> Problem:
    repeated = len({shown_fully(value) for value in found}) < len(found)
    return _expected(repeated != wanted, "different values" if wanted else "repeated values", found)


def _all_equal(found: list[object], wanted: bool, document: Document) -> Problem:
    equal = len({shown_fully(value) for value in found}) <= 1
    return _expected(equal == wanted, "equal values" if wanted else "different values", found)


def shown_fully(value: object) -> str:
    """Return a value as uncut JSON, by which values are compared."""
    return json.dumps(value, sort_keys=True, default=str)


def _counts_from(found: list[object], first: int, document: Document) -> Problem:
    return _expected(found == list(range(first, first + len(found))), f"{first} and the following numbers", found)


def _text(found: list[object]) -> str:
    return "".join(value for value in found if isinstance(value, str))


def _joined(found: list[object], wanted: object, document: Document) -> Problem:
    return _expected(_text(found) == wanted, f"the texts to be {shown(wanted)}", _text(found))


def _joined_matches(found: list[object], pattern: str, document: Document) -> Problem:
    return _expected(re.search(pattern, _text(found)) is not None, f"texts that match {pattern}", _text(found))


def _joined_same_as(found: list[object], path: str, document: Document) -> Problem:
    try:
        others = response_paths.find(document, response_paths.parse(path))
    except response_paths.AbsentError as error:
        return f"expected the texts of {path}, but {error}"
    return _expected(_text(found) == _text(others), f"the texts of {path}, {shown(_text(others))}", _text(found))


_EACH: Sequence[Callable[..., Problem]] = (
    *(_type, _equals, _not_equals, _one_of, _matches, _not_matches, _at_least, _at_most, _length, _min_length),
    *(_contains, _keys, _only_keys, _json, _base64_multiple),
)
_ALL: Sequence[Callable[..., Problem]] = (
    *(_count, _min_count, _same_as, _sum_of, _at_least_sum_of, _sorted, _unique, _all_equal, _counts_from),
    *(_joined, _joined_matches, _joined_same_as),
)
OF_EACH = {predicate.__name__.removeprefix("_"): predicate for predicate in _EACH}
"""Predicates that hold for each value: (value, argument) -> problem."""
OF_ALL = {predicate.__name__.removeprefix("_"): predicate for predicate in _ALL}
"""Predicates of all values together, those of their number first: (values, argument, document) -> problem."""

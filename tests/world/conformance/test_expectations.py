"""Every subject and predicate of an expectation holds for one response and fails for another, with a text about the difference."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from umg_conformance import expectations
from umg_conformance.call_responses import CallResponse, server_sent_events
from umg_conformance.check_files import CHECK_SUBJECTS, Expectation


@dataclass(frozen=True)
class Case:
    """Expectation, a body that meets it, one that does not, and the text about the latter."""

    id: str
    expectation: dict[str, Any]
    good: Any
    bad: Any
    problem: str
    path: str = "body.x"
    names: tuple[str, ...] = field(default=())


def on(predicate: str, argument: Any, good: Any, bad: Any, problem: str, **more: Any) -> Case:
    path = more.pop("path", "body.x")
    wanted = {"path": path, predicate: argument, **more}
    return Case(f"{predicate} {argument}", wanted, {"x": good}, {"x": bad}, f"{path}: {problem}", path)


CASES = [
    on("type", "string", "a", 1, "expected string, got 1"),
    on("type", "integer", 1, 1.5, "expected integer, got 1.5"),
    on("type", "number", 1, True, "expected number, got true"),
    on("type", ["null", "array"], None, {}, "expected null or array, got {}"),
    on("equals", 1, 1, True, "expected 1, got true"),
    on("not_equals", "a", "b", "a", 'expected another value than "a", got "a"'),
    on("one_of", ["a", "b"], "b", "c", 'expected one of ["a", "b"], got "c"'),
    on("matches", "^a", "ab", "ba", 'expected a match of ^a, got "ba"'),
    on("not_matches", "^a", "ba", "ab", 'expected a text without a match of ^a, got "ab"'),
    on("at_least", 2, 2, 1, "expected at least 2, got 1"),
    on("at_most", 2, "2", "3", 'expected at most 2, got "3"'),
    on("length", 1, [0], [], "expected a length of 1, got []"),
    on("min_length", 1, "a", "", 'expected a length of at least 1, got ""'),
    on("contains", "a", ["a"], ["b"], 'expected to contain "a", got ["b"]'),
    on("keys", ["a", "b"], {"a": 1, "b": 2, "c": 3}, {"a": 1}, 'expected an object with b, got {"a": 1}'),
    on("only_keys", ["a"], {"a": 1}, {"b": 1}, 'expected an object without b, got {"b": 1}'),
    on("json", "object", "{}", "[]", 'expected a text that holds JSON of type object, got "[]"'),
    on("base64_multiple", 4, "AAAAAA==", "AAAA", 'expected base64 of a multiple of 4 bytes, got "AAAA"'),
    on("absent", True, 0, 1, "expected to be absent, got 1", path="body.x"),
    on("count", 2, [1, 2], [1], "expected 2 values, got [1]", path="body.x[*]"),
    on("min_count", 1, [1], [], "expected at least 1 values, got []", path="body.x[*]"),
    on("sorted", "descending", [2, 1], [1, 2], "expected descending numbers, got [1, 2]", path="body.x[*]"),
    on("sorted", "ascending", [1, 1], [2, 1], "expected ascending numbers, got [2, 1]", path="body.x[*]"),
    on("unique", True, [1, 2], [1, 1], "expected different values, got [1, 1]", path="body.x[*]"),
    on("all_equal", True, [1, 1], [1, 2], "expected equal values, got [1, 2]", path="body.x[*]"),
    on("counts_from", 0, [0, 1], [0, 2], "expected 0 and the following numbers, got [0, 2]", path="body.x[*]"),
    on("joined", "ab", ["a", "b"], ["b"], 'expected the texts to be "ab", got "b"', path="body.x[*]"),
    on("joined_matches", "^ab$", ["a", "b"], ["b"], 'expected texts that match ^ab$, got "b"', path="body.x[*]"),
    Case(
        "same_as",
        {"path": "body.x", "same_as": "body.y"},
        {"x": 1, "y": 1},
        {"x": 1, "y": 2},
        "body.x: expected the value of body.y, 2, got 1",
    ),
    Case(
        "joined_same_as",
        {"path": "body.x[*]", "joined_same_as": "body.y"},
        {"x": ["a", "b"], "y": "ab"},
        {"x": ["a"], "y": "ab"},
        'body.x[*]: expected the texts of body.y, "ab", got "a"',
    ),
    Case(
        "sum_of",
        {"path": "body.x", "sum_of": ["body.y", "body.z"]},
        {"x": 3, "y": 3},
        {"x": 3, "y": 3, "z": 1},
        "body.x: expected the sum of body.y and body.z, 4, got 3",
    ),
    Case(
        "at_least_sum_of",
        {"path": "body.x", "at_least_sum_of": ["body.y", "body.z"]},
        {"x": 5, "y": 3, "z": 1},
        {"x": 3, "y": 3, "z": 1},
        "body.x: expected at least the sum of body.y and body.z, 4, got 3",
    ),
]


def answer(body: object, **more: Any) -> CallResponse:
    return CallResponse(200, {"content-type": "application/json"}, body, **more)


def problem(expectation: dict[str, Any], given: CallResponse) -> str | None:
    return expectations.problem(msgspec.convert(expectation, Expectation), given)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_predicate_holds_and_fails(case: Case) -> None:
    good = {} if "absent" in case.expectation else case.good
    assert problem(case.expectation, answer(good)) is None
    assert problem(case.expectation, answer(case.bad)) == case.problem


def test_every_subject_and_predicate_has_a_case() -> None:
    covered = {name for case in CASES for name in case.expectation}
    beside = {"optional", "header", "order", "each_line", "no_line"}  # below
    assert covered | beside == set(Expectation.__struct_fields__)
    assert set(expectations.OF_EACH) | set(expectations.OF_ALL) | {"absent", "optional", *CHECK_SUBJECTS} == set(
        Expectation.__struct_fields__
    )


def test_an_absent_value_is_a_problem_unless_it_is_optional() -> None:
    assert problem({"path": "body.x.y", "type": "string"}, answer({})) == "there is no body.x"
    assert problem({"path": "body.x", "type": "string", "optional": True}, answer({})) is None
    assert problem({"path": "body.x[?].y", "type": "string"}, answer({"x": [{}]})) == "body.x[?].y: there is none"
    assert problem({"path": "body.x[*].y", "type": "string"}, answer({"x": [{}]})) == "there is no body.x[0].y"


def test_the_name_of_a_header_has_any_case() -> None:
    assert problem({"header": "Content-Type", "matches": "json$"}, answer(None)) is None
    assert problem({"header": "retry-after", "matches": "."}, answer(None)) == "there is no headers.retry-after"


STREAM = "event: start\ndata: {}\n\n: a comment\n\nevent: delta\ndata: 1\n\nevent: delta\ndata: 2\n\ndata: [DONE]\n\n"


@pytest.mark.parametrize(
    ("order", "holds"),
    [
        (["start", "delta+", "[DONE]"], True),
        (["start", "ping*", "delta", "delta", "[DONE]?"], True),
        (["start", "..."], True),
        (["...", "delta/text", "[DONE]"], True),
        (["start", ["delta", "ping?", "+"], "[DONE]"], True),
        (["start", "delta", "[DONE]"], False),
        (["delta+", "[DONE]"], False),
        (["start", "delta+"], False),
    ],
)
def test_the_order_of_events(order: list[object], holds: bool) -> None:
    given = answer(None, events=server_sent_events(STREAM), text=STREAM)
    text = problem({"order": order}, given)
    assert (text is None) == holds
    if not holds:
        assert str(text).endswith('got ["start", "delta+", "[DONE]"]')


def test_lines_of_a_stream() -> None:
    given = answer(None, text=STREAM)
    assert problem({"each_line": "((event|data|): ?.*)?"}, given) is None
    assert problem({"each_line": "(data: .*)?"}, given) == ('expected lines that match (data: .*)?, got "event: start"')
    assert problem({"no_line": "^id:"}, given) is None
    assert problem({"no_line": "^:"}, given) == 'expected no line that matches ^:, got ": a comment"'


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_events_are_read_with_any_line_ending_and_without_a_last_blank_line(ending: str) -> None:
    text = "event: a\ndata: {\ndata: }\n\ndata: text".replace("\n", ending)
    assert server_sent_events(text) == [
        {"data": {}, "name": "a", "event": "a"},
        {"data": "text", "name": "data"},
    ]

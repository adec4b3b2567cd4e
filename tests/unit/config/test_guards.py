"""The config section `guards`: its values, and a problem with its place for each mistake."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import ConfigError, parse
from umg_grpc.config.config_values import GuardRow
from umg_grpc.knowledge.sensitive_text_patterns import GUARDED_PATTERNS

CHANNEL = "channels: [{name: a, protocols: [sandbox], models: [m]}]\nguards:\n"


def guards(row: str) -> tuple[GuardRow, ...]:
    return parse(f"{CHANNEL}- {row}\n", "umg.yaml", {"TOKEN": "t"}).guards


def test_a_guard_by_patterns_has_those_of_its_sets_words_and_its_own() -> None:
    [guard] = guards("{name: g, kind: patterns, sets: [cards], words: [a b], patterns: {x: 'y+'}, on: [request]}")
    assert [row.name for row in guard.patterns] == ["card_number", "word", "x"]
    assert (guard.phases, guard.models, guard.action) == (("request",), ("*",), "mask")


def test_the_headers_of_a_guard_are_not_shown() -> None:
    [guard] = guards("{name: g, kind: webhook, url: 'http://a/', headers: {authorization: 'Bearer ${TOKEN}'}}")
    assert guard.headers == {"authorization": "Bearer t"}
    assert "Bearer" not in repr(guard)


@dataclass(frozen=True)
class Mistake:
    """Row with a mistake, and the beginning of its problem."""

    id: str
    row: str
    problem: str


MISTAKES = [
    Mistake("no kind", "{name: g}", "guards[0]: expected a mapping with `kind`, one of patterns, webhook, grpc"),
    Mistake("an unknown kind", "{name: g, kind: regex}", "guards[0]: expected a mapping with `kind`"),
    Mistake("no name", "{kind: patterns, words: [a]}", "guards[0]: expected `name`"),
    Mistake("a name with a space", "{name: a b, kind: patterns, words: [a]}", "guards[0].name: expected lower-case"),
    Mistake("no pattern", "{name: g, kind: patterns}", "guards[0]: expected `sets`, `words` or `patterns`"),
    Mistake("a set", "{name: g, kind: patterns, sets: [keys]}", "guards[0].sets[0]: expected one of secrets, cards"),
    Mistake(
        "a look-ahead",
        "{name: g, kind: patterns, patterns: {x: 'a(?=b)'}}",
        "guards[0].patterns.x: expected a regular expression of RE2",
    ),
    Mistake("a group", "{name: g, kind: patterns, patterns: {x: '(a)'}}", "guards[0].patterns.x: expected a regular"),
    Mistake("an empty match", "{name: g, kind: patterns, patterns: {x: 'a*'}}", "guards[0].patterns.x: expected a reg"),
    Mistake(
        "an unknown model", "{name: g, kind: patterns, words: [a], models: [n]}", "guards[0].models[0]: expected the id"
    ),
    Mistake("an operation", "{name: g, kind: patterns, words: [a], operations: [sing]}", "guards[0].operations[0]: "),
    Mistake("a target", "{name: g, kind: grpc, target: 'http://a'}", "guards[0].target: expected HOST:PORT"),
    Mistake("a URL", "{name: g, kind: webhook, url: a}", "guards[0].url: expected"),
    Mistake(
        "a key of another kind", "{name: g, kind: grpc, target: 'a:1', url: b}", "guards[0].url: `url` is not known"
    ),
    Mistake("a phase", "{name: g, kind: patterns, words: [a], on: [both]}", "guards[0].on[0]: expected request or"),
    Mistake("a window", "{name: g, kind: grpc, target: 'a:1', stream: {window: 0}}", "guards[0].stream.window"),
    Mistake("a header", "{name: g, kind: webhook, url: 'http://a/', headers: {'a b': c}}", "guards[0].headers.a b"),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_a_mistake_is_named_with_its_place(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        guards(case.row)
    assert str(caught.value.problems[0]).startswith(f"umg.yaml:3: {case.problem}")


def test_two_guards_have_two_names() -> None:
    row = "{name: g, kind: patterns, words: [a]}"
    with pytest.raises(ConfigError, match="expected another name; `g` stands before"):
        guards(f"{row}\n- {row}")


def test_an_alias_is_no_model_of_a_guard() -> None:
    row = "{name: g, kind: patterns, words: [a], models: [other]}"
    with pytest.raises(ConfigError, match="expected the id of a model; `other` is an alias of `m`"):
        guards(f"{row}\naliases: {{other: m}}")


def test_each_pattern_has_a_source_and_a_date() -> None:
    for row in GUARDED_PATTERNS:
        assert row.source, row.name
        assert row.as_of >= "2026-11-29", row.name

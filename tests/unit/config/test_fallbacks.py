"""Config section `fallbacks`: its values, and the problems that stop the start."""

from dataclasses import dataclass

import pytest

from umg_grpc.config import Config, ConfigError, Fallbacks, parse
from umg_grpc.config.fallback_section import FALLBACK_CAUSES, fallbacks_of
from umg_grpc.routing import Router

CHANNELS = """\
channels:
  - {name: simulated, protocols: [sandbox], models: [famO-5, famO-5-mini, famC-sonnet-4-5, famG-2.5-pro, "play/*"]}
aliases: {fast: famO-5-mini, thinker: famG-2.5-pro-thinking-low}
"""


def config(fallbacks: str) -> Config:
    return parse(f"{CHANNELS}fallbacks: {fallbacks}\n", "umg.yaml", {})


def test_a_list_is_for_every_cause() -> None:
    found = config("{famO-5: [famC-sonnet-4-5, fast]}").fallbacks["famO-5"]
    assert found == Fallbacks(**dict.fromkeys(FALLBACK_CAUSES, ("famC-sonnet-4-5", "fast")))


def test_a_mapping_names_models_by_cause() -> None:
    found = config("{famO-5: {context: [thinker], quota: [play/any]}}").fallbacks["famO-5"]
    assert found == Fallbacks(context=("thinker",), quota=("play/any",))


def test_an_id_comes_before_a_pattern_and_a_longer_pattern_before_a_shorter_one() -> None:
    written = config('{"fam*": [play/a], "famO-*": {content: [famO-5, play/b]}, famO-5: {quota: [play/c]}}')
    router = Router(written)
    lists = {name: router.resolve(name).model.fallbacks for name in ("famO-5", "famO-5-mini", "famC-sonnet-4-5")}
    assert lists["famO-5"] == Fallbacks(quota=("play/c",))
    assert lists["famO-5-mini"] == Fallbacks(content=("famO-5", "play/b"))
    assert lists["famC-sonnet-4-5"] == Fallbacks(**dict.fromkeys(FALLBACK_CAUSES, ("play/a",)))
    assert router.resolve("play/x").model.fallbacks is None


def test_a_model_is_not_its_own_fallback_by_a_pattern() -> None:
    written = config('{"famO-*": {content: [famO-5]}}').fallbacks
    assert fallbacks_of(written, "famO-5") is None
    assert fallbacks_of(written, "famO-5-mini") == Fallbacks(content=("famO-5",))


def test_two_models_may_name_each_other() -> None:
    assert set(config("{famO-5: [famC-sonnet-4-5], famC-sonnet-4-5: [famO-5]}").fallbacks) == {
        "famO-5",
        "famC-sonnet-4-5",
    }


@dataclass(frozen=True)
class Rejected:
    id: str
    text: str
    path: str
    expected: str


REJECTED = [
    Rejected("an unknown model", "{famX: [famO-5]}", "fallbacks.famX", "expected the id of a model that some channel"),
    Rejected("an alias as key", "{fast: [famO-5]}", "fallbacks.fast", "`fast` is an alias of `famO-5-mini`"),
    Rejected("a pattern of several *", '{"f*O*": [famO-5]}', "fallbacks.f*O*", "a pattern with one `*`"),
    Rejected("an unknown fallback", "{famO-5: [fast, nobody]}", "fallbacks.famO-5[1]", "expected the id or alias of a"),
    Rejected("a pattern as fallback", '{famO-5: ["play/*"]}', "fallbacks.famO-5[0]", "expected the id or alias of a"),
    Rejected("itself", "{famO-5: {quota: [famO-5]}}", "fallbacks.famO-5.quota[0]", "another model than `famO-5`"),
    Rejected("itself by an alias", "{famO-5-mini: [fast]}", "fallbacks.famO-5-mini[0]", "another model than `famO-5-m"),
    Rejected("one twice", "{famO-5: [fast, famO-5-mini]}", "fallbacks.famO-5[1]", "expected each model once"),
    Rejected("an unknown cause", "{famO-5: {contxt: [fast]}}", "fallbacks.famO-5.contxt", "did you mean `context`?"),
    Rejected("no list", "{famO-5: fast}", "fallbacks.famO-5", "expected a list of models, or a mapping of causes"),
    Rejected("a cause without a list", "{famO-5: {quota: fast}}", "fallbacks.famO-5.quota", "expected a list"),
    Rejected("an empty list", "{famO-5: []}", "fallbacks.famO-5", "expected at least one model"),
    Rejected("an empty list of a cause", "{famO-5: {quota: []}}", "fallbacks.famO-5.quota", "expected at least one"),
    Rejected("no cause", "{famO-5: {}}", "fallbacks.famO-5", "expected at least one cause of context, content,"),
    Rejected("a mapping in a list", "{famO-5: [{id: fast}]}", "fallbacks.famO-5[0]", "expected the id or alias of a"),
    Rejected("a list of all", "[famO-5]", "fallbacks", "expected a mapping"),
]


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.id)
def test_an_invalid_section_stops_the_start_at_its_line(case: Rejected) -> None:
    with pytest.raises(ConfigError) as caught:
        config(case.text)
    [problem] = caught.value.problems
    assert (problem.filename, problem.line, problem.path) == ("umg.yaml", 4, case.path)
    assert case.expected in problem.expected

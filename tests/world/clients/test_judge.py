"""Judge of the scenarios, and the consistency of the file with them."""

import json

import pytest

from tests.world.clients.gateway import SCENARIOS
from tests.world.clients.judge import RULES, differences

CASES = json.loads(SCENARIOS.read_text())["scenarios"]


def test_names_and_steps_of_the_scenarios_are_consistent() -> None:
    names = [scenario["name"] for scenario in CASES]
    assert len(set(names)) == len(names) >= 40
    for scenario in CASES:
        assert {int(number) for number in scenario["expect"]} <= set(range(len(scenario["steps"]))), scenario["name"]


VERDICTS = [
    ({"a": 1}, {"a": "1", "b": 2}, True),
    ({"a": 0}, {}, True),
    ({"a": True}, {"a": 1}, False),
    ({"a": 1}, {"a": 2}, False),
    ([{"a": 1}], [], False),
    ({"$some": 3}, [1, 2, 3], True),
    ({"$some": 3}, [], False),
    ({"$every": {"$at_least": 2}}, [2, 3], True),
    ({"$every": {"$at_least": 2}}, [2, 1], False),
    ({"$any_of": [1, 2]}, 2, True),
    ({"$any_of": [1, 2]}, 3, False),
    ({"$all": [{"$contains": "a"}, {"$length": 2}]}, "ab", True),
    ({"$matches": "^a"}, "ba", False),
    ({"$bytes": 2}, "YWI=", True),
    ({"$json": {"a": 1}}, '{"a": 1}', True),
    ({"$json": {"a": 1}}, "{", False),
    ({"$near": [1, 0.1]}, 1.05, True),
    ({"$at_most": 1}, 2, False),
    ({"$last": 3}, [1, 3], True),
    ({"$absent": True}, None, True),
    ({"$absent": True}, {"reason": "X"}, False),
]


@pytest.mark.parametrize(("pattern", "value", "passes"), VERDICTS)
def test_the_judge_compares_as_documented(pattern: object, value: object, passes: bool) -> None:
    scenario = {"steps": [{}], "expect": {"0": {"value": pattern}}}
    assert (differences(scenario, {"results": [{"value": value}]}) == []) is passes


def test_each_rule_of_the_judge_has_an_example() -> None:
    examples = json.dumps([pattern for pattern, _, _ in VERDICTS])
    assert [rule for rule in RULES if f'"{rule}"' not in examples] == []


def test_only_an_expected_error_may_occur() -> None:
    failed = {"results": [{"error": {"reason": "INTERNAL"}}]}
    assert differences({"steps": [{}]}, failed) != []
    assert differences({"steps": [{}], "expect": {"0": {"error": {"reason": "INTERNAL"}}}}, failed) == []
    assert differences({"steps": [{}]}, {"results": [{"failure": "KeyError"}]}) != []
    assert differences({"steps": [{}]}, {"results": []}) != []

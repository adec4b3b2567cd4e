"""Laws of the selection by affinity: shares by weight, minimal movement, and the same result in every process."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pairs.prefixes.test_prefixes import BEGUN
from umg_grpc.base.rendezvous_hashing import distance
from umg_grpc.service.caching.prompt_cache_account_choice import conversation_digest
from umg_grpc.wire import TEXT_FORMATS

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)
groups = st.dictionaries(names, st.integers(1, 9), min_size=1, max_size=8)
keys = st.binary(min_size=16, max_size=16)
KEYS = [b"%016d" % number for number in range(20_000)]


def ordered(group: Mapping[str, int], affinity: bytes) -> list[str]:
    return sorted(group, key=lambda name: distance(name, affinity, group[name]))


@dataclass(frozen=True)
class Group:
    id: str
    weights: Mapping[str, int]


GROUPS = [
    Group("equal", {"a": 1, "b": 1, "c": 1, "d": 1}),
    Group("two", {"east": 1, "west": 1}),
    Group("weighted", {"a": 5, "b": 3, "c": 2}),
    Group("one large", {"a": 98, "b": 1, "c": 1}),
    Group("similar names", {f"channel-{number}": 1 for number in range(10)}),
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.id)
def test_each_member_has_its_share_of_the_keys(group: Group) -> None:
    counted = Counter(ordered(group.weights, key)[0] for key in KEYS)
    total = sum(group.weights.values())
    assert all(abs(counted[name] / len(KEYS) - weight / total) < 0.02 for name, weight in group.weights.items())


@given(groups, keys, names)
def test_a_member_that_goes_moves_only_its_own_keys(group: dict[str, int], key: bytes, gone: str) -> None:
    before = ordered(group, key)
    rest = {name: weight for name, weight in group.items() if name != gone}
    assert ordered(rest, key) == [name for name in before if name != gone]


@given(groups, keys, names, st.integers(1, 9))
def test_a_member_that_comes_takes_keys_and_moves_no_other(
    group: dict[str, int], key: bytes, new: str, weight: int
) -> None:
    without = {name: each for name, each in group.items() if name != new}
    after = ordered({**without, new: weight}, key)
    assert [name for name in after if name != new] == ordered(without, key)


@given(groups, keys, names)
def test_a_member_with_more_weight_loses_no_key(group: dict[str, int], key: bytes, name: str) -> None:
    light, heavy = ordered({**group, name: 2}, key), ordered({**group, name: 5}, key)
    assert heavy.index(name) <= light.index(name)


@given(groups, keys)
def test_the_order_of_the_config_does_not_matter(group: dict[str, int], key: bytes) -> None:
    assert ordered(dict(reversed(group.items())), key) == ordered(group, key)


def choices() -> list[str]:
    """Return the channel of a conversation of each format, and its digest."""
    found = []
    for face, body in BEGUN.items():
        request = TEXT_FORMATS[face].decode_request(json.dumps({"model": "m"} | body).encode(), {}, "m").canonical
        digest = conversation_digest("key", request, None)
        found.append(f"{ordered({'a': 2, 'b': 1, 'c': 1}, digest)} {digest.hex()}")
    return found


def test_every_process_makes_the_same_choice() -> None:
    program = f"from {__name__} import choices; print('\\n'.join(choices()))"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines() == choices()

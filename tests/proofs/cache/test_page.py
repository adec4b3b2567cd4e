"""Tables of the page about prompt caches: they have every pair, and each reaches its goal."""

import pytest

from tests.proofs.cache.measurements import recorded_pairs
from tests.proofs.cache.page import PAGE, PROGRAMS, RECORDED, rows
from tests.proofs.cache.programs import NAMES

LEAST = 0.99
LEAST_OF_SEVERAL = 0.98  # with several replicas or accounts


def _percent(text: str) -> float:
    return float(text.removesuffix("%")) / 100


@pytest.mark.parametrize("name", [RECORDED, PROGRAMS])
def test_each_pair_on_the_page_reaches_its_goal(name: str) -> None:
    for row in rows(PAGE.read_text(encoding="utf-8"), name):
        goal = _percent(row["direct"] or row["ideal"])
        assert _percent(row["one gateway"]) >= LEAST * goal, row
        for several in ("two replicas", "two accounts", "both"):
            assert not row[several] or _percent(row[several]) >= LEAST_OF_SEVERAL * goal, row
        assert not row["cost"] or float(row["cost"]) <= 1 / LEAST, row


def test_the_page_has_every_pair() -> None:
    text = PAGE.read_text(encoding="utf-8")
    pairs = recorded_pairs()
    found = [(row["agent"], row["provider"]) for row in rows(text, RECORDED)]
    assert found == [
        (f"{pair.agent.name}, {pair.agent.format}", f"{pair.upstream.model}, {pair.upstream.format}") for pair in pairs
    ]
    programs = {(row["agent"].partition(",")[0], row["provider"].partition(", ")[2]) for row in rows(text, PROGRAMS)}
    assert programs == {(name, pair.upstream.format) for name in NAMES for pair in pairs}

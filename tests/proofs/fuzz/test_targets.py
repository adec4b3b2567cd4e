"""Bodies that have shown a fault before, and a bounded number of new ones, the same in each run; `make fuzz` draws
others for an hour.
"""

import pytest

from tests.proofs.fuzz.run import fuzz
from tests.proofs.fuzz.targets import TARGETS

SEEDS, EXAMPLES = range(1), 50
"""Seeds and number of the bodies, the same in each run: more would take time and, once passed, find nothing new."""


@pytest.mark.parametrize("name", TARGETS)
def test_known_bodies_show_no_fault(name: str) -> None:
    target = TARGETS[name]
    known = [*target.seeds, *(path.read_bytes() for path in target.corpus())]
    assert known
    for body in known:
        target.check(body)


@pytest.mark.parametrize("name", TARGETS)
def test_no_fault_is_found_in_a_short_while(name: str) -> None:
    assert not fuzz(TARGETS[name], SEEDS, EXAMPLES)

"""Short form of the proof of the leases; `python -m tests.proofs.ledger.budget_holders` has a thousand processes."""

from dataclasses import dataclass

import pytest

from tests.proofs.ledger.budget_holders import Crowd, faults, spend
from tests.support.databases import Database


@dataclass(frozen=True)
class Case:
    id: str
    crowd: Crowd
    refuses: bool


CASES = [
    Case("a call each", Crowd(100, 400, 100, calls_each=1), refuses=False),
    Case("until refused", Crowd(40, 160, 20), refuses=True),
    Case("few statements", Crowd(5, 10_000, 50, until_spent=0.2), refuses=False),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_many_processes_spend_a_budget_without_starving_each_other(database: Database, case: Case) -> None:
    spent = await spend(case.crowd, database.url, database.data_dir)
    assert [*faults(case.crowd, spent)] == []
    assert (spent.refused > 0) is case.refuses

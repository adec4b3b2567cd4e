"""Short proof of the ledger; `make ledger` runs the long one."""

import pytest

from tests.proofs.ledger.run import Plan, run
from tests.support.databases import Database


@pytest.mark.parametrize("seed", [1])
async def test_the_ledger_has_no_drift_through_faults_and_kills(database: Database, seed: int) -> None:
    replicas = 1 if database.url == "sqlite" else 2
    verdict = await run(Plan(calls=400, kills=2, replicas=replicas, seed=seed), database.url, database.data_dir)
    assert verdict.faults == []
    every = [*verdict.accounts, *verdict.levels.values()]
    assert [account.drift + account.held for account in every] == [0] * len(every)
    assert all(account.charged_calls for account in verdict.levels.values())

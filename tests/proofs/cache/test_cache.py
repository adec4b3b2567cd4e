"""Short form of `make cache`: the cached share of an agent's prompts through the gateway, and the cost in the ledger."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.proofs.cache.measurements import Measured, Pair, measure, recorded_pairs
from tests.proofs.cache.replay import TURNS
from tests.proofs.cache.vendor_rules import MODEL_OF
from tests.support.databases import Postgres

PARTS = 6
LEAST = 0.99  # of the share that the agent reaches directly, or of the ideal one
PAIRS = [pair for pair in recorded_pairs() if pair.agent.name != "Qwen Code"]
"""Those of `make cache`, less the second agent of chat."""


def check(found: Measured) -> None:
    """Check the share, and that the ledger has the provider's bill, rounded up once for each call."""
    ledger, bills = found.one.ledger, found.one.bills
    assert ledger is not None
    assert found.one.read
    assert found.reached >= LEAST
    assert found.one.cost <= found.goal_cost / LEAST
    assert ledger.calls == len(bills) == PARTS + TURNS
    assert ledger.read == found.one.read
    assert ledger.written == sum(bill.use.written for bill in bills)
    assert ledger.written_long == sum(bill.use.written_long for bill in bills)
    assert ledger.input == sum(bill.use.plain for bill in bills)
    assert 0 <= found.drift <= len(bills)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
async def test_an_agent_reads_as_much_from_the_cache_through_the_gateway_and_pays_no_more(
    pair: Pair, tmp_path: Path
) -> None:
    check(await measure(pair, PARTS, tmp_path))


@pytest.mark.parametrize("model", ["claude-sonnet-5", "gpt-5.5"])
async def test_two_replicas_keep_a_conversation_at_one_of_two_accounts(
    model: str, tmp_path: Path, postgres: Postgres
) -> None:
    [pair] = [each for each in PAIRS if each.id == f"Claude Code to {model}"]

    async def new_database() -> str:
        return await postgres.create_prepared(f"cache_{model.partition('-')[0]}")

    found = await measure(pair, PARTS, tmp_path, new_database)
    for run in (found.replicas, found.accounts, found.both):
        assert run is not None
        assert run.share >= LEAST * found.goal
        assert len({bill.account for bill in run.bills}) == 1


async def test_a_prompt_without_marks_is_not_read_at_a_provider_that_needs_them(tmp_path: Path) -> None:
    [pair] = [each for each in PAIRS if each.id == "OpenCode to claude-sonnet-5"]
    unmarked = replace(pair, upstream=replace(pair.upstream, settings="    prompt_caching: off\n"))
    found = await measure(unmarked, PARTS, tmp_path)
    assert not found.one.read
    assert found.goal > 0.5


def test_every_pair_of_formats_is_measured() -> None:
    found = {(pair.agent.format, pair.upstream.format) for pair in PAIRS}
    assert len(found) == 16
    assert {pair.upstream.model for pair in PAIRS} <= set(MODEL_OF)

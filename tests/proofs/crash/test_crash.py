"""Crash test of video tasks with 30 tasks, and the take-over between two gateways; `make crash` runs the whole test."""

from pathlib import Path

from tests.proofs.crash.run import Plan, run
from tests.support.databases import Postgres


async def test_tasks_survive_the_kills_of_their_gateway(tmp_path: Path) -> None:
    outcome = await run(Plan(tasks=30, kills=3, seconds=10), tmp_path)
    assert list(outcome.faults()) == []
    assert outcome.kills == 3


async def test_a_gateway_takes_over_the_tasks_of_another_one(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.create(f"{tmp_path.name}_crash")
    plan = Plan(tasks=30, kills=1, seconds=6, gateways=2, database=database, restarts=False)
    outcome = await run(plan, tmp_path)
    assert list(outcome.faults()) == []
    assert outcome.seconds_after_kill < 60

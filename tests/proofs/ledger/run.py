"""One run: twenty keys below five projects and two organisations, random calls, and SIGKILLs in the middle of them."""

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from tests.proofs.ledger.calls import CHAT, EMBED, HEDGED, IMAGE, RERANK, Made, Outcome, make, random_call
from tests.proofs.ledger.fleet import Fleet
from tests.proofs.ledger.judge import (
    IMAGE_PRICE,
    INPUT_PRICE,
    REQUEST_PRICE,
    TOKEN_PRICE,
    VECTOR_PRICES,
    Verdict,
    judge,
)
from tests.proofs.ledger.provider import Provider
from tests.support.accounts import new_organization, new_project, rows_of
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.budget_settings import Budget, budget_account
from umg_grpc.base.micro_credits import credits_text
from umg_grpc.store import Store, open_store
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, BudgetAccounts
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords

KEYS = 20
CALLERS = 2  # of each key
PAGE = 1000
LARGE, SMALL = 10**12, 60_000
"""Budgets in micro-credits: one that is never used up, and one for some 25 calls."""
PROJECTS, ORGANIZATIONS = 5, 2
SHARED = 400_000
"""Budget of a project or an organisation that its keys may use up: for some 160 calls."""


@dataclass(frozen=True)
class Tree:
    """Budgets above the keys: each by its account, with its amount and the numbers of the keys below it."""

    projects: list[str]
    budgets: dict[str, tuple[int, list[int]]]


@dataclass(frozen=True)
class Plan:
    calls: int
    kills: int
    replicas: int
    seed: int
    pause: float = 0.05


def config_of(database: str, provider: str) -> str:
    """Return the config, with two channels of the provider, so that a failed attempt has another one to follow."""
    channel = (
        f"    base_url: {provider}\n    api_key: provider-key-0123456789\n    protocols: [chat, embeddings, rerank, images]\n"
        f"    models: [{CHAT}, {HEDGED}, {EMBED}, {RERANK}, {IMAGE}]\n"
    )
    text = f"{{request: {credits_text(REQUEST_PRICE)}, input: {INPUT_PRICE}, output: {TOKEN_PRICE}}}"
    vectors = "".join(
        f"  {model}: {{price: {{request: {credits_text(price)}}}}}\n" for model, price in VECTOR_PRICES.items()
    )
    vectors += f"  {IMAGE}: {{price: {{image: {credits_text(IMAGE_PRICE)}}}}}\n"
    return (
        f"database: {database}\nchannels:\n  - name: one\n{channel}  - name: other\n{channel}models:\n"
        f"  {CHAT}: {{price: {text}}}\n  {HEDGED}: {{price: {text}, hedge: 0.02}}\n{vectors}"
    )


async def run(plan: Plan, database: str, directory: Path) -> Verdict:
    """Make the calls, with the kills evenly among them. `directory`: of the replicas, with the file of SQLite."""
    data = [directory / f"replica-{number}" for number in range(plan.replicas)]
    async with Provider(plan.seed, plan.pause).serving() as provider:
        fleet = Fleet(config_of(database, provider.url), data)
        store = await open_store(database, data[0])
        tree = await _new_tree(store)
        keys = [await _new_key(ApiKeys(store), number, tree.projects[number % PROJECTS]) for number in range(KEYS)]
        async with fleet.running():
            made = await _make_all(plan, fleet, [secret for _, secret in keys])
        key_ids = [key_id for key_id, _ in keys]
        records = await records_of(UsageRecords(store))
        found = await BudgetAccounts(store).balances(dict.fromkeys([*key_ids, *tree.budgets], 0))
        balances: list[Balance | None] = [
            found.get(key_id, NO_BALANCE) if _budget(number) else None for number, key_id in enumerate(key_ids)
        ]
        await store.aclose()
    verdict = judge(made, provider, records, balances, key_ids)
    if fleet.kills != plan.kills:
        verdict.faults.append(f"{fleet.kills} kills instead of {plan.kills}")
    for number, balance in enumerate(balances):
        if balance is not None and balance.spent > (_budget(number) or 0):
            verdict.faults.append(f"key {number} has spent {balance.spent} of {_budget(number)}")
    for number, (account, (budget, below)) in enumerate(tree.budgets.items()):
        name, balance = f"project {number}" if number < PROJECTS else f"org {number - PROJECTS}", found[account]
        verdict.add_level(name, below, balance)
        if balance.spent > budget:
            verdict.faults.append(f"{name} has spent {balance.spent} of {budget}")
    return verdict


async def _new_tree(store: Store) -> Tree:
    """Create the organisations and projects. Some budgets are soft: they are charged, and refuse no call."""
    organizations, projects, budgets = list[str](), list[str](), dict[str, tuple[int, list[int]]]()
    for number in range(ORGANIZATIONS):
        hard, soft = Budget("", (10 * SHARED, LARGE)[number]), Budget("", 1, soft=True)
        organizations.append(await new_organization(store, f"org {number}", budgets=rows_of(hard, soft)))
    for number in range(PROJECTS):
        budget = Budget("", (SHARED, LARGE)[number % 2]) if number else Budget("", LARGE, soft=True)
        organization = organizations[number % ORGANIZATIONS]
        projects.append(await new_project(store, f"project {number}", organization, budgets=rows_of(budget)))
        budgets[budget_account(projects[-1], "")] = budget.micro_credits, [*range(number, KEYS, PROJECTS)]
    for number, organization in enumerate(organizations):
        below = [key for key in range(KEYS) if key % PROJECTS % ORGANIZATIONS == number]
        budgets[budget_account(organization, "")] = (10 * SHARED, LARGE)[number], below
    return Tree(projects, budgets)


def _budget(number: int) -> int | None:
    return (None, LARGE, None, SMALL)[number % 4]


async def _new_key(keys: ApiKeys, number: int, project: str) -> tuple[str, str]:
    key, secret = await keys.create(f"key-{number}", budget_micro_credits=_budget(number), project_id=project)
    return key.key_id, secret


async def _make_all(plan: Plan, fleet: Fleet, secrets: list[str]) -> list[Made]:
    """Return the calls, all of which have ended."""
    made = list[Made]()
    kill_after = [plan.calls * (number + 1) // (plan.kills + 1) for number in range(plan.kills)]
    connector = aiohttp.TCPConnector(limit=0)

    async def call_until_all_are_made(number: int, session: aiohttp.ClientSession) -> None:
        key, chance, count = number % KEYS, random.Random(f"{plan.seed} {number}"), 0
        while len(made) < plan.calls:
            served = await fleet.any(chance)
            call, count = random_call(chance, f"call-{number}-{count}"), count + 1
            outcome = await make(call, served.http, served.grpc, secrets[key], session)
            made.append(Made(call, key, outcome))
            if outcome in {Outcome.UNSENT, Outcome.BROKEN}:
                await asyncio.sleep(0.05)  # the fleet may not have noticed the end of the process
            while kill_after and len(made) >= kill_after[0]:
                kill_after.pop(0)
                fleet.kill(len(kill_after))

    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for number in range(KEYS * CALLERS):
            group.create_task(call_until_all_are_made(number, session))
    return made


async def records_of(table: UsageRecords) -> dict[str, list[UsageRecord]]:
    found: defaultdict[str, list[UsageRecord]] = defaultdict(list)
    after = None
    while records := await table.page(CallFilter(datetime.fromtimestamp(0, UTC)), after, PAGE):
        for record in records:
            found[record.request_id].append(record)
        after = (records[-1].start_micros, records[-1].record_id)
    return found

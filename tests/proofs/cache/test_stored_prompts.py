"""Stored beginnings of prompts at a native provider: an agent with marks for an hour, whose user pauses between turns."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import func, select

from tests.pairs.table import ROOTS
from tests.proofs.cache.cached_provider import CachedFormat
from tests.proofs.cache.conversations import MessagesConversation
from tests.proofs.cache.page import PAGE
from tests.proofs.cache.replay import SQLITE, Ledger, Upstream, gateways_of, headers_of, ledger_of
from tests.support.databases import Postgres
from tests.support.gateways import KEY, Running
from tests.support.providers.server import Json
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.table_definitions import BudgetAccount

MODEL = "gemini-3.6-flash"
EXPLICIT = "    prompt_caching: explicit\n"
PAUSE = 600.0
TURNS, MEASURED_TURNS, PARTS = 4, 6, 2
BUDGET = 10**9


class LongConversation(MessagesConversation):
    """Conversation of Claude Code with marks for an hour."""

    def _mark_last(self) -> None:
        super()._mark_last()
        _lengthen(self.body)


def _lengthen(value: Any) -> None:
    if isinstance(value, dict):
        if "cache_control" in value:
            value["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        for each in value.values():
            _lengthen(each)
    elif isinstance(value, list):
        for each in value:
            _lengthen(each)


@dataclass(frozen=True)
class Held:
    cached: CachedFormat
    ledger: Ledger
    answers: list[Json]

    @property
    def share(self) -> float:
        """Share of the tokens of all prompts that were read from caches."""
        uses = [bill.use for bill in self.cached.bills]
        return sum(use.read for use in uses) / sum(use.prompt for use in uses)

    @property
    def cost(self) -> int:
        """Bill of the provider with the storage, in millionths of a micro-dollar."""
        return sum(bill.cost for bill in self.cached.bills) + self.cached.storage_cost


async def hold(
    upstream: Upstream,
    data: Path,
    *,
    pause: float = PAUSE,
    turns: int = TURNS,
    lose_after: int = 0,
    databases: Sequence[str] = SQLITE,
    budget: int | None = None,
) -> Held:
    """Hold the conversation, call by call at the next gateway in turn. `pause`: seconds before each turn of the user;
    `turns`: those of the
    user; `lose_after`: number of calls after which the provider loses all stored beginnings, which a streamed call then
    finds out, 0 for never; `databases`: one
    for each gateway; `budget`: that of the key, None for none.
    """
    talk, answers = LongConversation("claude_code", upstream.model, PARTS, turns), list[Json]()
    async with gateways_of(upstream, data, databases) as (cached, gateways):
        cached.clock.now = time.time()  # by which the rows of stored beginnings end
        for gateway in gateways:
            gateway.service.stored_prompts.now = cached.clock
        secret = KEY
        if budget is not None:
            _, secret = await ApiKeys(gateways[0].service.store).create("agent", budget_micro_credits=budget)
        async with aiohttp.ClientSession(headers=headers_of(talk.format, secret)) as session:
            for number in count():
                gateway = gateways[number % len(gateways)]
                answers.append(await _call(session, gateway, talk))
                await gateway.service.stored_prompts.settled()
                if not talk.add(answers[-1]):
                    break
                if answers[-1]["stop_reason"] == "end_turn":
                    cached.clock.now += pause
                    await _share(gateways)
                if len(answers) == lose_after:
                    cached.stored.lose()
                    await _stream(session, gateway, talk)
    return Held(cached, await ledger_of(databases[0], data / "0"), answers)


async def _share(gateways: Sequence[Running]) -> None:
    for gateway in gateways:
        assert await gateway.service.prompt_table.flushed()
    for gateway in gateways:
        await gateway.service.prompt_table.load()


async def _call(session: aiohttp.ClientSession, gateway: Running, talk: LongConversation) -> Json:
    async with session.post(gateway.url + ROOTS[talk.format] + talk.path, json=talk.body) as response:
        answer: Json = await response.json()
        assert response.status == 200, answer
    return answer


async def _stream(session: aiohttp.ClientSession, gateway: Running, talk: LongConversation) -> None:
    async with session.post(
        gateway.url + ROOTS[talk.format] + talk.path, json=talk.body | {"stream": True}
    ) as response:
        text = await response.text()
        assert (response.status, "event: message_stop" in text) == (200, True), text


def check_ledger(held: Held) -> None:
    """Check that the ledger has the whole bill, rounded up once for each call and for each storage."""
    bills, created = held.cached.bills, held.cached.stored.created
    assert held.ledger.calls == len(bills) + len(created)
    assert held.ledger.written_long == sum(each.tokens for each in created)
    assert held.ledger.read == sum(bill.use.read for bill in bills)
    assert 0 <= held.ledger.micro_credits - held.cost // 1_000_000 <= held.ledger.calls


async def test_marks_for_an_hour_are_stored_after_a_pause_and_cost_less(tmp_path: Path) -> None:
    plain = await hold(Upstream("native", MODEL), tmp_path / "plain", turns=MEASURED_TURNS)
    explicit = await hold(Upstream("native", MODEL, settings=EXPLICIT), tmp_path / "explicit", turns=MEASURED_TURNS)
    assert not plain.cached.stored.created
    assert explicit.cached.stored.created
    assert explicit.cost < plain.cost
    shares = f"{plain.share:.1%} | {explicit.share:.1%} | {explicit.cost / plain.cost:.3f}"
    assert f"| Claude Code, messages | {MODEL}, native | {shares} |" in PAGE.read_text(encoding="utf-8")
    for held in (plain, explicit):
        check_ledger(held)
    assert [answer["content"] for answer in explicit.answers] == [answer["content"] for answer in plain.answers]


async def test_nothing_is_stored_while_the_implicit_cache_serves_the_calls(tmp_path: Path) -> None:
    held = await hold(Upstream("native", MODEL, settings=EXPLICIT), tmp_path, pause=0)
    assert not held.cached.stored.created
    check_ledger(held)


async def test_the_budget_of_the_key_pays_the_storage(tmp_path: Path) -> None:
    held = await hold(Upstream("native", MODEL, settings=EXPLICIT), tmp_path, budget=BUDGET)
    assert held.cached.stored.created
    check_ledger(held)
    store = await open_store("sqlite", tmp_path / "0")
    async with store.read() as session:
        spent = await session.scalar(select(func.sum(BudgetAccount.spent_micro_credits)))
    await store.aclose()
    assert spent == held.ledger.micro_credits


async def test_replicas_share_the_beginnings_that_one_has_stored(tmp_path: Path, postgres: Postgres) -> None:
    database = await postgres.create_prepared("stored")
    upstream = Upstream("native", MODEL, settings=EXPLICIT)
    alone = await hold(upstream, tmp_path / "alone")
    held = await hold(upstream, tmp_path / "shared", databases=[database, database])
    assert len(held.cached.stored.created) == len(alone.cached.stored.created)
    assert held.cost <= alone.cost * 1.01
    check_ledger(held)


async def test_a_lost_beginning_is_sent_in_the_same_call(tmp_path: Path) -> None:
    held = await hold(Upstream("native", MODEL, settings=EXPLICIT), tmp_path, lose_after=2 * (PARTS + 1) + 1)
    assert held.cached.stored.created
    assert held.cached.stored.missed == 1
    assert len(held.cached.bills) == len(held.answers) + 1 == TURNS * (PARTS + 1) + 1
    check_ledger(held)


async def test_a_refused_storage_costs_nothing_and_fails_no_call(tmp_path: Path) -> None:
    settings = EXPLICIT + "    headers: {x-no-storage: '1'}\n"
    held = await hold(Upstream("native", MODEL, settings=settings), tmp_path)
    assert not held.cached.stored.created
    assert held.cached.stored.refused
    check_ledger(held)

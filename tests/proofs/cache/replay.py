"""Runs of recorded conversations: directly at a simulated provider, and through gateways in front of it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import aiohttp

from tests.pairs.table import ROOTS
from tests.proofs.cache import task
from tests.proofs.cache.cached_provider import Bill, CachedFormat, cached_provider
from tests.proofs.cache.conversations import Agent
from tests.proofs.cache.prompt_caches import SteppedCache, common_bytes
from tests.proofs.cache.prompts import Prompt, prompt_of
from tests.proofs.cache.vendor_rules import MODEL_OF, RULES_OF
from tests.support.gateways import KEY, Running, running
from tests.support.providers.server import Json
from umg_grpc.store import open_store
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords

BETAS = "context-management-2025-06-27,interleaved-thinking-2025-05-14,mid-conversation-system-2026-04-07"
PAGE = 1000
TURNS = 3  # of the user in a recorded conversation
SQLITE = ("sqlite",)
SECRET = "a secret of all replicas"
UNPRICED = ("deepseek", "vllm")
"""Vendors of open models, which have no shipped price at another address than the vendor's."""


@dataclass(frozen=True)
class Upstream:
    format: str
    model: str
    accounts: int = 1
    public_model: str = ""
    """Id of the model for callers; "" for that of the provider."""
    own_channels: bool = False
    """Whether each account has a channel of its own."""
    settings: str = ""
    """Further lines of the channel's config."""

    @property
    def keys(self) -> dict[str, str]:
        return {f"sk-account-{number}": f"account {number}" for number in range(1, self.accounts + 1)}


@dataclass(frozen=True)
class Ledger:
    calls: int
    input: int
    read: int
    written: int
    written_long: int
    micro_credits: int


@dataclass(frozen=True)
class Run:
    """Calls of one conversation as the provider billed them, with the prompts that the agent sent."""

    bills: Sequence[Bill]
    sent: Sequence[Prompt]
    ledger: Ledger | None = None

    @property
    def prompt(self) -> int:
        return sum(bill.use.prompt for bill in self.bills)

    @property
    def read(self) -> int:
        return sum(bill.use.read for bill in self.bills)

    @property
    def share(self) -> float:
        """Share of the tokens of all prompts that were read from the cache."""
        return self.read / self.prompt

    @property
    def cost(self) -> int:
        """Millionths of a micro-dollar."""
        return sum(bill.cost for bill in self.bills)

    def ideal(self, model: str) -> tuple[float, int]:
        """Return the share and the cost, had the cache kept each prompt as far as the agent's next one begins with it.

        The tokens are those of the provider's prompts: the longest common beginning of the agent's prompts is a part
        of the earlier one, and the same part of the provider's prompt is read. Each call writes the rest.
        """
        price, rules = MODEL_OF[model], RULES_OF[MODEL_OF[model].vendor]
        cache = SteppedCache(rules, lambda: 0.0)
        read_tokens, cost = 0, 0
        for at, bill in enumerate(self.bills):
            shared = 0
            for earlier in range(at):
                text = self.sent[earlier].text
                part = common_bytes(text, self.sent[at].text) / len(text)
                shared = max(shared, int(part * self.bills[earlier].use.prompt))
            read = cache.readable(min(shared, bill.use.prompt), bill.use.prompt, price.minimum)
            rest = bill.use.prompt - read
            stored = rest if rules.max_marks and bill.use.prompt >= price.minimum else 0
            cost += price.cost(rest - stored, read, stored, 0, bill.output)
            read_tokens += read
        return read_tokens / self.prompt, cost


@dataclass(frozen=True)
class Recorded:
    """Recorded agent, whose conversation grows by the responses of the model."""

    agent: Agent

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def format(self) -> str:
        return self.agent.conversation.format

    async def direct(self, upstream: Upstream, parts: int, _data: Path) -> Run:
        cached, serving = cached_provider(upstream.format, upstream.model, task.answer_to, upstream.keys)
        async with serving as provider:
            sent = await _converse(self.agent, upstream.model, parts, [provider.base_url], next(iter(upstream.keys)))
        return Run(cached.bills, sent)

    async def through(self, upstream: Upstream, parts: int, data: Path, databases: Sequence[str] = SQLITE) -> Run:
        async with gateways(upstream, data, databases) as (cached, urls):
            roots = [url + ROOTS[self.format] for url in urls]
            sent = await _converse(self.agent, upstream.model, parts, roots, KEY)
        return Run(cached.bills, sent, await ledger_of(databases[0], data / "0"))


@asynccontextmanager
async def gateways(
    upstream: Upstream, data: Path, databases: Sequence[str]
) -> AsyncGenerator[tuple[CachedFormat, list[str]], None]:
    """Run a provider with gateways in front of it, one for each database. Yield the format and their URLs."""
    async with gateways_of(upstream, data, databases) as (cached, found):
        yield cached, [gateway.url for gateway in found]


@asynccontextmanager
async def gateways_of(
    upstream: Upstream, data: Path, databases: Sequence[str]
) -> AsyncGenerator[tuple[CachedFormat, list[Running]], None]:
    """Run a provider with gateways in front of it, one for each database. Yield the format and the gateways."""
    cached, serving = cached_provider(upstream.format, upstream.model, task.answer_to, upstream.keys)
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serving)
        found = []
        for number, database in enumerate(databases):
            config = head_of(database) + channel_of(upstream, provider.base_url) + prices_of([upstream])
            gateway = await stack.enter_async_context(running(config, data / str(number)))
            found.append(gateway)
        yield cached, found


def head_of(database: str) -> str:
    return f"database: {database}\nsecret: {SECRET}\nchannels:\n"


def channel_of(upstream: Upstream, base_url: str) -> str:
    """Return the config of the channel to a provider, or of one channel for each account."""
    groups = [[key] for key in upstream.keys] if upstream.own_channels else [[*upstream.keys]]
    model = f"{{id: {upstream.public_model or upstream.model}, upstream: {upstream.model}}}"
    return "".join(
        f"  - name: {upstream.model.replace('/', '-')}-{number}\n{upstream.settings}    protocols: [{upstream.format}]\n"
        f"    base_url: {base_url}\n    api_key: [{', '.join(keys)}]\n    models: [{model}]\n"
        for number, keys in enumerate(groups)
    )


def prices_of(upstreams: Sequence[Upstream]) -> str:
    lines = ""
    for upstream in upstreams:
        row = MODEL_OF[upstream.model]
        if row.vendor in UNPRICED:
            price = f"{{input: {row.input}, output: {row.output}, cache_read: {row.read}}}"
            lines += f"  {upstream.public_model or row.model}: {{price: {price}}}\n"
    return f"models:\n{lines}" if lines else ""


async def records_of(database: str, data: Path) -> list[UsageRecord]:
    """Return all usage records of a database, the newest first."""
    store = await open_store(database, data)
    table, records, after = UsageRecords(store), list[UsageRecord](), None
    while page := await table.page(CallFilter(datetime.fromtimestamp(0, UTC)), after, PAGE):
        records += page
        after = (page[-1].start_micros, page[-1].record_id)
    await store.aclose()
    return records


async def ledger_of(database: str, data: Path) -> Ledger:
    records = await records_of(database, data)
    return Ledger(
        len(records),
        sum(each.input_tokens for each in records),
        sum(each.cache_read_tokens for each in records),
        sum(each.cache_write_tokens for each in records),
        sum(each.long_cache_write_tokens for each in records),
        sum(each.micro_credits for each in records),
    )


async def _converse(agent: Agent, model: str, parts: int, roots: Sequence[str], key: str) -> list[Prompt]:
    """Hold the conversation, call by call at the next root in turn. Return the prompts that the agent sent."""
    talk = agent.conversation(agent.recorded, model, parts // TURNS, TURNS)
    sent, goes_on = list[Prompt](), True
    async with aiohttp.ClientSession(headers=headers_of(talk.format, key)) as session:
        for root in cycle(roots):
            sent.append(prompt_of(talk.format, talk.body))
            async with session.post(root + talk.path, json=talk.body) as response:
                answer: Json = await response.json()
                assert response.status == 200, f"{agent.name} to {root}: {answer}"
            goes_on = talk.add(answer)
            if not goes_on:
                return sent
    raise AssertionError


def headers_of(wire_format: str, key: str) -> dict[str, str]:
    match wire_format:
        case "messages":
            return {"x-api-key": key, "anthropic-version": "2023-06-01", "anthropic-beta": BETAS}
        case "native":
            return {"x-goog-api-key": key}
        case _:
            return {"authorization": f"Bearer {key}"}

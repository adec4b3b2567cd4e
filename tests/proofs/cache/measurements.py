"""Measurements of all pairs: each agent at the provider of its own format and through the gateway at every provider."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tests.proofs.cache.conversations import AGENTS
from tests.proofs.cache.replay import SQLITE, Recorded, Run, Upstream

RELAYING = "    quirks: {breakpoints: cache_control, reasoning_content: true}\n"
RELAY = Upstream("chat", "anthropic/claude-sonnet-5", settings=RELAYING)
"""Relay of marks in chat, at an address that the gateway does not know."""
RELAYED_AGENT = "Codex"
UPSTREAMS = (
    Upstream("chat", "deepseek-v4-flash"),
    Upstream("chat", "qwen3-coder-480b"),
    Upstream("responses", "gpt-5.5"),
    Upstream("responses", "gpt-5.6-sol"),
    Upstream("messages", "claude-sonnet-5"),
    Upstream("native", "gemini-3.6-flash"),
)
NewDatabase = Callable[[], Awaitable[str]]


class Subject(Protocol):
    """Agent that does the scripted task: a recorded one, or the program itself."""

    @property
    def name(self) -> str: ...

    @property
    def format(self) -> str: ...

    async def direct(self, upstream: Upstream, parts: int, data: Path) -> Run:
        """Do the task at the provider itself. `parts`: calls of tools; `data`: an empty directory."""
        ...

    async def through(self, upstream: Upstream, parts: int, data: Path, databases: Sequence[str] = SQLITE) -> Run:
        """Do the task through gateways, one for each entry of `databases`, call by call in turn."""
        ...


@dataclass(frozen=True)
class Pair:
    agent: Subject
    upstream: Upstream

    @property
    def id(self) -> str:
        return f"{self.agent.name} to {self.upstream.model}"

    @property
    def is_own(self) -> bool:
        """Whether the agent speaks the format of the provider."""
        return self.agent.format == self.upstream.format


@dataclass(frozen=True)
class Measured:
    pair: Pair
    goal: float
    """Cached share of the prompts: direct where the agent speaks the provider's format, else the ideal one."""
    goal_cost: int
    """Cost of the same calls, in millionths of a micro-dollar."""
    one: Run
    """Through one gateway."""
    replicas: Run | None = None
    """Through two gateways in turn."""
    accounts: Run | None = None
    """Through one gateway, with two accounts of the channel."""
    both: Run | None = None
    """Through two gateways in turn, with a channel for each of two accounts."""

    @property
    def reached(self) -> float:
        """Share of the goal that is reached through one gateway."""
        return self.one.share / self.goal if self.goal else 1.0

    @property
    def drift(self) -> int:
        """Micro-credits by which the ledger exceeds the provider's bill, rounded down."""
        assert self.one.ledger is not None
        return self.one.ledger.micro_credits - self.one.cost // 1_000_000


def pairs(subjects: Iterable[Subject]) -> list[Pair]:
    return [Pair(subject, upstream) for subject in subjects for upstream in UPSTREAMS]


def recorded_pairs() -> list[Pair]:
    """Return the pairs of the recorded agents, and one with a relay."""
    relayed = [Pair(Recorded(agent), RELAY) for agent in AGENTS if agent.name == RELAYED_AGENT]
    return [*pairs(Recorded(agent) for agent in AGENTS), *relayed]


async def measure(pair: Pair, parts: int, data: Path, new_database: NewDatabase | None = None) -> Measured:
    """Run one pair. `parts`: calls of tools; `new_database`: makes a PostgreSQL database, None to leave out the runs
    with several replicas and accounts.
    """
    agent, upstream = pair.agent, pair.upstream
    one = await agent.through(upstream, parts, data / "one")
    if pair.is_own:
        alone = await agent.direct(upstream, parts, data / "direct")
        goal, cost = alone.share, alone.cost
    else:
        goal, cost = one.ideal(upstream.model)
    if new_database is None:
        return Measured(pair, goal, cost, one)
    database = await new_database()
    replicas = await agent.through(upstream, parts, data / "replicas", [database, database])
    accounts = await agent.through(replace(upstream, accounts=2), parts, data / "accounts")
    own = replace(upstream, accounts=2, own_channels=True)
    both = await agent.through(own, parts, data / "both", [database, database])
    return Measured(pair, goal, cost, one, replicas, accounts, both)

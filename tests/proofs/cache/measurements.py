"""Measurements of all pairs: each agent at the provider of its own format and through the gateway at every provider."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.cache.conversations import AGENTS, Agent
from tests.proofs.cache.replay import Run, Upstream, direct, through
from tests.proofs.cache.vendor_rules import MODEL_OF

UPSTREAMS = (
    Upstream("chat", "deepseek-v4-flash"),
    Upstream("chat", "qwen3-coder-480b"),
    Upstream("responses", "gpt-5.5"),
    Upstream("responses", "gpt-5.6-sol"),
    Upstream("messages", "claude-sonnet-5"),
    Upstream("native", "gemini-3.6-flash"),
)
NewDatabase = Callable[[], Awaitable[str]]


@dataclass(frozen=True)
class Pair:
    """Agent and provider."""

    agent: Agent
    upstream: Upstream

    @property
    def id(self) -> str:
        return f"{self.agent.name} to {self.upstream.model}"

    @property
    def is_own(self) -> bool:
        """Whether the agent speaks the format of the provider."""
        return self.agent.conversation.format == self.upstream.format


@dataclass(frozen=True)
class Measured:
    """Runs of a pair."""

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

    @property
    def reached(self) -> float:
        """Share of the goal that is reached through one gateway."""
        return self.one.share / self.goal if self.goal else 1.0

    @property
    def drift(self) -> int:
        """Micro-credits by which the ledger exceeds the provider's bill, rounded down."""
        assert self.one.ledger is not None
        return self.one.ledger.micro_credits - self.one.cost // 1_000_000


def pairs() -> list[Pair]:
    """Return all pairs."""
    return [Pair(agent, upstream) for agent in AGENTS for upstream in UPSTREAMS]


async def measure(pair: Pair, parts: int, data: Path, new_database: NewDatabase | None = None) -> Measured:
    """Run one pair. `parts`: calls of tools; `new_database`: makes a PostgreSQL database, None to leave out the runs
    with several replicas and accounts.
    """
    agent, upstream = pair.agent, pair.upstream
    one = await through(agent, upstream, parts, data / "one")
    if pair.is_own:
        alone = await direct(agent, upstream, parts)
        goal, cost = alone.share, alone.cost
    else:
        goal, cost = one.ideal(upstream.model)
    if new_database is None:
        return Measured(pair, goal, cost, one)
    database = await new_database()
    replicas = await through(agent, upstream, parts, data / "replicas", [database, database])
    several = Upstream(upstream.format, upstream.model, accounts=2)
    return Measured(pair, goal, cost, one, replicas, await through(agent, several, parts, data / "accounts"))


async def measure_all(
    chosen: Sequence[Pair], parts: int, data: Path, new_database: NewDatabase | None
) -> AsyncGenerator[Measured, None]:
    """Run the pairs one after the other."""
    for number, pair in enumerate(chosen):
        yield await measure(pair, parts, data / str(number), new_database)


def table(found: Sequence[Measured]) -> str:
    """Return the table of the measurements: a row for each pair."""
    heads = ["agent", "provider", "tokens", "direct or ideal", "through", "two replicas", "two accounts", "cost"]
    lines = [heads, ["---"] * len(heads), *(_row(each) for each in found)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(each: Measured) -> list[str]:
    pair = each.pair
    goal = f"{each.goal:.1%} {'direct' if pair.is_own else 'ideal'}"
    cost = (
        "-"
        if not MODEL_OF[pair.upstream.model].vendor or not each.goal_cost
        else f"{each.one.cost / each.goal_cost:.3f}"
    )
    others = [f"{run.share:.1%}" if run is not None else "-" for run in (each.replicas, each.accounts)]
    agent = f"{pair.agent.name} ({pair.agent.conversation.format})"
    provider = f"{pair.upstream.model} ({pair.upstream.format})"
    return [agent, provider, str(each.one.prompt), goal, f"{each.one.share:.1%}", *others, cost]

"""Tables of `docs/prompt-caches.md`, as `make cache` prints and writes them."""

import re
from collections.abc import Sequence
from pathlib import Path

from tests.proofs.cache.measurements import Measured

PAGE = Path(__file__).parents[3] / "docs" / "prompt-caches.md"
RECORDED, PROGRAMS = "recorded", "programs"
COLUMNS = (
    *("agent", "provider", "input tokens", "direct", "ideal", "one gateway", "two replicas", "two accounts"),
    *("both", "cost"),
)


def table(found: Sequence[Measured]) -> str:
    lines = [COLUMNS, ["---", "---", *["---:"] * (len(COLUMNS) - 2)], *(_row(each) for each in found)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(each: Measured) -> list[str]:
    pair = each.pair
    goal = [f"{each.goal:.1%}", ""] if pair.is_own else ["", f"{each.goal:.1%}"]
    runs = (each.one, each.replicas, each.accounts, each.both)
    shares = [f"{run.share:.1%}" if run is not None else "" for run in runs]
    cost = f"{each.one.cost / each.goal_cost:.3f}" if each.goal_cost else ""
    agent, provider = f"{pair.agent.name}, {pair.agent.format}", f"{pair.upstream.model}, {pair.upstream.format}"
    return [agent, provider, f"{each.one.prompt:,}", *goal, *shares, cost]


def rows(text: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the page, by the names of its columns."""
    lines = _block(name).search(text)
    assert lines is not None
    _, _, *found = lines[2].strip().splitlines()
    return [dict(zip(COLUMNS, map(str.strip, line.strip("|").split("|")), strict=True)) for line in found]


def written(text: str, name: str, found: Sequence[Measured]) -> str:
    return _block(name).sub(lambda block: f"{block[1]}{table(found)}{block[3]}", text)


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)

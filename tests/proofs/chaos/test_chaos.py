"""Short proofs of events behind Envoy and nginx; `make chaos` runs all events."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.proofs.chaos.cluster import PROXIES, Servers, servers
from tests.proofs.chaos.events import EVENTS, freeze, kill
from tests.proofs.chaos.load import CALLER_KEYS
from tests.proofs.chaos.page import PAGE
from tests.proofs.chaos.provider import most_in_window, most_overlapping
from tests.proofs.chaos.run import Plan, run
from tests.support.proxies import program


@pytest.fixture(scope="module")
def running() -> Iterator[Servers]:
    with servers() as found:
        yield found


@dataclass(frozen=True)
class Case:
    id: str
    apply: object
    proxy: str
    seconds: float


CASES = [
    Case("a frozen gateway behind Envoy", freeze, "Envoy", 7),
    Case("a killed gateway behind Envoy", kill, "Envoy", 0),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_an_event_costs_nothing(running: Servers, case: Case) -> None:
    if program(case.proxy.lower()) is None:
        pytest.skip(f"{case.proxy} is not installed")
    [event] = [event for event in EVENTS if event.apply is case.apply]
    verdict = await run(event, case.proxy, Plan(before_seconds=0.5, after_seconds=0.5, seconds=case.seconds), running)
    assert verdict.faults == []
    assert verdict.calls > len(CALLER_KEYS)
    assert verdict.tasks.submitted > 0


def test_the_most_calls_of_a_minute_are_found() -> None:
    assert most_in_window([0.0, 1.0, 30.0, 61.0, 62.0, 63.0], 55) == 4


def test_the_most_calls_at_once_are_found() -> None:
    assert most_overlapping([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (2.5, 2.6)]) == 3


def test_the_page_has_every_event_behind_both_proxies() -> None:
    rows = [line.split(" | ")[:2] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    head, _, *measured = [[cell.removeprefix("| ") for cell in cells] for cells in rows]
    assert head == ["event", "proxy"]
    assert measured == [[event.name, proxy] for event in EVENTS for proxy in PROXIES]

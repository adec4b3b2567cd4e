"""Tables of the results of the gateway under overload, for the terminal and for the page `docs/overload.md`."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.chat_bodies import DELAY_SECONDS
from bench.load_measurement import Cores, Note
from bench.open_loop_load import RECOVERED_CALLS, RECOVERED_SECONDS, Report
from bench.report import setting, table

CONNECTIONS = 192
"""Number of connections of the closed loop. The provider takes 50 ms: 64 connections would wait for it most of the
time, with at most 1,280 calls per second; with 192 the processor is the limit up to 3,840. More connections would
approach the limit of the gateway's queue.
"""
HEADINGS = (
    "times the capacity",
    "offered/s",
    "good/s",
    "of the capacity",
    "spread",
    "refused/s",
    "good p50, ms",
    "good p99, ms",
    "refused p99, ms",
    "recovery, s",
)


@dataclass(frozen=True)
class Load:
    """Result of one load in one round of the measurement."""

    capacity: float
    """Calls per second in the closed loop just before the load."""
    report: Report

    @property
    def share(self) -> float:
        """Rate of good calls as a share of the gateway's capacity."""
        return self.report.good_rate / self.capacity


@dataclass(frozen=True)
class Level:
    """Results of all rounds at one load, which is a multiple of the capacity."""

    factor: float
    loads: tuple[Load, ...]

    def median(self, figure: Callable[[Report], float]) -> float:
        """Return the median over the rounds of one figure of their reports."""
        return statistics.median(figure(load.report) for load in self.loads)


@dataclass(frozen=True)
class Run:
    """Results of a measurement under overload."""

    seconds: float
    """Length of each measurement."""
    rounds: int
    levels: tuple[Level, ...]
    notes: tuple[Note, ...]
    """Possible disturbances of single measurements."""
    repetitions: int = 0
    """Number of closed loops with refusals, which were repeated."""

    @property
    def capacities(self) -> list[float]:
        """Capacities that were measured in all rounds, in ascending order."""
        return sorted(load.capacity for level in self.levels for load in level.loads)

    @property
    def capacity(self) -> float:
        """Median of the measured capacities."""
        return statistics.median(self.capacities)


def as_table(run: Run) -> str:
    """Return the results of a measurement as a Markdown table."""
    return table(HEADINGS, [_cells(run, level) for level in run.levels], left=0)


def as_page(run: Run, where: Cores) -> str:
    """Return the content of `docs/overload.md`."""
    shares: dict[str, list[float]] = {}
    for note in run.notes:
        shares.setdefault(note.cause, []).append(note.share)
    notes = "".join(
        f"- {cause} (measurements: {len(found)}, up to {max(found):.0%} of its time)\n"
        for cause, found in shares.items()
    )
    return PAGE.format(
        connections=CONNECTIONS,
        repetitions=run.repetitions,
        closed=len(run.capacities) + run.repetitions,
        delay=DELAY_SECONDS * 1e3,
        seconds=run.seconds,
        rounds=run.rounds,
        calls=RECOVERED_CALLS,
        within=RECOVERED_SECONDS * 1e3,
        setting=", ".join(setting(where).values()),
        capacity=run.capacity,
        least=run.capacities[0],
        most=run.capacities[-1],
        table=as_table(run),
        notes=f"\nNotes:\n\n{notes}" if notes else "",
    )


def _cells(run: Run, level: Level) -> Sequence[str]:
    shares = [load.share for load in level.loads]
    refused = level.median(lambda report: report.refused)
    return (
        f"{level.factor:g}",
        f"{level.median(lambda report: report.offered_rate):,.0f}",
        f"{level.median(lambda report: report.good_rate):,.0f}",
        f"{statistics.median(shares):.0%}",
        f"{min(shares):.0%} - {max(shares):.0%}",
        f"{level.median(lambda report: report.refused_rate):,.0f}",
        f"{level.median(lambda report: report.good_p50):,.0f}",
        f"{level.median(lambda report: report.good_p99):,.0f}",
        f"{level.median(lambda report: report.refused_p99):,.0f}" if refused else "-",
        f"{level.median(lambda report: report.recovery_seconds):.2f}",
    )


PAGE = """\
# Overload

Offered calls against good calls per second, from half to three times the capacity. `make overload` measures the figures
and writes this page and the plot; [operations.md](operations.md#too-many-calls) has the settings.

![Good calls per second against offered calls per second](overload.svg)

{table}

{setting}.
Each measurement lasts {seconds:g} s; the figures are medians of {rounds} rounds. Capacity: {capacity:,.0f} calls/s
(median; {least:,.0f} to {most:,.0f}).
{notes}
## Method

The gateway is started as its users start it, `umg serve` with its defaults and one channel, and has one core. The load
and a fake provider share the other core. The provider answers every call, 0.4 KB of JSON in the caller's own format,
after {delay:.0f} ms.

- **Capacity** is measured in a closed loop: {connections} connections, each of which sends its next call as soon as
  the last one is answered. The processor of the gateway is the limit then. A loop with a refusal does not count and is
  repeated ({repetitions} of {closed} here): above 64 callers the gateway may refuse calls while its host is slow.
- **The load** is an open loop: calls begin at fixed intervals, and neither slow answers nor refusals delay the next.
  Each call takes an idle connection, and opens a new one where none is idle. There is none at the beginning of a load.
- **Every answer is checked.** 200 with the response of the provider is good. 503 with `retry-after` and an error in the
  caller's format is refused. Anything else, also a broken connection, ends the measurement with an error.
- **Times** count from the moment for which a call was planned, so that the time in which the load itself could not send
  is part of them.
- **Good and refused calls per second** are the responses that came during {seconds:g} seconds, and the first begins
  {delay:.0f} ms after the first call. Calls that are answered after the load do not count.
- **Recovery** is the time from the end of the load to the first of {calls} calls in a row, one after another, that are
  good and answered within {within:.0f} ms.
- Each round has a new gateway. The capacity is measured again before each load, since that of a virtual machine changes
  from minute to minute, and the load is a multiple of it.

## How to read it

- *of the capacity* is the share of the capacity just before the load: the median of the rounds; *spread* has the
  least and the greatest of them. Below the capacity it cannot exceed the offered share.
- The share is less than 100 % above the capacity, since refusals and new connections also take time.
- *good p99* is bounded above the capacity by the queue: `overload.queue` calls (256) wait at most, and each of them for
  the calls before it.
- Absolute figures belong to the machine and the versions above. Compare shares, and figures of one run.
"""

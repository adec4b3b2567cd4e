"""Plot of the results under overload, as SVG. Needs matplotlib, which the dependency group `plot` installs."""

from pathlib import Path

import matplotlib.style
from matplotlib.figure import Figure

from bench.overload_tables import Run

GOAL = 0.85
"""Minimum share of the capacity for loads of 0.8 times the capacity and more."""
STYLE = {
    "svg.fonttype": "none",  # text instead of outlines: a smaller file with the reader's fonts
    "svg.hashsalt": "overload",  # deterministic ids
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
GOOD, REFUSED, LIMIT = "#2166ac", "#b2182b", "#777777"


def draw(run: Run, file: Path) -> None:
    """Write the plot of good and refused calls per second against offered ones. Equal runs produce equal bytes."""
    with matplotlib.style.context(STYLE):
        figure = Figure(figsize=(7.5, 4.2), layout="constrained")
        axes = figure.add_subplot()
        offered = [level.median(lambda report: report.offered_rate) for level in run.levels]
        good = [level.median(lambda report: report.good_rate) for level in run.levels]
        refused = [level.median(lambda report: report.refused_rate) for level in run.levels]
        axes.plot([0, run.capacity], [0, run.capacity], color=LIMIT, linewidth=0.8, linestyle=":")
        axes.axhline(run.capacity, color=LIMIT, linewidth=0.8, linestyle="--", label="capacity (closed loop)")
        axes.axhline(GOAL * run.capacity, color=LIMIT, linewidth=0.8, linestyle="-.", label=f"{GOAL:.0%} of it")
        axes.plot(offered, refused, color=REFUSED, marker="s", markersize=4, linewidth=1, label="refused, median")
        axes.plot(offered, good, color=GOOD, marker="o", markersize=5, linewidth=2, label="good, median")
        each = [(load.report.offered_rate, load.report.good_rate) for level in run.levels for load in level.loads]
        axes.plot(
            *zip(*each, strict=True), color=GOOD, marker=".", markersize=4, linestyle="", label="good, each round"
        )
        axes.set_xlabel("offered calls per second")
        axes.set_ylabel("calls per second")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})

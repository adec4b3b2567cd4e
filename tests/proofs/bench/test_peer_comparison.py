"""Comparison with other gateways: its table, the page that has it, and a run without a peer. No time is measured."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.peer_comparison import COMPARED, FIGURES, LINES, PAGE, TITLES, Figures, Run, read, table, write_table
from bench.peers import PEERS

ROOT = Path(__file__).parents[3]
NAMES = {"pass-through": "pass-through", "gateway": "this gateway", "other": "other 1.0"}


def run(target: str, number: int, rate: float, **more: list[float] | str) -> Run:
    figures: dict[str, list[float] | str] = {
        scenario.name: [rate] * len(scenario.measures) for scenario in COMPARED if scenario.name not in more
    }
    return Run(target, number, figures | more)


def figures_of(*runs: Run) -> Figures:
    return Figures("2030-01-31", {"cpu": "a CPU"}, {"rounds": 3}, NAMES, [*runs])


def cells(figures: Figures, title: str) -> list[str]:
    (row,) = (line for line in table(figures).splitlines() if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in row.split("|")[2:-1]]


def test_a_ratio_is_the_median_of_those_of_the_rounds_and_above_1_where_the_target_is_better() -> None:
    rounds = [(100.0, 50.0), (100.0, 90.0), (200.0, 40.0)]
    figures = figures_of(
        *(run("pass-through", number, bare) for number, (bare, _) in enumerate(rounds)),
        *(run("gateway", number, ours) for number, (_, ours) in enumerate(rounds)),
        *(run("other", number, 1.0) for number in range(3)),
    )
    assert cells(figures, "small calls") == ["1.00", "0.50", "0.010"]
    assert cells(figures, "chunks of a stream, each alone") == ["1.00", "2.00", "100.00"]  # processor time of a chunk
    assert cells(figures, "idle memory, MiB") == ["100", "50", "1"]


def test_a_scenario_that_a_peer_fails_has_the_reason_in_place_of_a_figure() -> None:
    figures = figures_of(run("pass-through", 1, 1.0), run("gateway", 1, 1.0), run("other", 1, 2.0, embed="status 501"))
    assert cells(figures, "embeddings of 1,536 numbers") == ["1.00", "1.00", "status 501"]
    assert cells(figures, "small calls") == ["1.00", "1.00", "2.00"]


def test_the_table_is_written_between_the_marks_of_the_page(tmp_path: Path) -> None:
    page, figures = tmp_path / "page.md", figures_of(*(run(target, 1, 3.0) for target in NAMES))
    page.write_text("before\n<!-- figures of bench/peers.json -->\nold\n<!-- end -->\nafter\n")
    write_table(figures, page)
    assert page.read_text() == f"before\n<!-- figures of bench/peers.json -->\n{table(figures)}\n<!-- end -->\nafter\n"
    assert len(table(figures).splitlines()) == 2 + len(LINES)


def test_the_readme_has_the_table_of_the_file_and_the_versions_that_were_measured() -> None:
    figures, page = read(FIGURES), PAGE.read_text(encoding="utf-8")
    assert f"<!-- figures of bench/peers.json -->\n{table(figures)}\n<!-- end -->\n" in page, "run `make peers`"
    assert figures.titles.items() <= TITLES.items()
    assert all(re.search(rf"\b{peer.title}\b\S* {re.escape(peer.version)}[,; ]", page) for peer in PEERS)


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")
def test_a_run_measures_every_scenario_and_writes_file_and_table(tmp_path: Path) -> None:
    file, page = tmp_path / "figures.json", tmp_path / "page.md"
    page.write_text("<!-- figures of bench/peers.json -->\n<!-- end -->\n")
    options = ["--quick", "--without-peers", "--json", str(file), "--page", str(page)]
    command = [sys.executable, "-m", "bench.peer_comparison", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    figures = read(file)
    assert [each.target for each in figures.runs] == ["pass-through", "gateway"]
    for each in figures.runs:
        assert set(each.figures) == {scenario.name for scenario in COMPARED}
    assert table(figures) in page.read_text()

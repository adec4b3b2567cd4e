"""Comparison of the benchmark with another commit: its build, its judgement, and its end. No time is measured."""

import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from bench import benchmark_rounds
from bench.commit_build import ROOT, built
from bench.commit_comparison import Compared, as_table, judged
from bench.load_measurement import Cores, Plan, Target
from bench.processes import BenchError, output_of
from bench.scenarios import SCENARIOS, Measure

COMMAND = [sys.executable, "-m", "bench", "--quick", "--against", "HEAD"]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc"),
    pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs the repository"),
]


class Row(msgspec.Struct):
    """Members of a row of `--json` that the test reads."""

    scenario: str
    slower: bool
    rounds: dict[str, list[float]]


class Written(msgspec.Struct):
    """Members of `--json` that the test reads."""

    commit: str
    rows: list[Row]


def test_both_builds_are_measured(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [*COMMAND, "stream", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    written = msgspec.json.decode(file.read_bytes(), type=Written)
    assert done.returncode == any(row.slower for row in written.rows), done.stderr
    assert written.commit == _git("rev-parse", "HEAD").strip()
    assert [(row.scenario, *map(len, row.rounds.values())) for row in written.rows] == [("stream", 1, 1)] * 2
    assert not _worktrees()


@asynccontextmanager
async def two_names(
    upstream: Target, where: Cores, folder: Path, kinds: AbstractSet[bool]
) -> AsyncGenerator[dict[bool, tuple[Target, ...]], None]:
    """Yield the fake provider in place of two builds, whose starts take seconds."""
    yield {False: tuple(replace(upstream, name=name, credential=name) for name in ("that", "this"))}


async def test_builds_are_measured_in_every_round_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_rounds, "allow_files", lambda: None)  # the limit of this process stays
    [stream] = [each for each in SCENARIOS if each.name == "stream"]
    plan, lines = Plan(rounds=2, seconds=0.1, warmup=0.0, held=0), list[str]()
    results = await benchmark_rounds.run(plan, [stream], Cores(None, None), lines.append, two_names)
    order = [(1, "that"), (1, "this"), (2, "this"), (2, "that")]
    assert [(result.round, result.target) for result in results] == order
    assert lines == [f"round {number} of 2: stream, {name}" for number, name in order]
    assert all(result.answers for result in results)


async def test_a_commit_runs_its_own_code_and_is_removed_though_git_was_making_its_worktree() -> None:
    shown = "import http_facade, umg, umg_grpc; print(http_facade.__file__, *umg.__path__, umg_grpc.__file__)"
    async with built("HEAD", "that") as build:
        folder = build.folder
        assert folder is not None
        found = await output_of([sys.executable, "-P", "-c", shown], ROOT, environment=build.environment)
        assert found.split() == [
            f"{folder}/http_facade/__init__.py",
            f"{folder}/gen/umg",
            f"{folder}/umg_grpc/__init__.py",
        ]
        _git("worktree", "lock", "--reason", "initializing", str(folder))
    assert not folder.exists()
    assert not _worktrees()


async def test_an_unknown_commit_is_an_error_that_names_it() -> None:
    with pytest.raises(BenchError, match="no commit 'no-such-commit'"):
        async with built("no-such-commit", "that"):
            pass


async def test_another_schema_is_compiled_from_the_commit(tmp_path: Path) -> None:
    """The current schema differs from the commit: the worktree has the generated code of its own."""
    root = tmp_path / "repository"
    shutil.copytree(ROOT / "proto", root / "proto")
    shutil.copytree(ROOT / "third_party", root / "third_party")
    shutil.copytree(ROOT / "gen", root / "gen")
    (root / "bench").mkdir()
    (root / ".gitignore").write_text("gen/\nbuild/\n")
    added = root / "proto/umg/v1/added_for_test.proto"
    added.write_text('syntax = "proto3";\npackage umg.v1;\nmessage AddedForTest {}\n')
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "Add a message"]):
        await output_of(["git", *command], root)
    added.unlink()
    async with built("HEAD", "that", root) as build:
        assert build.folder is not None
        assert (build.folder / "gen/umg/v1/added_for_test_pb2.py").is_file()
        assert (build.folder / "gen/umg/v1/generation_service_pb2_grpc.py").is_file()


def test_a_signal_ends_it_without_a_worktree() -> None:
    with subprocess.Popen(
        [*COMMAND, "stream"], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as bench:
        assert bench.stderr
        first = bench.stderr.readline()  # "building ..."
        bench.send_signal(signal.SIGINT)
        rest = bench.stderr.read()
    assert bench.returncode == 130, first + rest
    assert not _worktrees()


@dataclass(frozen=True)
class Judgement:
    """Figures of the rounds of two builds, and whether this build is slower."""

    id: str
    that: list[float]
    this: list[float]
    ratio: float | None
    slower: bool
    more_is_better: bool = True


JUDGEMENTS = [
    Judgement("equal", [100, 101, 102], [100, 101, 102], 1, False),
    Judgement("slower in every round", [100, 101, 102], [90, 90.9, 91.8], 0.9, True),
    Judgement("slower by less than the limit", [100, 101, 102], [98, 98.98, 99.96], 0.98, False),
    Judgement("slower within the spread", [80, 100, 120], [76, 95, 114], 0.95, False),
    Judgement("faster", [100, 101, 102], [200, 202, 204], 2, False),
    Judgement("more time", [10, 10.1, 10.2], [12.5, 12.625, 12.75], 0.8, True, more_is_better=False),
    Judgement("less time", [12.5, 12.625, 12.75], [10, 10.1, 10.2], 1.25, False, more_is_better=False),
    Judgement("a figure that is not above zero", [0, 1, 2], [-1, -2, -3], None, False),
    Judgement("a single round", [100], [50], 0.5, True),
]


@pytest.mark.parametrize("case", JUDGEMENTS, ids=lambda case: case.id)
def test_a_build_is_slower_by_its_median_and_its_quartiles(case: Judgement) -> None:
    measure = Measure("calls", 0, more_is_better=case.more_is_better)
    row = judged("small", measure, {"that": case.that, "this": case.this})
    assert (None if row.ratio is None else round(row.ratio, 9), row.slower) == (case.ratio, case.slower)
    shown = as_table(Compared("0123456789abcdef", {"cpu": "a CPU"}, Plan(3, 1.0, 0.0, 0), [row]))
    assert ("SLOWER" in shown) == case.slower
    assert "| small " in shown


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _worktrees() -> list[str]:
    known = [line for line in _git("worktree", "list", "--porcelain").splitlines() if f"{ROOT}/build/bench-" in line]
    return known + [str(path) for path in (ROOT / "build").glob("bench-*")]

"""The suites of these tests are run by pytest in a process of its own, without the plugins that it does not need."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = (
    "-p",
    "tests.machinery.forked_workers",
    "-p",
    "no:cacheprovider",
    "--workers",
    "2",
    "--import-mode=importlib",
)

CONFTEST = """
import os, pytest
from pathlib import Path

@pytest.fixture(scope="session")
def server():
    with Path("started").open("a") as file:
        print(os.getpid(), file=file)
    yield os.getpid()
    with Path("stopped").open("a") as file:
        print(os.getpid(), file=file)

@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("folder")
    yield made
    (made / "left").touch()
"""
OUTCOMES = {
    "test_first.py": """
import os, pytest, warnings

def test_passes(server): assert server == os.getpid()

def test_prints_and_fails():
    print("text of a test")
    left = 1
    assert left == 2

@pytest.mark.skip(reason="not here")
def test_is_skipped(): pass

@pytest.mark.xfail
def test_is_expected_to_fail(): assert False

def test_warns(): warnings.warn("a warning of a test")

@pytest.fixture
def broken():
    yield
    raise RuntimeError("text of a fixture")

def test_fails_at_teardown(broken): pass
""",
    "test_ends.py": """
import os, signal

def test_before(server): pass

def test_exits(): os._exit(0)

def test_between(): pass

def test_kills_itself(): os.kill(os.getpid(), signal.SIGKILL)

def test_after(folder, tmp_path): assert folder.parent == tmp_path.parent
""",
    **{f"test_more_{number}.py": "def test_passes(server, tmp_path): pass" for number in range(4)},
}
VERDICTS = {
    "test_first.py::test_passes": "passed",
    "test_first.py::test_prints_and_fails": "failure",
    "test_first.py::test_is_skipped": "skipped",
    "test_first.py::test_is_expected_to_fail": "skipped",
    "test_first.py::test_warns": "passed",
    "test_first.py::test_fails_at_teardown": "error",
    "test_ends.py::test_before": "passed",
    "test_ends.py::test_exits": "failure",
    "test_ends.py::test_between": "passed",
    "test_ends.py::test_kills_itself": "failure",
    "test_ends.py::test_after": "passed",
    **{f"test_more_{number}.py::test_passes": "passed" for number in range(4)},
}


@dataclass(frozen=True)
class Outcome:
    """Result of a run."""

    status: int
    output: str
    verdicts: dict[str, str]
    folder: Path

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []


def write(folder: Path, files: dict[str, str]) -> None:
    for name, content in {"pytest.ini": "[pytest]\n", "conftest.py": CONFTEST, **files}.items():
        (folder / name).write_text(content)


def command(options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", *OPTIONS, *options]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}


def run(folder: Path, files: dict[str, str], *options: str) -> Outcome:
    """Run a suite in a folder."""
    write(folder, files)
    done = subprocess.run(
        command([*options, "--junitxml=report.xml", "--basetemp=temporary"]),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=180,
    )
    verdicts = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        kinds = [child.tag for child in case if child.tag in {"failure", "error", "skipped"}]
        verdicts[f"{case.get('classname')}.py::{case.get('name')}"] = kinds[0] if kinds else "passed"
    return Outcome(done.returncode, done.stdout, verdicts, folder)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(tmp_path_factory.mktemp("suite"), OUTCOMES, "-v", "--durations=3")


def test_each_test_runs_once_and_is_reported(outcome: Outcome) -> None:
    assert outcome.verdicts == VERDICTS, outcome.output
    assert outcome.status == pytest.ExitCode.TESTS_FAILED
    lines = outcome.output.splitlines()
    for name in VERDICTS:
        assert len([line for line in lines if line.startswith(f"{name} ")]) == 1 + name.endswith("teardown"), name


@pytest.mark.parametrize(
    "text",
    [
        "3 failed, 10 passed, 1 skipped, 1 xfailed, 1 warning, 1 error",
        "text of a test",
        "assert 1 == 2",
        "RuntimeError: text of a fixture",
        "UserWarning: a warning of a test",
        "ended with exit code 0\nduring this test",
        "was ended by SIGKILL\nduring this test",
        "slowest 3 durations",
        "[100%]",
    ],
)
def test_the_output_has_the_reports_of_workers(outcome: Outcome, text: str) -> None:
    assert text in outcome.output


def test_fixtures_of_the_session_are_torn_down_in_each_worker_that_did_not_die(outcome: Outcome) -> None:
    started, stopped = outcome.lines("started"), outcome.lines("stopped")
    assert len(set(started)) == len(started)
    assert set(stopped) < set(started)
    assert len(started) - len(stopped) == 1  # the worker that exits; the other one that dies did not set it up


def test_each_worker_has_a_folder_of_its_own_for_temporary_files(outcome: Outcome) -> None:
    folders = sorted(path.name for path in (outcome.folder / "temporary").iterdir() if path.is_dir())
    assert folders == ["w0", "w1", "w2", "w3"]
    assert len(list((outcome.folder / "temporary").glob("w*/folder*/left"))) == 8  # modules but the two that died


WAITING = {
    "test_waits.py": """
import time

def test_waits(server):
    with open("reached", "w"):
        time.sleep(60)
""",
}


def test_the_first_failure_stops_all_workers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reached")
    failing = "def test_fails():\n    open('reached').close()\n    assert False\n\ndef test_after(): pass\n"
    outcome = run(tmp_path, {"test_fails.py": failing, **WAITING}, "-x")
    assert outcome.status == pytest.ExitCode.TESTS_FAILED
    assert outcome.verdicts == {"test_fails.py::test_fails": "failure"}
    assert "stopping after 1 failures" in outcome.output
    assert outcome.lines("started") == outcome.lines("stopped") != []


def test_an_interrupt_stops_all_workers(tmp_path: Path) -> None:
    write(tmp_path, WAITING)
    os.mkfifo(tmp_path / "reached")
    with subprocess.Popen(command([]), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        (tmp_path / "reached").open().close()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=180)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert (tmp_path / "started").read_text() == (tmp_path / "stopped").read_text()


def test_errors_of_the_collection_start_no_worker(tmp_path: Path) -> None:
    outcome = run(tmp_path, {"test_broken.py": "import nothing_of_this_name", "test_more.py": "def test(): pass"})
    assert outcome.status == pytest.ExitCode.INTERRUPTED
    assert "1 error during collection" in outcome.output


def test_threads_of_the_collection_are_refused(tmp_path: Path) -> None:
    starts = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='early').start()\n"
    outcome = run(tmp_path, {"test_thread.py": f"{starts}\ndef test(): pass"})
    assert outcome.status == pytest.ExitCode.USAGE_ERROR
    assert "threads at the end of the collection" in outcome.output
    assert "early" in outcome.output


EARLY = {
    "pytest.ini": "[pytest]\ntestpaths = .\nearly_file = test_early.py\n",
    "test_early.py": "def test_runs(server): open('reached', 'w').close()\n\ndef test_passes(server): pass\n",
}


def test_an_early_file_runs_during_the_collection_of_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reached")
    second = "open('reached').close()  # waits for the early test\n\ndef test_fails(server): assert False\n"
    files = {f"test_more_{number}.py": "def test_passes(server): pass" for number in range(4)}
    outcome = run(tmp_path, {**EARLY, **files, "test_second.py": second})
    assert outcome.verdicts == {
        "test_early.py::test_runs": "passed",
        "test_early.py::test_passes": "passed",
        "test_second.py::test_fails": "failure",
        **{f"{name[:-3]}.py::test_passes": "passed" for name in files},
    }, outcome.output
    assert "1 failed, 6 passed" in outcome.output
    assert len(outcome.lines("started")) == 3  # two workers, and another one after the early one
    assert set(outcome.lines("started")) == set(outcome.lines("stopped"))


def test_a_failed_collection_stops_an_early_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reached")
    waiting = WAITING["test_waits.py"]
    broken = "open('reached').close()  # waits for the early test\nimport nothing_of_this_name\n"
    outcome = run(tmp_path, {**EARLY, "test_early.py": waiting, "test_second.py": broken})
    assert outcome.status == pytest.ExitCode.INTERRUPTED
    assert "1 error during collection" in outcome.output
    assert outcome.lines("started") == outcome.lines("stopped") != []


@pytest.mark.parametrize("options", [("-k", "passes"), ("test_early.py", "test_second.py")])
def test_a_selected_early_file_runs_after_the_collection(options: Sequence[str], tmp_path: Path) -> None:
    files = {
        **EARLY,
        "test_early.py": "def test_passes(server): pass",
        "test_second.py": "import multiprocessing\n\nassert not multiprocessing.active_children()",
    }
    outcome = run(tmp_path, files, *options)
    assert outcome.verdicts == {"test_early.py::test_passes": "passed"}, outcome.output
    assert outcome.status == pytest.ExitCode.OK

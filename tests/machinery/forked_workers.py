"""Pytest plugin: `--workers N` runs the tests in N processes that are forked after the collection.

The main process collects the tests once and forks the workers, which share its modules and tests. Each worker takes a
whole file, runs its tests by pytest's own protocol, and takes the next file. The files are taken in the order of the
collected tests. So a fixture of a module is set up once, and a fixture of the session once in each worker. Workers send
the reports of each test to the main process, which logs them as if it had run the test: `-v`, `-x`, `--maxfail`,
`--durations`, `--junitxml`, `--last-failed` and the exit status have their usual meaning.

If all tests run, the file of the setting `early_file` gets a worker as soon as it is collected, since the collection
takes one processor only. That worker runs no other file: it was forked before they were collected.

A fork copies memory, open files and one thread. Therefore no module may start a thread, an event loop, a gRPC channel
or a server when it is imported. Each worker makes its own files of captured output and its own directory of temporary
files, since processes must not share them. `random` seeds itself again.

Workers are in process groups of their own, so that Ctrl-C interrupts the main process, which interrupts each of them
once. A worker that ends during a test fails this test, and another worker runs the rest of its file.
"""

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Final, Literal

import pytest
from _pytest.runner import runtestprotocol

from tests.machinery.run_order import EARLY_FILE

STOP_SECONDS: Final = 20
"""Time in which interrupted workers tear down their fixtures, before they are killed."""

Location = tuple[str, int | None, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    description = "run the tests in N processes that are forked after the collection"
    parser.addoption("--workers", type=int, default=0, metavar="N", help=description)
    description = "file whose tests run in a worker while the others are collected"
    parser.addini("early_file", description, type="paths", default=[EARLY_FILE])


def pytest_configure(config: pytest.Config) -> None:
    workers: int = config.getoption("workers")
    if workers and config.getoption("usepdb"):
        raise pytest.UsageError("--pdb needs the terminal, which workers do not have: omit --workers")
    if workers:
        config.pluginmanager.register(Distribution(config, workers))


# --- messages of a worker


@dataclass
class Finished:
    """Message of a worker: all that pytest reported of one test. The next message is of the next test of the file."""

    reports: list[pytest.TestReport | dict[str, object]] = field(default_factory=list)
    """Reports. Those of failures are in the serializable form of pytest, since they contain objects of any kind."""
    warnings: list[tuple[bytes, str, Location | None]] = field(default_factory=list)
    """Pickled arguments of `warnings.WarningMessage`, id of the test, and location."""


@dataclass(frozen=True)
class FileFinished:
    """Message of a worker that has run a file and waits for the number of its next file, or None."""


@dataclass(frozen=True)
class Failed:
    """Message of a worker that ends after an exception outside of the tests."""

    text: str


Message = Finished | FileFinished | Failed


# --- the main process


@dataclass
class Worker:
    """Worker process as the main process sees it."""

    name: str
    process: ForkProcess
    connection: "Connection[int | None, Message]"
    items: Sequence[pytest.Item]
    """Tests of its file. Empty once it ends."""
    finished: int = 0
    """Number of its tests that ended."""
    failure: str = ""
    early: bool = False
    """Whether it was forked during the collection, for one file."""


class Distribution:
    """Distribution of the test files to workers, whose reports the main process logs."""

    def __init__(self, config: pytest.Config, workers: int) -> None:
        self._config = config
        self._count = workers
        self._names = (f"w{number}" for number in count())
        self._workers = dict["Connection[int | None, Message]", Worker]()
        self._files: list[list[pytest.Item]] = []
        self._queue = deque[int]()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Start the early worker after the collection of its file."""
        items = [node for node in report.result if isinstance(node, pytest.Item)]
        if items and items[0].path in self._config.getini("early_file") and runs_all(self._config):
            self._start(items[0].session, items, early=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or self._config.option.collectonly or not session.items:
            return None  # errors of the collection, or nothing to run: as without workers
        if threading.active_count() > 1:
            raise pytest.UsageError(f"threads at the end of the collection: {threading.enumerate()}")
        files: dict[Path, list[pytest.Item]] = {}
        started = {worker.items[0].path for worker in self._workers.values()}
        for item in session.items:
            if item.path not in started:
                files.setdefault(item.path, []).append(item)
        self._files = list(files.values())
        self._queue.extend(range(len(files)))
        self._config.pluginmanager.getplugin("terminalreporter").showfspath = False  # files take turns
        for _ in range(min(self._count - len(self._workers), len(files))):
            self._start(session, self._files[self._queue.popleft()])
        while self._workers:
            self._receive(session)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Stop the workers that still run: after a failure, an interrupt, or errors of the collection."""
        self._stop()

    def _start(self, session: pytest.Session, items: Sequence[pytest.Item], *, early: bool = False) -> None:
        ours, theirs = multiprocessing.Pipe()
        name = next(self._names)
        base = vars(self._config)["_tmp_path_factory"].getbasetemp() / name
        run = Run(session, self._files, theirs, base)
        process = multiprocessing.get_context("fork").Process(
            target=run.run, args=(items, [ours, *self._workers]), name=f"tests of {name}"
        )
        process.start()
        theirs.close()
        self._workers[ours] = Worker(name, process, ours, items, early=early)

    def _receive(self, session: pytest.Session) -> None:
        """Wait for messages of workers, and act on one of each."""
        for connection in wait(list(self._workers)):
            assert isinstance(connection, Connection)
            worker = self._workers[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                self._end(session, worker)
            else:
                self._handle(worker, message)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)

    def _handle(self, worker: Worker, message: Message) -> None:
        match message:
            case Finished():
                hook = self._config.hook
                reports = [
                    hook.pytest_report_from_serializable(config=self._config, data=report)
                    if isinstance(report, dict)
                    else report
                    for report in message.reports
                ]
                self._log(worker.items[worker.finished], reports)
                worker.finished += 1
                for pickled, nodeid, location in message.warnings:
                    record = warnings.WarningMessage(*pickle.loads(pickled))
                    arguments = {"warning_message": record, "nodeid": nodeid, "when": "runtest", "location": location}
                    hook.pytest_warning_recorded.call_historic(kwargs=arguments)
            case FileFinished():
                following = self._queue.popleft() if self._queue and not worker.early else None
                worker.items = [] if following is None else self._files[following]
                worker.finished = 0
                with suppress(OSError):  # it ended meanwhile
                    worker.connection.send(following)
            case Failed(text):
                worker.failure = text

    def _log(self, item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
        hook, location = item.ihook, reports[0].location  # known already; an item reads the path of its file anew
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=location)

    def _end(self, session: pytest.Session, worker: Worker) -> None:
        """Fail the test during which a worker ended, and run the rest of its file in another one."""
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.join()
        code = worker.process.exitcode
        reason = f"worker {worker.name} ended with exit code {code}"
        if code is not None and code < 0:
            reason = f"worker {worker.name} was ended by {signal.Signals(-code).name}"
        text = "\n".join(filter(None, [reason, worker.failure]))
        if worker.finished < len(worker.items):
            item = worker.items[worker.finished]
            self._log(item, [_failure(item.nodeid, item.location, "call", f"{text}\nduring this test")])
            rest = worker.items[worker.finished + 1 :]
            if rest:
                self._start(session, rest)
            elif self._queue:
                self._start(session, self._files[self._queue.popleft()])
        elif code != 0 or worker.failure:
            location = (worker.name, None, worker.name)
            report = _failure(worker.name, location, "teardown", f"{text}\nafter its last test")
            self._config.hook.pytest_runtest_logreport(report=report)
        if worker.early and not worker.items and self._queue:
            self._start(session, self._files[self._queue.popleft()])

    def _stop(self) -> None:
        """Interrupt the workers that still run, as Ctrl-C would, and wait for their end."""
        workers = list(self._workers.values())
        self._workers.clear()
        try:
            for worker in workers:
                worker.connection.close()
                if worker.process.pid and worker.process.is_alive():
                    os.kill(worker.process.pid, signal.SIGINT)
            for worker in workers:
                worker.process.join(STOP_SECONDS)
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.join()


def runs_all(config: pytest.Config) -> bool:
    """Return whether all tests run: no option and no argument chooses a part of them."""
    options = ("collectonly", "keyword", "markexpr", "deselect", "lf", "failedfirst", "newfirst", "stepwise")
    chosen = [name for name in options if config.getoption(name, default=None)]
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


def _failure(nodeid: str, location: Location, when: Literal["call", "teardown"], text: str) -> pytest.TestReport:
    return pytest.TestReport(nodeid, location, {}, "failed", text, when)


# --- a worker


class EndOfFile(pytest.Item):
    """Item after the last one of a file: pytest tears down all fixtures of the file before it, none of the session."""

    def runtest(self) -> None:
        raise NotImplementedError


class Run:
    """Plugin of a worker: runs files, and sends the reports of their tests to the main process."""

    def __init__(
        self,
        session: pytest.Session,
        files: Sequence[Sequence[pytest.Item]],
        connection: "Connection[Message, int | None]",
        base: Path,
    ) -> None:
        self._session = session
        self._files = files
        self._connection = connection
        self._base = base
        self._test = Finished()

    def run(self, items: Sequence[pytest.Item], inherited: "Sequence[Connection[int | None, Message]]") -> None:
        """Run a file, and further ones by number, then tear down the fixtures of the session."""
        os.setpgid(0, 0)
        gc.enable()  # the collection runs without
        for connection in inherited:
            connection.close()
        code = 0
        try:
            with self._prepared():
                self._run_files(items)
        except BaseException as error:
            code = 1
            with suppress(OSError):
                self._connection.send(Failed("".join(traceback.format_exception(error))))
        self._connection.close()
        sys.stdout.flush()  # with `-s`
        os._exit(code)  # no exit functions of the main process, no wait for threads and processes of tests

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Replace the files that workers must not share; at the end, tear down the fixtures of the session."""
        config = self._session.config
        plugins = config.pluginmanager
        output = plugins.getplugin("capturemanager")
        if output.is_globally_capturing():
            output.read_global_capture()  # of the main process
            output.stop_global_capturing()
            output.start_global_capturing()
            output.suspend_global_capture()
        config.option.basetemp = str(self._base)
        plugins.getplugin("tmpdir").pytest_configure(config)
        with Path(os.devnull).open("w") as nowhere:
            config.get_terminal_writer()._file = nowhere  # the main process logs the reports
            plugins.register(self)
            try:
                yield
            finally:
                plugins.getplugin("runner").pytest_sessionfinish(self._session)

    def _run_files(self, items: Sequence[pytest.Item]) -> None:
        end = EndOfFile.from_parent(self._session, name="end of file")
        while True:
            for item, following in pairwise([*items, end]):
                self._test = Finished()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self._connection.send(self._test)
                if self._session.shouldfail or self._session.shouldstop:
                    return  # the main process stops, too
            self._connection.send(FileFinished())
            number = self._connection.recv()
            if number is None:
                return
            items = self._files[number]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item) -> bool:
        """Run a test without the hooks that log its reports: the main process calls them."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            self.pytest_runtest_logreport(report)
            self._session.pytest_runtest_logreport(report)  # which counts failures
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a report to send it. Pytest calls this for the reports of subtests."""
        if type(report) is pytest.TestReport and report.longrepr is None:
            self._test.reports.append(report)
        else:
            config = self._session.config
            self._test.reports.append(config.hook.pytest_report_to_serializable(config=config, report=report))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Location | None
    ) -> None:
        if when != "runtest":
            return  # of the collection
        message: Warning | str = warning_message.message
        arguments = (message, warning_message.category, warning_message.filename, warning_message.lineno)
        try:
            pickled = pickle.dumps(arguments)
        except Exception:  # a class of warnings may contain anything
            pickled = pickle.dumps((UserWarning(str(message)), UserWarning, *arguments[2:]))
        self._test.warnings.append((pickled, nodeid, location))

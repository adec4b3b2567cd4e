"""Fixtures that several directories share, and the order of the tests."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import uvloop
from hypothesis import settings

from tests.support import logs
from tests.support.event_loops import ClosingLoop, StrictLoop
from tests.support.secrets import leaked

os.environ.setdefault(
    "GRPC_ENABLE_FORK_SUPPORT", "0"
)  # before grpc is loaded: tests start processes beside its threads

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.checkout_data",
    "tests.support.no_system_authorities",
    "tests.support.forked_workers",
    "tests.support.databases",
    "tests.support.redis",
    "tests.support.store_fixtures",
]

settings.register_profile("without deadlines", deadline=None)  # a busy machine takes longer for an example
settings.load_profile("without deadlines")

logs.configure()

HERE = Path(__file__).parent
LONGEST = ("clients", "agents", "soak", "crash", "memory", "bench", "linear", "faults", "cli", "docs")
"""Directories whose files take longest. They run first: at the end, the other workers would wait for them."""
LONG_FILES = ("test_laws.py", "test_rules.py", "test_table.py")
"""Names of files in other directories that take long. They run before the rest of these directories."""
ROOMS = ("world", "proofs", "docs", "documents", "pairs", "support", "unit")
"""Directories of `tests/`, in the order in which the rest of their files run: files of short tests come last."""

ON_UVLOOP = {"e2e", "http_facade", "service", "spec"}
"""Directories whose tests run on the event loop of a gateway that serves. It reports transports that SDKs leave open."""
LEAVES_CONNECTIONS = "test_langchain.py"
"""File of tests whose library keeps its clients until the process ends, without a way to close them."""

THRESHOLDS = (100_000, 20, 20)
"""Thresholds of the garbage collection of the tests. Memory of cycles is plentiful, and collections as frequent as those
of a gateway that serves take a sixth of the time of the tests.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests, a million objects, without garbage collections, and exempt them from those of the tests."""
    gc.disable()
    gc.set_threshold(*THRESHOLDS)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test during which a gateway of this process logged a secret."""
    report = yield
    if report.when == "teardown" and report.passed:
        written = [content for name, content in report.sections if "stderr" in name or "log" in name]
        if lines := leaked("\n".join(written)):
            report.outcome, report.longrepr = "failed", "\n".join(["secrets are in the log:", *lines])
    return report


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Choose the event loop of a test."""
    if item.path.parent.name in ON_UVLOOP:
        return {"uvloop": uvloop.new_event_loop}
    if item.path.name == LEAVES_CONNECTIONS:
        return {"asyncio": ClosingLoop}
    return {"asyncio": StrictLoop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by their directories, the longest first. Workers take the files in this order."""
    ranks = {name: rank for rank, name in enumerate((*LONGEST, *LONG_FILES))}
    last = len(ranks)
    rooms = {name: rank for rank, name in enumerate(ROOMS)}

    def order(item: pytest.Item) -> tuple[int, int]:
        room = item.path.relative_to(HERE).parts[0]
        return min(ranks.get(item.path.parent.name, last), ranks.get(item.path.name, last)), rooms.get(room, 0)

    items.sort(key=order)

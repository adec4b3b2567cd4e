"""Worker processes of `umg serve`: their number, and their independence of each other."""

import asyncio
import http.client
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import Served, serve
from umg_grpc.process.serve_options import MAX_WORKERS, worker_count
from umg_grpc.process.usable_cores import usable_cores
from umg_grpc.store.database_constants import SQLITE_FILE

ENVIRONMENT = {"UMG_API_KEY": "sk-umg-of-the-tests-of-workers"}
CALLS = 20
LISTENING = "0A"
"""State of a listening socket in `/proc/net/tcp`."""
MANY = "9" * 400

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@dataclass(frozen=True)
class Quota:
    """Control groups of a process, and the cores that they allow where the machine has more."""

    id: str
    own: str
    cores: int
    files: dict[str, str] = field(default_factory=dict)


QUOTAS = [
    Quota("none", "0::/", 1000),
    Quota("unlimited", "0::/", 1000, {"cpu.max": "max 100000"}),
    Quota("two cores of a container", "0::/", 2, {"cpu.max": "200000 100000"}),
    Quota("one and a half", "0::/", 1, {"cpu.max": "150000 100000"}),
    Quota("half a core", "0::/", 1, {"cpu.max": "50000 100000"}),
    Quota("of a service", "0::/system.slice/umg.service", 1, {"system.slice/umg.service/cpu.max": "100000 100000"}),
    Quota("of the slice around it", "0::/system.slice/umg.service", 1, {"system.slice/cpu.max": "100000 100000"}),
    Quota("of another service", "0::/system.slice/umg.service", 1000, {"system.slice/x.service/cpu.max": "1 1"}),
    Quota(
        *("version 1", "4:memory:/\n3:cpu,cpuacct:/docker/a1\n0::/", 1),
        {"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"},
    ),
    Quota(
        *("version 1, unlimited", "1:cpu:/\n0::/", 1000),
        {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
    ),
    Quota("an unknown form", "0::/", 1000, {"cpu.max": "some 100000"}),
    Quota("an empty file", "0::/", 1000, {"cpu.max": ""}),
]


@pytest.mark.parametrize("case", QUOTAS, ids=lambda case: case.id)
def test_the_usable_cores_are_those_of_the_affinity_within_the_quota(case: Quota, tmp_path: Path) -> None:
    own, groups = tmp_path / "own", tmp_path / "groups"
    own.write_text(case.own + "\n")
    for name, text in case.files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(text + "\n")
    assert usable_cores(groups, own) == min(case.cores, len(os.sched_getaffinity(0)))


def test_a_system_without_control_groups_has_the_cores_of_the_affinity(tmp_path: Path) -> None:
    assert usable_cores(tmp_path, tmp_path / "nothing") == len(os.sched_getaffinity(0))


def test_fewer_cores_of_the_affinity_are_fewer_usable_cores() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize("text", ["0", "-1", "257", "2.5", "two", "Auto", "", " 2", "\u00b2", MANY])
def test_another_number_of_workers_is_an_error_that_names_the_flag(text: str) -> None:
    with pytest.raises(ValueError, match=r"--workers: .* from 1 to 256; `auto` is one for each usable core"):
        worker_count(text)


def test_workers_are_a_number_or_that_of_the_usable_cores() -> None:
    assert [worker_count(text) for text in ("1", "2", str(MAX_WORKERS), "auto")] == [1, 2, MAX_WORKERS, usable_cores()]


def serve_workers(folder: Path, workers: str) -> AbstractAsyncContextManager[Served]:
    """Run a gateway with a sandbox and the value `workers` of `--workers`."""
    config = folder / "config.yaml"
    config.write_text(SANDBOX)
    return serve(folder, "--config", str(config), "--workers", workers, environment=ENVIRONMENT)


async def test_automatic_workers_are_one_for_each_usable_core(tmp_path: Path) -> None:
    async with serve_workers(tmp_path, "auto") as served:
        cores = usable_cores()
        assert served.printed(r"workers +(.*)") == f"{cores} (auto: one for each core that this process may use)"
        port = urlsplit(served.http).port
        assert len([row for row in _sockets() if row[3] == LISTENING and row[1].endswith(f":{port:04X}")]) == cores


async def test_a_stopped_worker_holds_up_no_call_of_another(tmp_path: Path) -> None:
    async with serve_workers(tmp_path, "2") as served:
        with _connection_of_each_worker(served) as connections:
            (stopped, waiting), (_, other) = connections.items()
            os.kill(stopped, signal.SIGSTOP)
            try:
                held = asyncio.create_task(asyncio.to_thread(waiting.call))
                for _ in range(CALLS):
                    assert await asyncio.to_thread(other.call) == 200
                assert not held.done()
            finally:
                os.kill(stopped, signal.SIGCONT)
            assert await held == 200


async def test_calls_end_while_another_process_holds_the_write_lock_of_the_database(tmp_path: Path) -> None:
    """Hold the lock, as a worker does that is stopped within a transaction. Usage records wait in the journal."""
    async with serve_workers(tmp_path, "2") as served:
        with _connection_of_each_worker(served) as connections:
            with closing(sqlite3.connect(tmp_path / SQLITE_FILE, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                for connection in connections.values():
                    for _ in range(CALLS):
                        assert await asyncio.to_thread(connection.call) == 200
                database.execute("ROLLBACK")
            made = sum(connection.calls for connection in connections.values())
        assert await served.stop() == 0  # the end writes the records that wait
        with closing(sqlite3.connect(tmp_path / SQLITE_FILE)) as database:
            (stored,) = database.execute("SELECT count(*) FROM call_records").fetchone()
        assert stored >= made


# --- connections and their workers


class Connection:
    """Connection of a caller, which stays open."""

    def __init__(self, served: Served) -> None:
        self._client = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=60)
        self._headers = {**served.headers, "content-type": "application/json"}
        self.calls = 0

    def call(self) -> int:
        """Call a model. Return the status."""
        body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
        self._client.request("POST", "/v1/chat/completions", msgspec.json.encode(body), self._headers)
        response = self._client.getresponse()
        response.read()
        self.calls += 1
        return response.status

    @property
    def worker(self) -> int:
        """Process id of the worker that has the gateway's end of the connection."""
        own, gateway = (
            f":{port:04X}" for _, port in (self._client.sock.getsockname(), self._client.sock.getpeername())
        )
        (inode,) = (row[9] for row in _sockets() if row[1].endswith(gateway) and row[2].endswith(own))
        (found,) = (int(pid.name) for pid in Path("/proc").glob("[0-9]*") if f"socket:[{inode}]" in _files(pid))
        return found

    def close(self) -> None:
        self._client.close()


@contextmanager
def _connection_of_each_worker(served: Served) -> Iterator[dict[int, Connection]]:
    """Open connections until each of two workers has one, which the kernel decides. Yield them by process id."""
    with ExitStack() as stack:
        found = dict[int, Connection]()
        while len(found) < 2:
            connection = stack.enter_context(closing(Connection(served)))
            assert connection.call() == 200
            found.setdefault(connection.worker, connection)
        yield found


def _sockets() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]


def _files(process: Path) -> set[str]:
    """Return the targets of the open files of a process; none of one that has ended."""
    found = set[str]()
    with suppress(OSError):
        for each in (process / "fd").iterdir():
            with suppress(OSError):
                found.add(str(each.readlink()))
    return found

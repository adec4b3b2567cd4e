"""Scheduling of the gateway's threads: gRPC's own ones do not interrupt the event loop."""

import os
import sys
import threading
from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import serve
from umg_grpc.base.batch_threads import batch_threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the policy is one of Linux")

GRPC_THREADS = {"event_engine", "grpc_global_tim", "lifeguard"}
"""Names that gRPC gives to threads of its core."""


def policies_in_threads() -> list[int]:
    """Return the policy of a new thread, and that of a thread which it starts."""
    found = list[int]()

    def record() -> None:
        found.append(os.sched_getscheduler(0))

    def start() -> None:
        record()
        inner = threading.Thread(target=record)
        inner.start()
        inner.join()

    outer = threading.Thread(target=start)
    outer.start()
    outer.join()
    return found


def test_threads_that_start_in_the_block_are_batch_threads_and_no_others() -> None:
    own = os.sched_getscheduler(0)
    with batch_threads():
        assert policies_in_threads() == [os.SCHED_BATCH] * 2
    assert os.sched_getscheduler(0) == own
    assert policies_in_threads() == [own] * 2


def test_the_policy_of_the_thread_is_restored_after_an_error() -> None:
    own = os.sched_getscheduler(0)
    with pytest.raises(OSError, match="no port"), batch_threads():
        raise OSError("no port")
    assert os.sched_getscheduler(0) == own


def names_of_threads(process: int) -> dict[int, str]:
    """Return the names of a process's threads by their ids."""
    return {int(file.name): (file / "comm").read_text().strip() for file in Path(f"/proc/{process}/task").iterdir()}


async def test_the_threads_of_grpc_are_batch_threads_and_the_event_loop_is_not(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    async with serve(tmp_path / "data", "--config", str(config)) as served:
        process = served.process.pid
        named = [thread for thread, name in names_of_threads(process).items() if name in GRPC_THREADS]
        assert named
        assert {os.sched_getscheduler(thread) for thread in named} == {os.SCHED_BATCH}
        assert os.sched_getscheduler(process) == os.sched_getscheduler(0)

"""Scheduling of threads that work for the event loop: they run when it waits, and do not interrupt it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DEFAULT_PRIORITY = 0
"""Only priority of the policies without real time."""


@contextmanager
def batch_threads() -> Iterator[None]:
    """Let the threads that start in this block, and the threads that they start, have Linux's policy SCHED_BATCH.

    A thread with this policy that gets work does not interrupt the thread that runs on its core. The threads of gRPC
    get some ten pieces of work for each call, most of them while the event loop works: each would interrupt the loop to
    announce an event that the loop reads later. If another core is free, they run there at once.
    """
    if not hasattr(os, "SCHED_BATCH"):  # another system than Linux
        yield
        return
    policy = os.sched_getscheduler(0)
    _set(os.SCHED_BATCH)
    try:
        yield
    finally:
        _set(policy)


def _set(policy: int) -> None:
    """Set the policy of this thread, which threads inherit that it starts. Do nothing where a sandbox forbids it."""
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(DEFAULT_PRIORITY))

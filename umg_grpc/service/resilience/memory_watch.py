"""Memory limit of the process: a share of the memory of its container or machine."""

import asyncio
import ctypes
import gc
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

from umg_grpc.store.repeated_background_tasks import Background

CHECK_SECONDS = 0.25
"""Time between two checks. The fastest load, 2,500 new streams a second of some 40 KB each, takes 25 MB in it."""
TRIM_SECONDS = 10.0
"""Least time between two attempts to give back memory."""
MANY_CALLS = 256
"""Number of calls in flight after whose end memory is given back: fewer leave little behind."""
GROWN_BYTES = 4 << 20
"""Growth of the memory after which it is given back once no call is in flight: few calls may have large bodies."""
SETTLING_SECONDS = 65.0
"""Time after the end of these calls until memory is given back once more: the connections to providers that they used
are closed when they were idle for a minute.
"""
LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the memory limit of the container, in version 2 and 1 of cgroups."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def memory_limit(share: float, processes: int) -> float:
    """Return the bytes that each of `processes` processes may use. All together use `share` of the memory of the
    container, or else of the machine. Infinite where the system does not report its memory.
    """
    sizes = [os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES]
    for name in LIMIT_FILES:
        try:
            sizes.append(int(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # another version of cgroups, or "max"
            continue
    return share * min(sizes) / processes if _reads_resident_bytes() else math.inf


def resident_bytes() -> int:
    """Return the resident memory of this process. Raise OSError where the system has no /proc."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


def trim_heap() -> None:
    """Return free memory of the C library to the system, where the library supports this."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class MemoryWatch:
    """Watch of the resident memory of this process, from `start` to `aclose`."""

    def __init__(
        self,
        limit: float,
        *,
        resident: Callable[[], int] = resident_bytes,
        trim: Callable[[], None] = trim_heap,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a watch with a limit in bytes; infinite for none. `resident`: returns the bytes in use; `trim`:
        returns free memory to the system, called in a thread; `now`: returns seconds of a monotonic clock.
        """
        self.limit = limit
        self.is_exceeded = False
        """Whether the process used more than its limit at the last check."""
        self.share = 0.0
        """Memory in use at the last check, as a share of the limit."""
        self._resident, self._trim, self._now = resident, trim, now
        self._trim_from = -math.inf
        self._settled_from = math.inf
        self._most_calls = 0  # in flight at a check since memory was last given back
        self._least = math.inf  # bytes in use at a check since then
        self._background: Background | None = None

    def start(self, calls: Callable[[], int]) -> None:
        """Start to check regularly. `calls`: returns the number of calls in flight."""

        async def step() -> None:
            await self.check(calls())

        self._background = Background("memory check", step, every=CHECK_SECONDS)

    async def check(self, calls: int) -> None:
        """Compare the memory with the limit. Return free memory to the system first if the memory exceeds the limit, if
        most of many calls have ended or all calls by which it has grown, and `SETTLING_SECONDS` after that. `calls`:
        number of calls in flight.
        """
        if self.limit == math.inf:
            return
        used, now = self._resident(), self._now()
        self._most_calls = max(self._most_calls, calls)
        self._least = min(self._least, used)
        have_ended = self._most_calls >= MANY_CALLS and calls <= self._most_calls / 4
        have_ended |= 0 == calls < self._most_calls and used > self._least + GROWN_BYTES
        have_settled = now >= self._settled_from
        if (used > self.limit or have_ended or have_settled) and now >= self._trim_from:
            if have_ended:
                self._settled_from = now + SETTLING_SECONDS
            elif have_settled:
                self._settled_from = math.inf
            self._trim_from, self._most_calls = now + TRIM_SECONDS, calls
            if not calls:
                gc.collect()  # also frees the interpreter's lists of unused objects; it takes milliseconds
            await asyncio.to_thread(self._trim)
            used = self._least = self._resident()
        self.is_exceeded = used > self.limit
        self.share = used / self.limit

    async def aclose(self) -> None:
        """Stop the checks."""
        if self._background is not None:
            await self._background.aclose(CHECK_SECONDS)


def _reads_resident_bytes() -> bool:
    try:
        return resident_bytes() > 0
    except OSError:
        return False

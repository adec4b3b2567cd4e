"""Gateway that counts its own work: `python -m bench.counted_gateway SOCKET LIBRARY ARGUMENT...` is `umg ARGUMENT...`.

A signal starts a count in the thread of the event loop, and the next signal ends it: SIGUSR1 counts functions, that is
calls and resumptions of coroutines in Python, SIGUSR2 bytecodes, SIGPROF the memory blocks that Python allocates. At
the start of a count an empty datagram is sent to the socket at the path SOCKET, at its end the counts by file as JSON.
Allocations are those of all files, under the name "". SIGALRM measures, under the same name, the longest turn of the
event loop: the microseconds of processor time for which it held up all other calls.

LIBRARY is the path of the compiled `allocation_counter.c`.
"""

import asyncio
import ctypes
import runpy
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec


class Counting:
    """Counts of the thread in which the signals arrive, by the file of the code."""

    def __init__(self, address: str, library: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.connect(address)
        self._counts: Counter[str] | None = None
        self._path = library
        self._library: ctypes.PyDLL | None = None  # loaded for the first count of allocations
        self._allocated = 0
        self._turn_began = 0.0

    def functions(self, _number: int, _frame: FrameType | None) -> None:
        """Start or end a count of functions."""
        sys.setprofile(None)  # first, since the next signal may arrive as soon as the counts are sent
        if not self._ends():
            sys.setprofile(self._called)

    def bytecodes(self, _number: int, _frame: FrameType | None) -> None:
        """Start or end a count of bytecodes."""
        sys.settrace(None)
        if not self._ends():
            sys.settrace(self._entered)

    def allocations(self, _number: int, _frame: FrameType | None) -> None:
        """Start or end a count of allocations."""
        if self._library is None:
            self._library = ctypes.PyDLL(self._path)
            self._library.allocations.restype = ctypes.c_ulong
            self._library.begin()
        allocated = self._library.allocations()
        if self._counts is not None:
            self._counts[""] = allocated - self._allocated
        self._ends()
        self._allocated = self._library.allocations()

    def turns(self, _number: int, _frame: FrameType | None) -> None:
        """Start or end the measurement of the longest turn of the event loop."""
        if not self._ends():
            self._turn_began = time.thread_time()
            self._note_turn(asyncio.get_running_loop())

    def _note_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._counts is not None:
            began, self._turn_began = self._turn_began, time.thread_time()
            self._counts[""] = max(self._counts[""], round((self._turn_began - began) * 1e6))
            loop.call_soon(self._note_turn, loop)

    def _ends(self) -> bool:
        counts, self._counts = self._counts, Counter() if self._counts is None else None
        self._socket.send(b"" if counts is None else msgspec.json.encode(counts))
        return counts is not None

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and self._counts is not None:
            self._counts[frame.f_code.co_filename] += 1

    def _entered(self, frame: FrameType, _event: str, _argument: object) -> Callable[..., Any]:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._executed

    def _executed(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        if event == "opcode" and self._counts is not None:
            self._counts[frame.f_code.co_filename] += 1
        return self._executed


if __name__ == "__main__":
    counting = Counting(sys.argv.pop(1), sys.argv.pop(1))
    signal.signal(signal.SIGUSR1, counting.functions)
    signal.signal(signal.SIGUSR2, counting.bytecodes)
    signal.signal(signal.SIGPROF, counting.allocations)
    signal.signal(signal.SIGALRM, counting.turns)
    runpy.run_module("umg_grpc.cli", run_name="__main__")

"""Command line of the benchmark's programs: messages, arguments, and termination by a signal."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from bench.processes import BenchError


def run_to_end(measure: Callable[[], Awaitable[None]]) -> int:
    """Run a measurement to its end. Return the exit status: 1 after a message if anything failed, 130 after a
    signal.
    """

    async def measuring() -> None:
        task = asyncio.current_task()
        for number in (signal.SIGINT, signal.SIGTERM):  # the cancellation also ends the started processes
            if task:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await measure()

    if sys.platform != "linux":
        return failed("the benchmark pins cores and reads /proc, so it runs on Linux only")
    try:
        asyncio.run(measuring())
    except BenchError as error:
        return failed(str(error))
    except asyncio.CancelledError:
        return 130
    return 0


def print_progress(line: str) -> None:
    """Print a line about the progress to standard error."""
    print(line, file=sys.stderr, flush=True)


def failed(message: str) -> int:
    """Print why the command failed. Return the exit status 1."""
    print(f"bench: {message}", file=sys.stderr)
    return 1


def count(text: str) -> int:
    """Return an argument as a number. Raise ArgumentTypeError below 1."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def seconds(text: str) -> float:
    """Return an argument as seconds. Raise ArgumentTypeError outside [0.1, 600]."""
    if not 0.1 <= (number := float(text)) <= 600:
        raise argparse.ArgumentTypeError("0.1 to 600")
    return number

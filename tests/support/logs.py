"""Log of gateways in the processes of the tests, which pytest shows beside a failure.

A gateway logs each call. structlog's own log, with columns and colors, takes five times as long for a line.
"""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager

import structlog
from structlog.typing import EventDict, WrappedLogger


class Output:
    """Logger that prints to the standard error of the current test."""

    def msg(self, line: str) -> None:
        """Print a line."""
        sys.stderr.write(f"{line}\n")

    debug = info = warning = error = critical = exception = msg


class Warnings(logging.Handler):
    """Handler that keeps the warnings and errors of libraries."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)


@contextmanager
def library_warnings() -> Generator[Warnings]:
    """Collect the warnings and errors of libraries, at any level of the log that another test has set."""
    root, handler = logging.getLogger(), Warnings()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    try:
        yield handler
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def configure() -> None:
    """Configure structlog for tests, in place of the configuration of another test. Of libraries nothing is printed: to
    the first message on a logger without handlers, `logging` would add one that outlives the captured output of a test.
    """
    logging.getLogger().addHandler(logging.NullHandler())
    output = Output()
    structlog.reset_defaults()
    structlog.configure(processors=[_line], logger_factory=lambda *_: output)


def _line(logger: WrappedLogger, level: str, event: EventDict) -> str:
    event = structlog.processors.format_exc_info(logger, level, event)
    name, traceback = event.pop("event", ""), event.pop("exception", "")
    return "\n".join(filter(None, [f"{level} {name} {event}", traceback]))

"""The log: one line an event on standard error, for people on a terminal and as JSON elsewhere."""

import asyncio
import atexit
import logging
import sys
import time
from contextlib import suppress
from typing import BinaryIO, Literal, Self

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

TOGETHER_SECONDS = 0.05
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: Literal["debug", "info", "warning", "error"], form: Literal["auto", "text", "json"]) -> None:
    """Sets up the process's log; what libraries log through `logging` goes the same way from `warning` on."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    processors: list[Processor] = [JsonLine()]
    if text:
        # rich's tracebacks would show local variables, and with them a caller's key
        people = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        processors = [structlog.processors.add_log_level, Stamper(), _without_nothing, people]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr) if text else Lines(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    # what a servicer did not foresee is logged where it is told; gRPC adds only callers that left while it wrote
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.CRITICAL)
    logging.basicConfig(handlers=[Relay()], level=max(LEVELS[level], logging.WARNING), force=True)


class Lines:
    """A logger that writes the lines of calls together, some 20 times a second, and any other line at once.

    To write costs more than to make the line. What a process that is killed had not written yet is lost.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._kept: list[bytes] = []
        atexit.register(self.flush)

    def __call__(self, *_: object) -> Self:
        """As a factory of loggers it gives itself: the lines of all are one log."""
        return self

    def info(self, line: bytes) -> None:
        """Writes the line soon; at once where no event loop runs."""
        self._kept.append(line)
        if len(self._kept) == 1:
            try:
                asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self.flush)
            except RuntimeError:
                self.flush()

    def msg(self, line: bytes) -> None:
        """Writes the line, after those that are kept."""
        self._kept.append(line)
        self.flush()

    debug = warning = error = critical = exception = msg

    def flush(self) -> None:
        """Writes what is kept."""
        kept, self._kept = self._kept, []
        with suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            self._file.write(b"".join(line + b"\n" for line in kept))
            self._file.flush()


class Relay(logging.Handler):
    """Takes what libraries log through `logging` into the same log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger()
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        write(record.getMessage(), logger=record.name, exc_info=record.exc_info or None)


class Stamper:
    """Adds the time in UTC, to the millisecond. The part down to the second is made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["timestamp"] = self.now()
        return event

    def now(self) -> str:
        """E.g. `2026-01-31T12:00:00.123Z`."""
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._text = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._text}.{int((now - second) * 1000):03d}Z"


class JsonLine:
    """An event as one line of JSON. One step, since there is a line for every call."""

    def __init__(self) -> None:
        self._stamper = Stamper()

    def __call__(self, logger: WrappedLogger, level: str, event: EventDict) -> bytes:
        if event.get("exc_info"):
            event = structlog.processors.format_exc_info(logger, level, event)
        line = {"timestamp": self._stamper.now(), "level": level}
        line.update({key: value for key, value in event.items() if value is not None})
        return msgspec.json.encode(line, enc_hook=repr)


def _without_nothing(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The event without the fields that are None: what does not apply is not logged."""
    return {key: value for key, value in event.items() if value is not None}

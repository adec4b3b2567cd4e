"""Log of the gateway: one line for each event on standard error, as text on a terminal and as JSON elsewhere."""

import asyncio
import atexit
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import compress
from operator import is_not
from typing import BinaryIO, Literal, Self

import msgspec
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from umg_grpc.base.printable_text import printable_json, printable_lines

FLUSH_SECONDS = 0.05
CREDENTIAL_LIBRARIES = ("azure", "botocore", "google.auth")
"""Libraries whose warnings are left out: the gateway logs their failures itself, with the channel."""
LOG_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: Literal["debug", "info", "warning", "error"], form: Literal["auto", "text", "json"]) -> None:
    """Configure this process's log. `level`: least level; `form`: format (`auto`: text on a terminal, else JSON).
    Messages of libraries (`logging`) are included from the level `warning` on.
    """
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    processors: list[Processor] = [JsonLine()]
    if text:
        # the tracebacks of rich would show local variables, for example a caller's key
        console = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        processors = [structlog.processors.add_log_level, Timestamper(), _drop_none, _printable_values, console]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(LOG_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr) if text else LineWriter(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    # the interceptor logs unexpected errors of servicers; gRPC would add only callers that cancelled during a write
    logging.getLogger("grpc._cython.cygrpc").setLevel(logging.CRITICAL)
    for name in CREDENTIAL_LIBRARIES:
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.basicConfig(handlers=[StdlibLogHandler()], level=max(LOG_LEVELS[level], logging.WARNING), force=True)


class LineWriter:
    """Writer of log lines. Lines of calls are written in batches, about 20 times a second; all others at once. Batches
    save system calls, which cost more than the encoding of a line. A batch is lost if the process is killed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.buffer: list[bytes] = []
        """Lines that are not written yet, in parts."""
        atexit.register(self.flush)

    def __call__(self, *_: object) -> Self:
        """Return this writer: structlog calls it as the factory of the logger of each module."""
        return self

    def info(self, line: bytes) -> None:
        """Add a line to the next batch; write it at once if no event loop runs."""
        self.add(line, b"\n")

    def add(self, *parts: bytes) -> None:
        """Add a line, in parts that include its end, to the next batch as `info` does."""
        # no call between the test and the addition: another thread may write the buffer during a call
        is_first = not self.buffer
        self.buffer += parts
        if is_first:
            self.begin_batch()

    def begin_batch(self) -> None:
        """Schedule the write of the buffer 50 ms after its first line; write it now without a running event loop."""
        try:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        except RuntimeError:
            self.flush()

    def msg(self, line: bytes) -> None:
        """Write the buffered lines and then this line, without delay: the method for all levels except `info`."""
        self.buffer += (line, b"\n")
        self.flush()

    debug = warning = error = critical = exception = msg

    def flush(self) -> None:
        lines, self.buffer = self.buffer, []
        with suppress(OSError, ValueError):  # the pipe is broken or the file closed
            self._file.write(b"".join(lines))
            self._file.flush()


def line_logger(event: str) -> Callable[[msgspec.Struct], None]:
    """Return a function that logs the event named `event`, with the fields of a struct, at the level `info`.

    For a JSON log it encodes the line in one step, for speed, since every call has a line. The struct must omit its
    defaults, which are None, and have at least one field without a default.
    """
    logger: FilteringBoundLogger = structlog.get_logger().bind()
    writer = structlog.get_config()["logger_factory"]
    if not isinstance(writer, LineWriter):
        return lambda line: logger.info(event, **msgspec.structs.asdict(line))
    if not logger.is_enabled_for(logging.INFO):
        return lambda _: None
    encode, now, name = msgspec.json.Encoder().encode, Timestamper().now, msgspec.json.encode(event)
    time_text, begin = "", b""

    def log(line: msgspec.Struct) -> None:
        nonlocal time_text, begin
        if (text := now()) is not time_text:
            time_text, begin = text, b'{"timestamp":"%b","level":"info","event":%b,' % (text.encode(), name)
        writer.add(begin, _visible(encode(line)[1:]), b"\n")

    return log


class StdlibLogHandler(logging.Handler):
    """`logging` handler that writes the messages of libraries to the gateway's log."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger()
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        write(record.getMessage(), logger=record.name, exc_info=record.exc_info or None)


class Timestamper:
    """structlog processor that adds the time in UTC with milliseconds, in which a busy process has several lines."""

    def __init__(self) -> None:
        self._milliseconds = self._second = -1
        self._date = self._text = ""

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["timestamp"] = self.now()
        return event

    def now(self) -> str:
        """Return the current time, for example `2026-01-31T12:00:00.123Z`."""
        milliseconds = time.time_ns() // 1_000_000
        if milliseconds != self._milliseconds:
            second, rest = divmod(milliseconds, 1000)
            if second != self._second:
                self._date, self._second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)), second
            self._text, self._milliseconds = f"{self._date}.{rest:03d}Z", milliseconds
        return self._text


_is_set = partial(is_not, None)


class JsonLine:
    """structlog processor that encodes an event as one line of JSON."""

    def __init__(self) -> None:
        self._timestamper = Timestamper()

    def __call__(self, logger: WrappedLogger, level: str, event: EventDict) -> bytes:
        if event.get("exc_info"):
            event = structlog.processors.format_exc_info(logger, level, event)
        line = {"timestamp": self._timestamper.now(), "level": level}
        line.update(compress(event.items(), map(_is_set, event.values())))
        return _visible(msgspec.json.encode(line, enc_hook=repr))


def _visible(line: bytes) -> bytes:
    return line if line.isascii() and b"\x7f" not in line else printable_json(line.decode()).encode()


def _printable_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {key: printable_lines(value) if isinstance(value, str) else value for key, value in event.items()}


def _drop_none(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Remove the fields that are None, because they do not apply to the event: a structlog processor."""
    return {key: value for key, value in event.items() if value is not None}

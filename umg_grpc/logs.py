"""The log: one line an event on standard error, for people on a terminal and as JSON elsewhere."""

import logging
import sys
from typing import Literal

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: Literal["debug", "info", "warning", "error"], form: Literal["auto", "text", "json"]) -> None:
    """Sets up the process's log; what libraries log through `logging` goes the same way from `warning` on."""
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_nothing,
    ]
    render: list[Processor] = (
        # rich's tracebacks would show local variables, and with them a caller's key
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)]
        if text
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]
    )
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(LEVELS[level], logging.WARNING), force=True)


def _without_nothing(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The event without the fields that are None: what does not apply is not logged."""
    return {key: value for key, value in event.items() if value is not None}


def _json(event: EventDict, **_: object) -> str:
    return msgspec.json.encode(event, enc_hook=repr).decode()

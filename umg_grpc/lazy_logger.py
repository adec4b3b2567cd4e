"""Loggers of modules that commands import. structlog is imported for the first line: a fifth of the start of a command,
most of which log nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


class LazyLogger:
    """Logger of a module, as `structlog.get_logger` returns it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: FilteringBoundLogger | None = None

    def info(self, event: str, **fields: object) -> None:
        """Log an event of the normal course."""
        self._logger.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that the operator should know."""
        self._logger.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        """Log a failure."""
        self._logger.error(event, **fields)

    @property
    def _logger(self) -> "FilteringBoundLogger":
        if self._made is None:
            import structlog

            self._made = structlog.get_logger(self._name)
        return self._made

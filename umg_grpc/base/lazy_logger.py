"""Loggers that import structlog when they write a first line, so that commands without log lines start faster."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def import_structlog() -> None:
    """Import structlog without rich, which takes 4 MB and which structlog uses for a traceback that no log has."""
    has_rich = sys.modules.setdefault("rich", None) is not None  # type: ignore[arg-type]  # documented: None fails
    import structlog  # noqa: F401

    if not has_rich:
        del sys.modules["rich"]


class LazyLogger:
    """Logger with the methods of structlog's, which imports structlog only when it logs the first line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: FilteringBoundLogger | None = None

    def info(self, event: str, **fields: object) -> None:
        self._logger.info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        self._logger.warning(event, **fields)

    def error(self, event: str, **fields: object) -> None:
        self._logger.error(event, **fields)

    @property
    def _logger(self) -> "FilteringBoundLogger":
        if self._made is None:
            import structlog

            self._made = structlog.get_logger(self._name)
        return self._made

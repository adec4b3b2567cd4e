"""Text tables and bar charts for terminals and pipes."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_COLUMNS = 400  # wide enough that no cell is cut in a pipe; on a terminal cells are cut at its width

BAR_WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉"


def bars(values: Sequence[int]) -> list[str]:
    """Return a horizontal text bar for each value; the largest value has the longest bar."""
    largest = max([*values, 1])
    return [_bar(BAR_WIDTH * 8 * value // largest) for value in values]


def _bar(eighths: int) -> str:
    whole, rest = divmod(eighths, 8)
    return "█" * whole + EIGHTHS[rest].strip()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table to standard output. Cells are printed as they are, without markup."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_COLUMNS)
        table.box = None
    console.print(table)

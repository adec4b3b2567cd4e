"""Tables for people, and for programs behind a pipe."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_COLUMNS = 400  # a cell is cut at the width of a terminal, but not where a program reads it


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table on standard output. No cell is read as markup."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_COLUMNS)
        table.box = None
    console.print(table)

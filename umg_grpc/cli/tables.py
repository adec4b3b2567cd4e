"""Tables for people, and for programs behind a pipe."""

from rich.console import Console
from rich.table import Table

PIPE_COLUMNS = 400  # a cell is cut at the width of a terminal, but not where a program reads it


def print_table(table: Table) -> None:
    """Prints the table on standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPE_COLUMNS)
        table.box = None
    console.print(table)

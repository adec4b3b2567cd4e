"""Text tables and bar charts for terminals and pipes."""

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from umg_grpc.base.printable_text import printable, printable_lines

MAX_DRAWN_ROWS = 1000
"""Most rows of a table that is drawn on a terminal with lines."""
PIPE_COLUMNS = 400  # wide enough that no cell is cut in a pipe; on a terminal cells are cut at its width

BAR_WIDTH = 24
BAR_EIGHTHS = " ▏▎▍▌▋▊▉"


def bars(values: Sequence[int]) -> list[str]:
    """Return a horizontal text bar for each value; the largest value has the longest bar."""
    largest = max([*values, 1])
    return [_bar(BAR_WIDTH * 8 * value // largest) for value in values]


def _bar(eighths: int) -> str:
    whole, rest = divmod(eighths, 8)
    return "█" * whole + BAR_EIGHTHS[rest].strip()


def print_line(text: str) -> None:
    """Print a line to standard output with escapes of invisible characters, for lines with ids of models."""
    print(printable(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, without markup, and with escapes of invisible characters. On a terminal it has lines, and cells
    are cut at its width. In a pipe, and with very many rows, each row is a line.
    """
    cells, console = [tuple(map(printable_lines, row)) for row in rows], Console()
    is_drawn = console.is_terminal and len(cells) <= MAX_DRAWN_ROWS
    if not is_drawn and all(map(str.isprintable, itertools.chain(columns, *cells))):
        sys.stdout.write("".join(_lines([tuple(columns), *cells])))
        return
    table = Table(*columns)
    for row in cells:
        table.add_row(*map(Text, row))
    if not console.is_terminal:
        console = Console(width=PIPE_COLUMNS)
        table.box = None
    console.print(table)


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    columns = [_padded(column) for column in zip(*rows, strict=True)]
    for row in zip(*columns, strict=True):
        yield f" {'  '.join(row)} \n"


def _padded(cells: Sequence[str]) -> list[str]:
    if all(map(str.isascii, cells)):
        width = max(map(len, cells))
        return [cell.ljust(width) for cell in cells]
    widths = list(map(cell_len, cells))
    width = max(widths)
    return [cell + " " * (width - own) for cell, own in zip(cells, widths, strict=True)]

"""Tables of commands: text as wide as the terminal, text of all columns for pipes, JSON and CSV."""

import csv
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from umg_grpc.base.printable_text import printable, printable_lines, spreadsheet_text

BAR_WIDTH = 24
BAR_EIGHTHS = " ▏▎▍▌▋▊▉"
COLUMN_GAP = "  "
MIN_CUT_WIDTH = 12
"""Least width of a column whose cells may be cut."""


class Fit(StrEnum):
    """Treatment of cells that are wider than their column on a terminal."""

    WHOLE = "whole"
    """The column is never narrower than its cells: ids, models, dates and numbers."""
    FOLDED = "folded"
    """Their words continue on the next lines; no word is cut."""
    LISTED = "listed"
    """Their members, with commas between them, continue on the next lines; none is cut."""
    CUT = "cut"
    """They end with an ellipsis."""


@dataclass(frozen=True)
class Column:
    """Column of a table. Its name in JSON and CSV is the title with `_` for spaces."""

    title: str
    importance: int = 1
    """1 for columns that are never left out. Of the others, those with the largest number are left out first."""
    fit: Fit = Fit.WHOLE
    is_number: bool = False
    """Whether cells are aligned at the right."""

    @property
    def name(self) -> str:
        """Name of the column's values in JSON and CSV."""
        return self.title.replace(" ", "_")


class Form(StrEnum):
    """Form in which a table is printed. `WIDE` is the text with all columns at any width of the terminal."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"

    @property
    def is_text(self) -> bool:
        """Whether people read it, so that lines besides the table are printed too."""
        return self in {Form.TABLE, Form.WIDE}


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


def print_table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    form: Form = Form.TABLE,
    records: Iterable[Mapping[str, object]] | None = None,
) -> None:
    """Print a table in a form. `records`: the rows as objects, for JSON; by default the cells by the columns' names."""
    names = [column.name for column in columns]
    if not form.is_text:
        found = (dict(zip(names, row, strict=True)) for row in rows)
        print_objects(found if records is None or form is Form.CSV else records, names, form)
        return
    cells = [tuple(map(printable_lines, row)) for row in rows]
    if (width := _terminal_width(form)) == sys.maxsize:
        sys.stdout.write("".join(f" {line} \n" for line in _lines(columns, cells, _widths(columns, cells))))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in terminal_lines(columns, cells, width)))


def print_fields(fields: Iterable[tuple[str, str]], indent: int, form: Form = Form.TABLE) -> None:
    """Print pairs of a title and a text, one below the other. `indent`: column in which the texts begin. On a terminal
    they are folded at its width, except in the wide form.
    """
    for line in _block(((title, printable(text)) for title, text in fields), indent, _terminal_width(form)):
        print(line)


def _terminal_width(form: Form) -> int:
    """Return the width of the terminal; `sys.maxsize` for the wide form, and where the output is no terminal."""
    if form is Form.WIDE or not sys.stdout.isatty():
        return sys.maxsize
    from rich.console import Console  # here: slow to import, and needed on a terminal alone

    return Console().width


def print_objects(records: Iterable[Mapping[str, object]], names: Sequence[str], form: Form) -> None:
    """Print records as a JSON array, as JSON lines, or as CSV with a header of the names."""
    match form:
        case Form.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(names)
            writer.writerows([_cell(record[name]) for name in names] for record in records)
        case Form.JSON:
            texts = (json.dumps(record, ensure_ascii=False) for record in records)
            sys.stdout.write("[" + ",".join(f"\n{text}" for text in texts) + "\n]\n")
        case _:  # JSON lines
            for record in records:
                print(json.dumps(record, ensure_ascii=False))


def _cell(value: object) -> object:
    return spreadsheet_text(value) if isinstance(value, str) else value


def terminal_lines(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table on a terminal of `width` characters. Columns that do not fit are left out by their
    importance, and named in the last line. If the most important ones do not fit, each row is a block of lines.
    """
    naturals = _widths(columns, cells)
    shown = _shown(columns, _least_widths(columns, cells, naturals), naturals, width)
    if not shown:
        yield from _blocks(columns, cells, width)
        return
    kept = [columns[place] for place in shown]
    head, *lines = _lines(kept, [[row[place] for place in shown] for row in cells], list(shown.values()))
    yield head.rstrip()
    yield COLUMN_GAP.join("─" * each for each in shown.values())
    yield from map(str.rstrip, lines)
    if left_out := [column.title for place, column in enumerate(columns) if place not in shown]:
        yield from textwrap.wrap(f"left out: {', '.join(left_out)}; --wide shows all", width)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(_text_width(column.title), *(_text_width(line) for row in cells for line in row[place].split("\n")), 0)
        for place, column in enumerate(columns)
    ]


def _least_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], naturals: Sequence[int]) -> list[int]:
    least = [*naturals]
    for place, column in enumerate(columns):
        head = _text_width(column.title)
        if column.fit is Fit.CUT:
            least[place] = min(naturals[place], max(MIN_CUT_WIDTH, head))
        elif column.fit is not Fit.WHOLE:
            words = (word for row in cells for word in _words(row[place], column.fit))
            least[place] = max(head, *map(_text_width, words), 0)
    return least


def _shown(columns: Sequence[Column], least: Sequence[int], naturals: Sequence[int], width: int) -> dict[int, int]:
    """Return place -> width of the columns that fit; none if the most important ones do not. The room that is left is
    divided among columns that are narrower than their cells.
    """
    room, found = width + len(COLUMN_GAP), dict[int, int]()
    for place in sorted(range(len(columns)), key=lambda place: columns[place].importance):
        if least[place] + len(COLUMN_GAP) <= room:
            room -= least[place] + len(COLUMN_GAP)
            found[place] = least[place]
        elif columns[place].importance == 1:
            return {}
    while room and (narrow := [place for place in found if found[place] < naturals[place]]):
        found[min(narrow, key=lambda place: found[place])] += 1
        room -= 1
    return dict(sorted(found.items()))


def _blocks(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of rows as blocks, without empty values."""
    indent = max(_text_width(column.title) for column in columns) + len(COLUMN_GAP)
    for number, row in enumerate(cells):
        if number:
            yield ""
        titles = [column.title for column in columns]
        yield from _block([(title, cell) for title, cell in zip(titles, row, strict=True) if cell], indent, width)


def _block(fields: Iterable[tuple[str, str]], indent: int, width: int) -> Iterator[str]:
    for title, text in fields:
        for position, line in enumerate(_folded(text, width - indent)):
            yield _padded("" if position else title, indent) + line


def _lines(columns: Sequence[Column], cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield the head of a table and its rows; a cell with several lines stays in its column."""
    yield COLUMN_GAP.join(map(_aligned, columns, [column.title for column in columns], widths))
    for row in cells:
        parts = map(_fitted, columns, row, widths)
        for texts in itertools.zip_longest(*parts, fillvalue=""):
            yield COLUMN_GAP.join(map(_aligned, columns, texts, widths))


def _fitted(column: Column, cell: str, width: int) -> list[str]:
    lines = cell.split("\n")
    if len(lines) == 1 and _text_width(cell) <= width:
        return lines
    if column.fit is Fit.CUT:
        return [_cut(line, width) for line in lines]
    return _folded(cell, width, column.fit)


def _words(text: str, fit: Fit) -> list[str]:
    """Return the parts of a text between which a line may end: its words, or the members of a list."""
    return [part for line in text.split("\n") for part in re.split("(?<=,) " if fit is Fit.LISTED else " ", line)]


def _folded(text: str, width: int, fit: Fit = Fit.FOLDED) -> list[str]:
    """Return the lines of a text, with further line ends between words where a line is wider than `width`."""
    lines = list[str]()
    for line in text.split("\n"):
        if _text_width(line) <= width:
            lines.append(line)
            continue
        current = ""
        for word in _words(line, fit):
            longer = f"{current} {word}" if current else word
            if current and _text_width(longer) > width:
                lines.append(current)
                longer = word
            current = longer
        lines.append(current)
    return lines


def _cut(text: str, width: int) -> str:
    if _text_width(text) <= width:
        return text
    shorter = text[:width]
    while _text_width(shorter) >= width:
        shorter = shorter[:-1]
    return f"{shorter}…"


def _aligned(column: Column, text: str, width: int) -> str:
    return " " * (width - _text_width(text)) + text if column.is_number else _padded(text, width)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _text_width(text))


def _text_width(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # here: slow to import, and rarely needed

    return cell_len(text)

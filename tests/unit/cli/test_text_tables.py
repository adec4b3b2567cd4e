"""Tables of commands in a pipe: a row is a line, as wide as its cells, and many rows are printed quickly."""

import pytest
from rich.console import Console

from umg_grpc.cli.text_tables import Column, print_table

COLUMNS = (Column("id"), Column("名前"), Column("last"))
ROWS = [("1", "plain [bold]", ""), ("23456", "宽字符", "x" * 500), ("", "é", "[/]")]


def test_a_row_is_a_line_with_cells_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines() == [
        f" id     名前          last{' ' * 496} ",
        f" 1      plain [bold]  {' ' * 500} ",
        f" 23456  宽字符        {'x' * 500} ",
        f"        é             [/]{' ' * 497} ",
    ]


def test_a_cell_with_several_lines_stays_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_table((Column("id"), Column("text")), [("1", "one\ntwo")])
    assert capsys.readouterr().out.splitlines() == [" id  text ", " 1   one  ", "     two  "]


def test_no_table_is_built_for_many_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("rich takes a millisecond for each row")

    monkeypatch.setattr(Console, "print", refuse)
    print_table((Column("id"),), [(str(number),) for number in range(10_000)])
    assert capsys.readouterr().out.count("\n") == 10_001

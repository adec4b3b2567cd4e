"""Tables of all commands as golden files: on terminals of three widths, in a pipe, as JSON and as CSV."""

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from tests.support.snapshots import Snapshots
from tests.unit.cli.table_samples import KEY_IDS, LONG_MODEL, TABLE_SAMPLES, TASK_ID, TableSample
from umg_grpc.cli.commands import app
from umg_grpc.cli.text_tables import Column, Form, terminal_lines

FOLDER = Path(__file__).parent / "tables"
WIDTHS = (80, 110, 200)
WHOLE_TEXTS = (*KEY_IDS, LONG_MODEL, TASK_ID)


class Terminal(io.StringIO):
    """Standard output of a command on a terminal."""

    def isatty(self) -> bool:
        return True


def printed(sample: TableSample, form: Form, stream: io.StringIO) -> str:
    with contextlib.redirect_stdout(stream):
        sample.print(form)
    return stream.getvalue()


@pytest.mark.parametrize("sample", TABLE_SAMPLES, ids=lambda sample: sample.id)
def test_a_table_is_printed_as_its_golden_files(
    sample: TableSample, snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"pipe.txt": printed(sample, Form.TABLE, io.StringIO())}
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        made[f"{width}.txt"] = printed(sample, Form.TABLE, Terminal())
    assert printed(sample, Form.WIDE, Terminal()) == made["pipe.txt"] == printed(sample, Form.WIDE, io.StringIO())
    if sample.id not in {
        "usage",
        "usage_of_days",
        "request",
        "refused_request",
    }:  # whose commands print records in other forms
        made |= {f"table.{form}": printed(sample, form, io.StringIO()) for form in (Form.JSON, Form.CSV)}
        rows = [*csv.reader(io.StringIO(made["table.csv"]))]
        assert {len(row) for row in rows} == {len(rows[0])}
        assert isinstance(json.loads(made["table.json"]), list)
    snapshots.check(FOLDER / sample.id, made.items())


@pytest.mark.parametrize("sample", TABLE_SAMPLES, ids=lambda sample: sample.id)
@pytest.mark.parametrize("width", WIDTHS)
def test_ids_and_models_are_never_cut(sample: TableSample, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    shown = printed(sample, Form.TABLE, Terminal())
    for text in WHOLE_TEXTS:
        for start in range(8, len(text)):
            assert (text[:start] in shown) <= (text in shown)
    assert "…" not in shown.replace("sk-umg-", "") or sample.id in {"keys", "key", "tasks"}


def commands_with_a_table(command: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    if any(parameter.name == "wide" for parameter in getattr(command, "params", ())):
        yield " ".join(path)
    for name, each in getattr(command, "commands", {}).items():
        yield from commands_with_a_table(each, (*path, name))


def test_every_command_with_a_table_has_a_sample() -> None:
    assert {*commands_with_a_table(get_command(app))} == {sample.command for sample in TABLE_SAMPLES}


def test_the_most_important_columns_that_fit_are_shown() -> None:
    columns = [Column("a", 3), Column("b"), Column("c", 2), Column("d", 4)]
    cells = [["1234", "12345678", "123456789012345", "1"]]
    heads = {width: next(terminal_lines(columns, cells, width)).split() for width in (7, 8, 14, 20, 25, 40)}
    assert heads == {
        7: ["a", "1234"],  # a block with all columns
        8: ["b"],
        14: ["a", "b"],
        20: ["a", "b", "d"],
        25: ["b", "c"],
        40: ["a", "b", "c", "d"],
    }

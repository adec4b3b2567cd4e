"""Help texts on a terminal of 80 columns: commands below headings, and no text is cut."""

from collections.abc import Iterator

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from scripts.reference import commands as reference
from umg_grpc.cli.command_headings import HEADING_OF_OTHERS, Heading, first_sentence
from umg_grpc.cli.commands import app


def helped(*arguments: str) -> list[str]:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"}).output.splitlines()


def listed(lines: list[str]) -> dict[str, list[str]]:
    """Return the commands by their heading."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line and not line.startswith(" "):
            names = found.setdefault(line.removesuffix(":"), [])
        elif line.startswith("  ") and line[2:3].strip():
            names.append(line.split()[0])
    return {heading: found[heading] for heading in [*Heading, HEADING_OF_OTHERS] if heading in found}


def test_umg_lists_its_commands_below_headings() -> None:
    found = listed(helped("--help"))
    assert [*found] == [*Heading]
    assert sorted(name for names in found.values() for name in names) == sorted(get_command(app).commands)
    assert listed(helped()) == found


def paths(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from paths(each, (*path, name))


@pytest.mark.parametrize("path", [*paths(get_command(app))], ids=lambda path: "-".join(("umg", *path)))
def test_help_texts_are_whole_in_80_columns(path: tuple[str, ...]) -> None:
    lines = helped(*path, "--help")
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and "COMMAND [ARGS]" not in line]
    text = " ".join(" ".join(lines).split())
    command = get_command(app)
    for name in path:
        command = command.commands[name]
    for each in getattr(command, "commands", {}).values():
        assert first_sentence(each.help) in text


def test_the_reference_has_the_headings_of_the_help() -> None:
    page = reference.page()
    assert [line[3:] for line in page.splitlines() if line.startswith("## ")] == ["`umg`", *Heading]
    assert "\n### `umg keys create`\n" in page

"""Reference page of the commands of `umg` with their arguments and options, from the definitions that parse them."""

from collections.abc import Iterator
from dataclasses import dataclass

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from scripts.reference.markdown import code, paragraph, table
from umg_grpc.cli.command_headings import HEADING_OF_OTHERS, Heading, heading_of
from umg_grpc.cli.commands import app


@dataclass(frozen=True)
class Option:
    """Option or argument of a command."""

    name: str
    """Flag with its value, e.g. `--http HOST:PORT`; an argument in capitals."""
    default: str
    description: str


@dataclass(frozen=True)
class Command:
    """Command that can be run, not a group of commands."""

    name: str
    """Whole name, e.g. `umg keys create`."""
    heading: str
    """Heading of the command in `umg --help`; "" for `umg` itself."""
    usage: str
    description: str
    options: tuple[Option, ...]


def commands() -> list[Command]:
    """Return all commands, in the order of their headings and names."""
    order = ["", *Heading, HEADING_OF_OTHERS]
    found = _commands(typer.main.get_command(app), "umg", "")
    return sorted(found, key=lambda command: (order.index(command.heading), command.name))


def _commands(command: TyperCommand | TyperGroup, name: str, heading: str) -> Iterator[Command]:
    context = typer.Context(command, info_name=name)
    if isinstance(command, TyperGroup):
        for below, found in command.commands.items():
            if not found.hidden:
                yield from _commands(found, f"{name} {below}", heading or heading_of(found))
    if not isinstance(command, TyperGroup) or len(command.get_params(context)) > 1:
        shown = [each for each in command.get_params(context) if not each.hidden and each.name != "help"]
        options = tuple(_option(each, context) for each in shown)
        arguments = [option.name for option in options if not option.name.startswith("-")]
        usage = " ".join([name, *arguments, *(["[OPTIONS]"] if len(arguments) < len(options) else [])])
        yield Command(name, heading, usage, paragraph(command.help or ""), options)


def _option(parameter: TyperArgument | TyperOption, context: typer.Context) -> Option:
    description = paragraph(getattr(parameter, "help", None) or "")
    if isinstance(parameter, TyperArgument):
        name = parameter.metavar or (parameter.name or "").upper()
        return Option(name if parameter.required else f"[{name}]", _default(parameter), description)
    flags = " / ".join([*parameter.opts, *parameter.secondary_opts])
    variable = f" Environment variable: `{parameter.envvar}`." if parameter.envvar else ""
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.make_metavar(context).upper().strip('<>')}"
    return Option(f"{flags}{value}", "" if parameter.is_flag else _default(parameter), f"{description}{variable}")


def _default(parameter: TyperArgument | TyperOption) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    return "" if default in (None, "") or callable(default) or type(default).__name__ == "Sentinel" else code(default)


HEAD = """# Commands

Every command of `umg`, from the definitions that parse it; `--help` behind any command prints the same.
[Operating the gateway](../operating.md#commands) has examples.
"""


def page() -> str:
    """Return the reference page of all commands, as Markdown."""
    text, heading = HEAD, ""
    for command in commands():
        if command.heading != heading:
            heading = command.heading
            text += f"\n## {heading}\n"
        rows = [[code(option.name), option.default, option.description] for option in command.options]
        level = "###" if heading else "##"
        text += f"\n{level} {code(command.name)}\n\n{command.description}\n\n```\n{command.usage}\n```\n"
        text += "\n" + table(("option", "default", "meaning"), rows) if rows else ""
    return text

"""Help of `umg` and of its groups: the commands below headings, each with the whole first sentence of its help."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

from typer.core import TyperGroup

HEADING_OF_OTHERS = "Commands"


class Heading(StrEnum):
    """Headings of the commands of `umg`, in the order of its help."""

    START = "Start and check"
    CALLS = "Calls and tasks"
    KEYS = "Keys and usage"
    MODELS = "Models and channels"
    INTERFACES = "Interfaces"


class HelpText(Protocol):
    """Help text to which a command writes."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """Write a heading, and indent further lines within the context."""
        ...

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write terms, each with its definition beside it."""
        ...


class CommandsByHeading(TyperGroup):
    """Group of commands whose help lists them by their `rich_help_panel`, without the panels and the import of rich."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the names of the commands, ordered by their headings."""
        order = [*Heading, HEADING_OF_OTHERS]
        return sorted(self.commands, key=lambda name: order.index(heading_of(self.commands[name])))

    def format_commands(self, ctx: object, formatter: HelpText) -> None:
        """Write the commands that are not hidden, below the headings."""
        shown = [name for name in self.list_commands(ctx) if not self.commands[name].hidden]
        width = max(map(len, shown), default=0)
        headings = {name: heading_of(self.commands[name]) for name in shown}
        for heading in dict.fromkeys(headings.values()):
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), first_sentence(self.commands[name].help or ""))
                        for name in shown
                        if headings[name] == heading
                    ]
                )


def heading_of(command: object) -> str:
    """Return the heading of a command."""
    return str(getattr(command, "rich_help_panel", None) or HEADING_OF_OTHERS)


def first_sentence(text: str) -> str:
    """Return the first sentence of a help text, without its period."""
    return re.split(r"\.(?: |$)", " ".join(text.split()))[0]

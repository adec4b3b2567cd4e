"""Command `umg config` and its flags. The docstrings of the functions are the help texts."""

from typing import Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, prints_table, takes
from umg_grpc.cli.text_tables import Form

app = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, help="Show the config in force.")


@app.callback()
def config() -> None:
    """Show the config in force."""


@app.command("show")
@takes(AdminTarget)
@prints_table
def show(
    path: Annotated[str, typer.Argument(help="Only keys whose path begins so, such as `channels[2].`.")] = "",
    *,
    changed: Annotated[bool, typer.Option("--changed", help="Without the defaults.")] = False,
    form: Form,
    target: AdminTarget,
) -> None:
    """Print each setting with its source, and changes that wait for a reload or restart. Secrets are masked."""
    from umg_grpc.cli import config_tables as commands

    run_async(commands.show(target, path, form, changed=changed))

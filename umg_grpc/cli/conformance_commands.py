"""Command `umg conformance`, which is that of the conformance kit."""

import typer

from umg_grpc.cli.command_headings import Heading

KIT_ABSENT = "the conformance kit is not installed: run `pip install ./clients/conformance` in a checkout"


def add_to(app: typer.Typer) -> None:
    """Add the command. An installation of the gateway alone lacks the kit, which the command then reports."""
    try:
        from umg_conformance.conformance_command import conformance
    except ModuleNotFoundError:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command("conformance", rich_help_panel=Heading.INTERFACES, context_settings=anything)(_absent)
    else:
        app.command(rich_help_panel=Heading.INTERFACES)(conformance)


def _absent() -> None:
    typer.echo(f"umg: {KIT_ABSENT}", err=True)
    raise typer.Exit(2)

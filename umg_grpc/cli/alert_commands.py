"""Commands `umg alerts` and their flags. The docstrings of the functions are the help texts."""

from typing import Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, names, prints_table, takes
from umg_grpc.cli.text_tables import Form

app = typer.Typer(cls=CommandsByHeading, no_args_is_help=True, help="List alerts, and test their receivers.")


@app.command("list")
@takes(AdminTarget)
@prints_table
def list_alerts(
    *,
    is_open: Annotated[bool, typer.Option("--open", help="Only alerts whose condition holds.")] = False,
    rule: Annotated[str, typer.Option("--rule", metavar="NAME,..", help="Only alerts of these rules.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Most alerts.")] = 50,
    form: Form,
    target: AdminTarget,
) -> None:
    """Print alerts, newest first, with the state of their notifications."""
    from umg_grpc.cli import alert_command_actions as commands
    from umg_grpc.service.alerts.alert_messages import RULE_VALUES

    rules = names(rule)
    if unknown := [name for name in rules if name not in RULE_VALUES]:
        message = f"there is no rule {unknown[0]}; choose from {', '.join(RULE_VALUES)}"
        raise typer.BadParameter(message, param_hint="--rule")
    run_async(commands.list_alerts(target, rules, limit, form, is_open=is_open))


@app.command("test")
@takes(AdminTarget)
def test_receiver(
    receiver: Annotated[str, typer.Argument(help="Name of the receiver in `alerts.receivers` of the config.")],
    *,
    target: AdminTarget,
) -> None:
    """Send a test notification to a receiver, and print the result. Exit with 1 if it was not accepted."""
    from umg_grpc.cli import alert_command_actions as commands

    run_async(commands.test_receiver(target, receiver))

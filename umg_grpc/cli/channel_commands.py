"""Commands `umg channels` and their flags. The docstrings of the functions are the help texts."""

from typing import Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, prints_table, takes
from umg_grpc.cli.text_tables import Form

app = typer.Typer(
    cls=CommandsByHeading, no_args_is_help=True, help="List and check channels, and change them while a gateway runs."
)

ChannelName = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of the channel in the config.")]
NoteFlag = Annotated[str, typer.Option("--note", help="Reason, which is shown with the change.")]


@app.command("list")
@takes(AdminTarget)
@prints_table
def list_channels(
    channel: Annotated[
        str, typer.Argument(metavar="[CHANNEL]", help="List the models of one channel, with their health.")
    ] = "",
    *,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the channels, unhealthy ones first, with their failures of the last hour."""
    from umg_grpc.cli import channel_command_actions as commands

    run_async(commands.list_channels(target, channel, form))


@app.command("check")
@takes(AdminTarget)
@prints_table
def check_channel(
    channel: ChannelName,
    *,
    model: Annotated[
        str, typer.Option(help="Model to call; without it one whose circuit breaker is open, or any.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=1, max=60, help="Seconds for the call.")] = 20,
    form: Form,
    target: AdminTarget,
) -> None:
    """Send one request to the provider of a channel, and print the result. Exit with 1 if it failed."""
    from umg_grpc.cli import channel_command_actions as commands

    run_async(commands.check_channel(target, channel, model, timeout, form))


@app.command("disable")
@takes(AdminTarget)
def disable_channel(
    channel: ChannelName,
    *,
    note: NoteFlag = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask, also if models are left without a channel.")] = False,
    target: AdminTarget,
) -> None:
    """Give a channel no new calls, also after a restart. Calls in flight end normally."""
    from umg_grpc.cli import channel_command_actions as commands

    run_async(commands.disable_channel(target, channel, note, is_confirmed=yes))


@app.command("enable")
@takes(AdminTarget)
def enable_channel(channel: ChannelName, *, note: NoteFlag = "", target: AdminTarget) -> None:
    """Give a disabled channel calls again."""
    from umg_grpc.cli import channel_command_actions as commands

    run_async(commands.enable_channel(target, channel, note))


@app.command("set")
@takes(AdminTarget)
def set_channel(
    channel: ChannelName,
    *,
    weight: Annotated[
        int | None, typer.Option(min=0, max=1_000_000, help="Share of the calls among channels of the same priority.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Use the weight of the config again.")] = False,
    note: NoteFlag = "",
    target: AdminTarget,
) -> None:
    """Change the weight of a channel, also for later starts, unless the config states it."""
    from umg_grpc.cli import channel_command_actions as commands

    if reset == (weight is not None):
        raise typer.BadParameter("expected either --weight N or --reset", param_hint="--weight")
    run_async(commands.set_weight(target, channel, weight, note))

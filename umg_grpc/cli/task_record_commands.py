"""Commands of `umg tasks` for operators, and their flags. The docstrings of the functions are the help texts."""

from typing import Annotated

import typer

from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import AdminTarget, names, prints_table, seconds_of, takes
from umg_grpc.cli.text_tables import Form

MAX_STUCK_MINUTES = 10_000
TaskId = Annotated[str, typer.Argument(metavar="TASK", help="Id of the task.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group of tasks."""
    for name, command in (("find", find), ("inspect", inspect), ("callbacks", callbacks), ("redeliver", redeliver)):
        app.command(name)(command)


@takes(AdminTarget)
@prints_table
def find(
    *,
    state: Annotated[str, typer.Option(metavar="NAME,..", help="Only tasks in these states.")] = "",
    key: Annotated[str, typer.Option(metavar="ID,..", help="Only tasks of these keys.")] = "",
    project: Annotated[str, typer.Option(metavar="NAME,..", help="Only tasks of keys of these projects.")] = "",
    model: Annotated[str, typer.Option(metavar="ID,..", help="Only tasks of these models.")] = "",
    channel: Annotated[str, typer.Option(metavar="NAME,..", help="Only tasks of these channels.")] = "",
    stuck: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only open tasks without a change for this time: 30m.")
    ] = None,
    undelivered: Annotated[bool, typer.Option("--undelivered", help="Only with an undelivered callback.")] = False,
    oldest: Annotated[bool, typer.Option("--oldest", help="The oldest first, not the newest.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Most tasks.")] = 50,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the tasks of all keys, also stuck ones, with the delivery of their callbacks."""
    from umg_grpc.cli import task_record_tables as commands
    from umg_grpc.v1 import pb

    values = {name: number for number, name in commands.STATE_NAMES.items()}
    if unknown := set(names(state)) - values.keys():
        message = f"there is no state {min(unknown)}; choose from {', '.join(values)}"
        raise typer.BadParameter(message, param_hint="--state")
    request = pb.ListTasksRequest(
        states=[pb.VideoTaskState.ValueType(values[name]) for name in names(state)],
        key_ids=names(key),
        project_ids=names(project),
        models=names(model),
        channels=names(channel),
        stuck_minutes=None if stuck is None else _minutes(stuck),
        callback_states=commands.UNDELIVERED_STATES if undelivered else (),
        oldest_first=oldest,
    )
    run_async(commands.find_tasks(target, request, limit, form))


def _minutes(span: str) -> int:
    minutes = -(-seconds_of(span, "--stuck") // 60)
    if not 1 <= minutes <= MAX_STUCK_MINUTES:
        raise typer.BadParameter(f"expected a span from 1m to {MAX_STUCK_MINUTES}m", param_hint="--stuck")
    return minutes


@takes(AdminTarget)
@prints_table
def inspect(task: TaskId, *, form: Form, target: AdminTarget) -> None:
    """Print a task of any key: times, channel, attempts, cost and callbacks."""
    from umg_grpc.cli import task_record_tables as commands

    run_async(commands.inspect_task(target, task, form))


@takes(AdminTarget)
@prints_table
def callbacks(
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most callbacks.")] = 50,
    form: Form,
    target: AdminTarget,
) -> None:
    """List the callbacks (notifications of callers) that are not delivered, with those given up."""
    from umg_grpc.cli import task_record_tables as commands

    run_async(commands.list_callbacks(target, limit, form))


@takes(AdminTarget)
@prints_table
def redeliver(
    task: TaskId,
    *,
    callback: Annotated[str, typer.Option(metavar="ID", help="Only this one; without it all undelivered ones.")] = "",
    form: Form,
    target: AdminTarget,
) -> None:
    """Deliver the callbacks of a task again, also given up or delivered ones. Exit with 1 if one is refused again."""
    from umg_grpc.cli import task_record_tables as commands

    run_async(commands.redeliver(target, task, callback, form))

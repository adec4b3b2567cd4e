"""Commands `umg video` and `umg tasks` and their flags. The docstrings of the functions are the help texts."""

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading
from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import prints_table, takes
from umg_grpc.cli.gateway_connection import GrpcTarget, grpc_target
from umg_grpc.cli.text_tables import Form

if TYPE_CHECKING:
    from umg_grpc.cli.video_command_client import VideoOptions

tasks = typer.Typer(
    cls=CommandsByHeading,
    no_args_is_help=True,
    help="List, watch, cancel and find video tasks.",
)

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="Id of the task.")]
OutputFlag = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File of the video; of several, the first.")
]
TASK_STATES = ("submitting", "queued", "running", "succeeded", "failed", "cancelled")
INTERRUPTED_STATUS = 130


@takes(grpc_target)
def video(
    prompt: Annotated[str, typer.Argument(help="Description of the video; may be empty with an image.")],
    *,
    model: Annotated[str | None, typer.Option(help="Without it the first that makes videos.")] = None,
    output: OutputFlag = None,
    seconds: Annotated[int | None, typer.Option(min=1, max=60, help="Length.")] = None,
    size: Annotated[str | None, typer.Option(help="Such as 1280x720, where the model has sizes.")] = None,
    resolution: Annotated[str | None, typer.Option(help="Such as 720p, where the model has resolutions.")] = None,
    ratio: Annotated[str | None, typer.Option(help="Such as 16:9.")] = None,
    fps: Annotated[int | None, typer.Option(min=1, help="Frames per second.")] = None,
    image: Annotated[
        list[str] | None, typer.Option(metavar="FILE|URL", help="First frame; several are references.")
    ] = None,
    last_frame: Annotated[str | None, typer.Option(metavar="FILE|URL", help="Last frame.")] = None,
    sound: Annotated[bool | None, typer.Option("--sound/--no-sound", help="Without either, as the model does.")] = None,
    count: Annotated[int | None, typer.Option(min=1, max=4, help="Number of videos.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=-1, help="The same seed gives the same video, where supported.")
    ] = None,
    target: GrpcTarget,
) -> None:
    """Make a video: submit a task, show its progress, and save the file. Ctrl-C leaves the task running."""
    from umg_grpc.cli import video_command_client as commands

    options = _options(prompt, model, image or [], last_frame)
    options.parameters(
        duration_seconds=seconds,
        size=size,
        resolution=resolution,
        aspect_ratio=ratio,
        frames_per_second=fps,
        generate_audio=sound,
        sample_count=count,
        seed=seed,
    )
    _run(commands.make(target, options, output))


def _options(prompt: str, model: str | None, images: list[str], last_frame: str | None) -> "VideoOptions":
    from umg_grpc.cli.video_command_client import VideoOptions, medium

    try:
        frames = [medium(each) for each in images]
        return VideoOptions(prompt, model, frames, medium(last_frame) if last_frame else None)
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}", param_hint="--image") from None


@tasks.command("list")
@takes(grpc_target)
@prints_table
def list_tasks(
    *,
    state: Annotated[str, typer.Option(metavar="NAME,..", help=f"Only these states: {', '.join(TASK_STATES)}.")] = "",
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Of all keys; for an administrator.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Most tasks.")] = 20,
    form: Form,
    target: GrpcTarget,
) -> None:
    """List the newest tasks."""
    from umg_grpc.cli import video_command_client as commands
    from umg_grpc.cli.common_flags import names

    states = names(state)
    if set(states) - set(TASK_STATES):
        raise typer.BadParameter(f"expected names of {', '.join(TASK_STATES)}", param_hint="--state")
    _run(commands.list_tasks(target, states, model, every=every, limit=limit, form=form))


@tasks.command("show")
@takes(grpc_target)
@prints_table
def show(task: TaskArgument, *, form: Form, target: GrpcTarget) -> None:
    """Print a task with its parameters, results or reason of failure."""
    from umg_grpc.cli import video_command_client as commands

    _run(commands.show(target, task, form))


@tasks.command("watch")
@takes(grpc_target)
def watch(task: TaskArgument, *, output: OutputFlag = None, target: GrpcTarget) -> None:
    """Show the progress of a task until it ends, and save its video with -o. Ctrl-C leaves the task running."""
    from umg_grpc.cli import video_command_client as commands

    _run(commands.watch(target, task, output))


@tasks.command("cancel")
@takes(grpc_target)
def cancel(task: TaskArgument, *, target: GrpcTarget) -> None:
    """Cancel a task that its provider has not started."""
    from umg_grpc.cli import video_command_client as commands

    _run(commands.cancel(target, task))


def _run(work: Coroutine[None, None, None]) -> None:
    try:
        run_async(work)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED_STATUS) from None

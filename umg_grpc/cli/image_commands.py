"""Command `umg image` and its flags. The docstring of the function is the help text that users see."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.cli.command_runner import run_async
from umg_grpc.cli.common_flags import takes
from umg_grpc.cli.gateway_connection import GrpcTarget, grpc_target

if TYPE_CHECKING:
    from umg_grpc.v1 import pb


class FileType(StrEnum):
    """Image file type that `--type` accepts."""

    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"


@takes(grpc_target)
def image(
    prompt: Annotated[str, typer.Argument(help="Description of the image.")],
    *,
    model: Annotated[str | None, typer.Option(help="Without it the first that makes images, or edits them.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File of the image, `-` for standard output.")
    ] = None,
    size: Annotated[str | None, typer.Option(help="As the model names it, such as 1024x1024 or 16:9.")] = None,
    quality: Annotated[str | None, typer.Option(help="Such as low or high, where the model has qualities.")] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="Number of images.")] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="FILE|URL", help="Image to work from; repeatable.")
    ] = None,
    mask: Annotated[
        str | None, typer.Option(metavar="FILE", help="PNG whose transparent pixels of the first input are redrawn.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives a similar image.")] = None,
    file_type: Annotated[FileType | None, typer.Option("--type", help="Type of the file, where supported.")] = None,
    watermark: Annotated[
        bool | None, typer.Option("--watermark/--no-watermark", help="Without either, as the model does.")
    ] = None,
    show: Annotated[
        bool | None, typer.Option("--show/--no-show", help="Show the image in the terminal; without either, if it can.")
    ] = None,
    target: GrpcTarget,
) -> None:
    """Make an image, save it, and show it in terminals that can (kitty, iTerm2, WezTerm and others)."""
    from rich.console import Console

    from umg_grpc.cli import image_command_client as commands
    from umg_grpc.v1 import pb

    request = pb.GenerateImageRequest(
        model=model or "",
        operation=pb.IMAGE_OPERATION_EDIT if mask is not None else pb.IMAGE_OPERATION_UNSPECIFIED,
        prompt=prompt or None,
        inputs=[_input_image("--input", text) for text in inputs or ()],
        mask=_input_image("--mask", mask) if mask is not None else None,
        size=size,
        quality=quality,
        n=count,
        seed=seed,
        output_mime_type=f"image/{file_type.value}" if file_type is not None else None,
        watermark=watermark,
    )
    shows = sys.stdout.isatty() if show is None else show
    try:
        command = commands.ImageCommand(request, output, shows)
        run_async(commands.make(target, command, Console(stderr=True, highlight=False)))
    except OSError as error:
        print(f"umg: {error.filename}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(1) from None


def _input_image(flag: str, text: str) -> "pb.ImageInput":
    """Return the input image that a flag names. Raise typer.BadParameter for a file that cannot be read."""
    from umg_grpc.cli.image_command_client import input_image

    try:
        return input_image(text)
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}", param_hint=flag) from None

"""Commands `umg import`: convert configs of other gateways (LiteLLM, new-api) into a config of this one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from umg_grpc.cli.command_headings import CommandsByHeading

if TYPE_CHECKING:
    from umg_grpc.config.importers.config_text_builder import ImportedConfig

app = typer.Typer(
    cls=CommandsByHeading,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Convert the config of another gateway.",
)

SourceArgument = Annotated[Path, typer.Argument(metavar="FILE", help="File to convert.")]
OutputFlag = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write. Default: standard output.")
]


@app.command()
def litellm(file: SourceArgument, *, output: OutputFlag = None) -> None:
    """Convert a config.yaml of LiteLLM's proxy. Settings without a counterpart are listed on standard error."""
    from umg_grpc.config.importers.from_litellm import from_litellm

    _convert(file, output, from_litellm)


@app.command("new-api")
def new_api(file: SourceArgument, *, output: OutputFlag = None) -> None:
    """Convert channels of new-api: a JSON list, or the response of its GET /api/channel/."""
    from umg_grpc.config.importers.from_new_api import from_new_api

    _convert(file, output, from_new_api)


def _convert(file: Path, output: Path | None, convert: "Callable[[str], ImportedConfig]") -> None:
    """Convert another gateway's config, write it to `output` (None prints it), and list lost settings on stderr."""
    try:
        made = convert(file.read_text(encoding="utf-8"))
        if output is None:
            print(made.text(), end="")
        else:
            descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it may contain keys
            with open(descriptor, "w", encoding="utf-8") as opened:  # noqa: PTH123  a descriptor
                opened.write(made.text())
    except FileExistsError:
        print(f"umg: {output} exists; name another file", file=sys.stderr)
        raise typer.Exit(1) from None
    except (OSError, ValueError) as error:
        print(f"umg: {file}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    for note in made.lost:
        print(f"not converted: {note}", file=sys.stderr)
    used = made.used_channels
    models = sum(len(channel.models) for channel in used)
    disabled = f", disabled channels: {len(made.channels) - len(used)}" if len(made.channels) > len(used) else ""
    print(f"channels: {len(used)}, models: {models}{disabled}; check the file with `umg check`", file=sys.stderr)

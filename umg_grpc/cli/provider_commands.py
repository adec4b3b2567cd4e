"""Commands `umg providers` (lists the provider presets) and `umg init` (writes a first config)."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from umg_grpc.cli.common_flags import prints_table
from umg_grpc.cli.text_tables import Form


@prints_table
def providers(
    name: Annotated[str | None, typer.Argument(help="Show all values of this one.")] = None, *, form: Form
) -> None:
    """List the providers that a channel can name: `provider: NAME` fills in its address, protocols and models."""
    from umg_grpc.cli.provider_texts import details, print_providers
    from umg_grpc.config.typed_sections_from_yaml import similar
    from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

    if name is None:
        print_providers(PROVIDER_PRESETS.values(), form)
    elif form is not Form.TABLE:
        raise typer.BadParameter("it goes without the name of a provider", param_hint=f"--{form}")
    elif name in PROVIDER_PRESETS:
        print(details(name))
    else:
        meant = similar(name, PROVIDER_PRESETS)
        hint = f"did you mean `{meant}`?" if meant else "`umg providers` lists all"
        print(f"umg: {name} is not a provider; {hint}", file=sys.stderr)
        raise typer.Exit(2)


def init(
    file: Annotated[Path, typer.Argument(help="YAML file to write.")] = Path("umg.yaml"),
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write a config with a channel for each provider whose key is in the environment."""
    from umg_grpc.config.importers.from_environment import config_text, found_providers
    from umg_grpc.process.channel_file_checks import installed_clouds

    clouds = installed_clouds()
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(config_text(os.environ, clouds))
    except FileExistsError:
        print(f"umg: {file} exists; name another file, or replace it with --force", file=sys.stderr)
        raise typer.Exit(1) from None
    except OSError as error:
        print(f"umg: {file} cannot be written: {error.strerror}", file=sys.stderr)
        raise typer.Exit(1) from None
    found = found_providers(os.environ, clouds)
    for provider in found:
        print(f"{provider.name}: found by {provider.variable}")
    if not found:
        print("no key of a provider is in the environment; the file serves the local models, with all providers in it")
    print(f"written: {file}; check it with `umg check {file}`, serve it with `umg serve --config {file}`")

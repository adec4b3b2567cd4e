"""Command `umg-conformance`, also `umg conformance`, with its flags; the docstring of its function is the help text."""

import sys
from pathlib import Path
from typing import Annotated

import typer

PROGRAM_NAME = "umg-conformance"


def conformance(
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="Base URL without a path, such as http://127.0.0.1:8080.")],
    *,
    key: Annotated[str, typer.Option(envvar="UMG_API_KEY", help="Key of the gateway or provider.")] = "",
    face: Annotated[str, typer.Option(metavar="FACE,...", help="Faces to check; without it all of them.")] = "",
    grpc: Annotated[str, typer.Option(metavar="HOST:PORT", help="gRPC address; without it gRPC is skipped.")] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="[KIND=]ID", help="Text model, or model of a kind; else from the model list. Repeatable."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as JUnit XML.")] = None,
    checks: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of files of checks, instead of the shipped ones.")
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Variable of the checks, such as cut_prompt. Repeatable."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds of one call.")] = 60,
    listed: Annotated[bool, typer.Option("--list", help="List the checks without calling anything.")] = False,
) -> None:
    """Check the wire formats of any gateway or provider: fields, events and their order, errors, tools, limits."""
    # imported here: help texts and the other commands of the gateway need none of them
    import uvloop

    from umg_conformance import check_selection, result_reports
    from umg_conformance.check_files import CHECKS_FOLDER, CheckFileError
    from umg_conformance.http_client import UnreachableError
    from umg_conformance.model_choice import KeyRefusedError

    pairs = [value.partition("=") for value in values or ()]
    if any(not separator for _, separator, _ in pairs):
        raise typer.BadParameter("expected NAME=VALUE", param_hint="--set")
    if not url.startswith(("http://", "https://")):
        raise typer.BadParameter("expected http://HOST:PORT or https://HOST", param_hint="URL")
    if not (key or listed):
        raise typer.BadParameter("give one, or set UMG_API_KEY", param_hint="--key")
    target = check_selection.Target(
        url=url,
        key=key,
        faces=tuple(filter(None, (name.strip() for name in face.split(",")))),
        grpc=grpc,
        models=tuple(model or ()),
        folder=checks or CHECKS_FOLDER,
        values={name: value for name, _, value in pairs},
        seconds=timeout,
    )
    program = context.obj or "umg"
    try:
        if listed:
            print(check_selection.listing(target), end="")
            return
        results = uvloop.run(check_selection.check(target))
    except (CheckFileError, KeyRefusedError, UnreachableError, check_selection.UsageError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    print(result_reports.table(results), end="")
    if junit is not None:
        _write(junit, result_reports.junit(results), program)
    raise typer.Exit(1 if any(result.fails_run for result in results) else 0)


def _write(path: Path, content: bytes, program: str) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        print(f"{program}: {error.filename}: {error.strerror}", file=sys.stderr)
        raise typer.Exit(2) from None


def main() -> None:
    """Run the command in the program's arguments, and exit with its exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(conformance)
    app(prog_name=PROGRAM_NAME, obj=PROGRAM_NAME)

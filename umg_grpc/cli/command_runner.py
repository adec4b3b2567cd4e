"""Runner of asynchronous commands, which prints a failure and sets the exit code."""

import sys
from collections.abc import Coroutine

import typer


def run_async(work: Coroutine[None, None, None]) -> None:
    """Run a command's coroutine. Print a failure to standard error and exit with 1."""
    # imported here: help texts need neither the event loop nor the schema
    import uvloop

    from umg_grpc.base.errors import UmgError

    try:
        uvloop.run(work)
    except UmgError as error:
        print(f"umg: {error.message}", file=sys.stderr)
        raise typer.Exit(1) from None

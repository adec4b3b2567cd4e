"""Command line program `umg`, with one module for each command."""

import gc

START_THRESHOLD = 1_000_000
"""Objects after which the youngest are collected during a start: imports and lists of keys leave no garbage, and with
the default of 700 collections would take a sixth of a start. `umg serve` sets its own values once it serves.
"""


def main() -> None:
    """Run the command in the program's arguments, and exit with its exit code."""
    gc.set_threshold(START_THRESHOLD)
    from umg_grpc.cli import commands  # only now: most of a start is imports

    commands.main()

"""Command line `umg`. The only package that imports both the service and the HTTP face."""

from umg_grpc.cli.commands import main

__all__ = ["main"]

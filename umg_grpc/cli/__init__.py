"""The command line, `umg`. The only package that knows both the service and the HTTP face."""

from umg_grpc.cli.commands import main

__all__ = ["main"]

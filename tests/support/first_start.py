"""First start of a gateway's service, in a process that forks: the starts of its children share its caches."""

import asyncio
import os
import tempfile
from pathlib import Path

import typer.main
from structlog.testing import capture_logs

from http_facade.path_router import PathRouter
from http_facade.routes import ROUTE_TABLE
from tests.support.databases import share_compiled_statements
from umg_grpc.access.bootstrap_key import ensure_bootstrap
from umg_grpc.cli.commands import app
from umg_grpc.config import parse
from umg_grpc.process.service_factory import open_service
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.v1 import pb

READ_WHEN_BUILT = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
"""Variable on which the options of the built command line depend."""
CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], models: [famG-2.5-flash]}
  - {name: provider, protocols: [chat], base_url: 'http://127.0.0.1:1', api_key: none, models: [m]}
"""


def run() -> None:
    """Open a service on an empty database and close it, without its servers, whose threads a fork would lose.

    Its compiled statements and patterns, the tables of knowledge, the validator and the parsed command line are nearly
    half of the processor time of a start, and most of that of a command.
    """
    build, command = typer.main.get_command, typer.main.get_command(app)
    vars(typer.main)["get_command"] = lambda made: build(made) if READ_WHEN_BUILT in os.environ else command
    share_compiled_statements()
    check(pb.CreateKeyRequest(settings=pb.KeySettings(name="first")))  # loads the validator of requests
    PathRouter(ROUTE_TABLE, lambda _: NotImplemented)
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        asyncio.run(_open(Path(folder)))


async def _open(data: Path) -> None:
    async with open_service(parse(CONFIG, "first.yaml", {}), data, None) as service:
        await ensure_bootstrap(service.store, data, None)

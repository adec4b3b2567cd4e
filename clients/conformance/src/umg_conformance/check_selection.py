"""Implementation of `umg conformance`: selects checks by the command's options, runs them, and returns the results."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from umg_conformance import model_choice
from umg_conformance.check_files import CHECKS_FOLDER, CheckFile, CheckFileError, read_folder
from umg_conformance.check_runner import Result, Runner
from umg_conformance.grpc_messages import encoded
from umg_conformance.http_client import HttpCaller

FACES_AT_ONCE = 4


class UsageError(Exception):
    """Error for an invalid option of the command; its text is printed to the user."""


@dataclass(frozen=True)
class Target:
    """Server under test (a gateway or a provider), with its key, and the selection of checks to run."""

    url: str
    key: str
    faces: Sequence[str] = ()
    """Faces to check; all of them if empty."""
    grpc: str = ""
    """Address of its gRPC face, HOST:PORT; empty if it has none."""
    models: Sequence[str] = ()
    folder: Path = CHECKS_FOLDER
    values: Mapping[str, str] = field(default_factory=dict)
    """Variables of the checks, from `--set`."""
    seconds: float = 60
    """Longest time of one call."""


def selected(target: Target) -> list[CheckFile]:
    """Return the check files of the selected formats. Raise UsageError, or CheckFileError for an invalid file."""
    files = read_folder(target.folder)
    for name, call in ((file.face, call) for file in files for call in file.calls if call.request.grpc):
        try:
            encoded(call.request)
        except CheckFileError as error:
            raise CheckFileError(f"{target.folder}: face {name}, call {call.id}: {error}") from None
    unknown = set(target.faces) - {file.face for file in files}
    if unknown:
        served = ", ".join(file.face for file in files)
        raise UsageError(f"--face {', '.join(sorted(unknown))}: unknown; the faces are {served}")
    return [file for file in files if not target.faces or file.face in target.faces]


async def check(target: Target) -> list[Result]:
    """Run all selected checks, and return their results. Raise UsageError, CheckFileError, UnreachableError (no
    response) or KeyRefusedError (invalid key) if nothing can be checked.
    """
    files = selected(target)
    async with AsyncExitStack() as stack:
        # a connection for each call: some servers close theirs after an error, without an announcement
        connector = aiohttp.TCPConnector(force_close=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        http = HttpCaller(session, target.url, target.key, target.seconds)
        called = None
        if target.grpc:
            from umg_conformance.grpc_client import GrpcCaller, channel_to  # here: most runs have no address

            channel = await stack.enter_async_context(channel_to(target.grpc, tls=target.url.startswith("https://")))
            called = GrpcCaller(channel, target.key, target.seconds)
        chosen = model_choice.choose(await model_choice.list_models(http), model_choice.parse_options(target.models))
        runner = Runner(http, called, chosen, {**target.values, "key": target.key})
        limit = asyncio.Semaphore(FACES_AT_ONCE)

        async def face(file: CheckFile) -> list[Result]:
            async with limit:
                return [result async for result in runner.run(file)]

        done = await asyncio.gather(*map(face, files))
    return [result for results in done for result in results]


def listing(target: Target) -> str:
    """Return the selected checks as lines of id, severity, reason and source."""
    lines: list[str] = []
    for file in selected(target):
        lines += ["", f"{file.face}: {file.title}"]
        for call in file.calls:
            lines.append(f"  {call.id}.status [{call.severity}] {call.reason} ({call.source})")
            lines += [
                f"  {call.id}.{each.id} [{each.severity or call.severity}] {each.reason} ({each.source or call.source})"
                for each in call.checks
            ]
    return "\n".join([*lines[1:], ""])


__all__ = ["CheckFileError", "Target", "UsageError", "check", "listing", "selected"]

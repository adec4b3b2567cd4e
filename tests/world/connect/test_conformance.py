"""The Connect project's conformance suite against our handler of methods.

The suite is a Go module, which is downloaded and built here. Without it, the test is skipped; with `go` in `UMG_CLIENTS`
it fails then.
"""

import asyncio
import importlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.world.connect.server import serving

MODULE = "connectrpc.com/conformance"
VERSION = "v1.0.7"
SCHEMA = "connectrpc.conformance.v1"
CONFIG = Path(__file__).with_name("conformance.yaml")
LEFT_OUT = Path(__file__).with_name("left_out.txt")
CASES, LEFT_OUT_CASES = 516, 2
LIMIT_BYTES = 200 * 1024
"""Largest message, as in the runner's requests to all servers."""
BUILD_SECONDS = 400
RUN_SECONDS = 240


def absent(why: str) -> None:
    """Skip the test, or fail if Go is required."""
    if "go" in os.environ.get("UMG_CLIENTS", "").split(","):
        pytest.fail(why)
    pytest.skip(why)


def go(*arguments: str, **environment: str) -> str:
    """Return the output of a `go` command; skip the test if it fails, for example without a network."""
    command = ["nice", "go", *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=True, env=os.environ | environment
        )
    except (OSError, subprocess.SubprocessError) as failure:
        absent(f"the suite cannot be had: go {arguments[0]}: {getattr(failure, 'stderr', '') or failure}")
    return done.stdout


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return the runner of the suite, and the Python code of its schema."""
    if shutil.which("go") is None:
        absent("go is not installed")
    folder = tmp_path_factory.mktemp("conformance")
    protos = Path(json.loads(go("mod", "download", "-json", f"{MODULE}@{VERSION}"))["Dir"]) / "proto"
    flags = f"{os.environ.get('GOFLAGS', '')} -mod=mod"
    go("install", f"{MODULE}/cmd/connectconformance@{VERSION}", GOBIN=str(folder), GOFLAGS=flags)
    files = [f"{SCHEMA.replace('.', '/')}/{name}.proto" for name in ("config", "service", "server_compat")]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{protos}", f"--python_out={folder}", *files]
    subprocess.run(command, check=True)
    sys.path.append(str(folder))
    return folder / "connectconformance", importlib.import_module(f"{SCHEMA}.service_pb2")


def announcement(port: int) -> bytes:
    """Return the message with the port that a server under test sends to the runner."""
    compat = importlib.import_module(f"{SCHEMA}.server_compat_pb2")
    message = compat.ServerCompatResponse(host="127.0.0.1", port=port).SerializeToString()
    return struct.pack(">I", len(message)) + bytes(message)


async def test_the_handler_of_methods_passes_the_conformance_suite(suite: tuple[Path, Any], tmp_path: Path) -> None:
    runner, schema = suite
    async with serving(schema, LIMIT_BYTES) as port:
        (tmp_path / "announcement").write_bytes(announcement(port))
        # the server under test is the one of this process, which it announces for each of the runner's configurations
        server = ["sh", "-c", f'cat "{tmp_path}/announcement"; exec sleep {RUN_SECONDS}']
        options = ["--conf", str(CONFIG), "--known-failing", f"@{LEFT_OUT}", "--mode", "server", "--parallel", "4"]
        process = await asyncio.create_subprocess_exec(
            str(runner), *options, "--", *server, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            output = (await asyncio.wait_for(process.communicate(), RUN_SECONDS))[0].decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode == 0, output[-8000:]
    found = re.search(r"Total cases: (\d+)\s+(\d+) passed, 0 failed", output)
    assert found is not None, output[-2000:]
    total, passed = map(int, found.groups())
    left_out = re.findall(r"^\t(.+)$", output, re.MULTILINE)
    assert left_out == ["actual error contain 2 details; expecting 0"] * (total - passed)
    assert (total, passed) == (CASES, CASES - LEFT_OUT_CASES)

"""Addresses that another process has: the start ends, and names the process."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import run, serve
from umg_grpc.config import Address
from umg_grpc.process.port_checks import HTTP_PURPOSE, check_free, claim

ENVIRONMENT = {"UMG_API_KEY": "sk-umg-first-secret-of-the-tests"}
PROBES = {
    "listener": "server = socket.create_server(('127.0.0.1', 0), reuse_port=True); port = server.getsockname()[1]",
    "claim": "from umg_grpc.process.port_checks import *; held = claim(Address('127.0.0.1', 9), HTTP_PURPOSE); held.__enter__(); port = 9",
    "program": "import http.server; server = http.server.HTTPServer(('127.0.0.1', 0), None); port = server.server_port",
}
"""Programs that have an address, by its kind."""


@dataclass(frozen=True)
class Holder:
    """Process that has an address."""

    pid: int
    address: Address


@asynccontextmanager
async def holding(kind: str) -> AsyncGenerator[Holder, None]:
    """Run another process that has an address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"import socket, sys\n{PROBES[kind]}\nprint(port, flush=True)\nsys.stdin.read()"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield Holder(process.pid, Address("127.0.0.1", int(await process.stdout.readline())))
    finally:
        await process.communicate(b"")  # closes its input


def flags(taken: str, address: object) -> tuple[str, ...]:
    addresses = {"--http": "127.0.0.1:0", "--grpc": "127.0.0.1:0", taken: str(address)}
    return tuple(part for pair in addresses.items() for part in pair)


async def refusal(tmp_path: Path, flag: str, address: object, workers: str) -> str:
    """Return the standard error of a gateway, which does not start on a taken address."""
    config = tmp_path / "umg.yaml"
    config.write_text(SANDBOX)
    arguments = (*flags(flag, address), "--config", str(config), "--data", str(tmp_path / "second"))
    code, out, err = await run("serve", *arguments, "--workers", workers, environment=ENVIRONMENT)
    assert (code, "is serving" in out) == (1, False), out
    return err


@pytest.mark.parametrize("flag", ["--http", "--grpc"])
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("first", ["1", "2"])
async def test_a_gateway_shares_no_port_with_a_second_one(tmp_path: Path, flag: str, workers: str, first: str) -> None:
    (tmp_path / "umg.yaml").write_text(SANDBOX)
    arguments = ("--config", str(tmp_path / "umg.yaml"), "--workers", first)
    async with serve(tmp_path / "one", *arguments, environment=ENVIRONMENT) as served:
        address = {"--http": served.http.removeprefix("http://"), "--grpc": served.grpc}[flag]
        err = await refusal(tmp_path, flag, address, workers)
        assert f"cannot listen on {address}" in err
        assert f"(process {served.process.pid}, " in err


@pytest.mark.parametrize("flag", ["--http", "--grpc"])
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_the_refusal_is_one_line_that_names_the_program_with_the_port(
    tmp_path: Path, flag: str, workers: str
) -> None:
    async with holding("program") as other:
        err = await refusal(tmp_path, flag, other.address, workers)
    [line] = [line for line in err.splitlines() if str(other.address) in line]
    assert line.startswith(f"umg: cannot listen on {other.address}")
    program = f"(process {other.pid}, {Path(sys.executable).name})"
    assert line.endswith(f"Address already in use {program}; another address: {flag} HOST:PORT")
    assert "GRPC_VERBOSITY" not in err


async def test_a_port_of_another_program_is_not_shared_and_the_program_is_named() -> None:
    async with holding("listener") as other:
        with pytest.raises(OSError, match=f"cannot listen on {other.address} for HTTP: .*process {other.pid}, "):
            check_free(other.address, HTTP_PURPOSE)
    check_free(other.address, HTTP_PURPOSE)


async def test_a_claimed_address_is_taken_before_any_worker_listens() -> None:
    async with holding("claim") as other:
        with claim(Address("127.0.0.2", 9), HTTP_PURPOSE):
            pass
        with pytest.raises(OSError, match=f"cannot listen on {other.address} for HTTP: .*process {other.pid}, "):
            claim(other.address, HTTP_PURPOSE)
    with claim(other.address, HTTP_PURPOSE):
        pass

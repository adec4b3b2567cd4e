"""Addresses that another process has: the start ends, and names the process."""

import os
import socket
from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import run, serve
from umg_grpc.cli.ports import check_free, claim
from umg_grpc.config import Address

ENVIRONMENT = {"UMG_API_KEY": "sk-umg-first-secret-of-the-tests"}


@pytest.mark.parametrize("flag", ["--http", "--grpc"])
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_gateway_with_workers_shares_no_port_with_a_second_one(tmp_path: Path, flag: str, workers: str) -> None:
    (tmp_path / "umg.yaml").write_text(SANDBOX)
    files = ("--config", str(tmp_path / "umg.yaml"))
    async with serve(tmp_path / "one", *files, "--workers", "2", environment=ENVIRONMENT) as served:
        address = {"--http": served.http.removeprefix("http://"), "--grpc": served.grpc}[flag]
        flags = [
            part
            for pair in ({"--http": "127.0.0.1:0", "--grpc": "127.0.0.1:0"} | {flag: address}).items()
            for part in pair
        ]
        arguments = (*files, *flags, "--data", str(tmp_path / "two"), "--workers", workers)
        code, out, err = await run("serve", *arguments, environment=ENVIRONMENT)
        assert (code, "is serving" in out) == (1, False), out
        assert f"cannot listen on {address}" in err
        assert f"(process {served.process.pid}, " in err


def test_a_port_of_another_program_is_not_shared_and_the_program_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        address = Address("127.0.0.1", other.getsockname()[1])
        with pytest.raises(OSError, match=f"cannot listen on {address}: .*process {os.getpid()}, "):
            check_free(address)
    check_free(address)


def test_a_claimed_address_is_taken_before_any_worker_listens() -> None:
    address = Address("127.0.0.1", 9)
    with claim(address):
        with claim(Address("127.0.0.2", 9)):
            pass
        with pytest.raises(OSError, match=f"cannot listen on {address}: .*process {os.getpid()}, "):
            claim(address)
    with claim(address):
        pass

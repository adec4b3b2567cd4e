"""The first key of a database, over the starts of several gateways and while the database is away."""

import asyncio
import os
import pty
import re
import socket
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from tests.support.databases import Postgres
from tests.support.forked_umg_starts import Program, start_on_terminal
from tests.support.gateways import SANDBOX
from tests.support.polling import pause
from tests.support.processes import Served, run, serve
from umg_grpc.config import Address
from umg_grpc.config.file_schema import parse
from umg_grpc.process.serve_options import Options
from umg_grpc.process.serve_process import gateway

CONFIG = """database: {url}
overload: {{lag: 10}}
channels:
  - name: sandbox
    protocols: [sandbox]
    models: [famO-5]
"""


FIRST, OTHER = "sk-umg-first-secret-of-the-tests", "sk-umg-other-secret-of-the-tests"
ANY = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "umg.yaml"
    file.write_text(SANDBOX)
    return file


async def status(served: Served, key: str) -> int:
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session, session.get(f"{served.http}/v1/models", headers=headers) as answer:
        return answer.status


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("face", ["--http", "--grpc"])
async def test_a_start_that_fails_since_a_port_is_taken_leaves_the_first_key_alone(
    config: Path, tmp_path: Path, face: str, workers: str
) -> None:
    data = tmp_path / "data"
    files = ("--config", str(config), "--data", str(data))
    async with serve(data, "--config", str(config), environment={"UMG_API_KEY": FIRST}) as served:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            addresses = {"--http": "127.0.0.1:0", "--grpc": "127.0.0.1:0"}
            addresses[face] = f"127.0.0.1:{taken.getsockname()[1]}"
            flags = [part for pair in addresses.items() for part in pair]
            arguments = ("serve", *files, *flags, "--workers", workers, "--replace-bootstrap-key")
            code, _, err = await run(*arguments, environment={"UMG_API_KEY": OTHER})
        assert (code, addresses[face] in err) == (1, True), err
        _, keys, _ = await run("keys", "list", *files)
        assert "sk-umg-f…" in keys, keys
        assert await status(served, FIRST) == 200


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_another_value_is_refused_and_replaces_the_key_only_on_demand(
    config: Path, tmp_path: Path, workers: str
) -> None:
    data = tmp_path / "data"
    files = ("--config", str(config), "--workers", workers)
    async with serve(data, *files, environment={"UMG_API_KEY": FIRST}) as served:
        code, out, err = await run("serve", *files, "--data", str(data), *ANY, environment={"UMG_API_KEY": OTHER})
        assert (code, "sk-umg-f…" in err, "sk-umg-o…" in err) == (1, True, True), err
        assert "--replace-bootstrap-key" in err
        assert FIRST not in out + err
        assert OTHER not in out + err
        assert await status(served, FIRST) == 200
        async with serve(data, *files, "--replace-bootstrap-key", environment={"UMG_API_KEY": OTHER}) as second:
            line = await second.until_logged("the first API key was replaced")
            assert "sk-umg-f…" in line
            assert "sk-umg-o…" in line
            assert await status(second, OTHER) == 200
            async with asyncio.timeout(60):
                while await status(second, FIRST) != 401:  # within seconds, as of a revoked key
                    await pause()


async def test_a_start_without_a_value_serves_and_names_the_origin_of_the_key(
    config: Path, postgres: Postgres, tmp_path: Path
) -> None:
    config.write_text(f"database: {postgres.create('fleet_key')}\n{SANDBOX}")  # noqa: ASYNC240 - a small file
    environment = {"UMG_API_KEY": ""}
    async with (
        serve(tmp_path / "one", "--config", str(config), environment=environment) as first,
        serve(tmp_path / "two", "--config", str(config), environment=environment) as second,
    ):
        line = await second.until_logged("the first API key stays as another start made it")
        assert f"on {socket.gethostname()} at 20" in line
        assert first.key[:11] in line
        assert second.curl.count("YOUR_KEY") == 1
        assert not (tmp_path / "two" / "bootstrap.key").exists()
        assert (await status(first, first.key), await status(second, first.key)) == (200, 200)


@pytest.mark.parametrize("value", ["", FIRST], ids=["made now", "from the environment"])
async def test_the_key_is_not_printed_where_output_is_stored(config: Path, tmp_path: Path, value: str) -> None:
    async with serve(tmp_path / "data", "--config", str(config), environment={"UMG_API_KEY": value}) as served:
        line = await served.until_logged("first API key")
        assert f'"source":"{"UMG_API_KEY" if value else tmp_path / "data" / "bootstrap.key"}"' in line
        assert f"{served.key[: 8 if value else 11]}…" in line
        await served.stop()
        assert served.key not in "\n".join((*served.lines, *served.log))


async def printed_on_a_terminal(*arguments: str, environment: dict[str, str]) -> str:
    """Run `umg serve` on a terminal until it prints an example call. Return its output."""
    ours, theirs = pty.openpty()
    program = Program(("serve", *ANY, *arguments), {**os.environ, **environment})
    process = await start_on_terminal(theirs, program)
    os.close(theirs)
    output = b""
    with suppress(OSError):  # the other end of the terminal is closed
        while b"curl" not in output and (read := await asyncio.to_thread(os.read, ours, 4096)):
            output += read
    process.terminate()
    await asyncio.wait_for(process.wait(), 60)
    os.close(ours)
    return output.decode()


async def test_a_terminal_shows_the_key_once_when_it_is_made(config: Path, tmp_path: Path) -> None:
    files = ("--config", str(config), "--data", str(tmp_path / "data"))
    made = await printed_on_a_terminal(*files, environment={"UMG_API_KEY": ""})
    secret = (tmp_path / "data" / "bootstrap.key").read_text().strip()
    assert secret in made
    again = await printed_on_a_terminal(*files, environment={"UMG_API_KEY": ""})
    assert (secret in again, f"{secret[:11]}…" in again) == (False, True), again
    other = ("--config", str(config), "--data", str(tmp_path / "other"))
    assert FIRST not in await printed_on_a_terminal(*other, environment={"UMG_API_KEY": FIRST})


async def test_a_terminal_shows_a_link_to_sign_in_where_no_other_machine_connects(config: Path, tmp_path: Path) -> None:
    files = ("--config", str(config), "--data", str(tmp_path / "data"))
    link = r"sign in http://127\.0\.0\.1:[0-9]+/auth/login\?return=/console#code=[\w-]{43} "
    first, second = [
        re.findall(link, await printed_on_a_terminal(*files, environment={"UMG_API_KEY": FIRST})) for _ in range(2)
    ]
    assert (len(first), len(second), first != second) == (1, 1, True)


async def test_the_bootstrap_key_works_while_the_database_is_unavailable_from_the_start(
    postgres: Postgres, tmp_path: Path
) -> None:
    file = tmp_path / "umg.yaml"
    file.write_text(CONFIG.format(url=postgres.create("first_key")))
    config = parse(file.read_text(), str(file), {})
    options = Options(file, Address("127.0.0.1", 0), Address("127.0.0.1", 0), tmp_path)
    async with gateway(options, config, {}, None) as state, aiohttp.ClientSession() as session:
        postgres.stop()
        try:
            assert state.bootstrap is not None
            headers = {"authorization": f"Bearer {state.bootstrap.secret}"}
            async with session.get(f"http://{state.http}/v1/models", headers=headers) as answer:
                assert (answer.status, "famO-5" in await answer.text()) == (200, True)
        finally:
            postgres.start()

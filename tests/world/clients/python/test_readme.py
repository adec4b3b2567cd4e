"""Examples of the Python client's README: each runs against a gateway with the simulated provider."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import umg_client
from umg_client import SyncClient, connect_sync

from tests.support.gateways import KEY as GATEWAY_KEY
from tests.support.gateways import Running, running
from tests.world.clients.python.service import KEY, Served

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5, vidD-1-0-lite-t2v-250428]}
"""
FOLDER = Path(__file__).parents[4] / "clients" / "python"
BLOCKS = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)


async def output(address: str, *command: str) -> str:
    """Return the output of a Python program that must not fail or warn."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"UMG_ADDRESS": address, "UMG_API_KEY": KEY, "PYTHONPATH": ":".join(sys.path)},
    )
    printed, complaints = await process.communicate()
    assert complaints.decode() == ""
    return printed.decode()


def test_the_first_example_is_the_program() -> None:
    assert BLOCKS[0] in (FOLDER / "hello.py").read_text()
    assert len(BLOCKS[0].splitlines()) <= 10


@pytest.mark.parametrize("command", [(str(FOLDER / "hello.py"),), ("-c", BLOCKS[1])], ids=["sync", "async"])
async def test_a_first_answer_is_printed(served: Served, command: tuple[str, ...]) -> None:
    assert await output(served.address, *command) == "Say hello in five languages. \n"


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(CONFIG, tmp_path) as gateway:
        yield gateway


async def test_the_other_examples_run(gateway: Running) -> None:
    functions: dict[str, Callable[..., object]] = {}
    for block in BLOCKS[2:]:
        exec(block, vars(umg_client), functions)
    vars(umg_client).update(weather=functions["weather"])

    def call(client: SyncClient) -> None:
        answer, tokens = functions["capital"](client)  # type: ignore[misc]
        assert "France" in answer
        assert tokens > 0
        assert "sunny in" in str(functions["ask_with_tools"](client))
        assert b"ftyp" in functions["film"](client)[:12]  # type: ignore[index]
        assert functions["ask"](client, "nope") == "there is no model nope"

    def calls() -> None:
        with connect_sync(gateway.grpc, GATEWAY_KEY) as client:
            call(client)

    await asyncio.to_thread(calls)
    assert set(functions) == {"capital", "weather", "ask_with_tools", "film", "ask"}

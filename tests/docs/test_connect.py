"""Page on the Connect protocol: its commands run unchanged. Its page of a browser runs in `tests/world/connect`."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from tests.support.processes import Served

PAGE = (Path(__file__).parents[2] / "docs" / "connect.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "http://127.0.0.1:8080"
PRINTS = [r'"finishReason": "FINISH_REASON_STOP"', r'(?s)"textDelta".*"finishReason": "FINISH_REASON_STOP".*\{\}$']
"""Outputs of the commands, as regular expressions."""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("command", "prints"), [*zip(COMMANDS, PRINTS, strict=True)], ids=["unary", "stream"])
async def test_a_command_of_the_page_runs_unchanged(command: str, prints: str, served: Served) -> None:
    assert ADDRESS in command
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", command.replace(ADDRESS, served.http)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "UMG_API_KEY": served.key},
    )
    out, err = await asyncio.wait_for(process.communicate(), 300)
    assert process.returncode == 0, err.decode()
    assert re.search(prints, out.decode(errors="replace"))

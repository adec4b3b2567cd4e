"""Lines of the page for Python libraries and programs without scenarios, whose packages conflict with those of the
tests.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from tests.support.gateways import SANDBOX, running
from tests.world.agents.document import ADDRESS, PAGE, Block, libraries

NAMES = ("LlamaIndex", "llm")
ANSWER = "simulated answer"
SECONDS = 120


async def failed_lines(python: Path, directory: Path) -> AsyncGenerator[tuple[str, str], None]:
    """Run the lines of each of `NAMES` by a Python with their packages. Yield (name, "" or the output of a failure)."""
    page = libraries(PAGE.read_text(encoding="utf-8"))
    async with running(SANDBOX, directory) as gateway:
        environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "UMG_API_KEY": gateway.key,
            "LLM_USER_PATH": str(directory),
        }
        for name in NAMES:
            blocks = [Block(each.language, each.text.replace(ADDRESS, gateway.url), each.path) for each in page[name]]
            for block in blocks:
                if block.path:
                    (directory / Path(block.path).name).write_text(block.text, encoding="utf-8")
            [lines] = [block for block in blocks if not block.path]
            process = await asyncio.create_subprocess_exec(
                *_command(lines, python),
                env=environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
            yield name, "" if process.returncode == 0 and ANSWER in out.decode() else out.decode()


def _command(lines: Block, python: Path) -> list[str]:
    if lines.language == "python":
        return [str(python), "-c", lines.text]
    return ["bash", "-euc", lines.text.replace("llm ", f"{python} -m llm ", 1)]

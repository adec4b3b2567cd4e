"""Commands of the README's start, and their output in a terminal with a gateway of their own."""

import asyncio
import json
import os
import pty
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import START_SECONDS, UMG

ROOT = Path(__file__).parents[3]
HTTP, GRPC = "http://127.0.0.1:8080", "127.0.0.1:50051"
"""Addresses of the README."""
SERVE = "make serve"
PYTHON_LINE = re.compile(r"^  python .*\n", re.MULTILINE)
"""Line of a start about the build of the interpreter of this machine."""
LATER = re.compile(r"(?<=^  models  ).*|(?<=sk-umg-)\S{8,}|(?<=#code=)\S+", re.MULTILINE)
"""Parts of the output that are not shown: the list of models, and secrets."""
FIRST, LAST = 2, 2
"""Numbers of the events of a stream that are shown, at its begin and at its end."""


@dataclass(frozen=True)
class Step:
    command: str
    output: str


def commands(readme: str) -> list[str]:
    """Return the commands of the README from the start to the first call of an SDK, which is a program for Python."""
    start = re.search(rf"^({SERVE})\b", readme, re.MULTILINE)
    assert start is not None
    called = readme.partition("\n## Call it\n")[2].partition("\n## ")[0]
    shell = re.findall(r"```bash\n(.*?)\n```", called, re.DOTALL)
    [program] = re.findall(r"```python\n(.*?)\n```", called, re.DOTALL)
    return [start[1], *shell, f"python - <<'END'\n{program}\nEND"]


async def session(folder: Path) -> list[Step]:
    """Run the commands of the README in an empty folder. Return them with their output."""
    serve, *others = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    async with _served(folder) as (started, http, grpc):
        steps = [Step(serve, f"{_announced()}\n{started}".replace(http, HTTP).replace(grpc, GRPC))]
        before = ""
        for command in others:
            output = await _shell(f"{before}{command}".replace(HTTP, http), folder)
            steps.append(Step(command, output))
            before += f"{command}\n" if command.startswith("export ") else ""
    return steps


def _announced() -> str:
    """Return the line that `make serve` prints before it starts the program."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [line] = re.findall(r'@echo "(==> starting.*?)"', makefile)
    return str(line)


@asynccontextmanager
async def _served(folder: Path) -> AsyncGenerator[tuple[str, str, str], None]:
    """Run `umg serve` in a terminal. Yield its output and its addresses over HTTP and gRPC."""
    primary, secondary = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_HOST"))}
    process = await asyncio.create_subprocess_exec(
        *(*UMG, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=secondary,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        env=variables,
    )
    os.close(secondary)
    reader = asyncio.StreamReader()
    with os.fdopen(primary, "rb", buffering=0) as terminal:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), terminal
        )
        try:
            output = await asyncio.wait_for(_until_the_call(reader), START_SECONDS)
            http, grpc = re.findall(r"^  (?:HTTP|gRPC)    (\S+)", output, re.MULTILINE)
            yield output, http, grpc
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            transport.close()


async def _until_the_call(reader: asyncio.StreamReader) -> str:
    """Return the output of a start up to the call that it suggests, less the state that a terminal replaces."""
    lines: list[str] = []
    while line := (await reader.readline()).decode():
        lines.append(line.rstrip("\r\n"))
        if lines[-1].startswith("curl "):
            break
    return "\n".join(each for each in lines if not each.startswith("loading "))


async def _shell(script: str, folder: Path) -> str:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", script.replace("curl ", "curl --silent ", 1)),
        stdout=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "PATH": path},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode == 0
    return out.decode()


def shown(output: str) -> str:
    """Return the output without the parts that are not shown."""
    text = LATER.sub("...", PYTHON_LINE.sub("", output))
    events = [line for line in text.splitlines() if line.startswith("data: ")]
    if len(events) <= FIRST + LAST:
        return text
    return "\n".join((*events[:FIRST], "...", *events[-LAST:])) + "\n"


def shape(output: str) -> str:
    """Return the output without values that differ between two runs: numbers, ids, and the values in JSON."""
    lines = [_shape_of(line) for line in output.splitlines()]
    return re.sub(r"\s+", " ", " ".join(lines)).strip()


def _shape_of(line: str) -> str:
    event = line.removeprefix("data: ")
    return json.dumps(_kinds(json.loads(event))) if event.startswith("{") else re.sub(r"\d+", "0", line)


def _kinds(value: Any) -> Any:
    """Return the value with the names of types in place of its scalars."""
    match value:
        case dict():
            return {name: _kinds(member) for name, member in value.items()}
        case list():
            return [_kinds(item) for item in value]
        case _:
            return type(value).__name__

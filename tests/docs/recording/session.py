"""Commands of the recording, and their output by a running gateway."""

import asyncio
import json
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import Served, run

ADDRESSES = ("http://127.0.0.1:8080", "127.0.0.1:50051")
CURL = 'curl {url} -H "x-{vendor}api-key: $UMG_API_KEY" -H "content-type: application/json" -d {body}'
INIT = "OPENAI_API_KEY=sk-... umg init"
SERVE = "umg serve"
MESSAGES = CURL.format(
    url="http://127.0.0.1:8080/v1/messages",
    vendor="",
    body="""'{"model": "smollm2-135m-instruct", "max_tokens": 30, "messages": [{"role": "user", "content": "Hi!"}]}'""",
)
NATIVE = CURL.format(
    url="http://127.0.0.1:8080/v1beta/models/smollm2-135m-instruct:generateContent",
    vendor="goog-",
    body="""'{"contents": [{"parts": [{"text": "Hi!"}]}], "generationConfig": {"maxOutputTokens": 30}}'""",
)
KEY = "umg keys create ann --models 'famO-*' --rpm 60 --budget 5"
PYTHON = re.compile(r"\n  python .*")
"""Line of a start about the build of the interpreter of this machine."""
LATER = re.compile(r"(?<=^  models  ).*|(?<=^sk-umg-)\S{8,}", re.MULTILINE)
"""Parts of the output that are not shown: the list of models, and secrets."""


@dataclass(frozen=True)
class Step:
    command: str
    output: str


async def session(served: Served, folder: Path) -> list[Step]:
    """Run the commands against a gateway, `umg init` in an empty folder. Return them with their output."""
    return [
        Step(INIT, await _init(folder)),
        Step(SERVE, _started(served)),
        Step(MESSAGES, await _curl(MESSAGES, served)),
        Step(NATIVE, await _curl(NATIVE, served)),
        Step(KEY, await _umg(*shlex.split(KEY)[1:], "--data", str(served.data))),
    ]


async def _init(folder: Path) -> str:
    environment = {name: "" for name in os.environ if name.endswith(("_API_KEY", "_HOST"))}
    path = str(folder / "umg.yaml")
    code, out, err = await run("init", path, environment={**environment, "OPENAI_API_KEY": "sk-example"})
    assert code == 0, err
    return out.replace(path, "umg.yaml")


def _started(served: Served) -> str:
    lines = "\n".join(served.lines).partition("\ntry it:")[0].replace("loading the local model ...\n", "")
    return _placed(lines, served)


async def _curl(command: str, served: Served) -> str:
    here = command.replace(ADDRESSES[0], served.http).replace("curl ", "curl --silent ", 1)
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euc", here),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "UMG_API_KEY": served.key},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 180)
    return json.dumps(json.loads(out), ensure_ascii=False)


async def _umg(*arguments: str) -> str:
    code, out, err = await run(*arguments)
    assert code == 0, err
    return out


def _placed(output: str, served: Served) -> str:
    return output.replace(served.http, ADDRESSES[0]).replace(served.grpc, ADDRESSES[1])


def shown(output: str) -> str:
    """Return the output without the parts that are not shown."""
    return LATER.sub("...", PYTHON.sub("", output))


def shape(output: str) -> str:
    """Return the output without values that differ between two runs: numbers, ids, and the values in JSON."""
    if output.startswith("{"):
        return json.dumps(_kinds(json.loads(output)))
    plain = re.sub(r"\b(key_|sk-umg-)[\w-]+…?", r"\1", output)
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", plain)).strip()


def _kinds(value: Any) -> Any:
    """Return the value with the names of types in place of its scalars."""
    match value:
        case dict():
            return {name: _kinds(member) for name, member in value.items()}
        case list():
            return [_kinds(item) for item in value]
        case _:
            return type(value).__name__

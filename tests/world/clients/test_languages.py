"""Clients of all languages against one gateway: the scenarios of `clients/scenarios.json`.

The program of a language runs once, for all scenarios. Python always runs. The other languages compile for minutes, so
they run where `UMG_CLIENTS` names them (`UMG_CLIENTS=go,java`, or `make clients` for all), and then must not be absent.
"""

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.world.clients.gateway import SCENARIOS, Prepared, prepared
from tests.world.clients.judge import differences

CLIENTS = SCENARIOS.parent
CASES = json.loads(SCENARIOS.read_text())["scenarios"]
TOOLS = {"python": [], "go": ["go"], "typescript": ["node", "npm"], "java": ["java", "mvn"], "rust": ["cargo"]}
"""Programs that build and run the client of a language, by language."""
SECONDS = 900
"""Longest time of a program with its build."""


def required() -> list[str]:
    return [name for name in os.environ.get("UMG_CLIENTS", "").split(",") if name]


def skip_unless_available(language: str) -> None:
    """Skip a language that is not to be tested here. Fail if it is required and its tools are absent."""
    if language == "python":
        return
    absent = [tool for tool in TOOLS[language] if shutil.which(tool) is None]
    if language in required():
        assert not absent, f"UMG_CLIENTS names {language}, and there is no {', '.join(absent)} on PATH"
        return
    reason = f"no {', '.join(absent)} on PATH" if absent else f"compiles for long: UMG_CLIENTS={language} tests it"
    pytest.skip(f"{language}: {reason}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prepared]:
    async with prepared(tmp_path_factory.mktemp("clients")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TOOLS)
async def lines(request: pytest.FixtureRequest, gateway: Prepared) -> dict[str, Any]:
    skip_unless_available(request.param)
    printed = await output_of(request.param, gateway.environment)
    return {line["name"]: line for line in map(json.loads, printed.split("\n")[:-1])}


async def output_of(language: str, environment: Mapping[str, str], *arguments: str) -> str:
    """Return the output of a language's program with these variables. It is built if needed."""
    program = CLIENTS / language / "run"
    async with locked(program):
        process = await asyncio.create_subprocess_exec(
            str(program),
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **environment, "PYTHON": sys.executable},
            start_new_session=True,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # a compiler too, when the time is over
    assert process.returncode == 0, err.decode(errors="replace")[-3000:]
    return out.decode()


@asynccontextmanager
async def locked(program: Path) -> AsyncIterator[None]:
    """Exclude other test processes while a program is built and run: two builds in one folder disturb one another."""
    with program.open() as file:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("language", TOOLS)
async def test_a_first_answer_is_printed(language: str, gateway: Prepared) -> None:
    skip_unless_available(language)
    assert "You said: Say hello in five languages." in await output_of(language, gateway.environment, "hello")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("scenario", CASES, ids=lambda scenario: scenario["name"])
async def test_a_scenario_has_the_expected_results(lines: dict[str, Any], scenario: dict[str, Any]) -> None:
    assert scenario["name"] in lines
    assert differences(scenario, lines[scenario["name"]]) == []


def test_languages_that_are_required_exist() -> None:
    assert set(required()) <= set(TOOLS)
    assert all((CLIENTS / language / "run").exists() for language in required())

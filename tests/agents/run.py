"""One run of a program: its own home, its own gateway, its own provider, and a record of all that it sent."""

import asyncio
import os
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.agents import model, scenarios
from tests.agents.document import ROOTS, Settings
from tests.agents.install import Installed
from tests.agents.programs import PICTURE, PROMPT, Program
from tests.agents.recorder import Exchange, Recorder, recording
from tests.agents.scenarios import MOST_REQUESTS, Finished, Scenario
from tests.e2e.gateways import KEY, running
from tests.providers import FORMATS, Native, Provider, serving
from tests.providers import KEY as PROVIDER_KEY
from tests.sdk.node_runner import NODE

RUN_SECONDS = 120
KILLED = -signal.SIGKILL
REQUEST_ID = re.compile(r"req_[0-9a-f]+")
NOWHERE = "http://127.0.0.1:1"  # a proxy that refuses every connection: there is no network but loopback
# By format, where something is known of the model: its generation, and that it thinks aloud and wants that back.
UPSTREAM_IDS = {"native": "gemini-3-pro", "chat": "kimi-k2"}
PROBES = ("HEAD",)  # methods by which programs look whether somebody answers; any status will do


@dataclass(frozen=True)
class Case:
    """A program with settings, its work, and the provider behind the gateway."""

    program: Program
    settings: Settings
    scenario: Scenario
    upstream: str  # format of the provider
    through: str = ""  # format between the gateway and a second one in front of the provider; empty: there is no second
    model: str = ""  # another id than that of the settings
    gateway: bool = True  # False: the program speaks with the provider, so that a failure is no fault of the gateway

    @property
    def way(self) -> str:
        """What the program speaks with: the format behind the gateway, or what stands in its place."""
        if not self.gateway:
            return "no gateway"
        return f"{self.through} to a second gateway" if self.through else self.upstream

    @property
    def id(self) -> str:
        named = f"{self.program.name} ({self.settings.format}{', ' + self.model if self.model else ''})"
        return f"{named} to {self.way}: {self.scenario.name}"

    @property
    def asked_model(self) -> str:
        """The id that the program is given."""
        if self.scenario.fails:
            return scenarios.UNKNOWN_MODEL
        return self.model or (self.scenario.picture and self.program.sees) or self.settings.model


@dataclass(frozen=True)
class Outcome:
    """A case that was run."""

    case: Case
    problems: tuple[str, ...]
    exchanges: tuple[Exchange, ...] = field(repr=False)
    seconds: float


async def run(case: Case, programs: Installed, data: Path) -> Outcome:
    """Run the program as often as the scenario has prompts. `data` is an empty directory of this run alone."""
    start = time.monotonic()
    async with _served(case, data) as (recorder, provider):
        finished = await _worked(case, programs, data, recorder)
    problems = Counter([*_refused(case, recorder, provider), *case.scenario.problems(case.program, finished)])
    counted = tuple(problem if count == 1 else f"{count} times: {problem}" for problem, count in problems.items())
    return Outcome(case, counted, tuple(recorder.exchanges), time.monotonic() - start)


def _refused(case: Case, recorder: Recorder, provider: Provider) -> Iterator[str]:
    """The answers that the scenario does not expect."""
    allowed = (404,) if case.scenario.fails else ()
    for exchange in recorder.exchanges:
        if exchange.method not in PROBES and not 200 <= exchange.status < 300 and exchange.status not in allowed:
            said = REQUEST_ID.sub("", exchange.answer[:500].decode(errors="replace"))
            yield f"{exchange.method} {exchange.path}: {exchange.status} {said}"
    yield from (f"the provider refused: {refusal}" for refusal in provider.refusals)
    if len(recorder.exchanges) > MOST_REQUESTS:
        yield f"{len(recorder.exchanges)} requests"


# --- the gateway


@asynccontextmanager
async def _served(case: Case, data: Path) -> AsyncGenerator[tuple[Recorder, Provider], None]:
    """A recorder in front of the gateway, or of the first of two."""
    ids = () if case.scenario.fails else (case.asked_model, *case.program.beside)
    async with AsyncExitStack() as stack:
        # The newest models of the native format take two turns of one role in a row, and a program sends them.
        speech = Native(alternates=False) if case.upstream == "native" else FORMATS[case.upstream]()
        provider = await stack.enter_async_context(serving(speech, model=model.answer_to))
        if not case.gateway:
            yield await stack.enter_async_context(recording(provider.root_url, MOST_REQUESTS)), provider
            return
        upstream_id = UPSTREAM_IDS.get(case.upstream, "m")
        config = _config(case.upstream, provider.base_url, PROVIDER_KEY, [(name, upstream_id) for name in ids])
        gateway = await stack.enter_async_context(running(config, data / "gateway"))
        if case.through:
            models = [(name, name) for name in ids]
            config = _config(case.through, gateway.url + ROOTS[case.through], gateway.key, models)
            gateway = await stack.enter_async_context(running(config, data / "front"))
        yield await stack.enter_async_context(recording(gateway.url, MOST_REQUESTS)), provider


def _config(name: str, base_url: str, key: str, models: list[tuple[str, str]]) -> str:
    """One channel, with its models by (id, id at the provider); one that nobody asks for where there is none."""
    entries = ", ".join(
        f"{{id: {model_id}, upstream: {upstream}}}" for model_id, upstream in models or [("other", "m")]
    )
    return (
        f"channels:\n  - name: main\n    protocols: [{name}]\n    base_url: {base_url}\n"
        f"    api_key: {key}\n    models: [{entries}]\n"
    )


# --- the program


async def _worked(case: Case, programs: Installed, data: Path, recorder: Recorder) -> Finished:
    """The last run of the program."""
    home, folder = data / "home", data / "project"
    for directory in (home, folder, data / "tmp"):
        directory.mkdir(parents=True)
    scenarios.prepare(folder)
    key = KEY if case.gateway else PROVIDER_KEY
    settings = case.settings.replaced(address=recorder.url, key=key, model=case.asked_model)
    for path, text in settings.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    environment = _environment(home, data / "tmp", key) | settings.environment
    place = "." if case.program.by_text else str(folder)
    first, *later = (prompt.format(folder=place) for prompt in case.scenario.prompts)
    finished = await _run(_command(case, settings, programs, first), environment, folder, recorder.exceeded)
    for prompt in later:
        if finished.status != 0:
            return finished
        finished = await _run(
            _command(case, settings, programs, prompt, again=True), environment, folder, recorder.exceeded
        )
    return finished


def _environment(home: Path, temporary: Path, key: str) -> dict[str, str]:
    """All that a program is given beside its settings."""
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(NODE.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "UMG_API_KEY": key,
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1",
    }


def _command(case: Case, settings: Settings, programs: Installed, prompt: str, *, again: bool = False) -> list[str]:
    program = case.program
    executable, *documented = settings.command
    options = (program.again if again else program.options) + (program.attach if case.scenario.picture else ())
    mention = program.mention if case.scenario.picture else ""
    values = {PROMPT: prompt + mention, PICTURE: scenarios.PICTURE}
    return [
        *programs.command(executable),
        *program.subcommand,
        *documented,
        *(values.get(word, word) for word in options),
    ]


async def _run(command: list[str], environment: dict[str, str], folder: Path, exceeded: asyncio.Event) -> Finished:
    """Run a command to its end, without a terminal and without input. It is killed when it takes or asks too much."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    reading, limit = asyncio.create_task(process.communicate()), asyncio.create_task(exceeded.wait())
    try:
        await asyncio.wait({reading, limit}, timeout=RUN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ended = reading.done()
    finally:
        limit.cancel()
        with suppress(ProcessLookupError):  # the program, or one that it left behind
            os.killpg(process.pid, signal.SIGKILL)
        out, err = await reading
    status = (process.returncode or 0) if ended else KILLED
    return Finished(status, out.decode(errors="replace"), err.decode(errors="replace"), folder)

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

from tests.pairs.table import ROOTS, strict_fake
from tests.support.gateways import KEY, running
from tests.support.providers.native import Native
from tests.support.providers.strict_providers import KEY as PROVIDER_KEY
from tests.support.providers.strict_providers import Provider, text_provider
from tests.world.agents import model, scenarios
from tests.world.agents.document import Settings
from tests.world.agents.install import Installed
from tests.world.agents.programs import PICTURE, PROMPT, Program
from tests.world.agents.recorder import Exchange, Recorder, recording
from tests.world.agents.scenarios import MAX_REQUESTS, Finished, Scenario
from tests.world.sdk.node_runner import NODE, compile_cache

RUN_SECONDS = 300
KILLED = -signal.SIGKILL
REQUEST_ID = re.compile(r"req_[0-9a-f]+")
NOWHERE = "http://127.0.0.1:1"  # a proxy that refuses every connection: there is no network but loopback
# Format -> id of a model whose generation is known and which returns reasoning and wants it back.
UPSTREAM_IDS = {"native": "gemini-3-pro", "chat": "kimi-k2"}
PROBES = ("HEAD",)  # methods by which programs check whether a server answers; a provider need not


@dataclass(frozen=True)
class Case:
    program: Program
    settings: Settings
    scenario: Scenario
    upstream: str  # format of the provider
    through: str = ""  # format between the gateway and a second one in front of the provider; empty: there is no second
    model: str = ""  # another id than that of the settings
    gateway: bool = True  # False: the program speaks with the provider, so that a failure is no fault of the gateway

    @property
    def way(self) -> str:
        """Name of the route: the format behind the gateway, a second gateway, or no gateway."""
        if not self.gateway:
            return "no gateway"
        return f"{self.through} to a second gateway" if self.through else self.upstream

    @property
    def id(self) -> str:
        named = f"{self.program.name} ({self.settings.format}{', ' + self.model if self.model else ''})"
        return f"{named} to {self.way}: {self.scenario.name}"

    @property
    def requested_model(self) -> str:
        if self.scenario.unknown:
            return scenarios.UNKNOWN_MODEL
        return self.model or (self.scenario.picture and self.program.sees) or self.settings.model


@dataclass(frozen=True)
class Outcome:
    case: Case
    problems: tuple[str, ...]
    exchanges: tuple[Exchange, ...] = field(repr=False)
    seconds: float


async def run(case: Case, programs: Installed, data: Path) -> Outcome:
    """Run the program once for each prompt of the scenario. `data` is an empty directory of this run alone."""
    start = time.monotonic()
    async with served(case, data) as (recorder, provider):
        finished = await worked(case, programs, data, recorder)
    problems = Counter([*_refused(case, recorder, provider), *case.scenario.problems(case.program, finished)])
    counted = tuple(problem if count == 1 else f"{count} times: {problem}" for problem, count in problems.items())
    return Outcome(case, counted, tuple(recorder.exchanges), time.monotonic() - start)


def _refused(case: Case, recorder: Recorder, provider: Provider) -> Iterator[str]:
    """Yield the error answers that the scenario does not expect."""
    for exchange in recorder.exchanges:
        if (
            (case.gateway or exchange.method not in PROBES)
            and not 200 <= exchange.status < 300
            and exchange.status not in case.scenario.statuses
        ):
            text = REQUEST_ID.sub("", exchange.answer[:500].decode(errors="replace"))
            yield f"{exchange.method} {exchange.path}: {exchange.status} {text}"
    yield from (f"the provider refused: {refusal}" for refusal in provider.refusals)
    if len(recorder.exchanges) > MAX_REQUESTS:
        yield f"{len(recorder.exchanges)} requests"


# --- the gateway


@asynccontextmanager
async def served(case: Case, data: Path) -> AsyncGenerator[tuple[Recorder, Provider], None]:
    """Run a recorder in front of the gateway, or in front of the first of two."""
    ids = () if case.scenario.unknown else (case.requested_model, *case.program.beside)
    async with AsyncExitStack() as stack:
        # The newest models of the native format take two turns of one role in a row, and a program sends them.
        wire_format = Native(alternates=False) if case.upstream == "native" else strict_fake(case.upstream)()
        provider = await stack.enter_async_context(text_provider(wire_format, model=model.answer_to))
        if not case.gateway:
            yield await stack.enter_async_context(recording(provider.url, MAX_REQUESTS)), provider
            return
        upstream_id = UPSTREAM_IDS.get(case.upstream, "m")
        config = _config(case.upstream, provider.base_url, PROVIDER_KEY, [(name, upstream_id) for name in ids])
        gateway = await stack.enter_async_context(running(config, data / "gateway"))
        if case.through:
            models = [(name, name) for name in ids]
            config = _config(case.through, gateway.url + ROOTS[case.through], gateway.key, models)
            gateway = await stack.enter_async_context(running(config, data / "front"))
        yield await stack.enter_async_context(recording(gateway.url, MAX_REQUESTS)), provider


def _config(name: str, base_url: str, key: str, models: list[tuple[str, str]]) -> str:
    """Return a config of one channel with its models by (id, id at the provider), or with an unused model if there is
    none.
    """
    entries = ", ".join(
        f"{{id: {model_id}, upstream: {upstream}}}" for model_id, upstream in models or [("other", "m")]
    )
    return (
        f"channels:\n  - name: main\n    protocols: [{name}]\n    base_url: {base_url}\n"
        f"    api_key: {key}\n    models: [{entries}]\n"
    )


# --- the program


async def worked(
    case: Case, programs: Installed, data: Path, recorder: Recorder, seconds: float = RUN_SECONDS
) -> Finished:
    """Run the program at the recorder. Return its last run. `data` is an empty directory of this run alone, `seconds`
    the time limit of each run.
    """
    home, folder = data / "home", data / "project"
    for directory in (home, folder, data / "tmp"):
        directory.mkdir(parents=True)
    case.scenario.prepare(folder)
    key = KEY if case.gateway else PROVIDER_KEY
    settings = case.settings.replaced(address=recorder.url, key=key, model=case.requested_model).at_home(home)
    for path, text in settings.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    environment = _environment(home, data / "tmp", key) | compile_cache(programs.node) | settings.environment
    place = "." if case.program.by_text else str(folder)
    first, *later = (prompt.format(folder=place) for prompt in case.scenario.prompts)
    finished = await _run(_command(case, settings, programs, first), environment, folder, recorder.exceeded, seconds)
    for prompt in later:
        if finished.status != 0:
            return finished
        finished = await _run(
            _command(case, settings, programs, prompt, again=True), environment, folder, recorder.exceeded, seconds
        )
    return finished


def _environment(home: Path, temporary: Path, key: str) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(NODE.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "UMG_API_KEY": key,
        "GEMINI_CLI_NO_RELAUNCH": "true",  # with another memory limit, which doubles the time of its start
        "QWEN_CODE_NO_RELAUNCH": "true",
        "BUN_JSC_useFTLJIT": "0",  # optimizes for long runs: a fifth of the processor time of a short one of opencode
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


async def _run(
    command: list[str], environment: dict[str, str], folder: Path, exceeded: asyncio.Event, seconds: float
) -> Finished:
    """Run a command without a terminal and without input. It is killed after the time limit or too many requests."""
    began = time.monotonic()
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
        await asyncio.wait({reading, limit}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        ended = reading.done()
    finally:
        limit.cancel()
        with suppress(ProcessLookupError):  # the program, or a process that it started
            os.killpg(process.pid, signal.SIGKILL)
        out, err = await reading
    status = (process.returncode or 0) if ended else KILLED
    return Finished(status, out.decode(errors="replace"), err.decode(errors="replace"), folder, began)

"""Runs of the agents themselves: each reads the parts of a text, directly at a simulated provider or through gateways."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.proofs.cache import task
from tests.proofs.cache.cached_provider import cached_provider
from tests.proofs.cache.prompts import Prompt, prompt_of
from tests.proofs.cache.replay import SQLITE, Run, Upstream, gateways, ledger_of
from tests.support.providers.strict_providers import KEY
from tests.world.agents import programs
from tests.world.agents.cases import settings_of
from tests.world.agents.golden import PATHS
from tests.world.agents.install import Installed
from tests.world.agents.programs import Program
from tests.world.agents.recorder import Recorder, recording
from tests.world.agents.run import Case, worked
from tests.world.agents.scenarios import Finished, Scenario

NAMES = ("Claude Code", "Codex", "Gemini CLI", "opencode", "Qwen Code")
PROGRAMS = tuple(programs.BY_NAME[name] for name in NAMES)
REQUESTS_BESIDE = 20  # for titles and counts of tokens


def _finished(program: Program, finished: Finished) -> Iterator[str]:
    if finished.status != 0 or task.DONE not in finished.printed:
        yield f"{program.name}: exit status {finished.status}: {finished.printed[-600:]}"


def case_of(program: Program, parts: int, *, gateway: bool) -> Case:
    usual = settings_of(program)[0]
    prompt = task.PROMPT.replace("{parts}", str(parts))
    scenario = Scenario("parts", (prompt,), _finished, prepare=partial(task.prepare, parts=parts))
    return Case(program, usual, scenario, usual.format, gateway=gateway)


@dataclass(frozen=True)
class ProgramSubject:
    program: Program
    installed: Installed

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def format(self) -> str:
        return settings_of(self.program)[0].format

    async def direct(self, upstream: Upstream, parts: int, data: Path) -> Run:
        cached, serving = cached_provider(upstream.format, upstream.model, task.answer_to, {KEY: "account 1"})
        async with serving as provider:
            sent = await self._work(parts, data, [provider.url], gateway=False)
        return Run(cached.bills, sent)

    async def through(self, upstream: Upstream, parts: int, data: Path, databases: Sequence[str] = SQLITE) -> Run:
        public = replace(upstream, public_model=settings_of(self.program)[0].model)
        async with gateways(public, data / "gateways", databases) as (cached, urls):
            sent = await self._work(parts, data, urls, gateway=True)
        return Run(cached.bills, sent, await ledger_of(databases[0], data / "gateways" / "0"))

    async def _work(self, parts: int, data: Path, urls: Sequence[str], *, gateway: bool) -> list[Prompt]:
        """Run the program. Return the prompts that it sent. Raise AssertionError if it did not read all parts."""
        case = case_of(self.program, parts, gateway=gateway)
        async with recording(urls[0], parts + REQUESTS_BESIDE, *urls[1:]) as recorder:
            finished = await worked(case, self.installed, data / "program", recorder)
        if problems := list(case.scenario.problems(self.program, finished)):
            raise AssertionError(*problems)
        return list(_sent(case.settings.format, recorder))


def _sent(wire_format: str, recorder: Recorder) -> Iterator[Prompt]:
    for exchange in recorder.exchanges:
        if exchange.method == "POST" and PATHS[wire_format].fullmatch(exchange.path) and exchange.status == 200:
            yield prompt_of(wire_format, json.loads(exchange.body))

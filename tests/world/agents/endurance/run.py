"""One long run: a program, a gateway that ends and starts again, and a provider with a bill and two accounts."""

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.proofs.cache.cached_provider import Bill, cached_provider
from tests.proofs.cache.replay import Ledger, Upstream, channel_of, head_of, ledger_of, prices_of
from tests.support.gateways import KEY
from tests.support.providers.server import ReceivedRequest
from tests.support.providers.strict_text_server import Provider
from tests.support.proxies import START_SECONDS, free_ports
from tests.support.replicas import Replica
from tests.world.agents.cases import settings_of
from tests.world.agents.endurance.programs import LongRunning
from tests.world.agents.endurance.task import DONE, PROMPT, LongTask, Plan, prepare
from tests.world.agents.install import Installed
from tests.world.agents.recorder import Exchange, Recorder, recording
from tests.world.agents.run import Case, worked
from tests.world.agents.scenarios import Finished, Scenario

UPSTREAMS = (
    Upstream("chat", "deepseek-v4-flash"),
    Upstream("responses", "gpt-5.5"),
    Upstream("messages", "claude-sonnet-5"),
    Upstream("native", "gemini-3.6-flash"),
)
REQUESTS_BESIDE = 80  # for titles, counts of tokens and repeated connections
SECONDS = 1200.0
FULL = Plan()


@dataclass(frozen=True)
class LongCase:
    """Program with the provider behind the gateway."""

    running: LongRunning
    upstream: Upstream
    plan: Plan = FULL

    @property
    def id(self) -> str:
        return f"{self.running.program.name} to {self.upstream.format}"

    @property
    def case(self) -> Case:
        """The case of the harness of programs, without its own gateway and provider."""
        usual = settings_of(self.running.program)[0]
        prompt = PROMPT.replace("{parts}", str(self.plan.parts))
        files = partial(prepare, plan=self.plan, pictures=self.running.pictures)
        scenario = Scenario("long", (prompt,), lambda *_: iter(()), prepare=files)
        settings, model = self.running.settings(usual), self.running.model
        return Case(self.running.selected, settings, scenario, self.upstream.format, model=model)


@dataclass(frozen=True)
class LongRun:
    case: LongCase
    task: LongTask
    finished: Finished
    exchanges: Sequence[Exchange] = field(repr=False)
    connections_refused: int
    received: Sequence[ReceivedRequest] = field(repr=False)
    refusals: Sequence[str]
    bills: Sequence[Bill] = field(repr=False)
    ledger: Ledger
    log: Sequence[str] = field(repr=False)
    seconds: float

    @property
    def answered(self) -> bool:
        """Whether the program printed the final answer."""
        return self.finished.status == 0 and DONE in self.finished.printed


async def run(case: LongCase, programs: Installed, data: Path) -> LongRun:
    """Run the program. `data` is an empty directory of this run alone."""
    start, agent = time.monotonic(), case.case
    accounts = replace(case.upstream, accounts=2, public_model=agent.requested_model, own_channels=True)
    task = LongTask(replace(case.plan, stages=case.running.stages), case.running.pictures)
    cached, serving = cached_provider(accounts.format, accounts.model, task, accounts.keys)
    log = list[str]()
    async with serving as provider:
        [ports] = free_ports(1)
        config = _config(case, accounts, provider.base_url)
        replica = Replica("gateway", data / "gateway", _written(data / "umg.yaml", config), ports)
        try:
            await _start(replica)
            async with recording(f"http://127.0.0.1:{ports.http}", 2 * case.plan.turns + REQUESTS_BESIDE) as recorder:
                finished = await _work(case, agent, programs, data, recorder, provider, replica, log)
            served = replica.served
            assert served is not None
            code = await replica.stop()
            assert code == 0, served.log
            log += served.log
        finally:
            await replica.aclose()
    ledger = await ledger_of("sqlite", data / "gateway")
    return LongRun(
        case,
        task,
        finished,
        recorder.exchanges,
        recorder.refused,
        provider.received,
        provider.refusals,
        cached.bills,
        ledger,
        log,
        time.monotonic() - start,
    )


def _config(case: LongCase, accounts: Upstream, base_url: str) -> str:
    names = ", ".join(f"{name}: {accounts.public_model}" for name in case.running.beside)
    return (
        f"drain_delay: 0\nlog: {{format: json}}\naliases: {{{names}}}\n"
        f"{head_of('sqlite')}{channel_of(accounts, base_url)}{prices_of([accounts])}"
    )


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def _work(
    case: LongCase,
    agent: Case,
    programs: Installed,
    data: Path,
    recorder: Recorder,
    provider: Provider,
    replica: Replica,
    log: list[str],
) -> Finished:
    async with asyncio.TaskGroup() as tasks:
        restarting = tasks.create_task(_restart(provider, replica, log))
        finished = await worked(agent, programs, data / "program", recorder, SECONDS)
        restarting.cancel()
    return finished


async def _restart(provider: Provider, replica: Replica, log: list[str]) -> None:
    """End the gateway in the middle of a response, which it passes on to its end, and start it again."""
    await provider.waiting.wait()
    served = replica.served
    assert served is not None
    replica.signal(signal.SIGTERM)
    await served.until_logged('"draining"')
    provider.resume.set()
    code = await asyncio.wait_for(served.process.wait(), START_SECONDS)
    await replica.aclose()
    assert code == 0, served.log
    log += served.log
    await _start(replica)


async def _start(replica: Replica) -> None:
    await replica.start(environment={"UMG_API_KEY": KEY})
    await replica.check_ready()

"""Endpoint `/metrics` with an address or a key of its own, as operators and scrapers use it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.processes import Served, run, serve

METRICS_KEY = "scraper-0123456789"
CALLER = {"authorization": "Bearer sk-umg-operator"}
SCRAPER = {"authorization": f"Bearer {METRICS_KEY}"}
ENVIRONMENT = {"UMG_API_KEY": "sk-umg-operator", "METRICS_KEY": METRICS_KEY}
CONFIG = """\
channels: [{{name: main, protocols: [sandbox], pace: 0, models: [famO-5]}}]
metrics: {metrics}
"""


@dataclass
class Setting:
    folder: Path
    session: aiohttp.ClientSession

    def write(self, metrics: str) -> tuple[str, str]:
        """Write a config with this entry of metrics; return the flag that names it."""
        file = self.folder / "umg.yaml"
        file.write_text(CONFIG.format(metrics=metrics))
        return "--config", str(file)

    async def status(self, url: str, headers: dict[str, str]) -> int:
        async with self.session.get(url, headers=headers) as answer:
            return answer.status

    async def call(self, served: Served) -> int:
        body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
        async with self.session.post(f"{served.http}/v1/chat/completions", json=body, headers=CALLER) as answer:
            return answer.status


@pytest_asyncio.fixture
async def setting(tmp_path: Path) -> AsyncGenerator[Setting, None]:
    async with aiohttp.ClientSession() as session:
        yield Setting(tmp_path, session)


def listener(served: Served) -> str:
    return served.printed(r"metrics +(http://\S+)")


@dataclass(frozen=True)
class Listener:
    id: str
    metrics: str
    apart: bool
    """Whether the metrics have a listener of their own."""
    keyed: bool
    arguments: tuple[str, ...] = ()


LISTENERS = [
    Listener("an address", "{address: '127.0.0.1:0'}", apart=True, keyed=False),
    Listener("a key", "{key: '${METRICS_KEY}'}", apart=False, keyed=True),
    Listener("both, and workers", "{address: '127.0.0.1:0', key: '${METRICS_KEY}'}", True, True, ("--workers", "2")),
]


@pytest.mark.parametrize("case", LISTENERS, ids=lambda case: case.id)
async def test_metrics_are_served_at_their_address_for_their_key(setting: Setting, case: Listener) -> None:
    config = setting.write(case.metrics)
    async with serve(setting.folder / "data", *config, *case.arguments, environment=ENVIRONMENT) as served:
        assert await setting.call(served) == 200
        url = listener(served) if case.apart else f"{served.http}/metrics"
        async with setting.session.get(url, headers=SCRAPER if case.keyed else {}) as answer:
            assert (answer.status, "umg_tasks" in await answer.text()) == (200, True)
        assert await setting.status(url, CALLER) == (401 if case.keyed else 200)
        assert await setting.status(f"{served.http}/metrics", SCRAPER) == (404 if case.apart else 200)
        for path in ("v1/models", "healthz") if case.apart else ():
            assert await setting.status(f"{served.http}/{path}", CALLER) == 200
            assert await setting.status(url.replace("metrics", path), CALLER) == 404
        assert await served.stop() == 0


async def test_a_service_without_the_http_face_serves_its_metrics_at_their_address(setting: Setting) -> None:
    arguments = (*setting.write("{address: '127.0.0.1:0'}"), "--faces", "grpc")
    async with serve(setting.folder / "data", *arguments, environment=ENVIRONMENT) as served:
        assert await setting.status(listener(served), {}) == 200
        assert await served.stop() == 0


async def test_a_start_that_cannot_have_the_address_of_its_metrics_ends_and_names_it(setting: Setting) -> None:
    data = setting.folder / "data"
    async with serve(data, *setting.write("{address: '127.0.0.1:0'}"), environment=ENVIRONMENT) as served:
        taken = listener(served).split("/")[2]
        arguments = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", str(data))
        config = setting.write(f"{{address: '{taken}'}}")
        code, _, err = await run("serve", *arguments, *config, environment=ENVIRONMENT)
        assert code == 1
        assert f"cannot listen on {taken} for metrics" in err
        assert "Traceback" not in err


async def test_the_list_of_models_reads_the_states_where_the_config_has_the_metrics(setting: Setting) -> None:
    config = setting.write("{address: '127.0.0.1:0', key: '${METRICS_KEY}'}")
    async with serve(setting.folder / "data", *config, environment=ENVIRONMENT) as served:
        assert await setting.call(served) == 200
        taken = listener(served).split("/")[2]
        setting.write(f"{{address: '{taken}', key: '${{METRICS_KEY}}'}}")
        for key, state in ((METRICS_KEY, "healthy"), ("another-0123456789", "-")):
            _, out, _ = await run("models", *config, environment={**ENVIRONMENT, "METRICS_KEY": key})
            [row] = [line for line in out.splitlines() if "famO-5" in line]
            assert row.split()[-1] == state
        setting.write("{key: '${METRICS_KEY}'}")
        _, out, _ = await run("models", *config, "--http", taken, environment=ENVIRONMENT)
        [row] = [line for line in out.splitlines() if "famO-5" in line]
        assert row.split()[-1] == "healthy"

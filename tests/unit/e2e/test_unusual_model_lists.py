"""Model lists that are damaged, huge or refused, and lists that several processes of a machine share."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from tests.support.gateways import Running, refresh_model_lists, running
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.service.model_discovery import ModelDiscovery
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.store.provider_model_list_files import ModelListFiles

GOOD = b'{"object": "list", "data": [{"id": "a"}, {"id": "b"}]}'
HUGE_COUNT = 10_000


@dataclass
class Lists(FakeProvider):
    """Provider that has a list, and nothing else."""

    status: int = 200
    body: bytes = GOOD
    media_type: str = "application/json"
    paths: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        self.paths.append(request.path_qs)
        return web.Response(status=self.status, body=self.body, content_type=self.media_type)


@dataclass
class Silent(FakeProvider):
    """Provider that responds to nothing until the end of the test."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        await self.ended.wait()
        return web.Response(status=500)


def config(url: str, more: str = "") -> str:
    """Return the config of a preset alone, beside an address."""
    return f"channels:\n- {{provider: ollama, base_url: '{url}/v1'{more}}}\n"


async def ids(made: Running) -> list[str]:
    async with ClientSession(headers=made.headers) as session, session.get(f"{made.url}/v1/models") as response:
        return [model["id"] for model in (await response.json())["data"]]


@dataclass(frozen=True)
class Unusual:
    """Response to the request of a list, and the reason that the operator is shown."""

    id: str
    reason: str
    body: bytes = b""
    status: int = 200
    media_type: str = "application/json"


REFUSALS = [
    Unusual("a page for browsers", "provider", b"<!doctype html><html><body>Sign in</body></html>", media_type="text/html"),
    Unusual("an empty list", "the list is empty", b'{"data": []}'),
    Unusual("no list", "provider", b'{"data": {"id": "a"}}'),
    Unusual("a number", "provider", b"7"),
    Unusual("a cut body", "provider", GOOD[:-9]),
    Unusual("a wrong key", "401", b'{"error": {"message": "wrong key"}}', 401),
    Unusual("a key without the right", "403", b'{"error": {"message": "forbidden"}}', 403),
    Unusual("no such path", "404", b"not found", 404, "text/plain"),
    Unusual("a rate limit", "", b'{"error": {"message": "slow down"}}', 429),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_the_last_list_stays_when_the_provider_sends_no_list(case: Unusual, tmp_path: Path) -> None:
    async with serve_provider(Lists()) as made, running(config(made.url), tmp_path) as gateway:
        await refresh_model_lists(gateway.service)
        assert await ids(gateway) == ["ollama/a", "ollama/b"]
        made.status, made.body, made.media_type = case.status, case.body, case.media_type
        with capture_logs() as logs:
            await refresh_model_lists(gateway.service)
        assert await ids(gateway) == ["ollama/a", "ollama/b"]
        assert 'umg_model_list_success{channel="ollama"} 0.0' in gateway.service.metrics.exposition().decode()
        (line,) = [line for line in logs if "could not be read" in line["event"]]
        assert case.reason in line["reason"]


async def test_odd_and_repeated_ids_are_left_out_and_do_no_harm(tmp_path: Path) -> None:
    body = b'{"data": [{"id": "a"}, {"id": "a"}, {"id": ""}, {"id": 7}, {}, 3, {"id": "x y"}, {"id": "b\\u0000"}, {"id": "*"}, {"id": "\\u00e9/\\ud83d\\ude00"}, {"id": "whisper-9"}]}'  # fmt: skip
    async with serve_provider(Lists(body=body)) as made, running(config(made.url), tmp_path) as gateway:
        await refresh_model_lists(gateway.service)
        assert await ids(gateway) == ["ollama/a", "ollama/é/😀"]


async def test_a_list_of_ten_thousand_models_is_served(tmp_path: Path) -> None:
    body = b'{"data": [' + b",".join(b'{"id": "m-%d"}' % number for number in range(HUGE_COUNT)) + b"]}"
    async with serve_provider(Lists(body=body)) as made, running(config(made.url), tmp_path) as gateway:
        await refresh_model_lists(gateway.service)
        assert len(await ids(gateway)) == HUGE_COUNT


@pytest.mark.parametrize(("status", "success"), [(200, "1.0"), (403, "0.0")], ids=["read", "refused"])
async def test_two_processes_of_a_machine_read_a_list_once(status: int, success: str, tmp_path: Path) -> None:
    async with (
        serve_provider(Lists(status=status)) as made,
        running(config(made.url), tmp_path) as first,
        running(config(made.url), tmp_path) as second,
    ):
        for gateway in (first, second):
            await gateway.service._discovery._first.wait()
            assert (
                f'umg_model_list_success{{channel="ollama"}} {success}' in gateway.service.metrics.exposition().decode()
            )
            assert status != 200 or await ids(gateway) == ["ollama/a", "ollama/b"]
        assert made.paths == ["/v1/models"]


async def test_channels_of_one_account_read_its_list_once(tmp_path: Path) -> None:
    async with serve_provider(Lists()) as made:
        text = config(made.url) + config(made.url, ", name: second, models: discover").partition("\n")[2]
        async with running(text, tmp_path) as gateway:
            await gateway.service._discovery._first.wait()
            assert made.paths == ["/v1/models"]
            assert await ids(gateway) == ["ollama/a", "ollama/b"]


async def test_lists_of_several_organizations_of_an_account_are_read_each(tmp_path: Path) -> None:
    async with serve_provider(Lists()) as made:
        channels = "".join(
            f"- {{name: {name}, provider: ollama, base_url: '{made.url}/v1', headers: {{openai-organization: {name}}}}}\n"
            for name in ("first", "second")
        )
        async with running(f"channels:\n{channels}", tmp_path) as gateway:
            await refresh_model_lists(gateway.service)
            assert {each.headers["openai-organization"] for each in made.received} == {"first", "second"}


async def test_lists_that_arrive_while_a_router_is_built_are_used_by_the_next_one(tmp_path: Path) -> None:
    began, released, builds = asyncio.Event(), asyncio.Event(), list[int]()

    async def build() -> None:
        builds.append(len(builds))
        began.set()
        await released.wait()

    discovery = ModelDiscovery(ModelListFiles(tmp_path), Metrics())
    await discovery.start(build)
    async with asyncio.TaskGroup() as lists:
        lists.create_task(discovery._announce())
        await began.wait()
        for _ in range(9):
            lists.create_task(discovery._announce())
        await asyncio.sleep(0)
        released.set()
    await discovery.aclose()
    assert builds == [0, 1]


async def test_a_failing_list_is_read_more_and_more_rarely_and_others_as_usual(tmp_path: Path) -> None:
    async with serve_provider(Lists(status=500)) as bad, serve_provider(Lists()) as good:
        text = config(bad.url) + config(good.url, ", name: good").partition("\n")[2]
        async with running(text, tmp_path) as gateway:
            discovery = gateway.service._discovery
            await discovery._first.wait()
            pauses = []
            for _ in range(8):
                pauses.append(discovery._pause(discovery._lists["ollama"]))
                await refresh_model_lists(gateway.service)
            assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]
            before = len(good.paths), len(bad.paths)
            await discovery._read_due()
            assert (len(good.paths), len(bad.paths)) == before


async def test_a_start_does_not_wait_for_the_list_of_a_preset(tmp_path: Path) -> None:
    async with serve_provider(Silent()) as made, running(config(made.url), tmp_path) as gateway:
        assert not gateway.service._discovery._first.is_set()
        made.ended.set()

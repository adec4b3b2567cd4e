"""Model lists that cannot be read: the reason and the remedy are in the output of the start and of `umg models`."""

import os
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from time import time

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.processes import Served, run, serve
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider

KEY, WRONG = "key-of-the-vendor-0123456789-good", "key-of-the-vendor-0123456789-gone"
NOTHING_LISTENS = "http://127.0.0.1:9/v1"


@dataclass
class Vendor(FakeProvider):
    """Provider with a list below `/v1`, and an empty one below `/empty`."""

    key: str = KEY
    """Key that it accepts; "" for a provider without keys."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path not in {"/v1/models", "/empty/models"}:
            return web.Response(status=404, text="not found")
        if self.key and received.headers.get("authorization") != f"Bearer {self.key}":
            error = {"message": f"Incorrect API key provided: {WRONG}", "code": "invalid_api_key"}
            return web.json_response({"error": error}, status=401)
        return web.json_response({"data": [{"id": "m"}] if received.path == "/v1/models" else []})


@dataclass(frozen=True)
class Failed:
    """Channel whose list cannot be read, and the beginning of its line."""

    id: str
    address: str
    line: str
    """Regular expression; `AGE` stands for an age."""
    key: str = KEY


FAILED = [
    Failed("wrong-key", "URL/v1", r"wrong_key, AGE ago: the provider refuses the key \.\.\.gone: replace `api_key`, or check `auth` \(status 401: Incorrect API key provided: \[key\]\); no list was read yet", WRONG),
    Failed("wrong-path", "URL/v2", r"wrong_address, AGE ago: nothing is served at /v2/models of 127\.0\.0\.1:\d+: correct `base_url` \(status 404.*\); no list was read yet"),
    Failed("no-network", NOTHING_LISTENS, r"unreachable, AGE ago: no connection to 127\.0\.0\.1:9: check that it runs, the port and the firewall.*; no list was read yet"),
    Failed("empty", "URL/empty", r"AGE ago: the list is empty; no list was read yet"),
]  # fmt: skip


def config(url: str) -> str:
    channels = [*FAILED, Failed("fine", "URL/v1", "")]
    lines = (
        f"- {{name: {each.id}, protocols: [chat], api_key: {each.key}, models: discover, "
        f"base_url: '{each.address.replace('URL', url)}'}}\n"
        for each in channels
    )
    return f"channels:\n{''.join(lines)}"


@dataclass(frozen=True)
class Seen:
    """Output of the commands about the lists of a gateway."""

    start: list[str]
    log: list[str]
    stored: str
    """Output of `umg models` for the config and the data directory."""
    remote: str
    """Output of `umg models --gateway`."""


def written(url: str, folder: Path) -> tuple[str, ...]:
    (folder / "umg.yaml").write_text(config(url))
    return ("--config", str(folder / "umg.yaml"))


async def models(served: Served, *arguments: str) -> str:
    code, out, err = await run("models", *arguments, environment={"UMG_ADMIN_KEY": served.key})
    assert code == 0, err
    return out


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["1", "3"])
async def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Seen, None]:
    """Start a gateway of one process, or of several workers, and yield the output that its operator sees."""
    folder = tmp_path_factory.mktemp("lists")
    async with serve_provider(Vendor()) as vendor:
        flags = written(vendor.url, folder)
        async with serve(folder / "data", *flags, "--workers", request.param) as served:
            stored = await models(served, *flags, "--data", str(folder / "data"), "--http", "127.0.0.1:1")
            remote = await models(served, "--gateway", served.url)
            assert await served.stop() == 0
    yield Seen(served.lines, served.log, stored, remote)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
async def test_the_reason_is_where_the_operator_looks(case: Failed, seen: Seen) -> None:
    line = re.compile(f"{case.id}: {case.line.replace('AGE', '[0-9]+ (s|min)')}")
    for text in ("\n".join(seen.start), seen.stored, seen.remote):
        assert line.search(text), text
        assert WRONG not in text
        assert "fine: " not in text


async def test_each_failure_is_in_the_log_once(seen: Seen) -> None:
    """Also of several workers, of which one reads the lists."""
    logged = [line for line in seen.log if "model list of a channel could not be read" in line]
    assert sorted(next(each.id for each in FAILED if each.id in line) for line in logged) == sorted(
        each.id for each in FAILED
    )


async def test_a_start_names_the_models_that_are_listed(seen: Seen) -> None:
    assert "  models  m" in seen.start


async def test_the_list_that_is_used_is_named_and_a_mended_channel_is_no_more(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), "--http", "127.0.0.1:1")
    async with serve_provider(Vendor()) as vendor:
        for key, used in ((KEY, ""), (WRONG, r"fine: wrong_key, .*; the list of \d+ (s|min) ago is used"), (KEY, "")):
            channel = f"{{name: fine, protocols: [chat], api_key: {key}, models: ['*'], base_url: '{vendor.url}/v1'}}"
            (tmp_path / "umg.yaml").write_text(f"channels: [{channel}]\n")
            flags = ("--config", str(tmp_path / "umg.yaml"))
            async with serve(tmp_path / "data", *flags) as served:
                if used:
                    await served.until_logged("could not be read")
                out = await models(served, *flags, *data)
                assert await served.stop() == 0
            for stored in (tmp_path / "data" / "model-lists").glob("*.pb"):
                os.utime(stored, (0, time() - 60))  # a process uses the list that another one has just read
            assert re.search(used, out), out
            assert ("could not be read" in out) == bool(used)
            assert out.splitlines()[1].split()[:2] == ["m", "fine"]


@pytest.mark.parametrize("workers", ["1", "3"])
async def test_a_start_names_the_models_of_presets_once(workers: str, tmp_path: Path) -> None:
    """Lists of presets are read in the background; a start waits for them where no models are known."""
    async with serve_provider(Vendor(key="")) as vendor:
        (tmp_path / "umg.yaml").write_text(
            f"discovery: {{wait: 60}}\nchannels: [{{provider: ollama, base_url: '{vendor.url}/v1'}}]\n"
        )
        async with serve(tmp_path / "data", "--config", str(tmp_path / "umg.yaml"), "--workers", workers) as served:
            assert [line for line in served.lines if "models" in line][:1] == ["  models  ollama/m, ollama/*"]

"""Models that a provider lists and refuses as unknown: callers get 404, and no list has them until they answer again."""

import re
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

from tests.support.gateways import Running, running
from tests.support.providers.every_operation import CHAT
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.cli.model_list_command import list_models
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import parse


@dataclass
class Vendor(FakeProvider):
    """Provider that lists models which it does not serve to this account, and serves one that it does not list."""

    listed: list[str] = field(default_factory=lambda: ["here", "gone"])
    served: list[str] = field(default_factory=lambda: ["here", "hidden"])

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response({"data": [{"id": each} for each in self.listed]})
        model = received.json["model"]
        if model not in self.served:
            message = f"The model `{model}` does not exist or you do not have access to it."
            error = {"message": message, "type": "invalid_request_error", "code": "model_not_found"}
            return web.json_response({"error": error}, status=404)
        return web.json_response(CHAT)


@pytest_asyncio.fixture
async def vendor() -> AsyncGenerator[Vendor, None]:
    async with serve_provider(Vendor()) as made:
        yield made


def config(url: str, models: str) -> str:
    return (
        "discovery: {wait: 60}\nretries: {repeats: 0}\nchannels:\n"
        f"- {{name: main, protocols: [chat], base_url: '{url}/v1', api_key: k, models: {models}}}\n"
    )


async def ids(made: Running) -> list[str]:
    async with ClientSession(headers=made.headers) as session, session.get(f"{made.url}/v1/models") as response:
        return [model["id"] for model in (await response.json())["data"]]


async def call(made: Running, model: str) -> tuple[int, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    url = f"{made.url}/v1/chat/completions"
    async with ClientSession(headers=made.headers) as session, session.post(url, json=body) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("models", ["discover", "['*']"])
async def test_a_model_of_the_list_that_is_refused_leaves_the_list_of_all_processes(
    models: str, vendor: Vendor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config(vendor.url, models)
    async with running(text, tmp_path) as first, running(text, tmp_path) as second:
        assert await ids(first) == await ids(second) == ["gone", "here"]
        for made in (first, second):
            status, body = await call(made, "gone")
            assert (status, body["error"]["code"]) == (404, "model_not_found")
            assert "`gone` does not exist" in body["error"]["message"]
            assert await ids(made) == ["here"]
        assert (await call(first, "here"))[0] == 200
    async with running(text, tmp_path) as third:
        assert await ids(third) == ["here"]
        vendor.served.append("gone")
        assert (await call(third, "gone"))[0] == 200
        assert await ids(third) == ["gone", "here"]
    async with running(text, tmp_path) as fourth:
        assert await ids(fourth) == ["gone", "here"]


async def test_the_operator_sees_why_a_model_is_not_listed(
    vendor: Vendor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = config(vendor.url, "discover")
    began = time.time()
    async with running(text, tmp_path) as gateway:
        await call(gateway, "gone")
    await list_models(parse(text, "umg.yaml", {}), {}, tmp_path, Form.TABLE)
    shown = re.search(
        r"main: wrong_model, (\d+) s ago: status 404, code model_not_found, model gone", capsys.readouterr().out
    )
    assert shown is not None
    assert 1 <= int(shown[1]) <= 1 + time.time() - began


async def test_a_model_that_the_operator_names_stays_in_the_list(vendor: Vendor, tmp_path: Path) -> None:
    async with running(config(vendor.url, "[gone]"), tmp_path) as gateway:
        status, _ = await call(gateway, "gone")
        assert status == 502
        assert await ids(gateway) == ["gone"]


async def test_a_model_that_another_channel_serves_stays_in_the_list(vendor: Vendor, tmp_path: Path) -> None:
    second = f"- {{name: second, protocols: [chat], base_url: '{vendor.url}/v1', priority: 1, models: [{{id: gone, upstream: here}}]}}\n"
    async with running(config(vendor.url, "discover") + second, tmp_path) as gateway:
        assert (await call(gateway, "gone"))[0] == 200
        assert await ids(gateway) == ["gone", "here"]


@pytest.mark.parametrize(("models", "status"), [("discover", 404), ("['*']", 200)])
async def test_a_model_that_the_provider_hides_is_served_by_a_pattern(
    models: str, status: int, vendor: Vendor, tmp_path: Path
) -> None:
    async with running(config(vendor.url, models), tmp_path) as gateway:
        assert (await call(gateway, "hidden"))[0] == status
        assert "hidden" not in await ids(gateway)

"""Models of providers' lists: served, refreshed, and kept over failures and restarts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from tests.support.gateways import Running, refresh_model_lists, running
from tests.support.providers.scripted import Scripted, succeed
from tests.support.providers.server import ReceivedRequest, serve_provider
from umg_grpc.cli.model_list_command import list_models
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import parse

ROWS = [
    {"id": "vendor/a", "context_length": 1000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
    {"id": "vendor/b"},
]


@dataclass
class Listing(Scripted):
    rows: list[dict[str, Any]] = field(default_factory=lambda: list(ROWS))
    status: int = 200

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if request.method != "GET":
            return await super().answer(request, received)
        if received.headers.get("authorization") != "Bearer sk-provider-key" or received.path != "/v1/models":
            return web.json_response({"error": {"message": "wrong"}}, status=401)
        return web.json_response({"object": "list", "data": self.rows}, status=self.status)


def config(url: str, models: str = "discover", more: str = "") -> str:
    return (
        f"discovery: {{wait: 60}}\nchannels:\n- name: lister\n  protocols: [chat]\n  base_url: {url}/v1\n"
        f"  api_key: sk-provider-key\n  models: {models}\n{more}"
    )


async def listed(made: Running) -> list[dict[str, Any]]:
    async with ClientSession() as session, session.get(f"{made.url}/v1/models", headers=made.headers) as response:
        return list((await response.json())["data"])


async def ids(made: Running) -> list[str]:
    return [model["id"] for model in await listed(made)]


async def call(made: Running, model: str) -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    async with (
        ClientSession() as session,
        session.post(f"{made.url}/v1/chat/completions", json=body, headers=made.headers) as response,
    ):
        return response.status


@asynccontextmanager
async def provider() -> AsyncGenerator[Listing, None]:
    async with serve_provider(Listing(name="lister", scripts=[succeed])) as made:
        yield made


async def test_listed_models_are_served_with_their_properties_and_others_are_not(tmp_path: Path) -> None:
    async with provider() as made, running(config(made.url), tmp_path) as gateway:
        first, second = await listed(gateway)
        assert (first["id"], second["id"]) == ("vendor/a", "vendor/b")
        described = gateway.service._channels.router.resolve("vendor/a").model.described
        assert described.input_token_limit == 1000
        assert [price.micro_credits_per_million for price in described.prices] == [1_000_000, 2_000_000]
        assert await call(gateway, "vendor/a") == 200
        assert made.last["model"] == "vendor/a"
        assert await call(gateway, "vendor/absent") == 404


async def test_a_new_model_is_usable_after_a_refresh_and_an_old_one_goes(tmp_path: Path) -> None:
    async with provider() as made, running(config(made.url), tmp_path) as gateway:
        made.rows = [{"id": "vendor/b"}, {"id": "vendor/c"}]
        assert await call(gateway, "vendor/c") == 404
        await refresh_model_lists(gateway.service)
        assert await ids(gateway) == ["vendor/b", "vendor/c"]
        assert (await call(gateway, "vendor/c"), await call(gateway, "vendor/a")) == (200, 404)


async def test_a_failed_refresh_keeps_the_last_list_and_is_logged_once(tmp_path: Path) -> None:
    async with provider() as made, running(config(made.url), tmp_path) as gateway:
        made.status = 500
        with capture_logs() as logs:
            await refresh_model_lists(gateway.service)
            await refresh_model_lists(gateway.service)
            made.status, rows = 200, made.rows
            made.rows = []
            await refresh_model_lists(gateway.service)
            assert await ids(gateway) == ["vendor/a", "vendor/b"]
            assert 'umg_model_list_success{channel="lister"} 0.0' in gateway.service.metrics.exposition().decode()
            made.rows = rows
            await refresh_model_lists(gateway.service)
        assert 'umg_model_list_success{channel="lister"} 1.0' in gateway.service.metrics.exposition().decode()
        events = [line for line in logs if "model list" in line["event"]]
        assert [line["event"] for line in events] == [
            "the model list of a channel could not be read; the last one stays",
            "the model list of a channel can be read again",
        ]
        assert (events[0]["channel"], events[0]["upstream_status"]) == ("lister", 500)
        assert "sk-provider-key" not in str(logs)


async def test_a_start_without_the_provider_serves_the_list_of_the_last_run(tmp_path: Path) -> None:
    async with provider() as made:
        async with running(config(made.url), tmp_path):
            pass
        made.status = 503
        async with running(config(made.url), tmp_path) as gateway:
            assert await ids(gateway) == ["vendor/a", "vendor/b"]
            assert await call(gateway, "vendor/b") == 200


async def test_without_any_list_the_patterns_serve_and_the_start_waits_a_bounded_time(tmp_path: Path) -> None:
    async with provider() as made:
        made.status = 404
        async with running(config(made.url), tmp_path) as gateway:
            assert await ids(gateway) == []
            assert await call(gateway, "vendor/a") == 200


async def test_patterns_filter_and_rename_the_list(tmp_path: Path) -> None:
    models = "[{id: 'mine/*', upstream: 'vendor/*'}, {id: best, upstream: vendor/a}]\n  discover: true"
    async with provider() as made:
        made.rows = [*ROWS, {"id": "other/a"}]
        async with running(config(made.url, models), tmp_path) as gateway:
            assert await ids(gateway) == ["best", "mine/a", "mine/b"]
            assert await call(gateway, "mine/new") == 200  # the pattern stays
            assert made.last["model"] == "vendor/new"


async def test_a_channel_for_every_model_lists_them_too(tmp_path: Path) -> None:
    async with provider() as made, running(config(made.url, '["*"]'), tmp_path) as gateway:
        assert await ids(gateway) == ["vendor/a", "vendor/b"]
        assert await call(gateway, "any") == 200


async def test_the_config_precedes_the_list(tmp_path: Path) -> None:
    more = "models:\n  vendor/a: {display_name: Mine, price: {input: 7}}\n"
    async with provider() as made, running(config(made.url, "discover", more), tmp_path) as gateway:
        described = gateway.service._channels.router.resolve("vendor/a").model.described
        assert (described.display_name, described.input_token_limit) == ("Mine", 1000)
        assert [price.micro_credits_per_million for price in described.prices] == [7_000_000]


@dataclass
class Paged(Scripted):
    """Provider with pages in the shapes of the two vendors that have them."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        query = received.query
        if received.headers.get("x-api-key") == "ka" and "anthropic-version" in received.headers:
            page = {"data": [{"id": "claude-b"}]} if query.get("after_id") == "claude-a" else None
            first = {"data": [{"id": "claude-a"}], "has_more": True, "last_id": "claude-a"}
            return web.json_response(page or first)
        if received.headers.get("x-goog-api-key") == "kg":
            page = {"models": [{"name": "models/gemini-b"}]} if query.get("pageToken") == "n" else None
            return web.json_response(page or {"models": [{"name": "models/gemini-a"}], "nextPageToken": "n"})
        return web.json_response({}, status=401)


async def test_all_pages_of_a_list_are_read(tmp_path: Path) -> None:
    async with serve_provider(Paged(name="paged", scripts=[])) as made:
        text = (
            f"discovery: {{wait: 60}}\nchannels:\n"
            f"- {{provider: anthropic, api_key: ka, base_url: {made.url}/v1, models: discover}}\n"
            f"- {{provider: gemini, api_key: kg, base_url: {made.url}/v1beta, models: discover}}\n"
        )
        async with running(text, tmp_path) as gateway:
            assert await ids(gateway) == ["claude-a", "claude-b", "gemini-a", "gemini-b"]


async def test_a_reload_discovers_the_models_of_a_new_channel_and_keeps_the_others(tmp_path: Path) -> None:
    async with provider() as made, provider() as other, running(config(made.url), tmp_path) as gateway:
        other.rows = [{"id": "other/c"}]
        text = f"{config(made.url)}- {{name: second, protocols: [chat], base_url: {other.url}/v1, models: discover}}\n"
        other_keyed = text.replace("models: discover}", "models: discover, api_key: sk-provider-key}")
        gateway.service.reload(parse(other_keyed, "umg.yaml", {}))
        assert await call(gateway, "vendor/a") == 200  # the last list, before a refresh
        await refresh_model_lists(gateway.service)
        assert await ids(gateway) == ["other/c", "vendor/a", "vendor/b"]
        gateway.service.reload(parse(config(made.url), "umg.yaml", {}))
        assert await ids(gateway) == ["vendor/a", "vendor/b"]


async def test_umg_models_lists_the_models_that_a_gateway_has_discovered(tmp_path: Path, capsys: Any) -> None:
    async with provider() as made:
        async with running(config(made.url), tmp_path):
            pass
        await list_models(parse(config(made.url), "umg.yaml", {}), {}, tmp_path, Form.TABLE)
    assert "vendor/a" in capsys.readouterr().out

"""Changes of channels while a gateway runs: disabled ones and other weights, by HTTP and gRPC, on both databases."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web
from google.protobuf.field_mask_pb2 import FieldMask

from tests.support.databases import Database
from tests.support.gateways import Running, channel, running
from tests.support.serving import serving
from tests.support.video_calls import until
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.users import SERVICE_ACCOUNT, Users
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import parse
from umg_grpc.store.alert_facts import AlertFacts
from umg_grpc.v1 import pb, rpc

MESSAGES = [{"role": "user", "content": "Hi"}]


class Provider:
    """Provider of chat responses, which names itself in them and can hold them back."""

    def __init__(self, name: str) -> None:
        self.name, self.url, self.calls, self.lists = name, "", 0, 0
        self.answers = asyncio.Event()
        self.answers.set()

    async def chat(self, _: web.Request) -> web.Response:
        self.calls += 1
        await self.answers.wait()
        message = {"role": "assistant", "content": self.name}
        body = {"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return web.json_response(body, headers={"x-request-id": f"req-of-{self.name}"})

    async def models(self, _: web.Request) -> web.Response:
        self.lists += 1
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})


@dataclass
class World:
    providers: dict[str, Provider]
    stack: AsyncExitStack

    def config(self, database: str = "sqlite", *, a: str = "", b: str = "", more: str = "") -> str:
        """Return the config of two channels of the model `m`. `a`, `b`: further lines of the channels."""
        found = [
            channel(name, "chat", self.providers[name].url, "m").rstrip() + f"\n{extra}"
            for name, extra in (("a", a), ("b", b))
        ]
        return f"database: {database}\n{more}channels:\n{''.join(found)}"


@asynccontextmanager
async def two_providers() -> AsyncGenerator[World, None]:
    async with AsyncExitStack() as stack:
        providers = {name: Provider(name) for name in "ab"}
        for provider in providers.values():
            app = web.Application()
            app.router.add_post("/v1/chat/completions", provider.chat)
            app.router.add_get("/v1/models", provider.models)
            provider.url = f"{await stack.enter_async_context(serving(app))}/v1"
        yield World(providers, stack)


async def talk(gateway: Running, session: aiohttp.ClientSession, key: str = "") -> tuple[int, str]:
    """Call the model. Return the status, and the channel that responded or the error's message."""
    headers = {"authorization": f"Bearer {key or gateway.key}"}
    body = {"model": "m", "messages": MESSAGES}
    async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
        found = await response.json()
    if response.status == 200:
        return 200, str(found["choices"][0]["message"]["content"])
    return response.status, str(found["error"]["message"])


def disabled(gateway: Running) -> list[str]:
    """Return the channels of the model that are disabled for calls."""
    return [target.channel.name for target in gateway.service.router.targets("m") if target.channel.disabled]


async def change(
    gateway: Running, session: aiohttp.ClientSession, name: str, key: str = "", **body: Any
) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key or gateway.key}"}
    async with session.patch(f"{gateway.url}/admin/v1/channels/{name}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def details(gateway: Running, session: aiohttp.ClientSession, name: str = "") -> Any:
    url = f"{gateway.url}/admin/v1/channel-details"
    async with session.get(url, params={"channel": name} if name else {}, headers=gateway.headers) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_a_disabled_channel_gets_no_calls_until_it_is_enabled(prepared_database: Database) -> None:
    async with (
        two_providers() as world,
        running(world.config(prepared_database.url), prepared_database.data_dir) as gateway,
        aiohttp.ClientSession() as session,
    ):
        assert {(await talk(gateway, session))[1] for _ in range(2)} == {"a", "b"}
        status, body = await change(gateway, session, "a", settings={"disabled": True}, note="unpaid")
        assert (status, body["settings"], body["models_without_channel"]) == (200, {"disabled": True, "weight": 1}, [])
        [override] = body["overrides"]
        assert (override["setting"], override["note"], override["actor_name"]) == ("disabled", "unpaid", "bootstrap")
        assert [await talk(gateway, session) for _ in range(3)] == [(200, "b")] * 3
        status, body = await change(gateway, session, "a", settings={"disabled": False})
        assert (status, body["settings"]["disabled"], body["overrides"]) == (200, False, [])
        assert {(await talk(gateway, session))[1] for _ in range(2)} == {"a", "b"}


async def test_a_weight_holds_and_goes_back_to_that_of_the_config(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        status, body = await change(gateway, session, "a", settings={"weight": 3})
        assert (status, body["settings"]["weight"]) == (200, 3)
        assert sorted([(await talk(gateway, session))[1] for _ in range(8)]) == ["a"] * 6 + ["b"] * 2
        status, body = await change(gateway, session, "a", settings={"weight": None})
        assert (status, body["settings"]["weight"], body["overrides"]) == (200, 1, [])
        assert sorted([(await talk(gateway, session))[1] for _ in range(4)]) == ["a", "a", "b", "b"]


async def test_calls_in_flight_end_normally(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(b="    priority: 1\n"), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        provider = world.providers["a"]
        provider.answers.clear()
        call = asyncio.create_task(talk(gateway, session))
        await until(lambda: provider.calls == 1)
        assert (await change(gateway, session, "a", settings={"disabled": True}))[0] == 200
        assert await talk(gateway, session) == (200, "b")
        provider.answers.set()
        assert await call == (200, "a")


async def test_the_last_channel_is_disabled_after_a_dry_run_names_its_models(tmp_path: Path) -> None:
    more = "aliases: {fast: m}\nfallbacks: {}\n"
    async with (
        two_providers() as world,
        running(world.config(more=more), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        assert (await talk(gateway, session))[0] == 200
        assert (await change(gateway, session, "a", settings={"disabled": True}))[0] == 200
        usage = gateway.service._usage
        assert usage is not None
        lost: list[Any] = []
        async with asyncio.timeout(30):
            while not lost or lost[0]["calls"] == 0:  # its record is written within seconds
                status, body = await change(gateway, session, "b", settings={"disabled": True}, dry_run=True)
                assert (status, body["settings"]["disabled"], body["overrides"]) == (200, True, [])
                lost = body["models_without_channel"]
        assert lost == [{"model": "m", "calls": 1, "aliases": ["fast"]}]
        assert await talk(gateway, session) == (200, "b")
        status, body = await change(gateway, session, "b", settings={"disabled": True})
        assert body["models_without_channel"] == lost
        status, message = await talk(gateway, session)
        assert (status, "all channels that serve the model `m` are disabled" in message) == (503, True)
        async with session.get(f"{gateway.url}/v1/models", headers=gateway.headers) as response:
            assert "m" in [each["id"] for each in (await response.json())["data"]]


async def test_the_fallbacks_of_a_model_are_called_if_its_channels_are_disabled(tmp_path: Path) -> None:
    async with two_providers() as world:
        config = world.config(more="fallbacks: {m: {unavailable: [other]}}\n") + channel(
            "c", "chat", world.providers["b"].url, "other", "m"
        )
        async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
            for name in "ab":
                assert (await change(gateway, session, name, settings={"disabled": True}))[0] == 200
            assert await talk(gateway, session) == (200, "b")


async def test_a_weight_of_the_file_is_fixed_but_a_channel_can_always_be_disabled(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(a="    weight: 2\n"), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        status, body = await change(gateway, session, "a", settings={"weight": 3})
        assert (status, body["error"]["type"]) == (400, "invalid_request_error")
        assert "test.yaml:8 states the weight of `a`" in body["error"]["message"]
        [shown] = (await details(gateway, session, "a"))["channels"]
        assert (shown["config_weight"], shown["config_weight_place"]) == (2, "test.yaml:8")
        assert (await change(gateway, session, "a", settings={"disabled": True}))[0] == 200
        for name, settings, expected in (
            ("none", {"disabled": True}, 404),
            ("b", {}, 400),
            ("b", {"weight": -1}, 400),
            ("b", {"priority": 1}, 400),
        ):
            status, body = await change(gateway, session, name, settings=settings)
            assert status == expected, (name, settings, body)
        status, body = await change(gateway, session, "b", settings={"weight": 1}, note="x" * 301)
        assert (status, body["error"]["param"]) == (400, "note")


async def test_changes_survive_a_restart_and_a_config_without_the_channel(prepared_database: Database) -> None:
    data, url = prepared_database.data_dir, prepared_database.url
    async with two_providers() as world, aiohttp.ClientSession() as session:
        async with running(world.config(url), data) as gateway:
            assert (await change(gateway, session, "a", settings={"disabled": True}, note="night"))[0] == 200
            assert (await change(gateway, session, "b", settings={"weight": 0}))[0] == 200
        async with running(world.config(url), data) as gateway:
            assert [await talk(gateway, session) for _ in range(2)] == [(200, "b")] * 2
            renamed = world.config(url, b="    weight: 4\n").replace("name: a", "name: c")
            gateway.service.reload(parse(renamed, "umg.yaml", {}))
            assert {(await talk(gateway, session))[1] for _ in range(5)} == {"a", "b"}
            found = await details(gateway, session)
            [orphan] = found["overrides_without_channel"]
            assert (orphan["channel"], orphan["note"]) == ("a", "night")
            assert orphan["ineffective_reason"] == "the config has no channel of this name"
            [weight] = next(each for each in found["channels"] if each["channel"] == "b")["overrides"]
            assert weight["ineffective_reason"] == "umg.yaml:13 states the weight"
            gateway.service.reload(parse(world.config(url), "umg.yaml", {}))
            assert [await talk(gateway, session) for _ in range(2)] == [(200, "b")] * 2
            gateway.service.reload(parse(renamed, "umg.yaml", {}))
            status, body = await change(gateway, session, "a", settings={"disabled": False})  # removes the orphan
            assert (status, body["settings"], body["overrides"]) == (200, None, [])
            assert (await details(gateway, session))["overrides_without_channel"] == []


async def test_replicas_apply_a_change_within_seconds(prepared_database: Database, tmp_path: Path) -> None:
    if prepared_database.url == "sqlite":
        data = prepared_database.data_dir  # as two workers have it
    else:
        (data := tmp_path / "other").mkdir()
    async with (
        two_providers() as world,
        running(world.config(prepared_database.url), prepared_database.data_dir) as one,
        running(world.config(prepared_database.url), data) as two,
        aiohttp.ClientSession() as session,
    ):
        assert (await change(one, session, "a", settings={"disabled": True}))[0] == 200
        await until(lambda: disabled(two) == ["a"])
        assert [await talk(two, session) for _ in range(2)] == [(200, "b")] * 2
        assert (await change(two, session, "a", settings={"disabled": False}))[0] == 200
        await until(lambda: disabled(one) == [])
        assert {(await talk(one, session))[1] for _ in range(2)} == {"a", "b"}


async def test_the_model_list_of_a_disabled_channel_is_not_read(tmp_path: Path) -> None:
    listed = "    discover: true\n"
    async with two_providers() as world:
        config = world.config(a=listed).replace(
            "models: [{id: m, upstream: m}]\n    discover", "models: ['*']\n    discover"
        )
        async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
            provider = world.providers["a"]
            assert (await change(gateway, session, "a", settings={"disabled": True}))[0] == 200
            reads = provider.lists
            discovery = gateway.service._discovery
            for each in discovery._lists.values():
                each.due = 0
            await discovery._read_due()
            assert provider.lists == reads
            assert (await change(gateway, session, "a", settings={"disabled": False}))[0] == 200
            await until(lambda: provider.lists > reads)


async def test_a_disabled_channel_is_no_outage(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        health, facts = gateway.service._shared.health, AlertFacts(gateway.service.store, "reader")
        down = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the key is wrong").with_failure(Failure.DOWN)
        health.end("a", "m", down, health.begin("a", "m"))
        await gateway.service.alerts.outages.report()
        assert [each.channel for each in await facts.outages()] == ["a"]
        [shown] = (await details(gateway, session, "a"))["channels"]
        assert (shown["state"], bool(shown["models"][0]["not_closed_since_time"])) == ("open", True)
        assert (await change(gateway, session, "a", settings={"disabled": True}))[0] == 200
        await gateway.service.alerts.outages.report()
        assert await facts.outages() == []
        lines = gateway.service.metrics.exposition().decode().splitlines()
        assert 'umg_channel_disabled{channel="a"} 1.0' in lines
        assert not any(line.startswith('umg_channel_state{channel="a"') for line in lines)


async def test_changes_and_refusals_are_audited_and_listed(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        store = gateway.service.store
        made = {"name": "ada", "memberships": [Membership(WHOLE_GATEWAY, Role.ADMIN)]}
        admin = await Users(store).create(SERVICE_ACCOUNT, made)  # type: ignore[arg-type]
        _, key = await ApiKeys(store).create("of ada", user_id=admin.user_id)
        status, body = await change(gateway, session, "a", key=key, settings={"disabled": True})
        assert (status, "your role is admin of the gateway" in body["error"]["message"]) == (403, True)
        async with session.post(
            f"{gateway.url}/admin/v1/channels/a/check", json={}, headers={"authorization": f"Bearer {key}"}
        ) as response:
            assert (response.status, (await response.json())["check"]["outcome"]) == (200, "succeeded")
        assert (await change(gateway, session, "a", settings={"disabled": True, "weight": 2}, note="slow"))[0] == 200
        async with session.get(
            f"{gateway.url}/admin/v1/audit", params={"object_kinds": "channel"}, headers=gateway.headers
        ) as response:
            changed, checked, refused = (await response.json())["events"]
        assert (changed["object_id"], changed["before_json"], changed["after_json"]) == (
            "a",
            '{"disabled":false,"note":"","weight":null}',
            '{"disabled":true,"note":"slow","weight":2}',
        )
        assert (checked["actor_name"], checked["after_json"]) == ("ada", '{"check":"succeeded"}')
        assert (refused["refused"], refused["object_id"]) == (True, "a")
        async with session.get(f"{gateway.url}/admin/v1/channels", headers=gateway.headers) as response:
            overrides = (await response.json())["overrides"]
        assert [(each["channel"], each["setting"], each["value"]) for each in overrides] == [
            ("a", "disabled", 1),
            ("a", "weight", 2),
        ]


async def test_grpc_callers_change_channels_by_a_mask(tmp_path: Path) -> None:
    async with (
        two_providers() as world,
        running(world.config(), tmp_path) as gateway,
        grpc.aio.insecure_channel(gateway.grpc) as connection,
    ):
        stub, key = rpc.ChannelServiceStub(connection), [("authorization", f"Bearer {gateway.key}")]
        request = pb.UpdateChannelRequest(channel="a", update_mask=FieldMask(paths=["disabled", "weight"]))
        request.settings.disabled, request.settings.weight = True, 0
        response = await stub.UpdateChannel(request, metadata=key)
        assert (response.settings.disabled, response.settings.weight) == (True, 0)
        for paths in ([], ["priority"]):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.UpdateChannel(
                    pb.UpdateChannelRequest(channel="a", update_mask=FieldMask(paths=paths)), metadata=key
                )
            assert from_rpc(refused.value).metadata["field"] == "update_mask"

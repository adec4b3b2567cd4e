"""Alerts as administrators see them: over HTTP and gRPC, and by the commands of a gateway and of its database."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from tests.support.alert_receivers import WebhookServer, webhook_server
from tests.support.alerts import Facts
from tests.support.gateways import SANDBOX, Running, running
from tests.support.processes import run
from tests.support.store_fixtures import Clock
from tests.support.video_calls import until
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import parse
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb, rpc

CREDIT = 10**6


@asynccontextmanager
async def alerting(data: Path) -> AsyncGenerator[tuple[Running, WebhookServer, str], None]:
    """Run a gateway with a receiver that works, and one that is away. Yield its config, too."""
    async with webhook_server() as server:
        away = "    away: {kind: slack, url: 'http://127.0.0.1:1/services'}\n"
        config = f"{SANDBOX}alerts:\n  interval: 1\n  receivers:\n{server.config()}{away}  rules: {{budget: {{receivers: [ops]}}}}\n"
        async with running(config, data) as gateway:
            yield gateway, server, config


async def spend(gateway: Running, *names: str) -> None:
    """Spend the budgets of new keys."""
    facts = Facts(gateway.service.store, Clock(utc_of(gateway.service.store.clock)))
    for name in names:
        await facts.spend(await facts.key(name, CREDIT, ""), CREDIT, "")


async def test_a_running_gateway_notifies_and_lists_its_alerts(tmp_path: Path) -> None:
    async with alerting(tmp_path) as (gateway, server, _), aiohttp.ClientSession(headers=gateway.headers) as session:
        await spend(gateway, "one", "two", "three")
        await until(lambda: len(server.received) == 3)
        records, token = list[Any](), ""
        for page in range(3):
            async with session.get(f"{gateway.url}/admin/v1/alerts?page_size=4&page_token={token}") as response:
                found = await response.json()
            records += found["alerts"]
            token = found["next_page_token"]
            assert (token == "") == (page == 2)
        opened = sorted((each["alert"]["details"]["name"], each["alert"]["threshold_percent"]) for each in records)
        assert opened == [(name, percent) for name in ("one", "three", "two") for percent in (50, 80, 100)]
        assert {each["alert"]["close_time"] for each in records} == {None}
        sent = [each for each in records if each["deliveries"]]
        assert {each["alert"]["threshold_percent"] for each in sent} == {100}
        assert [each["deliveries"][0]["receiver"] for each in sent] == ["ops"] * 3
        for query, number in (("open_only=true", 9), ("rules=budget,error_share", 9), ("rules=error_share", 0)):
            async with session.get(f"{gateway.url}/admin/v1/alerts?{query}") as response:
                assert len((await response.json())["alerts"]) == number, query


async def test_a_receiver_is_tested_over_http_and_grpc(tmp_path: Path) -> None:
    async with alerting(tmp_path) as (gateway, server, _):
        async with aiohttp.ClientSession(headers=gateway.headers) as session:
            for name, status, error in (
                ("ops", 200, ""),
                ("away", 200, "no response: UPSTREAM_UNREACHABLE"),
                ("none", 404, "the config has no alert receiver none"),
            ):
                async with session.post(f"{gateway.url}/admin/v1/alert-receivers/{name}/test") as response:
                    body = await response.json()
                assert response.status == status
                if status == 200:
                    assert body["delivery"]["last_error"] == error
                    assert (body["delivery"]["delivered_time"] is None) == bool(error)
                else:
                    assert error in body["error"]["message"]
        async with grpc.aio.insecure_channel(gateway.grpc) as channel:
            stub, key = rpc.AlertServiceStub(channel), [("authorization", f"Bearer {gateway.key}")]
            done = await stub.TestAlertReceiver(pb.TestAlertReceiverRequest(receiver="ops"), metadata=key)
            assert done.delivery.event == pb.ALERT_EVENT_TESTED
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.TestAlertReceiver(pb.TestAlertReceiverRequest(), metadata=key)
            assert from_rpc(refused.value).metadata["field"] == "receiver"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.ListAlerts(pb.ListAlertsRequest(page_token="x"), metadata=key)
            assert from_rpc(refused.value).metadata["field"] == "page_token"
        assert [event for event, _, _ in server.events] == ["tested", "tested"]


async def test_the_commands_list_alerts_and_test_receivers_on_a_database_and_at_a_gateway(tmp_path: Path) -> None:
    async with alerting(tmp_path) as (gateway, server, config):
        await spend(gateway, "ci")
        await until(lambda: len(server.received) == 1)
        (file := tmp_path / "umg.yaml").write_text(config)
        remote = {"UMG_GATEWAY": gateway.url, "UMG_ADMIN_KEY": gateway.key}
        local = ("--config", str(file), "--data", str(tmp_path))
        for flags, environment in (((), remote), (local, {})):
            code, out, err = await run("alerts", "list", *flags, environment=environment)
            assert (code, err) == (0, "")
            assert "The budget of the key `ci` is spent to 100 %" in out
            code, out, err = await run("alerts", "list", "--open", "--json", *flags, environment=environment)
            assert {each["alert"]["rule"] for each in json.loads(out)} == {"budget"}
            code, out, err = await run("alerts", "test", "ops", *flags, environment=environment)
            assert (code, out.startswith("ops accepted the test msg_"), err) == (0, True, "")
            code, out, err = await run("alerts", "test", "away", *flags, environment=environment)
            assert (code, err) == (1, "umg: away did not accept the test: no response: UPSTREAM_UNREACHABLE\n")
            code, out, err = await run("alerts", "test", "none", *flags, environment=environment)
            assert (code, "the config has no alert receiver none" in err) == (1, True)
        code, out, err = await run("alerts", "list", "--rule", "budgets", *local)
        assert (code, "there is no rule budgets; choose from budget, " in err) == (2, True)


async def test_a_reload_begins_and_ends_the_evaluation(tmp_path: Path) -> None:
    async with webhook_server() as server, running(SANDBOX, tmp_path) as gateway:
        await spend(gateway, "ci")
        watch = gateway.service.alerts.watch
        await watch.evaluate()
        assert await watch._table.open_alerts() == []
        with_receiver = parse(f"{SANDBOX}alerts:\n  receivers:\n{server.config()}", "test.yaml", {})
        assert gateway.service.reload(with_receiver).applied == ("alerts",)
        await until(lambda: len(server.received) == 1)

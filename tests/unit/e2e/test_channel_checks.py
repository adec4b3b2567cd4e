"""Live checks of channels, and their details: failures of the last hour, words of the provider, state of the breaker."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.support.databases import Database
from tests.support.gateways import SANDBOX, Running, channel, running
from tests.support.processes import run
from tests.support.serving import serving
from tests.support.video_calls import until
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState

KEY_OF_PROVIDER = "sk-provider-0123456789abcdefWXYZ"
UNPAID = {
    "error": {"message": "Your credit balance is too low", "type": "insufficient_quota", "code": "insufficient_quota"}
}
SUCCESS = {"model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}  # fmt: skip


@dataclass
class Provider:
    """Provider that answers calls with a status, and has a model list."""

    status: int = 200
    url: str = ""
    calls: list[str] = field(default_factory=list)
    """Models of the calls."""
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def chat(self, request: web.Request) -> web.Response:
        self.calls.append((await request.json())["model"])
        await self.answers.wait()
        body = SUCCESS if self.status == 200 else UNPAID
        return web.json_response(body, status=self.status, headers={"x-request-id": f"req-{len(self.calls)}"})

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": each, "object": "model"} for each in ("m", "n")]})


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider, None]:
    made = Provider()
    made.answers.set()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.chat)
    app.router.add_get("/v1/models", made.models)
    async with serving(app) as url:
        made.url = f"{url}/v1"
        yield made


def config(found: Provider, database: str = "sqlite") -> str:
    models = channel("main", "chat", found.url, "m").replace("api_key: ", f"api_key: {KEY_OF_PROVIDER}  # ")
    models = models.replace("[{id: m, upstream: m}]", "[m, n]")
    return f"database: {database}\nchannels:\n{models}"


async def check(gateway: Running, session: aiohttp.ClientSession, name: str = "main", **body: Any) -> tuple[int, Any]:
    url = f"{gateway.url}/admin/v1/channels/{name}/check"
    async with session.post(url, json=body, headers=gateway.headers) as response:
        text = await response.text()
    assert KEY_OF_PROVIDER not in text
    assert KEY_OF_PROVIDER[-5:] not in text
    return response.status, json.loads(text)


async def call(gateway: Running, session: aiohttp.ClientSession, model: str = "m") -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=gateway.headers) as response:
        await response.read()
        return response.status


async def details(gateway: Running, session: aiohttp.ClientSession, name: str = "main") -> Any:
    url = f"{gateway.url}/admin/v1/channel-details"
    async with session.get(url, params={"channel": name}, headers=gateway.headers) as response:
        text = await response.text()
    assert response.status == 200, text
    assert KEY_OF_PROVIDER[-5:] not in text
    return json.loads(text)["channels"][0]


def states(gateway: Running) -> dict[str, CircuitState]:
    return {each.model: each.state for each in gateway.service._shared.health.snapshot()}


async def test_a_check_reads_the_list_or_calls_the_named_model(tmp_path: Path) -> None:
    async with (
        provider() as found,
        running(config(found), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        status, body = await check(gateway, session)
        result = body["check"]
        assert (status, result["outcome"], result["upstream_model"]) == (200, "succeeded", "")
        assert (result["message"], found.calls) == ("2 models listed", [])
        status, body = await check(gateway, session, model="n", timeout_seconds=10)
        result = body["check"]
        assert (status, result["outcome"], result["upstream_model"]) == (200, "succeeded", "n")
        assert (result["message"], result["upstream_request_id"], found.calls) == ("`n` answers", "req-1", ["n"])
        assert result["duration_seconds"] > 0
        assert (await check(gateway, session, name="none"))[0] == 404
        assert (await check(gateway, session, model="unknown"))[0] == 404
        for body in ({"timeout_seconds": 0.5}, {"timeout_seconds": 61}, {"seconds": 1}):
            assert (await check(gateway, session, **body))[0] == 400
        assert (await details(gateway, session))["last_successful_check_time"]


async def test_a_failure_has_kind_words_and_remedy_and_a_success_closes_the_breaker(
    prepared_database: Database,
) -> None:
    data, url = prepared_database.data_dir, prepared_database.url
    async with (
        provider() as found,
        running(config(found, url), data) as gateway,
        running(config(found, url), data) as other,
        aiohttp.ClientSession() as session,
    ):
        found.status = 402
        for each in (gateway, other):
            assert await call(each, session) != 200
            assert await call(each, session, "n") != 200
            assert states(each) == {"m": CircuitState.OPEN, "n": CircuitState.OPEN}
        status, body = await check(gateway, session)
        result = body["check"]
        assert (status, result["outcome"], result["upstream_model"]) == (200, "failed", "m")
        failure = result["failure"]
        assert (failure["kind"], failure["upstream_status_code"], failure["key_tail"]) == ("unpaid", 402, "WXYZ")
        assert failure["message"] == "Your credit balance is too low"
        assert result["upstream_request_id"] == f"req-{len(found.calls)}"
        assert "the account has no credit or quota left" in result["message"]
        assert states(gateway)["m"] is CircuitState.OPEN

        def failed(shown: Any) -> list[tuple[str, int]]:
            return [(each["kind"], each["attempts"]) for each in shown["last_hour"]["failures"]]

        async with asyncio.timeout(30):
            while failed(shown := await details(gateway, session)) != [("unpaid", 4)]:  # noqa: ASYNC110  no event reports it
                await asyncio.sleep(0.05)
        assert (shown["state"], shown["key_tails"], shown["host"]) == ("open", ["WXYZ"], found.url.split("/")[2])
        assert shown["last_hour"]["failures"][0]["last_message"] == "Your credit balance is too low"
        assert shown["last_failure"]["kind"] == "unpaid"
        assert shown["remedy"] == "the account has no credit or quota left: check its bill at the provider"

        found.status = 200
        status, body = await check(gateway, session)
        assert (body["check"]["outcome"], body["check"]["upstream_model"]) == ("succeeded", "m")
        assert states(gateway) == {"m": CircuitState.CLOSED, "n": CircuitState.HALF_OPEN}
        await until(lambda: states(other) == {"m": CircuitState.CLOSED, "n": CircuitState.HALF_OPEN})
        assert await call(other, session) == 200


async def test_one_check_of_a_channel_runs_at_a_time_within_its_time(tmp_path: Path) -> None:
    async with (
        provider() as found,
        running(config(found), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        found.answers.clear()
        first = asyncio.create_task(check(gateway, session, model="m", timeout_seconds=1))
        await until(lambda: len(found.calls) == 1)
        status, body = await check(gateway, session, model="n")
        assert (status, "a check of the channel `main` runs" in body["error"]["message"]) == (400, True)
        status, body = await first
        assert (status, body["check"]["outcome"]) == (200, "failed")
        assert body["check"]["message"] == "no response within 1 s: check `base_url` and `proxy`"
        found.answers.set()
        assert (await check(gateway, session, model="m"))[1]["check"]["outcome"] == "succeeded"


async def test_a_channel_inside_the_gateway_is_called_too(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway, aiohttp.ClientSession() as session:
        status, body = await check(gateway, session, name="sandbox")
        assert (status, body["check"]["outcome"]) == (200, "succeeded")
        assert body["check"]["upstream_model"] == "famG-2.5-flash"


async def test_the_commands_change_and_check_channels_on_a_database_and_at_a_gateway(tmp_path: Path) -> None:
    async with provider() as found, aiohttp.ClientSession() as session:
        text = config(found)
        (file := tmp_path / "umg.yaml").write_text(text)
        async with running(text, tmp_path) as gateway:
            remote = {"UMG_GATEWAY": gateway.url, "UMG_ADMIN_KEY": gateway.key}
            local = ("--config", str(file), "--data", str(tmp_path))
            for flags, environment in (((), remote), (local, {})):
                code, out, err = await run("channels", "check", "main", "--json", *flags, environment=environment)
                assert (code, err, json.loads(out)[0]["message"]) == (0, "", "2 models listed")
                code, out, err = await run("channels", "disable", "main", *flags, environment=environment)
                assert (code, out) == (1, "")
                assert "umg: without main, no channel serves:\n  m: " in err
                assert "nothing is changed: repeat the command with --yes" in err
                code, out, err = await run(
                    *("channels", "disable", "main", "--yes", "--note", "unpaid", *flags), environment=environment
                )
                assert (code, out, err) == (
                    0,
                    "main: disabled, weight 1; gateways apply it within seconds\n",
                    "",
                )
                await until(lambda: gateway.service.router.targets("m")[0].channel.disabled)
                assert await call(gateway, session) == 503
                code, out, err = await run("channels", "list", *flags, environment=environment)
                assert (code, err, "main     disabled" in out, ": unpaid" in out) == (0, "", True, True)
                if environment:
                    code, out, err = await run("models", environment=environment)
                    assert (code, "main: disabled by " in out) == (0, True)
                code, out, err = await run("channels", "set", "main", "--weight", "7", *flags, environment=environment)
                assert out == "main: disabled, weight 7; gateways apply it within seconds\n"
                code, out, err = await run("channels", "enable", "main", *flags, environment=environment)
                assert out == "main: enabled, weight 7; gateways apply it within seconds\n"
                code, out, err = await run("channels", "set", "main", "--reset", *flags, environment=environment)
                assert out == "main: enabled, weight 1; gateways apply it within seconds\n"
                code, out, err = await run("channels", "list", "main", "--json", *flags, environment=environment)
                assert [each["model"] for each in json.loads(out)] == ["m", "n"]
                code, out, err = await run("channels", "check", "none", *flags, environment=environment)
                assert (code, "the config has no channel none; it has main" in err) == (1, True)
            found.status = 402
            code, out, err = await run("channels", "check", "main", "--model", "m", environment=remote)
            assert (code, "failed" in out, "the account has no credit" in out) == (1, True, True)
            code, out, err = await run("channels", "set", "main", environment=remote)
            assert (code, "expected either --weight N or --reset" in err) == (2, True)


async def test_explained_models_name_the_changes_of_their_channels(tmp_path: Path) -> None:
    async with provider() as found:
        text = config(found) + channel("spare", "chat", found.url, "m")
        (file := tmp_path / "umg.yaml").write_text(text)
        local = ("--config", str(file), "--data", str(tmp_path))
        async with running(text, tmp_path):
            for arguments in (("disable", "main", "--yes", "--note", "unpaid"), ("set", "spare", "--weight", "7")):
                code, _, err = await run("channels", *arguments, *local)
                assert (code, err) == (0, "")
            code, out, err = await run("models", "--explain", "m", *local)
            assert (code, err) == (0, "")
            assert "weight 7 set by " in out
            assert "not asked: disabled by " in out
            assert ": unpaid" in out

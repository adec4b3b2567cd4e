"""Reload of the config of a running gateway, by signal and by command, and the report of its outcome."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import Served, run, serve

KEY = "sk-umg-of-the-tests-of-reloads"
ENVIRONMENT = {"UMG_API_KEY": KEY}
FIGURE = re.compile(r"^umg_reload_(success|time_seconds) (\S+)$", re.MULTILINE)
MORE = SANDBOX.replace("[famG-2.5-flash", "[one-more, famG-2.5-flash")
OPENAI = (
    "channels:\n- {name: main, protocols: [chat], base_url: https://api.openai.com/v1, api_key: k, models: [gpt-7]}\n"
)
Figures = dict[str, float]


async def _figures(served: Served, wanted: Callable[[Figures], bool]) -> Figures:
    """Return the figures of reloads once they are as `wanted`; the last ones after 60 seconds."""
    found: Figures = {}
    deadline = asyncio.get_running_loop().time() + 60
    async with aiohttp.ClientSession() as session:
        while not (found and wanted(found)) and asyncio.get_running_loop().time() < deadline:
            async with session.get(f"{served.http}/metrics") as response:
                found = {name: float(value) for name, value in FIGURE.findall(await response.text())}
            await asyncio.sleep(0.05)  # leaves the processor to the workers, which write the figures once a second
    return found


async def test_a_signal_logs_the_applied_keys_and_the_keys_that_need_a_restart(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        config.write_text(f"drain: 7\nredis: redis://127.0.0.1:1/0\noverload: {{queue: 9, lag: 0.3}}\n{MORE}")
        for changed in (["channels", "overload.queue"], []):  # the second reload finds nothing new to apply
            served.process.send_signal(signal.SIGHUP)
            line = await served.until_logged("the config was reloaded")
            served.log.remove(line)
            logged = json.loads(line)
            assert logged["changed"] == changed
            assert logged["needs_restart"] == ["redis", "overload.queue", "overload.lag", "drain"]
            assert (logged["process"], logged["level"]) == (served.process.pid, "warning")
        before = await _figures(served, lambda found: found["success"] == 1)
        config.write_text("channels: nonsense")
        served.process.send_signal(signal.SIGHUP)
        await served.until_logged("was not reloaded")
        after = await _figures(served, lambda found: found["success"] == 0)
        assert (before["success"], after["success"]) == (1, 0)
        assert after["time_seconds"] > before["time_seconds"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_the_command_reports_the_outcome_of_each_process(tmp_path: Path, workers: int) -> None:
    config, data = tmp_path / "config.yaml", tmp_path / f"data-{'long' * 25}"
    config.write_text(SANDBOX)
    arguments = ("--config", str(config), "--workers", str(workers))
    async with serve(data, *arguments, environment=ENVIRONMENT) as served:
        config.write_text(f"drain: 7\n{MORE}")
        code, out, err = await run("reload", "--data", str(data))
        lines = out.splitlines()
        assert (code, len(lines), err) == (0, workers, "")
        assert all(line.endswith(": reloaded; changed: channels; needs a restart: drain") for line in lines), lines
        assert len({line.split(":")[0] for line in lines}) == workers
        config.write_text("channels: nonsense")
        code, out, err = await run("reload", "--data", str(data))
        assert (code, out, len(err.splitlines())) == (1, "", workers)
        assert "not reloaded, the old config stays" in err
        assert f"{config}:1" in err
        found = await _figures(served, lambda found: found["success"] == 0)
        assert found["success"] == 0
        (other := tmp_path / "other.yaml").write_text(SANDBOX)
        async with serve(data, "--config", str(other), environment=ENVIRONMENT) as second:
            code, out, err = await run("reload", "--data", str(data))
            assert await second.stop() == 0
        assert (code, out.count("reloaded; changed: nothing"), err.count("not reloaded")) == (1, 1, workers)
        assert await served.stop() == 0
    assert list(data.glob("*.sock")) == []


async def _config_hashes(served: Served) -> list[str]:
    async with aiohttp.ClientSession() as session, session.get(f"{served.http}/metrics") as response:
        return re.findall(r'^umg_config_info{hash="(\w+)"} 1.0$', await response.text(), re.MULTILINE)


async def test_replicas_with_the_same_file_have_the_same_hash_and_a_reload_changes_it(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    options = "--config", str(config)
    async with (
        serve(tmp_path / "one", *options, environment=ENVIRONMENT) as one,
        serve(tmp_path / "two", *options, environment={"UMG_API_KEY": f"{KEY}-of-another-replica"}) as two,
    ):
        [before] = await _config_hashes(one)
        assert await _config_hashes(two) == [before]
        config.write_text(MORE)
        one.process.send_signal(signal.SIGHUP)
        await one.until_logged("the config was reloaded")
        [after] = await _config_hashes(one)
        assert after != before
        assert await _config_hashes(two) == [before]


async def test_calls_go_on_while_a_new_config_is_read(tmp_path: Path) -> None:
    """Check a reload whose config file is a pipe without a writer yet."""
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        config.unlink()
        os.mkfifo(config)
        served.process.send_signal(signal.SIGHUP)
        writing = await asyncio.to_thread(config.open, "w")  # returns when the gateway reads
        async with aiohttp.ClientSession() as session, session.get(f"{served.http}/healthz") as response:
            assert response.status == 200
        await asyncio.to_thread(writing.write, MORE)
        await asyncio.to_thread(writing.close)
        line = await served.until_logged("the config was reloaded")
        assert json.loads(line)["changed"] == ["channels"]


async def test_newer_prices_are_taken_on_a_reload(tmp_path: Path) -> None:
    config, data, prices = tmp_path / "config.yaml", tmp_path / "data", tmp_path / "newer.json"
    config.write_text(OPENAI)
    prices.write_text('[{"model": "gpt-7", "vendor": "openai", "input": "4"}]')
    async with serve(data, "--config", str(config), environment=ENVIRONMENT) as served:
        assert await _price_of(served, "gpt-7") == {}
        assert (await run("prices", "update", str(prices), "--config", str(config), "--data", str(data)))[0] == 0
        code, out, _ = await run("reload", "--data", str(data))
        assert (code, out.partition(": ")[2]) == (0, "reloaded; changed: public_prices\n")
        assert await _price_of(served, "gpt-7") == {"input_token": 4_000_000}
        (data / "prices.json").write_text("{}")
        code, _, err = await run("reload", "--data", str(data))
        assert (code, "the old config stays" in err, "prices.json" in err) == (1, True, True)
        assert await _price_of(served, "gpt-7") == {"input_token": 4_000_000}


async def _price_of(served: Served, model: str) -> dict[str, int]:
    """Return the prices of a model in the list of channels, by unit."""
    headers = {"authorization": f"Bearer {KEY}"}
    url = f"{served.http}/admin/v1/channels"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        found = (await response.json())["models"]
    prices = next(each for each in found if each["model"] == model).get("prices", [])
    return {price["unit"]: int(price["micro_credits_per_million"]) for price in prices}


async def test_the_command_names_a_directory_without_a_gateway(tmp_path: Path) -> None:
    config, data = tmp_path / "config.yaml", tmp_path / "data"
    config.write_text(SANDBOX)
    async with serve(data, "--config", str(config), environment=ENVIRONMENT) as served:
        assert await served.stop(signal.SIGKILL) == -signal.SIGKILL
    assert len(list(data.glob("*.sock"))) == 1  # left by a process that was killed
    code, out, err = await run("reload", "--data", str(data))
    assert (code, out) == (1, "")
    assert str(data) in err
    async with serve(data, "--config", str(config), environment=ENVIRONMENT):
        assert len(list(data.glob("*.sock"))) == 1  # the new gateway removed it

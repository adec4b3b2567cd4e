"""Config in force as operators see it: over HTTP, by a command, and compared with its changed file."""

import re
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from tests.support.gateways import KEY, running
from tests.support.http_admin import HttpAdmin
from tests.support.processes import run
from umg_grpc.cli.admin_client import CommandError
from umg_grpc.config import ConfigError, parse
from umg_grpc.process.config_state import ConfigState
from umg_grpc.v1 import pb

CHANNELS = "channels: [{name: sandbox, protocols: [sandbox], models: [famO-5]}]\n"
CONFIG = f"{CHANNELS}retries:\n  repeats: 3\nsecret: 0123456789-0123456789-abcd\n"


def state_of(file: Path, text: str = CONFIG) -> ConfigState:
    """Return the state of a process that was started with a file."""
    file.write_text(text)
    state = ConfigState(parse(text, "umg.yaml", {}), {}, lambda: 1.0)
    state.read_text, state.read = file.read_text, lambda: parse(file.read_text(), "umg.yaml", {})
    return state


async def test_settings_are_read_over_http_with_their_sources(tmp_path: Path) -> None:
    async with running(CONFIG, tmp_path) as gateway:
        admin = HttpAdmin(gateway.url, KEY)
        request = pb.GetConfigRequest(path_prefix="retries.")
        response = await admin.call(request, pb.GetConfigResponse)
        by_path = {each.path: (each.value, each.source, each.line) for each in response.settings}
        assert by_path["retries.repeats"] == ("3", pb.CONFIG_SOURCE_FILE, 3)
        assert by_path["retries.budget"] == ("0.2", pb.CONFIG_SOURCE_DEFAULT, 0)
        assert response.status.filename == "test.yaml"
        assert not response.status.file_changed
        changed = await admin.call(pb.GetConfigRequest(changed_only=True), pb.GetConfigResponse)
        assert pb.CONFIG_SOURCE_DEFAULT not in {each.source for each in changed.settings}
        [secret] = [each for each in changed.settings if each.path == "secret"]
        assert (secret.value, secret.secret) == ("••••abcd", True)
        paths, token = list[str](), ""
        while True:
            page = await admin.call(pb.GetConfigRequest(page_size=50, page_token=token), pb.GetConfigResponse)
            paths += [each.path for each in page.settings]
            if not (token := page.next_page_token):
                break
        assert len(paths) == len(set(paths)) > 80
        with pytest.raises(CommandError):
            await admin.call(pb.GetConfigRequest(page_token="none"), pb.GetConfigResponse)
        async with aiohttp.ClientSession() as session, session.get(f"{gateway.url}/admin/v1/config") as answer:
            assert answer.status == 401


async def test_a_changed_file_waits_for_a_reload_and_a_restart(tmp_path: Path) -> None:
    state = state_of(tmp_path / "umg.yaml")
    assert not (await state.status()).file_changed
    (tmp_path / "umg.yaml").write_text(CONFIG.replace("repeats: 3", "repeats: 4") + "drain: 5\n")
    status = await state.status()
    assert (status.file_changed, [*status.reload_keys], [*status.restart_keys]) == (True, ["retries"], ["drain"])


async def test_a_loaded_key_waits_for_a_restart(tmp_path: Path) -> None:
    state = state_of(tmp_path / "umg.yaml")
    text = f"{CONFIG}drain: 5\n"
    (tmp_path / "umg.yaml").write_text(text)
    state.loaded(parse(text, "umg.yaml", {}))
    status = await state.status()
    assert (status.file_changed, [*status.restart_keys]) == (False, ["drain"])
    state.loaded(replace(parse(text, "umg.yaml", {}), drain=30))
    assert not (await state.status()).restart_keys


async def test_problems_of_a_failed_reload_and_of_the_file_are_reported(tmp_path: Path) -> None:
    state = state_of(tmp_path / "umg.yaml")
    (tmp_path / "umg.yaml").write_text(f"{CONFIG}drain: soon\n")
    with pytest.raises(ConfigError) as caught:
        parse(f"{CONFIG}drain: soon\n", "umg.yaml", {})
    state.failed(caught.value)
    status = await state.status()
    assert [(each.line, each.path) for each in status.reload_problems] == [(5, "drain")]
    assert [*status.file_problems] == [*status.reload_problems]
    assert status.HasField("failed_reload_time")
    (tmp_path / "umg.yaml").unlink()
    status = await state.status()
    assert (status.file_changed, status.file_problems[0].HasField("line")) == (True, False)
    state.loaded(parse(CONFIG, "umg.yaml", {}))
    assert not (await state.status()).reload_problems


async def test_the_command_prints_the_settings_of_a_file_and_of_a_gateway(tmp_path: Path) -> None:
    file = tmp_path / "umg.yaml"
    file.write_text(CONFIG)
    async with running(CONFIG, tmp_path / "data") as gateway:
        for flags in (("--config", str(file), "--data", str(tmp_path / "data")), ("--gateway", gateway.url)):
            code, out, err = await run("config", "show", "--changed", *flags, environment={"UMG_ADMIN_KEY": KEY})
            assert (code, err) == (0, "")
            assert re.search(r"retries\.repeats +3 +file, line 3", out)
            assert "retries.budget" not in out
            assert "0123456789" not in out

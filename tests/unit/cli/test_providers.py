"""Commands `umg init` and `umg providers`, and `umg serve --from-env`."""

import contextlib
import re
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession
from typer.testing import CliRunner, Result

from tests.support.processes import run, serve
from tests.support.providers.scripted import scripted, succeed
from tests.unit.cli.test_table_snapshots import Terminal
from umg_grpc.cli.commands import app
from umg_grpc.cli.provider_texts import KIND_TITLES, print_providers
from umg_grpc.cli.text_tables import Form
from umg_grpc.config import Auth, parse
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.process.config_loading import FROM_ENVIRONMENT, flags

NO_KEYS: dict[str, str] = {name: "" for preset in PROVIDER_PRESETS.values() for name in preset.keys}
NO_KEYS |= {"OLLAMA_HOST": "", "GOOGLE_APPLICATION_CREDENTIALS": ""}


def umg(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(app, arguments, env={**NO_KEYS, **environment})


def test_init_writes_a_config_with_the_providers_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "umg.yaml"
    result = umg("init", str(file), OPENAI_API_KEY="k", GROQ_API_KEY="k")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "openai: found by OPENAI_API_KEY",
        "groq: found by GROQ_API_KEY",
        f"written: {file}; check it with `umg check {file}`, serve it with `umg serve --config {file}`",
    ]
    assert umg("check", str(file), OPENAI_API_KEY="k", GROQ_API_KEY="k").exit_code == 0
    config = parse(file.read_text(), str(file), {"OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"})
    assert [channel.name for channel in config.channels] == ["openai", "groq"]


def test_init_without_a_key_writes_a_config_of_the_local_models(tmp_path: Path) -> None:
    result = umg("init", str(tmp_path / "umg.yaml"))
    assert result.exit_code == 0
    assert "no key of a provider is in the environment; the file serves the local models" in result.output


def test_init_replaces_a_file_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "umg.yaml"
    file.write_text("mine")
    refused = umg("init", str(file))
    assert (refused.exit_code, file.read_text()) == (1, "mine")
    assert f"{file} exists; name another file, or replace it with --force" in refused.output
    assert umg("init", str(file), "--force").exit_code == 0
    assert file.read_text().startswith("# Providers of the gateway.")


def test_init_reports_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "absent" / "umg.yaml"
    result = umg("init", str(file))
    assert (result.exit_code, result.output) == (1, f"umg: {file} cannot be written: No such file or directory\n")


def test_providers_lists_each_preset_by_its_kind() -> None:
    head, *lines = umg("providers").output.splitlines()
    assert head.split() == ["provider", "kind", "key", "protocols"]
    rows = [re.split("  +", line.strip()) for line in lines]
    assert [(name, kind) for name, kind, *_ in rows] == [
        (name, text) for kind, text in KIND_TITLES.items() for name, row in PROVIDER_PRESETS.items() if row.kind == kind
    ]
    assert [name for name, *_ in rows] == list(PROVIDER_PRESETS)
    [groq] = [row for row in rows if row[0] == "groq"]
    assert groq == ["groq", KIND_TITLES["host"], "GROQ_API_KEY", "chat, responses, speech, transcriptions"]


def test_providers_fit_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.redirect_stdout(Terminal()) as out:
        print_providers(PROVIDER_PRESETS.values(), Form.TABLE)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert set(PROVIDER_PRESETS) <= {line.split(" ")[0] for line in lines}


@pytest.mark.parametrize("name", PROVIDER_PRESETS)
def test_the_values_of_a_preset_are_shown_as_a_channel_that_has_them(name: str) -> None:
    output = umg("providers", name).output
    preset = PROVIDER_PRESETS[name]
    key = "auth: {kind: service_account, file: a.json}" if preset.uses_service_account else "api_key: access:secret"
    written = "\n".join(key if line.startswith("api_key:") else line for line in output.splitlines())
    url = preset.base_url.replace("<", "").replace(">", "")
    lines = written.replace(preset.base_url, url).splitlines()
    text = "channels:\n- " + "\n  ".join(line for line in lines if not line.startswith("#"))
    [channel] = parse(text, "umg.yaml", {}).channels
    assert (channel.name, channel.base_url, channel.protocols) == (name, url, preset.protocols)
    assert [(each.id, each.upstream, each.family) for each in channel.models] == [
        (each.id, each.upstream, each.family) for each in preset.models
    ]
    assert channel.max_inputs == preset.max_inputs
    assert preset.auth is None or channel.auth == msgspec.convert(preset.auth, Auth)
    assert preset.source in output


def test_a_misspelt_provider_is_guessed() -> None:
    assert umg("providers", "antropic").output == "umg: antropic is not a provider; did you mean `anthropic`?\n"
    assert umg("providers", "acme").output == "umg: acme is not a provider; `umg providers` lists all\n"


async def test_the_providers_of_the_environment_are_served_without_a_file(tmp_path: Path) -> None:
    async with scripted("home", succeed) as provider:
        environment = {**NO_KEYS, "OLLAMA_HOST": provider.url}
        async with serve(tmp_path, "--from-env", environment=environment) as served, ClientSession() as session:
            assert served.printed(r"models +(.+)") == "ollama/*"
            body = {"model": "ollama/small", "messages": [{"role": "user", "content": "Hi"}]}
            url = f"{served.url}/v1/chat/completions"
            async with session.post(url, json=body, headers=served.headers) as answer:
                assert (await answer.json())["choices"][0]["message"]["content"] == "home"
    assert [call.body["model"] for call in provider.calls] == ["small"]


async def test_a_key_that_the_built_in_config_does_not_use_is_named_at_the_start(tmp_path: Path) -> None:
    environment = {**NO_KEYS, "GROQ_API_KEY": "k"}
    async with serve(tmp_path, environment=environment) as served:
        assert served.printed(r"unused +(.+)") == (
            "GROQ_API_KEY (groq): `umg serve --from-env` serves them, `umg init` writes a config"
        )


async def test_an_environment_without_a_key_is_refused(tmp_path: Path) -> None:
    code, _, log = await run("serve", "--from-env", "--data", str(tmp_path), environment=NO_KEYS)
    expected = "expected the key of a provider, for example OPENAI_API_KEY; `umg providers` lists all"
    assert (code, log) == (2, f"environment:1: {expected}\n")


def test_a_file_and_the_environment_exclude_each_other(tmp_path: Path) -> None:
    result = umg("serve", "--from-env", "--config", str(tmp_path))
    assert result.exit_code == 2
    assert "expected either --config or --from-env" in result.output


def test_workers_get_the_source_of_the_config() -> None:
    assert flags(None) == ()
    assert flags(Path("a.yaml")) == ("--config", "a.yaml")
    assert flags(FROM_ENVIRONMENT) == ("--from-env",)


def test_a_provider_that_is_gone_is_printed_with_the_day() -> None:
    assert "# shut down on 2026-07-30; use provider: azure\n" in umg("providers", "github").output

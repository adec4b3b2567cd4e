"""Starts whose callers or providers are on other machines."""

import json
from pathlib import Path

import pytest

from tests.support.gateways import SANDBOX
from tests.support.processes import run, serve

LONG = "sk-umg-first-secret-of-the-tests"
SHORT = LONG[:19]
CHANNEL = """
  - {{name: {name}, protocols: [chat], base_url: "{url}", models: [m]{key}}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "umg.yaml"
    file.write_text(SANDBOX)
    return file


@pytest.mark.parametrize("flag", ["--http", "--grpc"])
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_short_key_is_refused_where_other_machines_can_connect(
    config: Path, tmp_path: Path, flag: str, workers: str
) -> None:
    addresses = {"--http": "127.0.0.1:0", "--grpc": "127.0.0.1:0"} | {flag: "0.0.0.0:0"}
    flags = [part for pair in addresses.items() for part in pair]
    arguments = ("serve", "--config", str(config), "--data", str(tmp_path / "data"), "--workers", workers, *flags)
    code, _, err = await run(*arguments, environment={"UMG_API_KEY": SHORT})
    assert (code, "UMG_API_KEY" in err, "fewer than 20 characters" in err) == (1, True, True), err
    assert SHORT not in err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_short_key_that_a_start_on_loopback_made_is_refused_there_too(
    config: Path, tmp_path: Path, workers: str
) -> None:
    data, files = tmp_path / "data", ("--config", str(config), "--workers", workers)
    async with serve(data, *files, environment={"UMG_API_KEY": SHORT}):
        pass
    exposed = ("--http", "127.0.0.1:0", "--grpc", "0.0.0.0:0")
    code, out, err = await run("serve", *files, "--data", str(data), *exposed, environment={"UMG_API_KEY": ""})
    assert (code, "is serving" in out) == (1, False), err
    assert "fewer than 20 characters" in err
    assert "--replace-bootstrap-key" in err
    async with serve(data, *files, *exposed, "--replace-bootstrap-key", environment={"UMG_API_KEY": ""}) as served:
        assert len(served.key) >= 20


async def test_a_key_of_twenty_characters_is_served_there_later(config: Path, tmp_path: Path) -> None:
    data, files = tmp_path / "data", ("--config", str(config))
    async with serve(data, *files, environment={"UMG_API_KEY": LONG[:20]}):
        pass
    async with serve(data, *files, "--http", "0.0.0.0:0", environment={"UMG_API_KEY": ""}) as served:
        await served.until_logged("the first API key stays")


async def test_a_long_key_is_served_there_with_a_warning_of_plain_text(config: Path, tmp_path: Path) -> None:
    arguments = ("--config", str(config), "--http", "0.0.0.0:0")
    async with serve(tmp_path / "data", *arguments, environment={"UMG_API_KEY": LONG}) as served:
        assert "0.0.0.0:0" in await served.until_logged("callers send their keys unencrypted")


async def test_a_short_key_is_served_on_loopback_without_a_warning(config: Path, tmp_path: Path) -> None:
    async with serve(tmp_path / "data", "--config", str(config), environment={"UMG_API_KEY": "a"}) as served:
        await served.until_logged("first API key")
        assert [line for line in served.log if "unencrypted" in line] == []


async def test_channels_with_secrets_are_warned_of_plain_text_to_another_machine(config: Path, tmp_path: Path) -> None:
    plain, key = "http://provider.example/v1", ", api_key: sk-provider"
    config.write_text(  # noqa: ASYNC240 - a small file
        SANDBOX
        + CHANNEL.format(name="with-key", url=plain, key=key)
        + CHANNEL.format(name="with-header", url=plain, key=', headers: {Authorization: "Bearer sk-provider"}')
        + CHANNEL.format(name="with-other-header", url=plain, key=", headers: {x-goog-api-key: sk-provider}")
        + CHANNEL.format(name="keyless", url=plain, key=", headers: {x-team: search}")
        + CHANNEL.format(name="encrypted", url="https://provider.example/v1", key=key)
        + CHANNEL.format(name="near", url="http://127.0.0.1:1/v1", key=key)
    )
    async with serve(tmp_path / "data", "--config", str(config), environment={"UMG_API_KEY": LONG}) as served:
        await served.until_logged("first API key")
        warned = [json.loads(line) for line in served.log if "is sent unencrypted" in line]
    assert [(line["channel"], line["host"], line.get("headers")) for line in warned] == [
        ("with-key", "provider.example", None),
        ("with-header", "provider.example", ["Authorization"]),
        ("with-other-header", "provider.example", ["x-goog-api-key"]),
    ]


REPLICATED = "database: postgresql://umg:secret@db.example/umg\n"
REPLICAS = [
    ("", []),
    (REPLICATED, ["`secret` is absent", "`blobs.url` is absent"]),
    (f"{REPLICATED}secret: 0123456789abcdef\n", ["`blobs.url` is absent"]),
    (f"{REPLICATED}secret: 0123456789abcdef\nblobs: {{url: 's3://bucket'}}\n", []),
    (f"{REPLICATED}blobs: {{enabled: false}}\n", ["`secret` is absent"]),
]


@pytest.mark.parametrize(("settings", "expected"), REPLICAS)
async def test_settings_that_replicas_need_are_named_by_the_check(
    config: Path, settings: str, expected: list[str]
) -> None:
    config.write_text(settings + SANDBOX)  # noqa: ASYNC240 - a small file
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "c"}
    code, out, err = await run("check", str(config), environment=environment)
    warned = [line for line in out.splitlines() if "warning" in line]
    assert (code, err) == (0, "")
    assert [text in line for text, line in zip(expected, warned, strict=True)] == [True] * len(expected)


async def test_a_start_of_a_replica_warns_of_missing_settings(config: Path, tmp_path: Path) -> None:
    config.write_text(REPLICATED.replace("db.example", "127.0.0.1:1") + SANDBOX)  # noqa: ASYNC240 - a small file
    code, _, err = await run("serve", "--config", str(config), "--data", str(tmp_path / "data"), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")  # fmt: skip
    assert code == 1  # there is no database
    assert "`secret` is absent" in err


async def test_links_to_this_machine_are_warned_of_where_others_can_connect(config: Path, tmp_path: Path) -> None:
    arguments = ("--config", str(config), "--http", "0.0.0.0:0")
    async with serve(tmp_path / "data", *arguments, environment={"UMG_API_KEY": LONG}) as served:
        assert "0.0.0.0:0" in await served.until_logged("set `public_url`")
    assert (tmp_path / "data" / "link.secret").stat().st_mode & 0o777 == 0o600

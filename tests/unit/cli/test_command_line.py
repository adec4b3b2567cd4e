"""The command line itself: its version, the completion of shells, and gateways that do not answer."""

import socket
from importlib.metadata import version
from pathlib import Path

import pytest

from http_facade.openapi.openapi_document import document_json
from tests.support.gateways import SANDBOX, running
from tests.support.processes import run

SHELLS = {
    "bash": {"COMP_WORDS": "umg keys ro", "COMP_CWORD": "2"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "umg keys ro"},
    "fish": {"_TYPER_COMPLETE_ARGS": "umg keys ro", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""Variables by which the script of a shell requests the completions of `umg keys ro`."""


async def test_the_openapi_document_is_printed() -> None:
    code, out, _ = await run("openapi")
    assert (code, out.encode()) == (0, document_json() + b"\n")


async def test_the_version_is_that_of_the_package() -> None:
    assert await run("--version") == (0, f"umg {version('unified-model-gateway')}\n", "")


@pytest.mark.parametrize("shell", SHELLS)
async def test_shells_complete_commands(shell: str, tmp_path: Path) -> None:
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code, script, _ = await run("--show-completion", shell, environment=named)
    assert code == 0
    assert f"_UMG_COMPLETE=complete_{shell}" in script
    code, found, _ = await run(environment={"_UMG_COMPLETE": f"complete_{shell}", **SHELLS[shell]})
    assert (code, "rotate" in found, "revoke" in found) == (0, True, False)
    home = {"HOME": str(tmp_path), **named}
    code, out, err = await run("--install-completion", shell, environment=home)
    assert (code, f"{shell} completion installed" in out) == (0, True), err
    assert installed(tmp_path) == script.strip()


@pytest.mark.parametrize("command", [("chat",), ("tasks", "list"), ("image", "a cat", "-o", "cat.png")])
async def test_a_gateway_that_does_not_answer_is_named_with_the_remedy(command: tuple[str, ...]) -> None:
    with socket.socket() as bound:  # without `listen`, so that nothing can connect
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        code, out, err = await run(*command, "--grpc", address, "--key", "sk-umg-first-secret-of-the-tests")
    assert (code, out) == (1, "")
    assert f"no gateway answers at {address} without TLS; start one with `umg serve`" in err
    assert len(err.splitlines()) == 1


async def test_a_missing_key_names_the_command_that_creates_one(tmp_path: Path) -> None:
    code, _, err = await run("chat", "--data", str(tmp_path), environment={"UMG_API_KEY": ""})
    assert code == 2
    assert "`umg serve` creates" in " ".join(err.split())


def installed(home: Path) -> str:
    [written] = (path for path in home.rglob("*umg*") if path.is_file())
    return written.read_text().strip()


async def test_the_health_of_a_gateway_is_its_exit_code(tmp_path: Path) -> None:
    async with running(SANDBOX, tmp_path) as gateway:
        address = gateway.url.partition("//")[2]
        assert await run("health", "--http", address) == (0, "alive\n", "")
        assert await run("health", "--ready", "--http", address) == (0, "ready\n", "")
    code, out, err = await run("health", "--http", address)
    assert (code, out) == (1, "")
    assert err.startswith(f"umg: no gateway answers at {address}: ")

"""Open WebUI with the settings of the page: its server lists the models of the gateway and streams a response of one."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import venv
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from tests.support.gateways import SANDBOX, running
from tests.support.proxies import free_ports
from tests.world.agents.document import KEY, documented
from tests.world.agents.libraries import ANSWER
from tests.world.agents.versions import OPEN_WEBUI
from tests.world.sdk.runner import UV, installer, packages

NAME = "Open WebUI"
MODEL = "famC-sonnet-4-5"
CONNECTIONS = {NAME: MODEL, "Clients of Ollama": f"{MODEL}:latest"}
"""Section of the page with the settings of a connection -> name of the model in its list."""
START_SECONDS = 300
WITHOUT_TORCH = "torch ; sys_platform == 'never'\n"
"""Requirement that replaces all others of torch: 5 GB that only embeddings in the process itself need."""
ALONE = {
    "WEBUI_AUTH": "False",  # its own accounts
    "ENABLE_OLLAMA_API": "False",
    "ENABLE_OPENAI_API": "False",
    "RAG_EMBEDDING_ENGINE": "openai",  # loads no model
    "HF_HUB_OFFLINE": "1",
    "OFFLINE_MODE": "True",
}
"""Settings that are not about the gateway: nothing is downloaded, and no other server is called."""


def installed() -> Path:
    """Return the directory of the virtualenv, made if it is missing. Raises RuntimeError where the installation fails."""
    wanted = f"{OPEN_WEBUI} {WITHOUT_TORCH} {sys.version}".encode()
    return packages("umg-open-webui", wanted, _install)


def _install(target: Path) -> None:
    venv.create(target)
    (target / "override.txt").write_text(WITHOUT_TORCH)
    options = ["--quiet", "--only-binary", ":all:", "--override", str(target / "override.txt")]
    installer([UV, "pip", "install", "--python", str(target / "bin" / "python"), *options, f"open-webui=={OPEN_WEBUI}"])


async def failed_run(section: str, directory: Path) -> str:
    """Run the lines of a section of the page. Return "" or the failure."""
    async with running(SANDBOX, directory / "gateway") as gateway:
        text = documented(section, gateway.url).replace(KEY, gateway.key)
        *exports, command = text.splitlines()
        settings = dict(shlex.split(line.removeprefix("export "))[0].split("=", 1) for line in exports)
        if "OPENAI_API_KEY" in settings:
            settings["ENABLE_OPENAI_API"] = "True"
        async with _served(command.split()[1:], settings, directory) as url:
            return await _failed_calls(url, CONNECTIONS[section])


@asynccontextmanager
async def _served(arguments: list[str], settings: dict[str, str], directory: Path) -> AsyncGenerator[str, None]:
    """Run its server, whose script names the folder where it was installed first, until the context ends."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= ALONE | settings | {"DATA_DIR": str(directory), "WEBUI_SECRET_KEY": "secret of the test"}
    port = free_ports(1)[0].http
    script = "from open_webui import app; app()"
    place = ("--host", "127.0.0.1", "--port", str(port))
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(installed() / "bin" / "python"), "-c", script, *arguments, *place),
            env=environment,
            cwd=directory,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        await _until_healthy(f"http://127.0.0.1:{port}/health", process, directory / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _until_healthy(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(START_SECONDS):
        while process.returncode is None:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(1)  # leaves the processor to the server, which starts
    raise RuntimeError(f"{NAME} ended with {process.returncode}: {await asyncio.to_thread(log.read_text)}")


async def _failed_calls(url: str, model: str) -> str:
    """Call the server as its pages do. Return "" or the failure."""
    async with aiohttp.ClientSession(url) as session:
        async with session.post("/api/v1/auths/signin", json={"email": "", "password": ""}) as answer:
            session.headers["authorization"] = f"Bearer {(await answer.json())['token']}"
        async with session.get("/api/models") as answer:
            models = [each["id"] for each in (await answer.json())["data"]]
        if model not in models:
            return f"it lists {models}"
        question = {"role": "user", "content": "Say hello in one sentence."}
        body = {"model": model, "stream": True, "messages": [question]}
        async with session.post("/api/chat/completions", json=body) as answer:
            lines = (await answer.text()).splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    pieces = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ())]
    if ANSWER in "".join(pieces) and len([piece for piece in pieces if piece]) > 1:
        return ""
    return f"it streamed {lines}"

"""Other gateways from PyPI, each installed into a virtualenv of its own and started in front of a provider."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

INSTALL_SECONDS = 1800
START_SECONDS = 300
KEY = "sk-peer"
TEXT, EMBEDDING, RERANK, IMAGE = "famO-5", "text-embedding-3-small", "rerank-v1", "imgC-1"


@dataclass(frozen=True)
class Provider:
    """Gateway with the simulated provider, which a peer calls."""

    url: str
    key: str


@dataclass(frozen=True)
class Peer:
    """Gateway of another project."""

    name: str
    requirement: str
    faces: tuple[str, ...]
    """Faces that it has."""
    health: str
    """Path that is 200 once it serves."""
    about: str
    """Settings and limits of the run, for readers of the results."""

    @property
    def version(self) -> str:
        return self.requirement.partition("==")[2]


LITELLM = Peer(
    "LiteLLM proxy",
    "litellm[proxy]==1.108.7",
    ("chat", "responses", "messages", "native", "count_tokens", "embeddings", "rerank", "models", "images"),
    "/health/liveliness",
    "Its provider `openai` for all but rankings, which are by `cohere`; without retries and cooldowns, since faults are "
    "provoked; one master key and no database, without which it has no other keys.",
)
MLFLOW = Peer(
    "MLflow AI Gateway",
    "mlflow[gateway]==3.17.2",
    ("chat", "embeddings"),
    "/health",
    "`mlflow gateway start` with its provider `openai`. It has no keys, so the checks of wrong and absent keys fail, and "
    "no model list.",
)
PEERS = {"litellm": LITELLM, "mlflow": MLFLOW}


async def install(peer: Peer, folder: Path) -> None:
    """Install the peer into a virtualenv, unless the folder has it."""
    if (folder / "installed").exists():
        return
    python = folder / "bin" / "python"
    commands = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", peer.requirement],
    )
    for command in commands:
        process = await asyncio.create_subprocess_exec(*command)
        async with asyncio.timeout(INSTALL_SECONDS):
            if await process.wait():
                raise RuntimeError(f"{peer.name} cannot be installed: {' '.join(command)}")
    (folder / "installed").touch()


def arguments(peer: Peer, folder: Path, provider: Provider, port: int) -> list[str]:
    """Write the peer's config. Return the arguments that start it."""
    config, place = folder / "peer.yaml", ["--host", "127.0.0.1", "--port", str(port)]
    if peer is LITELLM:
        config.write_text(yaml.safe_dump(litellm_config(provider)))
        return [str(folder / "bin" / "litellm"), "--config", str(config), "--telemetry", "False", *place]
    config.write_text(yaml.safe_dump(mlflow_config(provider)))
    return [str(folder / "bin" / "mlflow"), "gateway", "start", "--config-path", str(config), "--workers", "1", *place]


def litellm_config(provider: Provider) -> dict[str, object]:
    def model(name: str, kind: str, path: str) -> dict[str, object]:
        parameters = {"model": f"{kind}/{name}", "api_base": f"{provider.url}{path}", "api_key": provider.key}
        return {"model_name": name, "litellm_params": parameters}

    return {
        "model_list": [
            *(model(name, "openai", "/v1") for name in (TEXT, EMBEDDING, IMAGE)),
            model(RERANK, "cohere", "/v2/rerank"),
        ],
        "general_settings": {"master_key": KEY},
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {"disable_cooldowns": True, "num_retries": 0},
    }


def mlflow_config(provider: Provider) -> dict[str, object]:
    def endpoint(name: str, kind: str) -> dict[str, object]:
        config = {"openai_api_key": provider.key, "openai_api_base": f"{provider.url}/v1"}
        return {"name": name, "endpoint_type": kind, "model": {"provider": "openai", "name": name, "config": config}}

    return {"endpoints": [endpoint(TEXT, "llm/v1/chat"), endpoint(EMBEDDING, "llm/v1/embeddings")]}


@asynccontextmanager
async def started(peer: Peer, folder: Path, provider: Provider, port: int) -> AsyncGenerator[str, None]:
    """Start the peer. Yield its base URL once it serves."""
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}},
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # reads no list of prices from the network
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }
    with (folder / "log").open("wb") as log:
        command = arguments(peer, folder, provider, port)
        process = await asyncio.create_subprocess_exec(
            *command, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await until_healthy(f"{url}{peer.health}", process)
            yield url
        finally:
            if process.returncode is None:
                os.killpg(process.pid, 15)
            await process.wait()


async def until_healthy(url: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session, asyncio.timeout(START_SECONDS):
        while process.returncode is None:
            try:
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(1)
    raise RuntimeError(f"the peer ended with {process.returncode}; its log is beside its config")

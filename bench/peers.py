"""Other gateways of the comparison, as a table: how each is installed from PyPI, configured, and started."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec

from bench import chat_bodies, embedding_bodies
from bench.benchmark_rounds import KEY, first_call
from bench.load_measurement import Bench, Target
from bench.processes import BenchError, started

READY_SECONDS = 120.0
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Places:
    """Addresses and files of a peer that is started."""

    port: int
    metrics_port: int
    upstream: str
    config: Path


@dataclass(frozen=True)
class Peer:
    """Gateway of others: its distribution on PyPI, the arguments of its program, and the content of its config."""

    name: str
    """Name of its virtual environment and program, and its credential at the fake provider."""
    title: str
    version: str
    distribution: str
    arguments: Callable[[Places], Sequence[str]]
    config: Callable[[Places], object]
    environment: Mapping[str, str]
    credential: str
    """Key that callers send to it."""


def _litellm_config(places: Places) -> object:
    parameters = {"api_base": f"{places.upstream}/v1", "api_key": "litellm"}
    models = [*chat_bodies.MODELS, embedding_bodies.MODEL]
    return {
        "model_list": [{"model_name": m, "litellm_params": {"model": f"openai/{m}", **parameters}} for m in models],
        "litellm_settings": {"telemetry": False, "num_retries": 0, "request_timeout": 600},
        "general_settings": {"master_key": KEY},
    }


PEERS = (
    Peer(
        name="smg",
        title="smg",
        version="1.13.0",
        distribution="smg",
        arguments=lambda places: (
            *("launch", "--backend", "openai", "--worker-urls", places.upstream, "--host", "127.0.0.1"),
            *("--port", str(places.port), "--history-backend", "none", "--log-level", "error"),
            *("--prometheus-host", "127.0.0.1", "--prometheus-port", str(places.metrics_port)),
        ),
        config=lambda _: None,
        environment={"TOKIO_WORKER_THREADS": "1"},  # as many as it has cores
        credential="smg",  # which it passes on
    ),
    Peer(
        name="litellm",
        title="LiteLLM",
        version="1.108.7",
        distribution="litellm[proxy]",
        arguments=lambda places: (
            *("--config", str(places.config), "--host", "127.0.0.1", "--port", str(places.port)),
            *("--num_workers", "1"),
        ),
        config=_litellm_config,
        # the settings for production of its documents, and no list of prices from the network
        environment={"LITELLM_MODE": "PRODUCTION", "LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        credential=KEY,
    ),
)


def install(peer: Peer, environments: Path) -> None:
    """Install a peer into a virtual environment of its own, unless it is there. Raise BenchError if that fails."""
    folder = environments / peer.name
    if (folder / "bin" / peer.name).exists():
        return
    requirement = f"{peer.distribution}=={peer.version}"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(folder / "bin/python"), "-m", "pip", "install", "-q", requirement],
    ):
        if subprocess.run(command, check=False).returncode:
            raise BenchError(f"{requirement} cannot be installed")


@asynccontextmanager
async def running(peer: Peer, environments: Path, bench: Bench, folder: Path) -> AsyncGenerator[Target, None]:
    """Run a peer in a new folder. Yield it as soon as it has answered a call."""
    port, metrics_port = _free_ports(2)
    places = Places(port, metrics_port, f"http://127.0.0.1:{bench.upstream.port}", folder / "config.yaml")
    _write_config(peer, places)
    command = [str(environments / peer.name / "bin" / peer.name), *peer.arguments(places)]
    async with started(peer.name, command, bench.cores.target, folder, peer.environment) as process:
        process.discard_output()
        target = Target(peer.name, process, port, peer.credential)
        await _first_answer(target, bench.session)
        yield target


def _write_config(peer: Peer, places: Places) -> None:
    places.config.parent.mkdir(parents=True)
    places.config.write_bytes(msgspec.json.encode(peer.config(places)))  # JSON is YAML


async def _first_answer(target: Target, session: aiohttp.ClientSession) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            return await first_call(session, target)
        except (aiohttp.ClientError, BenchError) as error:
            if time.monotonic() > deadline:
                raise BenchError(f"{target.name} does not answer: {error}{target.process.error_output()}") from None
        await asyncio.sleep(POLL_SECONDS)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()

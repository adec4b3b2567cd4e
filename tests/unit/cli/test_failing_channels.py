"""Ten faults of channels, each distinguished by the log alone, by `umg models` alone and by the metrics alone."""

import asyncio
import datetime
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import pytest
import pytest_asyncio
import trustme
from aiohttp import web

from tests.support.processes import Served, run, serve
from tests.support.serving import serving
from umg_grpc.base.provider_failure import FailureKind

KEYS = {"revoked": "provider+opaque/0123456789-wxyz"}
TAIL = "wxyz"
HTML = "<html><body>Welcome</body></html>"
REQUEST_ID = {"x-request-id": "req_0123456789"}


@dataclass(frozen=True)
class Fault:
    id: str
    kind: FailureKind
    base_url: str = "{http}/v1"
    """With `{http}`, `{expired}` and `{refusing}` in place of the servers."""
    status: int = 0  # of the response; 0 if none arrives
    body: str = ""
    extra: str = ""  # of the channel's config
    log_fields: dict[str, str] = field(default_factory=dict)  # further fields of the log


def error(code: str, message: str) -> str:
    return msgspec.json.encode({"error": {"message": message, "code": code}}).decode()


FAULTS = [
    Fault("revoked", FailureKind.WRONG_KEY, status=401, body=error("invalid_api_key", f"Incorrect key {KEYS['revoked']} sent"), log_fields={"upstream_code": "invalid_api_key", "upstream_message": "Incorrect key [key] sent"}),
    Fault("unpaid", FailureKind.UNPAID, status=429, body=error("insufficient_quota", "check your plan"), log_fields={"upstream_code": "insufficient_quota", "upstream_message": "check your plan"}),
    Fault("model", FailureKind.WRONG_MODEL, status=404, body=error("model_not_found", "The model `real` does not exist"), log_fields={"upstream_code": "model_not_found"}),
    Fault("address", FailureKind.WRONG_ADDRESS, base_url="{http}/api/v2", status=404, body='{"detail": "Not Found"}', log_fields={"upstream_path": "/api/v2/chat/completions"}),
    Fault("page", FailureKind.UNREADABLE, status=200, body=HTML, log_fields={"upstream_content_type": "text/html"}),
    Fault("expired", FailureKind.CERTIFICATE, base_url="{expired}/v1", extra="ca_file: {authority}", log_fields={"upstream_message": "certificate has expired"}),
    Fault("gone", FailureKind.DNS, base_url="https://provider.invalid/v1", log_fields={"upstream_host": "provider.invalid"}),
    Fault("proxy", FailureKind.PROXY, base_url="https://provider.invalid/v1", extra="proxy: {refusing}", log_fields={"upstream_message": "the proxy answered CONNECT with status 403"}),
    Fault("quota", FailureKind.RATE_LIMIT, status=429, body=error("rate_limit_exceeded", "Rate limit reached"), log_fields={"upstream_code": "rate_limit_exceeded"}),
    Fault("slow", FailureKind.SLOW, log_fields={"upstream_message": "for the whole response"}, extra="timeout: {{connect: 5, total: 1}}"),
]  # fmt: skip
FORMS = [False, True]
"""Whether the caller streams."""


async def answer(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    fault = next(fault for fault in FAULTS if fault.id == body["user"])
    if fault.kind is FailureKind.SLOW:
        await asyncio.Event().wait()
    kind = "text/html" if fault.body == HTML else "application/json"
    return web.Response(status=fault.status, text=fault.body, content_type=kind, headers=REQUEST_ID)


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a proxy that does not permit the provider."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


def expired(authority: Path) -> ssl.SSLContext:
    """Return the context of a server whose certificate is expired. Write that of its authority to a file."""
    issuer, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    issuer.issue_cert("localhost", not_after=yesterday).configure_cert(context)
    issuer.cert_pem.write_to_path(str(authority))
    return context


def channel(fault: Fault, servers: dict[str, str]) -> str:
    lines = [
        f"- name: {fault.id}",
        "  protocols: [chat]",
        f"  base_url: {fault.base_url.format(**servers)}",
        f"  api_key: {KEYS.get(fault.id, f'key-of-{fault.id}-0123456789-{TAIL}')}",
        f"  models: [{{id: {fault.id}, upstream: real-{fault.id}}}]",
    ]
    return "\n".join(lines + ([f"  {fault.extra.format(**servers)}"] if fault.extra else []))


@dataclass(frozen=True)
class Seen:
    """Everything that operators and callers saw of the faults."""

    log: list[str]
    metrics: str
    models: str
    callers: str  # headers and bodies of all answers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Seen, None]:
    """Call every channel once in both forms. Yield the view of the operators."""
    folder = tmp_path_factory.mktemp("faults")
    data, config, authority = folder / "data", folder / "umg.yaml", folder / "authority.pem"
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(await asyncio.start_server(refuse, "127.0.0.1", 0))
        servers = {
            "http": await stack.enter_async_context(serving(app, handler_cancellation=True)),
            "expired": await stack.enter_async_context(serving(web.Application(), ssl_context=expired(authority))),
            "refusing": f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}",
            "authority": str(authority),
        }
        config.write_text("\n".join(["retries: {repeats: 0}", "channels:", *(channel(f, servers) for f in FAULTS)]))
        served = await stack.enter_async_context(serve(data, "--config", str(config)))
        callers = [await call(served, fault, stream=stream) for stream in FORMS for fault in FAULTS]
        async with aiohttp.ClientSession() as session, session.get(f"{served.url}/metrics") as response:
            metrics = await response.text()
        assert await served.stop() == 0  # which writes the last lines and failures
        _, models, _ = await run("models", "--config", str(config), "--data", str(data), "--http", "127.0.0.1:1")
    yield Seen(served.log, metrics, models, "\n".join(callers))


async def call(served: Served, fault: Fault, *, stream: bool) -> str:
    body = {
        "model": fault.id,
        "user": fault.id,
        "stream": stream,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    async with (
        asyncio.timeout(60),
        aiohttp.ClientSession(headers=served.headers) as session,
        session.post(f"{served.url}/v1/chat/completions", json=body) as response,
    ):
        text = await response.text()
        assert "error" in text, (fault.id, response.status, text)
        return f"{[*response.headers.items()]} {text}"


def lines(seen: Seen, event: str, fault: Fault) -> list[dict[str, object]]:
    found = [msgspec.json.decode(line, type=dict[str, object]) for line in seen.log if line.startswith("{")]
    return [line for line in found if line["event"] == event and line.get("channel") == fault.id]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
@pytest.mark.parametrize("event", ["channel failed", "call"])
async def test_the_log_line_has_the_kind_and_the_details(seen: Seen, event: str, fault: Fault) -> None:
    found = lines(seen, event, fault)
    assert [line.get("kind") for line in found] == [fault.kind.value] * len(FORMS), found
    for line in found:
        assert line.get("upstream_status") == (fault.status or None), line
        assert line["upstream_model"] == f"real-{fault.id}"
        assert line["upstream_key"] == f"...{TAIL}"
        assert line["upstream_host"]
        assert str(line["upstream_path"]).endswith("/chat/completions")
        assert line.get("upstream_request_id") == (REQUEST_ID["x-request-id"] if fault.status else None), line
        for name, value in fault.log_fields.items():
            assert value in str(line.get(name)), line


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
async def test_the_metrics_have_the_kind_and_the_status(seen: Seen, fault: Fault) -> None:
    status = str(fault.status) if fault.status else "none"
    counted = re.findall(r"^umg_channel_failures_total\{(.*)\} (\S+)$", seen.metrics, re.MULTILINE)
    labels = f'channel="{fault.id}",kind="{fault.kind.value}",model="real-{fault.id}",status="{status}"'
    assert [pair for pair in counted if f'channel="{fault.id}"' in pair[0]] == [(labels, f"{len(FORMS)}.0")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
async def test_umg_models_has_the_kind_and_the_details(seen: Seen, fault: Fault) -> None:
    [line] = [line.strip() for line in seen.models.splitlines() if line.strip().startswith(f"{fault.id}: ")]
    assert line.startswith(f"{fault.id}: {fault.kind.value}, "), line
    assert f"model real-{fault.id}, address " in line
    assert f"key ...{TAIL}" in line
    assert (f"status {fault.status}, " in line) == bool(fault.status)
    assert all(value in line for value in fault.log_fields.values()), line


def test_the_ten_faults_have_ten_kinds() -> None:
    assert len({fault.kind for fault in FAULTS}) == len(FAULTS) == 10


async def test_no_view_has_a_key_and_callers_see_no_fact_of_the_operator(seen: Seen) -> None:
    everything = "\n".join([*seen.log, seen.metrics, seen.models, seen.callers])
    for key in (KEYS["revoked"], "0123456789-wxyz", "key-of-"):
        assert key not in everything
    for fact in (TAIL, "provider.invalid", "/chat/completions", REQUEST_ID["x-request-id"], "real-"):
        assert fact not in seen.callers

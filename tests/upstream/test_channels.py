"""What an operator writes of a channel is what its provider meets."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import trustme
from aiohttp import web

from tests.e2e.faces import KEY, face
from tests.e2e.provider import TEXT, provider, whole
from umg_grpc.config import Config, parse
from umg_grpc.errors import UmgError
from umg_grpc.status import from_rpc
from umg_grpc.upstream.http import Endpoint, HttpUpstream
from umg_grpc.upstream.transport import Deadlines, Transport
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS

CHANNEL = (
    "channels: [{{name: main, protocols: [chat], base_url: '{base_url}', models: [plain, silent, marked], {more}}}]"
)
BODY = json.dumps({"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}).encode()


def config(base_url: str, more: str, name: Path | str = "test.yaml") -> Config:
    return parse(CHANNEL.format(base_url=base_url, more=more), str(name), {})


async def ask(made: Config, data: Path, times: int = 1) -> list[tuple[int, str]]:
    """Status and text (or message) of each answer."""
    async with face("http, in process", made, data) as gateway:
        answers = [await gateway.ask(BODY) for _ in range(times)]
    return [(answer.status, answer.text or answer.message) for answer in answers]


async def test_several_keys_are_used_in_turn(tmp_path: Path) -> None:
    async with provider() as upstream:
        assert await ask(config(upstream.base_url, "api_key: [a, b]"), tmp_path, times=4) == [(200, TEXT)] * 4
        assert [seen["Authorization"] for seen in upstream.headers] == ["Bearer a", "Bearer b"] * 2


async def test_a_key_goes_into_the_header_that_the_operator_names(tmp_path: Path) -> None:
    more = "api_key: k, auth: {kind: header, header: api-key}, headers: {x-team: red}"
    async with provider() as upstream:
        assert await ask(config(upstream.base_url, more), tmp_path) == [(200, TEXT)]
        assert (upstream.headers[0]["api-key"], upstream.headers[0]["x-team"]) == ("k", "red")
        assert "Authorization" not in upstream.headers[0]


async def test_the_callers_key_does_not_reach_the_provider(tmp_path: Path) -> None:
    async with provider() as upstream:
        await ask(config(upstream.base_url, "auth: {kind: none}"), tmp_path)
        assert KEY not in str(upstream.headers)


async def test_a_proxy_is_gone_through(tmp_path: Path) -> None:
    async with provider() as upstream, _proxy() as (address, seen):
        more = f"api_key: k, proxy: 'http://{address}'"
        assert await ask(config(upstream.base_url.replace("127.0.0.1", "localhost"), more), tmp_path) == [(200, TEXT)]
    assert seen
    assert seen[0].startswith(b"POST http://localhost:")


async def test_a_mark_before_an_answer_is_skipped(tmp_path: Path) -> None:
    body = BODY.replace(b"plain", b"marked")
    async with provider() as upstream:
        made = config(upstream.base_url, "api_key: k")
        async with face("http, in process", made, tmp_path) as gateway:
            answers = [await gateway.ask(body), await gateway.stream(body)]
    assert [(answer.status, answer.text) for answer in answers] == [(200, TEXT)] * 2


async def test_a_provider_with_a_private_authority_is_trusted_by_its_file(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with _tls_provider(context) as base_url:
        trusting = config(base_url, "api_key: k, ca_file: ca.pem", tmp_path / "test.yaml")
        assert await ask(trusting, tmp_path / "a") == [(200, TEXT)]
        [(status, message)] = await ask(config(base_url, "api_key: k"), tmp_path / "b")
        assert (status, "could not be reached" in message) == (502, True)


async def test_the_whole_answer_has_a_deadline(tmp_path: Path) -> None:
    body = BODY.replace(b"plain", b"silent")
    async with provider() as upstream:
        made = config(upstream.base_url, "api_key: k, timeout: {total: 0.2}")
        async with face("http, in process", made, tmp_path) as gateway:
            answer = await gateway.ask(body)
        assert (answer.status, "the whole answer" in answer.message) == (504, True)


async def test_a_callers_own_deadline_ends_the_call_at_the_provider(tmp_path: Path) -> None:
    async with provider() as upstream, face("grpc", config(upstream.base_url, "api_key: k"), tmp_path) as gateway:
        stub: rpc.GenerationServiceStub = gateway.generation  # type: ignore[attr-defined]
        message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
        request = pb.GenerateRequest(model="silent", messages=[message])
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Generate(request, timeout=0.3, metadata=(("authorization", f"Bearer {KEY}"),))
        assert from_rpc(caught.value).name == "UPSTREAM_TIMEOUT"


@asynccontextmanager
async def _tls_provider(context: ssl.SSLContext) -> AsyncGenerator[str, None]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(whole("plain"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        yield f"https://localhost:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def _proxy() -> AsyncGenerator[tuple[str, list[bytes]], None]:
    """A forwarding proxy for one exchange a connection, and the request lines that it saw."""
    seen: list[bytes] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            seen.append(head.split(b"\r\n", 1)[0])
            target = head.split(b" ", 2)[1].removeprefix(b"http://").split(b"/", 1)[0].decode()
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
            host, _, port = target.partition(":")
            inward, outward = await asyncio.open_connection(host, int(port))
            line, rest = head.split(b"\r\n", 1)
            path = b"/" + line.split(b" ")[1].removeprefix(b"http://").split(b"/", 1)[1]
            outward.write(
                b"POST " + path + b" HTTP/1.1\r\nConnection: close\r\n" + rest + await reader.readexactly(length)
            )
            writer.write(await inward.read())
            await writer.drain()
            outward.close()
        finally:
            writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"{host}:{port}", seen


async def test_an_endpoint_counts_as_broken_until_it_answers_again() -> None:
    """Else each call to a local model that broke off once, and lives, would wait for its successor."""
    told: list[Endpoint | None] = []
    async with provider() as upstream, Transport.opened() as transport:
        place = Endpoint(upstream.base_url, {})

        async def endpoint(broken: Endpoint | None) -> Endpoint:
            told.append(broken)
            return place

        channel = HttpUpstream(transport, [FORMATS["chat"]], endpoint, Deadlines(1, 1, 1, 1))
        for model in ("drops", "plain", "plain"):
            request = FORMATS["chat"].decode_request(BODY, {}).canonical
            with contextlib.suppress(UmgError):
                await channel.generate(channel.prepare(request, model, stream=False), 1)
    assert told == [None, place, None]

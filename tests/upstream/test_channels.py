"""What an operator writes of a channel is what its provider meets."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from aiohttp import ClientSession, web

from tests.e2e.faces import KEY, face
from tests.e2e.gateways import Running, running
from tests.e2e.provider import TEXT, provider, whole
from umg_grpc.config import Config, parse
from umg_grpc.errors import UmgError
from umg_grpc.status import from_rpc
from umg_grpc.upstream.http_channel import Endpoint, HttpChannel
from umg_grpc.upstream.http_text import HttpText
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

        channel = HttpText(HttpChannel(transport, endpoint, Deadlines(1, 1, 1, 1)), [FORMATS["chat"]])
        for model in ("drops", "plain", "plain"):
            request = FORMATS["chat"].decode_request(BODY, {}).canonical
            with contextlib.suppress(UmgError):
                await channel.generate(channel.prepare(request, model, stream=False), 1)
    assert told == [None, place, None]


# --- what embeds and ranks

Json = dict[str, Any]


@dataclass
class Vendor:
    """A provider that embeds and ranks as well as it says `chat`; it judges nothing."""

    root: str = ""
    seen: list[tuple[str, Json, Json]] = field(default_factory=list)
    """Path, headers by lower-case name and body of each request."""

    @property
    def keys(self) -> list[str]:
        """Where the key of each request stood, and which it was."""
        places = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
        return [f"{name}: {headers[name]}" for _, headers, _ in self.seen for name in places if name in headers]

    def answer(self, path: str, body: Json) -> Json:
        """A vector has one number, the length of its text; a document's score is so as well."""
        if path.endswith("/embeddings"):
            data = [
                {"object": "embedding", "index": index, "embedding": [len(text)]}
                for index, text in enumerate(body["input"])
            ]
            usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
            return {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}
        if path.endswith("batchEmbedContents"):
            texts = [request["content"]["parts"][0]["text"] for request in body["requests"]]
            return {"embeddings": [{"values": [len(text)]} for text in texts]}
        if path.endswith("/rerank"):
            scores = [len(text) / 100 for text in body["documents"]]
            return {"id": "r", "results": [{"index": i, "relevance_score": score} for i, score in enumerate(scores)]}
        return whole(body["model"])


VENDOR = web.AppKey("vendor", Vendor)


@asynccontextmanager
async def _vendor() -> AsyncGenerator[Vendor, None]:
    async def handle(request: web.Request) -> web.Response:
        vendor, body = request.app[VENDOR], await request.json()
        vendor.seen.append((request.path, {name.lower(): value for name, value in request.headers.items()}, body))
        return web.json_response(vendor.answer(request.path, body))

    app = web.Application()
    vendor = app[VENDOR] = Vendor()
    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    vendor.root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield vendor
    finally:
        await runner.cleanup()


async def post(gateway: Running, path: str, **body: object) -> tuple[int, Json]:
    async with (
        ClientSession() as session,
        session.post(f"{gateway.url}{path}", json={"model": "m", **body}, headers=gateway.headers) as response,
    ):
        return response.status, await response.json()


def told(base_url: str, protocols: str, more: str = "", rest: str = "") -> str:
    return f"channels: [{{name: v, protocols: [{protocols}], base_url: '{base_url}', models: [m]{more}}}]\n{rest}"


@dataclass(frozen=True)
class Place:
    """Where a protocol's provider is called, and where it finds the key."""

    protocol: str
    path: str
    header: str
    base: str = "/v1"


PLACES = [
    Place("embeddings", "/v1/embeddings", "authorization: Bearer k"),
    Place("native_embeddings", "/v1beta/models/m:batchEmbedContents", "x-goog-api-key: k", base="/v1beta"),
    Place("rerank", "/v1/rerank", "authorization: Bearer k"),
    Place("rerank", "/v2/rerank", "authorization: Bearer k", base="/v2"),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.path)
@pytest.mark.parametrize("more", [", api_key: k", ", api_key: k, auth: {kind: header, header: api-key}", ""])
async def test_each_format_has_its_path_and_its_place_for_the_key(place: Place, more: str, tmp_path: Path) -> None:
    async with _vendor() as vendor:
        config = told(vendor.root + place.base, place.protocol, more)
        async with running(config, tmp_path) as gateway:
            if place.protocol == "rerank":
                status, _ = await post(gateway, "/v1/rerank", query="q", documents=["a"])
            else:
                status, _ = await post(gateway, "/v1/embeddings", input="a")
        assert status == 200
        assert [path for path, _, _ in vendor.seen] == [place.path]
        assert vendor.keys == ([] if not more else ["api-key: k"] if "auth" in more else [place.header])


async def test_the_keys_of_a_channel_take_turns_whatever_is_asked_of_it(tmp_path: Path) -> None:
    async with _vendor() as vendor:
        config = told(f"{vendor.root}/v1", "chat, embeddings, rerank", ", api_key: [a, b]")
        async with running(config, tmp_path) as gateway:
            for path, body in (
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
                ("/v1/embeddings", {"input": ["a"]}),
                ("/v1/rerank", {"query": "q", "documents": ["a"]}),
                ("/v1/embeddings", {"input": ["a"]}),
            ):
                assert (await post(gateway, path, **body))[0] == 200
        assert vendor.keys == [f"authorization: Bearer {key}" for key in "abab"]


TEXTS = ["x" * length for length in range(1, 9)]


@pytest.mark.parametrize("protocol", ["embeddings", "native_embeddings"])
async def test_a_batch_goes_out_in_parts_of_the_size_that_the_operator_says(protocol: str, tmp_path: Path) -> None:
    async with _vendor() as vendor:
        async with running(told(f"{vendor.root}/v1", protocol, ", max_inputs: 3"), tmp_path) as gateway:
            status, body = await post(gateway, "/v1/embeddings", input=TEXTS)
        sizes = [len(sent.get("input") or sent["requests"]) for _, _, sent in vendor.seen]
    assert (status, sorted(sizes)) == (200, [2, 3, 3])
    assert [vector["embedding"] for vector in body["data"]] == [[len(text)] for text in TEXTS]
    assert [vector["index"] for vector in body["data"]] == list(range(8))
    assert body["usage"]["prompt_tokens"] >= 8


async def test_without_a_word_of_it_the_parts_have_the_size_that_the_format_has(tmp_path: Path) -> None:
    async with _vendor() as vendor:
        async with running(told(f"{vendor.root}/v1", "native_embeddings"), tmp_path) as gateway:
            status, body = await post(gateway, "/v1/embeddings", input=["a"] * 250)
        assert sorted(len(sent["requests"]) for _, _, sent in vendor.seen) == [50, 100, 100]
    assert (status, len(body["data"])) == (200, 250)


@dataclass(frozen=True)
class Limit:
    id: str
    limits: str
    path: str
    field: str
    fits: Json
    exceeds: Json


LIMITS = [
    Limit("texts", "{embedding_inputs: 2}", "/v1/embeddings", "input", {"input": ["a", "b"]}, {"input": ["a"] * 3}),
    Limit("texts by default", "{}", "/v1/embeddings", "input", {"input": ["a"] * 2048}, {"input": ["a"] * 2049}),
    Limit("documents", "{rerank_documents: 2}", "/v1/rerank", "documents", {"query": "q", "documents": ["a", "b"]}, {"query": "q", "documents": ["a"] * 3}),
    Limit("documents by default", "{}", "/v1/rerank", "documents", {"query": "q", "documents": ["a"] * 1000}, {"query": "q", "documents": ["a"] * 1001}),
]  # fmt: skip


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: case.id)
async def test_a_call_may_have_as_much_as_the_limits_say(case: Limit, tmp_path: Path) -> None:
    async with _vendor() as vendor:
        config = told(f"{vendor.root}/v1", "embeddings, rerank", rest=f"limits: {case.limits}")
        async with running(config, tmp_path) as gateway:
            assert (await post(gateway, case.path, **case.fits))[0] == 200
            vendor.seen.clear()
            status, body = await post(gateway, case.path, **case.exceeds)
        assert (status, body["error"]["param"]) == (400, case.field)
        assert vendor.seen == []

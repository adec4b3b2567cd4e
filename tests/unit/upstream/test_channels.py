"""Configured channels: the requests that their providers receive."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme
from aiohttp import ClientSession, web

from tests.support.callers.chat_callers import chat_caller
from tests.support.gateways import KEY, Running, running
from tests.support.providers.chat_faults import TEXT, complete, provider
from tests.support.providers.server import FakeProvider, Json, ReceivedRequest, serve_provider
from tests.support.serving import serving
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import Config, parse
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint
from umg_grpc.upstream.http.text_generation import HttpText
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FORMATS

CHANNEL = (
    "channels: [{{name: main, protocols: [chat], base_url: '{base_url}', models: [plain, silent, marked], {more}}}]"
)
BODY = json.dumps({"model": "plain", "messages": [{"role": "user", "content": "Hi"}]}).encode()


def config(base_url: str, more: str, name: Path | str = "test.yaml") -> Config:
    return parse(CHANNEL.format(base_url=base_url, more=more), str(name), {})


async def call_channel(made: Config, data: Path, times: int = 1) -> list[tuple[int, str]]:
    async with chat_caller("http, in process", made, data) as gateway:
        answers = [await gateway.call(BODY) for _ in range(times)]
    return [(answer.status, answer.text or answer.message) for answer in answers]


async def test_several_keys_are_used_in_turn(tmp_path: Path) -> None:
    async with provider() as upstream:
        assert await call_channel(config(upstream.base_url, "api_key: [a, b]"), tmp_path, times=4) == [(200, TEXT)] * 4
        assert [request.headers["authorization"] for request in upstream.received] == ["Bearer a", "Bearer b"] * 2


async def test_a_key_goes_into_the_header_that_the_operator_names(tmp_path: Path) -> None:
    more = "api_key: k, auth: {kind: header, header: api-key}, headers: {x-team: red}"
    async with provider() as upstream:
        assert await call_channel(config(upstream.base_url, more), tmp_path) == [(200, TEXT)]
        headers = upstream.received[0].headers
        assert (headers["api-key"], headers["x-team"]) == ("k", "red")
        assert "authorization" not in headers


async def test_the_callers_key_does_not_reach_the_provider(tmp_path: Path) -> None:
    async with provider() as upstream:
        await call_channel(config(upstream.base_url, "auth: {kind: none}"), tmp_path)
        assert KEY not in str([request.headers for request in upstream.received])


async def test_a_proxy_is_gone_through(tmp_path: Path) -> None:
    async with provider() as upstream, _proxy() as (address, seen):
        more = f"api_key: k, proxy: 'http://{address}'"
        assert await call_channel(config(upstream.base_url.replace("127.0.0.1", "localhost"), more), tmp_path) == [
            (200, TEXT)
        ]
    assert seen
    assert seen[0].startswith(b"POST http://localhost:")


async def test_a_mark_before_an_answer_is_skipped(tmp_path: Path) -> None:
    body = BODY.replace(b"plain", b"marked")
    async with provider() as upstream:
        made = config(upstream.base_url, "api_key: k")
        async with chat_caller("http, in process", made, tmp_path) as gateway:
            answers = [await gateway.call(body), await gateway.stream(body)]
    assert [(answer.status, answer.text) for answer in answers] == [(200, TEXT)] * 2


async def test_a_provider_with_a_private_authority_is_trusted_by_its_file(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with _tls_provider(context) as base_url:
        trusting = config(base_url, "api_key: k, ca_file: ca.pem", tmp_path / "test.yaml")
        assert await call_channel(trusting, tmp_path / "a") == [(200, TEXT)]
        [(status, message)] = await call_channel(config(base_url, "api_key: k"), tmp_path / "b")
        assert (status, "could not be reached" in message) == (502, True)


async def test_the_whole_answer_has_a_deadline(tmp_path: Path) -> None:
    body = BODY.replace(b"plain", b"silent")
    async with provider() as upstream:
        made = config(upstream.base_url, "api_key: k, timeout: {total: 0.2}")
        async with chat_caller("http, in process", made, tmp_path) as gateway:
            answer = await gateway.call(body)
        assert (answer.status, "the whole response" in answer.message) == (504, True)


async def test_a_callers_own_deadline_ends_the_call_at_the_provider(tmp_path: Path) -> None:
    async with (
        provider() as upstream,
        chat_caller("grpc", config(upstream.base_url, "api_key: k"), tmp_path) as gateway,
    ):
        stub: rpc.GenerationServiceStub = gateway.generation  # type: ignore[attr-defined]
        message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
        request = pb.GenerateRequest(model="silent", messages=[message])
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Generate(request, timeout=0.3, metadata=(("authorization", f"Bearer {KEY}"),))
        assert from_rpc(caught.value).name == "DEADLINE_EXCEEDED"


@asynccontextmanager
async def _tls_provider(context: ssl.SSLContext) -> AsyncGenerator[str, None]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(complete("plain"))

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    async with serving(app, ssl_context=context) as url:
        yield f"{url}/v1"


@asynccontextmanager
async def _proxy() -> AsyncGenerator[tuple[str, list[bytes]], None]:
    """Run a forwarding proxy for one exchange per connection. Yield its address and the request lines that it received."""
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
    """Check it, since otherwise each call to a local model that broke off once, and still runs, would wait for its
    successor.
    """
    reported: list[ProviderEndpoint | None] = []
    async with provider() as upstream, Client.opened() as client:
        provider_path = ProviderEndpoint(upstream.base_url, {})

        async def endpoint(broken: ProviderEndpoint | None) -> ProviderEndpoint:
            reported.append(broken)
            return provider_path

        channel = HttpText(HttpChannel(client, endpoint, Deadlines(1, 1, 1, 1)), [TEXT_FORMATS["chat"]])
        for model in ("drops", "plain", "plain"):
            request = TEXT_FORMATS["chat"].decode_request(BODY, {}).canonical
            with contextlib.suppress(UmgError):
                await channel.prepare(request, model, stream=False).send(1)
    assert reported == [None, provider_path, None]


# --- embedding and reranking


@dataclass
class Vendor(FakeProvider):
    """Provider that embeds and ranks as well as it generates in `chat`; it does not check requests."""

    @property
    def keys(self) -> list[str]:
        places = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
        return [f"{name}: {each.headers[name]}" for each in self.received for name in places if name in each.headers]

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        return web.json_response(self._written(received.path, received.json))

    def _written(self, path: str, body: Json) -> Json:
        """Return the response: a vector with one number, the length of its text, and scores computed the same way."""
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
        return complete(body["model"])


async def post(gateway: Running, path: str, **body: object) -> tuple[int, Json]:
    async with (
        ClientSession() as session,
        session.post(f"{gateway.url}{path}", json={"model": "m", **body}, headers=gateway.headers) as response,
    ):
        return response.status, await response.json()


def config_of(base_url: str, protocols: str, more: str = "", rest: str = "") -> str:
    return f"channels: [{{name: v, protocols: [{protocols}], base_url: '{base_url}', models: [m]{more}}}]\n{rest}"


@dataclass(frozen=True)
class ProviderPath:
    protocol: str
    path: str
    header: str
    base: str = "/v1"


PROVIDER_PATHS = [
    ProviderPath("embeddings", "/v1/embeddings", "authorization: Bearer k"),
    ProviderPath("native_embeddings", "/v1beta/models/m:batchEmbedContents", "x-goog-api-key: k", base="/v1beta"),
    ProviderPath("rerank", "/v1/rerank", "authorization: Bearer k"),
    ProviderPath("rerank", "/v2/rerank", "authorization: Bearer k", base="/v2"),
]


@pytest.mark.parametrize("provider_path", PROVIDER_PATHS, ids=lambda provider_path: provider_path.path)
@pytest.mark.parametrize("more", [", api_key: k", ", api_key: k, auth: {kind: header, header: api-key}", ""])
async def test_each_format_has_its_path_and_its_header_for_the_key(
    provider_path: ProviderPath, more: str, tmp_path: Path
) -> None:
    async with serve_provider(Vendor()) as vendor:
        config = config_of(vendor.url + provider_path.base, provider_path.protocol, more)
        async with running(config, tmp_path) as gateway:
            if provider_path.protocol == "rerank":
                status, _ = await post(gateway, "/v1/rerank", query="q", documents=["a"])
            else:
                status, _ = await post(gateway, "/v1/embeddings", input="a")
        assert status == 200
        assert [request.path for request in vendor.received] == [provider_path.path]
        assert vendor.keys == ([] if not more else ["api-key: k"] if "auth" in more else [provider_path.header])


async def test_the_keys_of_a_channel_take_turns_for_every_operation(tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        config = config_of(f"{vendor.url}/v1", "chat, embeddings, rerank", ", api_key: [a, b]")
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
async def test_a_batch_is_sent_in_parts_of_the_configured_size(protocol: str, tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        async with running(config_of(f"{vendor.url}/v1", protocol, ", max_inputs: 3"), tmp_path) as gateway:
            status, body = await post(gateway, "/v1/embeddings", input=TEXTS)
        sizes = [len(sent.get("input") or sent["requests"]) for sent in vendor.bodies]
    assert (status, sorted(sizes)) == (200, [2, 3, 3])
    assert [vector["embedding"] for vector in body["data"]] == [[len(text)] for text in TEXTS]
    assert [vector["index"] for vector in body["data"]] == list(range(8))
    assert body["usage"]["prompt_tokens"] >= 8


async def test_without_a_word_of_it_the_parts_have_the_size_that_the_format_has(tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        async with running(config_of(f"{vendor.url}/v1", "native_embeddings"), tmp_path) as gateway:
            status, body = await post(gateway, "/v1/embeddings", input=["a"] * 250)
        assert sorted(len(sent["requests"]) for sent in vendor.bodies) == [50, 100, 100]
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
async def test_a_call_may_have_as_many_inputs_as_the_limits_allow(case: Limit, tmp_path: Path) -> None:
    async with serve_provider(Vendor()) as vendor:
        config = config_of(f"{vendor.url}/v1", "embeddings, rerank", rest=f"limits: {case.limits}")
        async with running(config, tmp_path) as gateway:
            assert (await post(gateway, case.path, **case.fits))[0] == 200
            vendor.received.clear()
            status, body = await post(gateway, case.path, **case.exceeds)
        assert (status, body["error"]["param"]) == (400, case.field)
        assert vendor.received == []

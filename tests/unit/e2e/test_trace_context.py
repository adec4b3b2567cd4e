"""W3C trace context of callers: sent to providers by both faces, and in the log."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tests.support.gateways import Running, running
from tests.support.providers.every_operation import EveryOperation
from tests.support.providers.server import serve_provider
from umg_grpc.base.trace_context import read_trace_context
from umg_grpc.v1 import pb, rpc

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"
STATE = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
HEADERS = {"traceparent": PARENT, "tracestate": STATE}
CONFIG = """
channels:
  - name: main
    protocols: [chat, embeddings, rerank]
    base_url: {url}/v1
    api_key: sk-provider
    models: [m]
"""
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
CALLS = {
    "a response": ("/v1/chat/completions", CHAT),
    "a stream": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "another format": ("/v1/messages", {**CHAT, "max_tokens": 9}),
    "embedding": ("/v1/embeddings", {"model": "m", "input": "Hi"}),
    "reranking": ("/v1/rerank", {"model": "m", "query": "q", "documents": ["d"]}),
}


@dataclass
class Setting:
    gateway: Running
    provider: EveryOperation
    session: aiohttp.ClientSession

    async def post(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        async with self.session.post(self.gateway.url + path, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()

    @property
    def received(self) -> tuple[str | None, str | None]:
        """The headers of the last request that the provider received."""
        headers = self.provider.received[-1].headers
        return headers.get("traceparent"), headers.get("tracestate")


@pytest_asyncio.fixture
async def setting(tmp_path: Path) -> AsyncGenerator[Setting, None]:
    async with (
        serve_provider(EveryOperation()) as provider,
        running(CONFIG.format(url=provider.url), tmp_path) as gateway,
        aiohttp.ClientSession(headers=gateway.headers) as session,
    ):
        yield Setting(gateway, provider, session)


@pytest.mark.parametrize("name", CALLS)
async def test_providers_are_sent_the_trace_of_http_callers(setting: Setting, name: str) -> None:
    path, body = CALLS[name]
    await setting.post(path, body, HEADERS)
    assert setting.received == (PARENT, STATE)
    await setting.post(path, body, {})  # on the same connections
    assert setting.received == (None, None)


async def test_providers_are_sent_the_trace_of_grpc_callers(setting: Setting) -> None:
    metadata = [("authorization", f"Bearer {setting.gateway.key}")]
    request = pb.GenerateRequest(
        model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])]
    )
    async with grpc.aio.insecure_channel(setting.gateway.grpc) as channel:
        stub = rpc.GenerationServiceStub(channel)
        await stub.Generate(request, metadata=[*metadata, *HEADERS.items()])
        assert setting.received == (PARENT, STATE)
        await stub.Generate(request, metadata=metadata)
        assert setting.received == (None, None)
        streaming = pb.StreamGenerateRequest(request=request)
        async for _ in stub.StreamGenerate(streaming, metadata=[*metadata, *HEADERS.items()]):
            pass
        assert setting.received == (PARENT, STATE)


async def test_every_attempt_of_a_call_is_sent_the_trace(setting: Setting) -> None:
    setting.provider.failures = [500]
    await setting.post("/v1/chat/completions", CHAT, HEADERS)
    sent = [request.headers["traceparent"] for request in setting.provider.received]
    assert sent == [PARENT, PARENT]


async def test_the_log_line_of_a_call_has_the_id_of_its_trace(setting: Setting) -> None:
    with capture_logs() as lines:
        await setting.post("/v1/chat/completions", CHAT, HEADERS)
        await setting.post("/v1/chat/completions", CHAT, {"traceparent": "no trace"})
    assert [line["trace_id"] for line in lines if line["event"] == "call"] == [TRACE_ID, None]


async def test_the_log_line_of_a_request_without_a_call_has_the_id_of_its_trace(setting: Setting) -> None:
    with capture_logs() as lines:
        async with setting.session.get(f"{setting.gateway.url}/v1/nothing", headers=HEADERS) as answer:
            assert answer.status == 404
    assert [line["trace_id"] for line in lines if line["event"] == "request"] == [TRACE_ID]


@dataclass(frozen=True)
class Invalid:
    id: str
    parents: tuple[str, ...]


INVALID = [
    Invalid("nothing", ()),
    Invalid("two headers", (PARENT, PARENT)),
    Invalid("another text", ("a trace",)),
    Invalid("capital letters", (PARENT.upper(),)),
    Invalid("a trace id of zeros", (f"00-{'0' * 32}-{SPAN_ID}-01",)),
    Invalid("a span id of zeros", (f"00-{TRACE_ID}-{'0' * 16}-01",)),
    Invalid("a short trace id", (f"00-{TRACE_ID[1:]}-{SPAN_ID}-01",)),
    Invalid("the invalid version", (PARENT.replace("00-", "ff-", 1),)),
    Invalid("more fields in version 00", (f"{PARENT}-more",)),
    Invalid("a line break", (f"{PARENT}\r\nx: y",)),
    Invalid("no end", ("01" + PARENT[2:] + "-" + "x" * 300,)),
]


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.id)
def test_an_invalid_trace_context_is_ignored(case: Invalid) -> None:
    assert read_trace_context(case.parents, [STATE]) is None


def test_a_trace_context_of_a_later_version_is_passed_on() -> None:
    later = f"01-{TRACE_ID}-{SPAN_ID}-00-more"
    found = read_trace_context([later], [])
    assert found is not None
    assert (found.trace_id, found.span_id, found.is_sampled) == (TRACE_ID, SPAN_ID, False)
    assert found.pairs == [("traceparent", later)]


def test_several_tracestate_headers_are_joined_and_invalid_ones_ignored() -> None:
    for states, joined in ((("a=1", "b=2"), "a=1,b=2"), (("a=\n",), ""), (("a=" + "x" * 511,), "")):
        found = read_trace_context([PARENT], states)
        assert found is not None
        assert found.tracestate == joined

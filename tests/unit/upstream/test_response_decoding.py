"""Failures of a decoder of providers' answers: they count as failures of the provider, another channel is called, and
the log has them.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from structlog.testing import capture_logs

from tests.support.gateways import channel, running
from tests.support.serving import serving
from umg_grpc.upstream.http.response_decoding import refusal
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.embedding_formats import EMBEDDING_UPSTREAMS
from umg_grpc.wire.rerank import RERANK_UPSTREAMS

CHAT, EMBED, RERANK = "/v1/chat/completions", "/v1/embeddings", "/v1/rerank"
FAULTS = [TypeError("secret"), RecursionError("secret"), OverflowError("secret"), MemoryError("secret")]
ANSWERS: dict[str, object] = {
    CHAT: {"choices": [{"index": 0, "message": {"role": "assistant", "content": "well"}, "finish_reason": "stop"}]},
    EMBED: {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}], "model": "m"},
    RERANK: {"results": [{"index": 0, "relevance_score": 0.5}]},
}
STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"well"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)


@dataclass(frozen=True)
class ProviderCall:
    id: str
    path: str
    protocol: str
    body: dict[str, object]
    streams: bool = False  # whether the provider streams
    status: int = 200  # of the first channel


CHATTED: dict[str, object] = {"messages": [{"role": "user", "content": "Hi"}]}
CALLS = [
    ProviderCall("whole", CHAT, "chat", CHATTED),
    ProviderCall("streamed", CHAT, "chat", CHATTED | {"stream": True}, streams=True),
    ProviderCall("a whole response to a request for a stream", CHAT, "chat", CHATTED | {"stream": True}),
    ProviderCall("embeddings", EMBED, "embeddings", {"input": "Hi"}),
    ProviderCall("rerank", RERANK, "rerank", {"query": "q", "documents": ["a"]}),
    ProviderCall("a refusal", CHAT, "chat", CHATTED, status=500),
]


@dataclass
class Providers:
    url: str
    call: ProviderCall = CALLS[0]
    names: list[str] | None = None


@pytest_asyncio.fixture
async def providers() -> AsyncGenerator[Providers, None]:
    """Run two providers on one port. The answers of `odd` cannot be decoded by any decoder of this test."""
    state = Providers("", names=[])

    async def answer(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        assert state.names is not None
        state.names.append(name)
        odd = name == "odd"
        if state.call.streams:
            data = b"data: BROKEN\n\n" if odd else STREAM
            return web.Response(body=data, content_type="text/event-stream")
        known = ANSWERS["/v1/" + request.match_info["path"]]
        body = b"BROKEN" if odd and not state.call.body.get("stream") else json.dumps(known).encode()
        if odd and state.call.body.get("stream"):
            body = b'{"x":"BROKEN"}'
        return web.Response(body=body, content_type="application/json", status=state.call.status if odd else 200)

    app = web.Application()
    app.router.add_post("/{name}/v1/{path:.*}", answer)
    async with serving(app) as url:
        state.url = url
        yield state


class _Decoder:
    """Stream decoder that fails at the odd provider's data."""

    def __init__(self, decoder: object, fault: Exception) -> None:
        self._decoder = decoder
        self._fault = fault

    @property
    def done(self) -> bool:
        return self._decoder.done  # type: ignore[attr-defined]

    def feed(self, data: bytes) -> object:
        if b"BROKEN" in data:
            raise self._fault
        return self._decoder.feed(data)  # type: ignore[attr-defined]

    def close(self) -> object:
        return self._decoder.close()  # type: ignore[attr-defined]


def failing(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    """Make the decoders of the tested formats fail at the odd provider's data."""

    def broken(decode):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        def decoded(*arguments):  # type: ignore[no-untyped-def]  # noqa: ANN002, ANN202
            if any(isinstance(given, bytes) and b"BROKEN" in given for given in arguments):
                raise fault
            return decode(*arguments)

        return decoded

    for formats, name in ((TEXT_UPSTREAMS, "chat"), (EMBEDDING_UPSTREAMS, "embeddings"), (RERANK_UPSTREAMS, "rerank")):
        codec = formats[name]
        changes = {"decode_response": broken(codec.decode_response), "decode_error": broken(codec.decode_error)}
        if name == "chat":
            make = codec.passthrough_decoder
            changes["passthrough_decoder"] = lambda request, make=make: _Decoder(make(request), fault)
        monkeypatch.setitem(formats, name, replace(codec, **changes))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
async def test_another_channel_is_called_where_a_decoder_fails(
    case: ProviderCall, fault: Exception, providers: Providers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing(monkeypatch, fault)
    providers.call = case
    first = channel("odd", case.protocol, f"{providers.url}/odd/v1", "m")
    second = channel("well", case.protocol, f"{providers.url}/well/v1", "m").rstrip() + "\n    priority: 1\n"
    async with running(f"channels:\n{first}{second}", tmp_path) as gateway, aiohttp.ClientSession() as session:
        with capture_logs() as lines:
            async with (
                asyncio.timeout(60),
                session.post(
                    gateway.url + case.path, json={"model": "m"} | case.body, headers=gateway.headers
                ) as answer,
            ):
                assert (answer.status, b"secret" in await answer.read()) == (200, False)
    assert providers.names == ["odd", "well"]
    failures = [line for line in lines if "place" in line]
    assert [(line["log_level"], line["place"].split(" at ")[0]) for line in failures] == [
        ("error", type(fault).__name__)
    ]
    assert "secret" not in str(lines)


async def test_a_caller_of_one_channel_receives_the_providers_failure(
    providers: Providers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing(monkeypatch, FAULTS[0])
    config = "retries: {repeats: 0}\nchannels:\n" + channel("odd", "chat", f"{providers.url}/odd/v1", "m")
    async with (
        running(config, tmp_path) as gateway,
        aiohttp.ClientSession() as session,
        session.post(gateway.url + CHAT, json={"model": "m"} | CHATTED, headers=gateway.headers) as answer,
    ):
        assert (answer.status, (await answer.json())["error"]["code"]) == (502, "upstream_failed")


def test_an_unreadable_refusal_is_classified_by_its_status() -> None:
    def decode(*_: object) -> object:
        raise TypeError

    assert refusal(decode, 429, {}, b"x", is_forwarded=False).reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED  # type: ignore[arg-type]

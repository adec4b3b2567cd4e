"""Headers of sessions: they go to the vendor that they are for and back, and to no other provider."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.pairs.table import TEXT_FACES
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import running
from tests.support.providers.chat_faults import complete
from tests.support.providers.server import FakeProvider, Json, ReceivedRequest, serve_provider
from tests.support.providers.short_responses import CANDIDATES, MESSAGE, RESPONSE
from umg_grpc.config import ConfigError, parse
from umg_grpc.knowledge.vendor_client_headers import (
    CLIENT_HEADERS,
    MAX_CHARACTERS,
    is_sendable,
    request_names,
    response_names,
)
from umg_grpc.upstream.http.session_headers import lines_beside

CODEX = {
    "session-id": "0199-session",
    "thread-id": "0199-thread",
    "x-client-request-id": "0199-thread",
    "originator": "codex_exec",
    "x-codex-window-id": "0199-thread:1",
    "x-codex-turn-metadata": '{"turn_id": "7"}',
    "x-codex-turn-state": "state of the turn",
    "x-codex-newer-than-this-build": "1",
}
"""Headers of Codex, as it sends them."""
OF_THE_VENDOR = {
    "x-codex-turn-state": "next state",
    "openai-model": "m",
    "x-reasoning-included": "true",
    "x-models-etag": 'W/"7"',
}
PRIVATE = {"x-codex-primary-used-percent": "81", "x-unknown": "1", "openai-organization": "acme"}
"""Headers of the vendor about the account of the operator."""
BODIES: dict[str, Json] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
    "native": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
}


@dataclass
class Vendor(FakeProvider):
    """Provider of all formats, whose answers have further headers."""

    answers: Mapping[str, str] = field(default_factory=lambda: OF_THE_VENDOR | PRIVATE)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path.endswith("/responses"):
            if received.json.get("stream"):
                created = {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "output": []}}
                completed = {"type": "response.completed", "sequence_number": 1, "response": RESPONSE}
                frames = "".join(f"data: {json.dumps(each)}\n\n" for each in (created, completed))
                return web.Response(text=frames, headers=self.answers, content_type="text/event-stream")
            return web.json_response(RESPONSE, headers=self.answers)
        if received.path.endswith("/messages"):
            return web.json_response(MESSAGE, headers=self.answers)
        if "generateContent" in received.path:
            return web.json_response(CANDIDATES, headers=self.answers)
        return web.json_response(complete("m"), headers=self.answers)

    @property
    def sent(self) -> Mapping[str, str]:
        """Headers of the last request."""
        return self.received[-1].headers


@dataclass(frozen=True)
class Served:
    caller: HttpCaller
    vendor: Vendor

    async def send(self, face: str, headers: Mapping[str, str], stream: bool = False) -> Mapping[str, str]:
        """Return the headers of the response to a call."""
        body = {"model": "m"} | BODIES[face] | ({"stream": True} if stream else {})
        answer = await self.caller.send(face, "m", body, stream=stream, **headers)
        assert answer.status == 200, answer.body
        return {name.lower(): value for name, value in answer.headers.items()}


@asynccontextmanager
async def served(
    data: Path, protocol: str, more: str = "", host: str = "", model: str = "m"
) -> AsyncGenerator[Served, None]:
    """Run a gateway with one channel. `host`: name by which the gateway calls the provider, through a proxy."""
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(serve_provider(Vendor()))
        url, proxy = (f"http://{host}", f", proxy: '{vendor.url}'") if host else (vendor.url, "")
        channel = (
            f"{{name: c, protocols: [{protocol}], base_url: '{url}/v1', api_key: k, models: [{model}]{proxy}{more}}}"
        )
        gateway = await stack.enter_async_context(running(f"channels: [{channel}]", data))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), vendor)


OPENAI = ", quirks: {client_headers: [openai]}"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_headers_of_codex_reach_openai_and_those_of_openai_codex(stream: bool, tmp_path: Path) -> None:
    async with served(tmp_path, "responses", host="api.openai.com") as gateway:
        answer = await gateway.send("responses", CODEX, stream)
        assert CODEX.items() <= gateway.vendor.sent.items()
        assert OF_THE_VENDOR.items() <= answer.items()
        assert not PRIVATE.keys() & answer.keys()
        await gateway.send("responses", CODEX | {"x-codex-turn-state": answer["x-codex-turn-state"]}, stream)
        assert gateway.vendor.sent["x-codex-turn-state"] == "next state"


@dataclass(frozen=True)
class Foreign:
    id: str
    protocol: str
    face: str = "responses"
    host: str = ""
    more: str = ""


FOREIGN = [
    Foreign("another vendor in responses", "responses", host="api.x.ai"),
    Foreign("an unknown vendor in responses", "responses"),
    Foreign("the vendor in another format", "chat", host="api.openai.com"),
    Foreign("another format", "messages", host="api.anthropic.com"),
    Foreign("callers of another format", "responses", face="chat", host="api.openai.com"),
    Foreign("callers of messages", "responses", face="messages", host="api.openai.com"),
    Foreign(
        "an operator who turns them off", "responses", host="api.openai.com", more=", quirks: {client_headers: []}"
    ),
]


@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: case.id)
async def test_no_other_provider_or_client_gets_them(case: Foreign, tmp_path: Path) -> None:
    async with served(tmp_path, case.protocol, case.more, case.host) as gateway:
        answer = await gateway.send(case.face, CODEX)
        assert not CODEX.keys() & gateway.vendor.sent.keys()
        assert not (OF_THE_VENDOR | PRIVATE).keys() & answer.keys()


async def test_an_operator_may_name_a_provider_that_takes_them(tmp_path: Path) -> None:
    async with served(tmp_path, "responses", f", headers: {{Thread-Id: own}}{OPENAI}") as gateway:
        answer = await gateway.send("responses", CODEX)
        assert (CODEX | {"thread-id": "own"}).items() <= gateway.vendor.sent.items()
        assert OF_THE_VENDOR.items() <= answer.items()


async def test_the_vendors_name_of_a_model_is_for_callers_by_that_name_alone(tmp_path: Path) -> None:
    async with served(tmp_path, "responses", f"{OPENAI}", model="{id: m, upstream: other}") as gateway:
        answer = await gateway.send("responses", CODEX)
        assert "openai-model" not in answer
        assert answer["x-codex-turn-state"] == "next state"


SESSION_HEADERS = {
    "openrouter.ai/api": "x-session-id",
    "api.x.ai": "x-grok-conv-id",
    "api.fireworks.ai/inference": "x-session-affinity",
}
"""Address of a vendor -> header in which it takes the name of a session."""


@pytest.mark.parametrize("face", TEXT_FACES)
@pytest.mark.parametrize("host", SESSION_HEADERS)
async def test_a_vendor_gets_one_name_for_the_calls_of_a_session(host: str, face: str, tmp_path: Path) -> None:
    header = SESSION_HEADERS[host]
    async with served(tmp_path, "chat", host=host) as gateway:
        names = []
        for session in ("one", "one", "two"):
            await gateway.send(face, {"x-claude-code-session-id": session})
            names.append(gateway.vendor.sent[header])
        assert names[0] == names[1] != names[2]
        assert names[0].startswith("umg-")
        assert "x-claude-code-session-id" not in gateway.vendor.sent
        await gateway.send(face, {})
        assert header not in gateway.vendor.sent


def test_values_that_are_no_headers_are_left_out() -> None:
    names = request_names("responses")
    assert names.select({"Session-Id": "s", "x-codex-a": "a\r\nb", "thread-id": "é", "authorization": "k"}) == {
        "session-id": "s"
    }
    assert [is_sendable("x" * length) for length in (0, MAX_CHARACTERS, MAX_CHARACTERS + 1)] == [False, True, False]
    assert lines_beside({"Thread-Id": "own"}, {"thread-id": "t", "session-id": "s"}) == b"session-id: s\r\n"


def test_rows_name_each_header_once_and_its_owner_alone_gets_it() -> None:
    assert len({(row.header, row.direction) for row in CLIENT_HEADERS}) == len(CLIENT_HEADERS)
    assert all(row.header == row.header.lower() and row.source and row.as_of for row in CLIENT_HEADERS)
    assert request_names("responses", ("another",)).select(CODEX) == {}
    assert response_names("responses", ("another",), is_renamed=False) == ()
    assert request_names("chat").select(CODEX) == {}


@pytest.mark.parametrize("quirk", ["client_headers: [acme]", "session_header: authorization"])
def test_a_config_names_only_known_owners_and_headers_of_sessions(quirk: str) -> None:
    with pytest.raises(ConfigError, match=quirk.partition(":")[0]):
        parse(
            f"channels: [{{name: c, protocols: [chat], base_url: 'http://a', api_key: k, models: [m], quirks: {{{quirk}}}}}]",
            "t",
            {},
        )

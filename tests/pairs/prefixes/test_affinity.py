"""The requests of a conversation are sent to one account of a provider, whose prompt cache has their beginning: at every
replica, with or without a session that the client names.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.pairs.prefixes.conversations import STEPS, Json, Step, growing
from tests.pairs.prefixes.test_prefixes import BEGUN
from tests.pairs.table import TEXT_FACES
from tests.support.databases import Postgres
from tests.support.gateways import Running, running
from tests.support.providers.chat_faults import complete
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.service.caching.prompt_cache_account_choice import SMALLEST_BYTES, find_affinity
from umg_grpc.wire import TEXT_FORMATS

LONG = "A rule of the agent. " * 400
SESSIONS = [f"session-{number}" for number in range(12)]


def affinity(face: str, body: Json, headers: dict[str, str] | None = None, owner: str = "key") -> bytes:
    request = TEXT_FORMATS[face].decode_request(json.dumps({"model": "m"} | body).encode(), {}, "m").canonical
    return find_affinity(owner, request, headers or {})


def long(face: str) -> Json:
    """Return the first request of a conversation that is long enough for a prompt cache."""
    body: Json = json.loads(json.dumps(BEGUN[face]).replace("Read it.", "Read it. " + "x" * SMALLEST_BYTES))
    return body


@pytest.mark.parametrize("face", TEXT_FACES)
@pytest.mark.parametrize("steps", [STEPS, STEPS[::-1]], ids=["each kind of turn", "in reverse"])
def test_all_requests_of_a_conversation_have_one_affinity(face: str, steps: Sequence[Step]) -> None:
    found = {affinity(face, body) for body in growing(face, long(face), steps)}
    assert len(found) == 1
    assert b"" not in found


def test_a_cache_mark_that_moves_on_does_not_change_the_affinity() -> None:
    marked, plain = long("messages"), long("messages")
    for part in (marked["messages"][0]["content"][0], marked["system"][0]):
        part["cache_control"] = {"type": "ephemeral"}
    assert affinity("messages", marked) == affinity("messages", plain)
    media = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    for body, mark in ((marked, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}), (plain, {})):
        body["messages"][0]["content"].append(media | mark)
    assert affinity("messages", marked) == affinity("messages", plain)


@pytest.mark.parametrize("face", TEXT_FACES)
def test_conversations_that_begin_otherwise_have_another_affinity(face: str) -> None:
    body = long(face)
    other, tools = json.loads(json.dumps(body).replace("Read it.", "Write it.")), {**body, "tools": []}
    system = json.loads(json.dumps(body).replace("You are an agent.", "You are a poet."))
    found = [affinity(face, each) for each in (body, other, tools, system)] + [affinity(face, body, owner="other")]
    assert len(set(found)) == len(found)


def test_a_short_request_without_a_session_has_no_affinity() -> None:
    assert affinity("chat", BEGUN["chat"] | {"tools": []}) == b""
    assert affinity("chat", BEGUN["chat"] | {"tools": [], "prompt_cache_key": "own"})
    assert affinity("chat", BEGUN["chat"] | {"tools": []}, {"x-session-id": "own"})


def test_a_session_is_taken_from_the_header_before_the_body_and_is_of_one_key() -> None:
    body, header = BEGUN["chat"] | {"prompt_cache_key": "own"}, {"x-session-id": "s"}
    named = affinity("chat", body, header)
    assert named == affinity("chat", BEGUN["chat"], header) == affinity("responses", BEGUN["responses"], header)
    assert named != affinity("chat", body)
    assert named != affinity("chat", body, header, owner="other")
    assert affinity("chat", body, {"x-session-id": "\udcff"})


@dataclass
class Accounts(FakeProvider):
    """Provider in chat with several accounts. `refusals_of`: key -> status with which its calls are refused."""

    refusals_of: dict[str, int] = field(default_factory=dict)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by a call with the text `wait`, which is answered when `finish` is set."""
    finish: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        key = received.headers["authorization"].removeprefix("Bearer ")
        if (status := self.refusals_of.get(key)) is not None:
            return web.json_response({"error": {"message": "no", "type": "x"}}, status=status)
        if received.json["messages"][0]["content"] == "wait":
            self.begun.set()
            await self.finish.wait()
        return web.json_response(complete(received.json["model"]))

    def take_keys(self) -> list[str]:
        """Return the key of each request since the last call."""
        keys = [each.headers["authorization"].removeprefix("Bearer ") for each in self.received]
        self.received.clear()
        return keys


CHANNEL = "  - {{name: {name}, protocols: [chat], base_url: '{url}', models: [m], api_key: [{keys}]{more}}}\n"


def config_of(url: str, channels: dict[str, str], more: str = "") -> str:
    lines = "".join(CHANNEL.format(name=name, url=url, keys=keys, more=more) for name, keys in channels.items())
    return f"retries: {{repeats: 0}}\nchannels:\n{lines}"


async def send(gateway: Running, text: str = "Hi", session: str = "", **more: Any) -> int:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    headers = gateway.headers | ({"x-session-id": session} if session else {})
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        await response.read()
        return response.status


@dataclass(frozen=True)
class Layout:
    id: str
    channels: dict[str, str]


LAYOUTS = [
    Layout("keys of one channel", {"a": "k1, k2, k3"}),
    Layout("channels", {"a": "k1", "b": "k2", "c": "k3"}),
    Layout("channels with keys", {"a": "k1, k2", "b": "k3, k4"}),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.id)
async def test_a_session_has_one_account_at_every_replica(layout: Layout, tmp_path: Path, postgres: Postgres) -> None:
    database, found = await postgres.create_prepared(f"affinity_{layout.id.replace(' ', '_')}"), set[str]()
    async with serve_provider(Accounts()) as provider:
        config = f"database: {database}\nsecret: a secret of all replicas\n{config_of(provider.url, layout.channels)}"
        async with running(config, tmp_path / "1") as one, running(config, tmp_path / "2") as other:
            for session in SESSIONS:
                for gateway in (one, other, one, other):
                    assert await send(gateway, session=session) == 200
                [key] = set(provider.take_keys())
                found.add(key)
    assert len(found) > 1


async def test_replicas_with_a_database_each_agree_about_the_sessions_of_their_first_key(tmp_path: Path) -> None:
    found = set[str]()
    async with serve_provider(Accounts()) as provider:
        config = config_of(provider.url, LAYOUTS[2].channels)
        async with running(config, tmp_path / "1") as one, running(config, tmp_path / "2") as other:
            for session in SESSIONS:
                for gateway in (one, other):
                    assert await send(gateway, session=session) == 200
                [key] = set(provider.take_keys())
                found.add(key)
    assert len(found) > 1


async def test_short_calls_without_a_session_use_all_keys_in_turn(tmp_path: Path) -> None:
    async with serve_provider(Accounts()) as provider:
        async with running(config_of(provider.url, {"a": "k1, k2"}), tmp_path) as gateway:
            for _ in range(6):
                assert await send(gateway) == 200
        assert provider.take_keys() == ["k1", "k2"] * 3


async def test_one_system_prompt_with_many_questions_is_spread_over_the_keys(tmp_path: Path) -> None:
    async with serve_provider(Accounts()) as provider:
        async with running(config_of(provider.url, {"a": "k1, k2"}), tmp_path) as gateway:
            for number in range(40):
                messages = [{"role": "system", "content": LONG}, {"role": "user", "content": f"Is {number} odd?"}]
                assert await send(gateway, messages=messages) == 200
        counted = Counter(provider.take_keys())
    assert set(counted) == {"k1", "k2"}
    assert min(counted.values()) >= 4


@pytest.mark.parametrize("status", [401, 429])
async def test_the_sessions_of_a_failing_key_use_another_one(status: int, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serve_provider(Accounts()))
        gateway = await stack.enter_async_context(running(config_of(provider.url, {"a": "k1, k2, k3"}), tmp_path))
        homes = dict[str, str]()
        for session in SESSIONS:
            assert await send(gateway, session=session) == 200
            [homes[session]] = provider.take_keys()
        failing = homes[SESSIONS[0]]
        provider.refusals_of[failing] = status
        assert await send(gateway, session=SESSIONS[0]) == 200
        first, second = provider.take_keys()
        assert first == failing != second
        for session, home in homes.items():
            assert await send(gateway, session=session) == 200
            [used] = provider.take_keys()
            assert (used == home) is (home != failing)


async def test_a_session_uses_another_channel_while_its_own_has_no_free_place(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(serve_provider(Accounts()))
        config = config_of(provider.url, {"a": "k1", "b": "k2"}, ", concurrency: 1")
        gateway = await stack.enter_async_context(running(config, tmp_path))
        assert await send(gateway, session="s") == 200
        [home] = provider.take_keys()
        waiting = asyncio.create_task(send(gateway, "wait", session="s"))
        await provider.begun.wait()
        assert await send(gateway, session="s") == 200
        assert set(provider.take_keys()) == {"k1", "k2"}
        provider.finish.set()
        assert await waiting == 200
        assert await send(gateway, session="s") == 200
        assert provider.take_keys() == [home]

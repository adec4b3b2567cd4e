"""Headers, numbers and URLs in the responses of hostile providers: callers get the response or an error of the provider,
never an internal error, and tasks end.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from tests.proofs.fuzz.hostile_gateway import gateway_of
from tests.proofs.fuzz.hostile_values import HEADER_VALUES, URLS
from tests.support.gateways import Running
from tests.support.providers.raw import Link, provider, sized
from tests.support.video_calls import eventually
from umg_grpc.upstream.http.video_generation import HttpVideo

FILE = b"\x00\x00\x00\x18ftypmp42" + bytes(2000)
CREATED = {"id": "t-1", "status": "queued"}
DONE = {"id": "t-1", "status": "completed", "progress": 100}
CHAT = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
}
ANSWERS = {
    b"/chat/completions": CHAT,
    b"/embeddings": {"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.5]}]},
    b"/rerank": {"id": "r", "results": [{"index": 0, "relevance_score": 0.5}]},
    b"/images/generations": {"created": 1, "data": [{"b64_json": "iVBORw0KGgo="}]},
    b"/messages": {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
}
CALLS = {
    "/v1/chat/completions": {"model": "m-chat", "messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"model": "m-chat", "input": "x"},
    "/v1/messages": {"model": "m-messages", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "/v1/embeddings": {"model": "m-embed", "input": "x"},
    "/v1/rerank": {"model": "m-rerank", "query": "x", "documents": ["a"]},
    "/v1/images/generations": {"model": "m-images", "prompt": "x"},
}
HEADERS = (
    *("content-type", "content-encoding", "content-range", "etag", "last-modified", "accept-ranges", "retry-after"),
    *("retry-after-ms", "date", "location", "x-request-id", "request-id", "openai-processing-ms", "set-cookie", "age"),
    *("x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-reset", "x-umg-dropped", "x-should-retry", "server"),
)
RANGES = (
    b"bytes 0-1/99999999999999999999",
    b"bytes 9223372036854775808-9223372036854775809/9223372036854775810",
    b"bytes 5-1/3",
    b"bytes */*",
    b"bytes */99999999999999999999",
    b"bytes 0-%b/*" % (b"9" * 5000),
)
STATUSES = (200, 206, 302, 404, 416, 429)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Hostile:
    """Provider whose file, or whose answer to any other call, has a given status and headers."""

    status: int = 200
    headers: dict[str, bytes] = field(default_factory=dict)
    video: dict[str, object] = field(default_factory=dict)
    """Members of a finished task."""

    async def handle(self, link: Link) -> None:
        while True:
            try:
                head, _ = await link.request()
            except asyncio.IncompleteReadError:
                return
            method, path, _ = head.split(b" ", 2)
            body = FILE
            if not path.endswith(b"/content") and b"/videos" in path:
                await link.send(sized(json.dumps(CREATED if method == b"POST" else {**DONE, **self.video}).encode()))
                continue
            if not path.endswith(b"/content"):
                found = next((answer for name, answer in ANSWERS.items() if path.endswith(name)), CHAT)
                body = json.dumps(found if self.status < 300 else {"error": {"message": "no", "code": "c"}}).encode()
            lines = b"".join(b"%b: %b\r\n" % (name.encode(), value) for name, value in self.headers.items())
            await link.send(sized(body, b"HTTP/1.1 %d X\r\n%b" % (self.status, lines)))


@dataclass(frozen=True)
class World:
    gateway: Running
    hostile: Hostile
    session: ClientSession
    task_id: str

    async def check(self, method: str, path: str, body: object = None) -> int:
        """Call the gateway. Fail for an internal error, and for an error that is not JSON. Return the status."""
        case = (self.hostile.status, self.hostile.headers)
        async with self.session.request(method, self.gateway.url + path, json=body) as response:
            answer = await response.read()
            assert response.status != 500, case
            assert b"internal error" not in answer, case
            if response.status >= 400 and response.status != 416:
                assert json.loads(answer)["error"]["message"], case
            return response.status


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    hostile = Hostile()
    async with provider(hostile.handle) as made:
        protocols = {"chat": "chat", "messages": "messages", "embed": "embeddings", "rerank": "rerank"}
        names = {**protocols, "images": "images", "videos": "vidA"}
        async with gateway_of(names, f"{made.url}/v1", "k", tmp_path_factory.mktemp("gateway")) as running:
            gateway, session = running
            videos = gateway.service._channels.videos["videos"]
            assert isinstance(videos, HttpVideo)
            videos._protocol = replace(videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
            yield World(gateway, hostile, session, await finished(gateway, session))


async def finished(gateway: Running, session: ClientSession) -> str:
    """Submit a video task, and wait for its end. Return its id."""
    async with session.post(f"{gateway.url}/v1/videos", json={"model": "m-videos", "prompt": "x"}) as response:
        made = await response.json()
    assert response.status == 200, made

    async def state() -> str:
        async with session.get(f"{gateway.url}/v1/videos/{made['id']}") as response:
            return str((await response.json())["status"])

    await eventually(state, lambda found: found in ("completed", "failed"))
    return str(made["id"])


@pytest.mark.parametrize("status", STATUSES)
async def test_a_header_of_a_file_is_no_internal_error(world: World, status: int) -> None:
    world.hostile.status = status
    for name in HEADERS:
        for value in (*HEADER_VALUES[:5], *(RANGES if name == "content-range" else ())):
            world.hostile.headers = {name: value}
            await world.check("GET", f"/v1/videos/{world.task_id}/content")


@pytest.mark.parametrize("path", CALLS)
@pytest.mark.parametrize("status", [200, 400, 429])
async def test_a_header_of_an_answer_is_no_internal_error(world: World, path: str, status: int) -> None:
    world.hostile.status = status
    for name in HEADERS:
        for value in HEADER_VALUES[:4]:
            world.hostile.headers = {name: value}
            await world.check("POST", path, CALLS[path])


async def test_a_redirect_of_a_file_is_followed_or_an_error_of_the_provider(world: World) -> None:
    world.hostile.status = 302
    for url in URLS:
        location = re.sub(r"[\r\n\0]", "", url).encode(errors="replace")
        if len(location) < 10000:
            world.hostile.headers = {"location": location}
            assert await world.check("GET", f"/v1/videos/{world.task_id}/content") == 502, url


async def test_a_url_of_a_result_is_fetched_or_an_error_of_the_provider(world: World) -> None:
    world.hostile.status, world.hostile.headers = 404, {}
    for url in URLS:
        world.hostile.video = {"url": url, "video_url": url, "metadata": {"url": url}}
        task_id = await finished(world.gateway, world.session)
        assert await world.check("GET", f"/v1/videos/{task_id}/content") in (404, 502), url
        await world.check("GET", f"/v1/videos/{task_id}")


@pytest.mark.parametrize(
    ("path", "extra", "field"),
    [
        ("/v1/videos", b'"foo": 1e999', "foo"),
        ("/v1/videos", b'"foo": {"a": [-1e400]}', "foo"),
        ("/v1/video/generations", b'"metadata": {"a": 1%b}' % (b"0" * 5000), "a"),
    ],
)
async def test_a_number_that_no_double_can_be_is_refused_before_a_video_is_submitted(
    world: World, path: str, extra: bytes, field: str
) -> None:
    body = b'{"model": "m-videos", "prompt": "x", %b}' % extra
    headers = {"content-type": "application/json"}
    async with world.session.post(world.gateway.url + path, data=body, headers=headers) as response:
        error = (await response.json())["error"]
    assert (response.status, error["param"]) == (400, field)
    assert "out of range" in error["message"]


async def test_numbers_of_a_task_end_it(world: World) -> None:
    for number in (1e308, -1, 10**30, 2**63, 0.5, "1e999", "NaN", None, [], {}):
        names = ("progress", "created_at", "completed_at", "expires_at", "seconds", "size", "file_size")
        world.hostile.video = dict.fromkeys(names, number)
        await finished(world.gateway, world.session)

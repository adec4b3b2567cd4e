"""Keys of channels that their providers repeat, of any form: neither callers nor the log nor records contain them."""

import base64
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from urllib.parse import quote

import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

from tests.support.gateways import Running, running
from tests.support.serving import serving
from tests.support.video_calls import eventually
from umg_grpc.upstream.http.video_generation import HttpVideo

SECRET = 'Zebra/crossing+"7"=~x'
FORMS = {
    "itself": SECRET,
    "in a URL": quote(SECRET, safe=""),
    "in basic authentication": base64.b64encode(SECRET.encode()).decode(),
    "in JSON": json.dumps(SECRET)[1:-1],
    "behind a long text": "x " * 240 + SECRET,
}
CALLS = {
    "/v1/chat/completions": {"model": "m-chat", "messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"model": "m-chat", "input": "x"},
    "/v1/messages": {"model": "m-chat", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "/v1/embeddings": {"model": "m-embed", "input": "x"},
    "/v1/rerank": {"model": "m-rerank", "query": "x", "documents": ["a"]},
    "/v1/images/generations": {"model": "m-images", "prompt": "x"},
    "/v1/videos": {"model": "m-videos", "prompt": "x", "seconds": "4"},
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Repeating:
    """Provider that repeats a text in every part of its errors, of its streams and of its failed tasks."""

    text: str = ""
    status: int = 400
    fails_later: bool = False
    polls: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = self.text
        error = {"message": f"no: {text}", "type": text, "code": text, "param": text}
        if "/videos" in request.path and self.fails_later:
            state = "queued" if request.method == "POST" else "failed"
            return web.json_response({"id": "t-1", "status": state, "error": error, "fail_reason": text})
        if self.status == 200:
            frames = f"data: {json.dumps({'error': error})}\n\n"
            return web.Response(text=frames, content_type="text/event-stream")
        header = quote(text, safe="") or "x"
        return web.json_response({"error": error}, status=self.status, headers={"x-request-id": header})


@dataclass(frozen=True)
class World:
    """Gateway, its provider, and a client."""

    gateway: Running
    provider: Repeating
    session: ClientSession


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    provider, app = Repeating(), web.Application()
    app.router.add_route("*", "/{path:.*}", provider.answer)
    async with serving(app) as url:
        protocols = {"chat": "chat", "embed": "embeddings", "rerank": "rerank", "images": "images", "videos": "vidA"}
        channels = "".join(
            f"- {{name: {name}, protocols: [{protocol}], base_url: '{url}/v1', api_key: {json.dumps(SECRET)},\n"
            f"   auth: {{kind: query, parameter: key}}, models: [m-{name}]}}\n"
            for name, protocol in protocols.items()
        )
        config = f"retries: {{repeats: 0}}\nbreaker: {{failures: 100000}}\nchannels:\n{channels}"
        async with (
            running(config, tmp_path_factory.mktemp("gateway")) as gateway,
            ClientSession(gateway.url, headers=gateway.headers) as session,
        ):
            videos = gateway.service._channels.videos["videos"]
            assert isinstance(videos, HttpVideo)
            videos._protocol = replace(videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
            yield World(gateway, provider, session)


def check(text: str) -> None:
    """Fail if a text has a recognizable part of the secret in any form."""
    for form in (*FORMS.values(), SECRET, "crossing", json.dumps(FORMS["in JSON"])[1:-1]):
        assert form.removeprefix("x " * 240) not in text, text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_no_error_has_the_secret(world: World, form: str, status: int, capfd: pytest.CaptureFixture[str]) -> None:
    world.provider.text, world.provider.status, world.provider.fails_later = FORMS[form], status, False
    for path, body in CALLS.items():
        for stream in (
            (False, True) if "video" not in path and "embed" not in path and "rerank" not in path else (False,)
        ):
            if status == 200 and not stream:
                continue
            async with world.session.post(path, json={**body, **({"stream": True} if stream else {})}) as response:
                check(await response.text() + str(response.headers))
    async with world.session.get("/admin/v1/requests") as response:
        check(await response.text())
    async with world.session.get("/admin/v1/channels") as response:
        check(await response.text())
    check(capfd.readouterr().err)


@pytest.mark.parametrize("form", FORMS)
async def test_no_failed_task_has_the_secret(world: World, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    world.provider.text, world.provider.fails_later = FORMS[form], True
    async with world.session.post("/v1/videos", json=CALLS["/v1/videos"]) as response:
        task = await response.json()

    async def state() -> str:
        async with world.session.get(f"/v1/videos/{task['id']}") as response:
            check(await response.text())
            return str((await response.json())["status"])

    assert await eventually(state, lambda found: found == "failed")
    async with world.session.get(f"/v1/video/generations/{task['id']}") as response:
        check(await response.text())
    check(capfd.readouterr().err)

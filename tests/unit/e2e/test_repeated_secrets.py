"""Keys of channels that their providers repeat, of any form: neither callers nor the log nor records contain them."""

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import grpc
import pytest
import pytest_asyncio
from aiohttp import ClientSession, web

from tests.support.gateways import Running, running
from tests.support.serving import serving
from tests.support.telemetry_collector import collector
from tests.support.video_calls import eventually, until
from umg_grpc.config import Config, parse
from umg_grpc.service.single_channel_check import check_channels
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb, rpc

SECRET = 'Zebra/crossing+"7"=~x'
FORMS = {
    "itself": SECRET,
    "in a URL": quote(SECRET, safe=""),
    "in basic authentication": base64.b64encode(SECRET.encode()).decode(),
    "in JSON": json.dumps(SECRET)[1:-1],
    "behind a long text": "x " * 240 + SECRET,
    "of another key of the channel": "Yak/sibling+key-2",
    "in a header of the channel": "Xray/tenant-7",
    "of the proxy": "Wolf/password-8",
}
MARKS = ("crossing", "sibling", "tenant-7", "Wolf")
"""Recognizable parts of the secrets."""
TEXT_PROTOCOLS = ("chat", "messages", "responses", "native")
PROTOCOLS = {
    **{name: name for name in TEXT_PROTOCOLS},
    "embed": "embeddings",
    "rerank": "rerank",
    "images": "images",
    "videos": "vidA",
}
CALLS: dict[str, dict[str, object]] = {
    "/v1/chat/completions": {"model": "m-chat", "messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"model": "m-chat", "input": "x"},
    "/v1/messages": {"model": "m-chat", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "/v1beta/models/m-chat:generateContent": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
    "/v1/embeddings": {"model": "m-embed", "input": "x"},
    "/v1/rerank": {"model": "m-rerank", "query": "x", "documents": ["a"]},
    "/v1/images/generations": {"model": "m-images", "prompt": "x"},
    "/v1/videos": {"model": "m-videos", "prompt": "x", "seconds": "4"},
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


def failed_events(path: str, error: dict[str, str]) -> list[dict[str, object]]:
    """Return the events of a stream that fails, in the format of a provider's path."""
    if path.endswith("/messages"):
        return [{"type": "error", "error": error}]
    if path.endswith("/responses"):
        return [{"type": "response.failed", "response": {"id": "r", "status": "failed", "output": [], "error": error}}]
    return [{"error": error}]


@dataclass
class Repeating:
    """Provider that repeats a text in every part of its errors, of its streams and of its failed tasks."""

    text: str = ""
    status: int = 400
    fails_later: bool = False
    notified: list[str] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        self.notified.append(f"{dict(request.headers)} {await request.text()}")
        return web.Response()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = self.text
        error = {"message": f"no: {text}", "type": text, "code": text, "param": text}
        if "/videos" in request.path and self.fails_later:
            state = "queued" if request.method == "POST" else "failed"
            return web.json_response({"id": "t-1", "status": state, "error": error, "fail_reason": text})
        if self.status == 200 and "embed" in request.path:
            vectors = {"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.5]}]}
            headers = {"x-request-id": text, "x-umg-dropped": f"{text}, top_k={text}", "x-ratelimit-left": text}
            return web.json_response(vectors, headers=headers)
        if self.status == 200:
            frames = "".join(f"data: {json.dumps(event)}\n\n" for event in failed_events(request.path, error))
            return web.Response(text=frames, content_type="text/event-stream")
        header = quote(text, safe="") or "x"
        return web.json_response({"error": error}, status=self.status, headers={"x-request-id": header})


@dataclass(frozen=True)
class World:
    gateway: Running
    provider: Repeating
    session: ClientSession
    config: Config
    hook: str
    """URL to which the gateway sends notifications."""

    async def check_operators_views(self) -> None:
        for path in ("/admin/v1/requests", "/admin/v1/channels", "/metrics"):
            async with self.session.get(path) as response:
                assert response.status == 200
                check(await response.text())
        async with self.session.get("/admin/v1/requests") as response:
            records = (await response.json())["records"]
        for record in records[:1]:
            async with self.session.get(f"/admin/v1/requests/{record['request_id']}") as response:
                assert response.status == 200
                check(await response.text())


@asynccontextmanager
async def serving_provider() -> AsyncGenerator[tuple[Repeating, str, str], None]:
    """Serve the provider. Yield it, its URL, and the config of a gateway in front of it."""
    provider, app = Repeating(), web.Application()
    app.router.add_post("/hook", provider.receive)
    app.router.add_route("*", "/{path:.*}", provider.answer)
    async with serving(app) as url:
        place = url.removeprefix("http://")
        channels = "".join(
            f"- {{name: {name}, protocols: [{protocol}], base_url: 'http://provider.example/v1',\n"
            f"   api_key: {json.dumps([SECRET, FORMS['of another key of the channel']])},\n"
            f"   proxy: 'http://me:{quote(FORMS['of the proxy'], safe='')}@{place}',\n"
            f"   headers: {{x-tenant: {FORMS['in a header of the channel']}}},\n"
            f"   auth: {{kind: query, parameter: key}}, models: [m-{name}]}}\n"
            for name, protocol in PROTOCOLS.items()
        )
        config = (
            f"egress: {{allow: ['{place}'], http: true}}\nretries: {{repeats: 0}}\nbreaker: {{failures: 100000}}\n"
            f"channels:\n{channels}"
        )
        yield provider, url, config


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with (
        serving_provider() as (provider, url, config),
        running(config, tmp_path_factory.mktemp("gateway")) as gateway,
        ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        videos = gateway.service._channels.videos["videos"]
        assert isinstance(videos, HttpVideo)
        videos._protocol = replace(videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
        yield World(gateway, provider, session, parse(config, "test.yaml", {}), f"{url}/hook")


def check(text: str) -> None:
    """Fail if a text has a recognizable part of the secret in any form."""
    for form in (*FORMS.values(), *MARKS, json.dumps(FORMS["in JSON"])[1:-1]):
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
    await world.check_operators_views()
    check(capfd.readouterr().err)


@pytest.mark.parametrize("form", FORMS)
async def test_no_failed_task_has_the_secret(world: World, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    world.provider.text, world.provider.fails_later = FORMS[form], True
    world.provider.notified.clear()
    body = {"model": "m-videos", "prompt": "x", "metadata": {"callback_url": world.hook}}
    async with world.session.post("/v1/video/generations", json=body) as response:
        task = await response.json()

    async def state() -> str:
        async with world.session.get(f"/v1/video/generations/{task['task_id']}") as response:
            check(await response.text())
            return str((await response.json())["status"])

    assert await eventually(state, lambda found: found == "failed")
    async with world.session.get(f"/v1/video/generations/{task['task_id']}") as response:
        check(await response.text())
    await until(lambda: any("failed" in notification for notification in world.provider.notified))
    check(str(world.provider.notified))
    check(capfd.readouterr().err)


@pytest.mark.parametrize("caller", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("protocol", TEXT_PROTOCOLS)
async def test_no_failed_stream_has_a_part_of_the_secret_where_texts_are_cut(
    world: World, caller: str, protocol: str
) -> None:
    world.provider.status = 200
    for before in range(440, 500, 3):
        world.provider.text = f"{'x ' * 250}"[:before] + SECRET
        body = {**CALLS[f"/v1/{caller}"], "model": f"m-{protocol}", "stream": True}
        async with world.session.post(f"/v1/{caller}", json=body) as response:
            text = await response.text()
            assert "x x" in text or "try again" in text
            assert not any(part in text for part in ("Zebra", *MARKS)), text


@pytest.mark.parametrize("secret", FORMS)
async def test_no_header_of_a_response_has_the_secret(world: World, secret: str) -> None:
    if "JSON" in secret or "long" in secret:
        return
    world.provider.text, world.provider.status = FORMS[secret], 200
    async with world.session.post("/v1/embeddings", json=CALLS["/v1/embeddings"]) as response:
        assert response.status == 200
        check(str(response.headers))
        assert "top_k" in response.headers["x-umg-dropped"]
    await world.check_operators_views()


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_no_status_of_grpc_has_the_secret(world: World, status: int) -> None:
    world.provider.text, world.provider.status = SECRET, status
    parts = [pb.Part(text=pb.TextPart(text="x"))]
    request = pb.GenerateRequest(model="m-chat", messages=[pb.Message(role=pb.ROLE_USER, parts=parts)])
    metadata = [("authorization", f"Bearer {world.gateway.key}")]
    async with grpc.aio.insecure_channel(world.gateway.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in rpc.GenerationServiceStub(channel).StreamGenerate(
                pb.StreamGenerateRequest(request=request), metadata=metadata
            ):
                pass
    check(f"{caught.value} {caught.value.trailing_metadata()} {caught.value.initial_metadata()}")


@pytest.mark.parametrize("form", FORMS)
async def test_no_check_of_a_channel_has_the_secret(world: World, form: str) -> None:
    world.provider.text, world.provider.status = FORMS[form], 401
    results = await check_channels(world.config.channels, world.gateway.service._channels, 10)
    assert not any(result.is_fine for result in results if result.channel in TEXT_PROTOCOLS)
    check(str(results))


async def test_no_span_and_no_exported_metric_has_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as received, serving_provider() as (provider, _, config):
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": received.url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        async with (
            running(config, tmp_path, variables) as gateway,
            ClientSession(gateway.url, headers=gateway.headers) as session,
        ):
            for form in FORMS.values():
                provider.text, provider.status = form, 400
                async with session.post("/v1/embeddings", json=CALLS["/v1/embeddings"]) as response:
                    check(await response.text())
                provider.status = 500
                async with session.post("/v1/responses", json=CALLS["/v1/responses"]) as response:
                    check(await response.text())
        assert len(received.attempts) >= 2 * len(FORMS)
        check(f"{received.spans} {received.metrics}")

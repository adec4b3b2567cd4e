"""The log, the metrics and the responses of failing calls have no key and no secret of the config; the log no prompt."""

import asyncio
import base64
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.processes import Served, run, serve
from tests.support.serving import serving
from umg_grpc.v1 import pb, rpc

SECRETS = {
    "the first key": "sk-umg-first-0123456789abcdefghij",
    "a caller's wrong key": "sk-umg-wrong-9876543210zyxwvutsrq",
    "a key of another scheme": "somebody:else-and-a-password-of-theirs",
    "the provider's key": "provider+opaque/0123456789-wxyz",
    "the provider's other key": "sk-proj-Abcdefgh0123456789ijklmnop",
    "a header of the channel": "header-secret-0123456789",
    "the password of the proxy": "proxy-password-0123456789",
    "the password of Redis": "redis-password-0123456789",
    "the secret of the config": "signing-secret-0123456789",
    "the key of the metrics": "scraper-key-0123456789",
    "a prompt": "a prompt that is private to its caller",
    "a response": "a response that is private to its caller",
}
CALLERS = {"a prompt", "a response"}
"""Texts that callers may see."""
KEYS = ("the provider's key", "the provider's other key")
FORMATS = {"chat": "/v1", "responses": "/v1", "messages": "", "native": "/v1beta"}
FAULTS = ("message", "code", "page", "redirect", "request-id", "unreadable", "event", "cut", "detail", "answer")


def channel(name: str, protocol: str, base_url: str, more: str = "") -> str:
    """Return the config of a channel, whose only model has its name."""
    keys = ", ".join(f"'{SECRETS[key]}'" for key in KEYS)
    return (
        f"  - name: {name}\n    protocols: [{protocol}]\n    base_url: {base_url}\n    api_key: [{keys}]\n"
        f"    headers: {{X-Channel: {SECRETS['a header of the channel']}}}\n    models: [{name}]\n{more}"
    )


def channels(base_url: str, proxy: str) -> str:
    pairs = [(name, fault) for fault in FAULTS for name in FORMATS]
    made = "".join(channel(f"{name}-{fault}", name, f"{base_url}/{fault}{FORMATS[name]}") for name, fault in pairs)
    proxied = f"    proxy: http://user:{SECRETS['the password of the proxy']}@{proxy}\n"
    return made + channel("proxied", "chat", "https://provider.invalid/v1", proxied)


def config(base_url: str, proxy: str) -> str:
    return (
        "log: {level: debug, format: json}\nretries: {repeats: 0}\n"
        f"secret: {SECRETS['the secret of the config']}\n"
        f"metrics: {{key: {SECRETS['the key of the metrics']}}}\n"
        f"redis: redis://:{SECRETS['the password of Redis']}@127.0.0.1:1/0\n"
        f"channels:\n{channels(base_url, proxy)}"
    )


async def fail(request: web.Request) -> web.StreamResponse:
    """Fail with the credentials of the request, in the manner that the path names."""
    body = await request.text()
    names = ("authorization", "x-api-key", "x-goog-api-key")
    key = next(request.headers[name] for name in names if name in request.headers).removeprefix("Bearer ")
    sent = f"{key} {request.headers['x-channel']}"
    match request.path.split("/")[1]:
        case "message":
            return web.json_response({"error": {"message": f"Incorrect API key provided: {sent}"}}, status=401)
        case "code":
            return web.json_response({"error": {"message": "no", "code": key, "type": key, "status": key}}, status=403)
        case "page":
            return web.Response(text=f"<html>{sent} {body}</html>", content_type="text/html", status=502)
        case "redirect":
            return web.Response(status=302, headers={"location": f"http://elsewhere.invalid/?key={quote(key)}"})
        case "request-id":
            return web.json_response({"error": {"message": "no"}}, status=500, headers={"x-request-id": key})
        case "unreadable":
            return web.Response(text=f'{{"choices": "{sent}", {body}', content_type="application/json")
        case "event":
            event = f'event: error\ndata: {{"type": "error", "error": {{"message": "{sent}"}}}}\n\n'
            return web.Response(text=event, content_type="text/event-stream")
        case "cut":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        case "detail":
            return web.json_response({"detail": [{"input": body, "headers": sent}]}, status=422)
        case _:
            return web.Response(text=SECRETS["a response"], content_type="application/json")


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a proxy that repeats the credentials."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 407 " + head.replace(b"\r\n", b" ") + b"\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()
    writer.close()


def request_of(name: str, model: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    prompt = SECRETS["a prompt"]
    turn = [{"role": "user", "content": prompt}]
    if name == "native":
        verb = "streamGenerateContent" if stream else "generateContent"
        return f"/v1beta/models/{model}:{verb}", {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
    body = {"model": model, "stream": stream}
    if name == "responses":
        return "/v1/responses", {**body, "input": turn}
    path = "/v1/messages" if name == "messages" else "/v1/chat/completions"
    return path, {**body, "messages": turn, "max_tokens": 9}


@dataclass(frozen=True)
class Seen:
    """Everything that operators and callers saw."""

    log: str
    printed: str
    metrics: str
    models: str
    answers: str  # to callers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Seen, None]:
    folder = tmp_path_factory.mktemp("secrets")
    data, file = folder / "data", folder / "umg.yaml"
    app = web.Application()
    app.router.add_post("/{path:.*}", fail)
    environment = {"UMG_API_KEY": SECRETS["the first key"]}
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(await asyncio.start_server(refuse, "127.0.0.1", 0))
        base_url = await stack.enter_async_context(serving(app, handler_cancellation=True))
        written = config(base_url, f"127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        file.write_text(written)
        served = await stack.enter_async_context(serve(data, "--config", str(file), environment=environment))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        answers = await _call_channels(served, session)
        await _call_with_wrong_keys(served, session)
        await _call_over_grpc(served)
        await _reload(served, file, written)
        scraper = {"authorization": f"Bearer {SECRETS['the key of the metrics']}"}
        async with session.get(f"{served.url}/metrics", headers=scraper) as answer:
            metrics = await answer.text()
        assert await served.stop() == 0
        _, models, errors = await run("models", "--config", str(file), "--data", str(data), "--http", "127.0.0.1:1")
    yield Seen("\n".join(served.log), "\n".join(served.lines), metrics, models + errors, "\n".join(answers))


async def _call_channels(served: Served, session: aiohttp.ClientSession) -> list[str]:
    """Call every failing channel in its own format and in that of messages, whole and streamed. Return the responses."""
    answers = list[str]()
    headers = {"authorization": f"Bearer {SECRETS['the first key']}"}
    models = [f"{name}-{fault}" for fault in FAULTS for name in FORMATS] + ["proxied", "none"]
    for model in models:
        for stream in (False, True):
            own = model.partition("-")[0]
            for name in {own if own in FORMATS else "chat", "messages"}:
                path, body = request_of(name, model, stream=stream)
                async with session.post(served.url + path, json=body, headers=headers) as answer:
                    text = await answer.text()
                    assert answer.status != 200 or "error" in text, (model, text)
                    answers.append(f"{[*answer.headers.items()]} {text}".replace("\n", " "))
    return answers


async def _call_with_wrong_keys(served: Served, session: aiohttp.ClientSession) -> None:
    """Send wrong keys in each place that a caller may use, and bodies that cannot be decoded."""
    wrong, other, right = (
        SECRETS[name] for name in ("a caller's wrong key", "a key of another scheme", "the first key")
    )
    basic = base64.b64encode(other.encode()).decode()
    placed = [{"authorization": f"Bearer {wrong}"}, {"authorization": wrong}, {"authorization": f"Basic {basic}"}]
    placed += [{"x-api-key": wrong}, {"x-goog-api-key": wrong}, {"cookie": f"key={wrong}"}]
    json = {"content-type": "application/json"}
    for name in FORMATS:
        path, body = request_of(name, "chat-message", stream=False)
        for headers in placed:
            await _post(session, served.url + path, headers, json=body)
        await _post(session, f"{served.url}{path}?key={wrong}", {}, json=body)
        await _post(
            session, f"{served.url}{path}?access_token={wrong}&key={right}", {}, json={**body, "temperature": "x"}
        )
        for broken in (f'{{"model": "{SECRETS["a prompt"]}', f'["{SECRETS["a prompt"]}"]', SECRETS["a prompt"]):
            await _post(session, served.url + path, {**json, "authorization": f"Bearer {right}"}, data=broken)
    for path in (f"/v1/{wrong}", f"/v1/models/{wrong}", f"/{wrong}?key={wrong}", f"/v1/responses/{wrong}"):
        async with session.get(served.url + path, headers={"authorization": f"Bearer {wrong}"}) as answer:
            assert answer.status in {401, 404}
    async with session.get(f"{served.url}/metrics", headers={"authorization": f"Bearer {wrong}"}) as answer:
        assert answer.status == 401


async def _post(session: aiohttp.ClientSession, url: str, headers: dict[str, str], **body: Any) -> None:
    async with session.post(url, headers=headers, **body) as answer:
        assert answer.status in {400, 401}, (url, await answer.text())


async def _call_over_grpc(served: Served) -> None:
    parts = [pb.Part(text=pb.TextPart(text=SECRETS["a prompt"]))]
    async with grpc.aio.insecure_channel(served.grpc) as channel:
        stub = rpc.GenerationServiceStub(channel)
        for key in (f"Bearer {SECRETS['the first key']}", f"Bearer {SECRETS[KEYS[0]]}", SECRETS["a prompt"]):
            for fault in FAULTS:
                request = pb.GenerateRequest(
                    model=f"chat-{fault}", messages=[pb.Message(role=pb.ROLE_USER, parts=parts)]
                )
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.Generate(request, metadata=[("authorization", key)])


async def _reload(served: Served, file: Path, right: str) -> None:
    """Reload configs with mistakes at their secrets. The last is the right one again, which is not reloaded."""
    for wrong in (right.replace("redis://:", "redis:://"), right.replace("http://user:", "http//user:")):
        assert wrong != right
        seen = len(served.log)
        await asyncio.to_thread(file.write_text, wrong)
        served.process.send_signal(signal.SIGHUP)
        async with served.logged, asyncio.timeout(60):
            while not any("was not reloaded" in line for line in served.log[seen:]):
                await served.logged.wait()
    await asyncio.to_thread(file.write_text, right)


@pytest.mark.parametrize("name", SECRETS)
async def test_no_view_has_a_secret(seen: Seen, name: str) -> None:
    secret = SECRETS[name]
    forms = {secret, quote(secret), quote(secret, safe=""), base64.b64encode(secret.encode()).decode().rstrip("=")}
    views = {"log": seen.log, "printed": seen.printed, "metrics": seen.metrics, "models": seen.models}
    if name not in CALLERS:
        views["answers"] = seen.answers
    for view, text in views.items():
        for line in text.splitlines():
            assert not any(form in line for form in forms), f"{name} is in the {view}: {line}"


async def test_the_log_has_a_line_for_each_failed_call_and_attempt(seen: Seen) -> None:
    assert seen.log.count('"event":"call"') > 4 * len(FAULTS) * len(FORMATS)
    assert seen.log.count('"event":"channel failed"') > 4 * len(FAULTS)
    assert seen.log.count("INVALID_KEY") > len(FORMATS)

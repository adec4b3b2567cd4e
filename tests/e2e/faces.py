"""The gateway as its callers meet it, in four ways: over HTTP and gRPC, each with and without a socket to the
service.
"""

import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
import grpc
from aiohttp import web
from google.protobuf.message import Message

from http_facade.app import make_app, make_runner
from http_facade.calls import opened
from http_facade.errors import HTTP_STATUS
from http_facade.settings import Settings
from umg_grpc.access.bootstrap import ensure_bootstrap
from umg_grpc.cli.serve import Address, Gateway, Options, gateway
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.inprocess import InProcessChannel
from umg_grpc.server import open_service
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS

KEY = "sk-umg-end-to-end"
ANY = Address("127.0.0.1", 0)


@dataclass
class Answer:
    """What a caller got, said alike for both faces."""

    status: int = 200  # of HTTP; for gRPC that of its reason
    reason: str = ""  # "" where the face does not tell it
    code: str | None = None  # of the body of an HTTP error
    message: str = ""
    text: str = ""
    finish: str = ""
    model: str = ""
    total_tokens: int = 0
    field: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    after_first_byte: bool = False  # a failure: whether it came in the middle of a stream


class Face(Protocol):
    """One way to the gateway."""

    name: str

    async def ask(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        """One answer, or the error."""
        ...

    def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        """The text as it streams. Closing it leaves."""
        ...

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        """A streamed answer, put together, or the error."""
        ...

    async def models(self, key: str | None = KEY) -> list[str]:
        """The ids that the key may use."""
        ...


class HttpFace:
    """Chat completions over HTTP, without any SDK."""

    def __init__(self, name: str, address: Address, session: aiohttp.ClientSession) -> None:
        self.name = name
        self.url = f"http://{address}"
        self._session = session

    async def ask(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        async with self._post(body, key, headers) as response:
            whole = await response.json()
            answer = Answer(response.status, headers=response.headers)
            if response.status != 200:
                return _http_error(answer, whole["error"])
            choice = whole["choices"][0]
            answer.text, answer.finish = choice["message"]["content"], choice["finish_reason"]
            answer.model, answer.total_tokens = whole["model"], whole["usage"]["total_tokens"]
            return answer

    async def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        async with self._post(_streamed(body), key, {}) as response:
            assert response.status == 200, await response.text()
            async for event in _events(response):
                for choice in event["choices"]:
                    if text := choice["delta"].get("content"):
                        yield text

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        async with self._post(_streamed(body), key, headers) as response:
            answer = Answer(response.status, headers=response.headers)
            if response.status != 200:
                return _http_error(answer, (await response.json())["error"])
            assert response.content_type == "text/event-stream"
            async for event in _events(response):
                if "error" in event:
                    answer.after_first_byte = True
                    return _http_error(answer, event["error"])
                answer.model = event["model"]
                for choice in event["choices"]:
                    answer.text += choice["delta"].get("content") or ""
                    answer.finish = choice["finish_reason"] or answer.finish
                if event.get("usage"):
                    answer.total_tokens = event["usage"]["total_tokens"]
            return answer

    async def models(self, key: str | None = KEY) -> list[str]:
        async with self._session.get(f"{self.url}/v1/models", headers=_authorization(key)) as response:
            assert response.status == 200, await response.text()
            return [model["id"] for model in (await response.json())["data"]]

    def _post(self, body: bytes, key: str | None, headers: Mapping[str, str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        sent = {"content-type": "application/json", **_authorization(key), **headers}
        data = aiohttp.BytesPayload(body) if len(body) < 1 << 20 else _pieces(body)
        return self._session.post(f"{self.url}/v1/chat/completions", data=data, headers=sent)


class GrpcFace:
    """The schema's own stubs; the body goes as the source document. Without a socket it is decoded here, as our own
    facade does: only that channel is trusted with both.
    """

    def __init__(self, name: str, channel: grpc.aio.Channel, *, decodes: bool) -> None:
        self.name = name
        self._canonical = _decoded if decodes else _undecoded
        self.channel = channel
        self.generation = rpc.GenerationServiceStub(channel)
        self.list = rpc.ModelServiceStub(channel)

    async def ask(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        try:
            call = self.generation.Generate(self._canonical(body), metadata=_metadata(key, headers))
            response = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _grpc_error(error)
        answer = Answer(headers=dict(await call.initial_metadata()))
        if response.source.body:
            whole = json.loads(response.source.body)
            choice = whole["choices"][0]
            answer.text, answer.finish = choice["message"]["content"], choice["finish_reason"]
            assert whole["model"] == response.model
        answer.model = response.model
        answer.total_tokens = response.usage.input_tokens + response.usage.output_tokens
        return answer

    async def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        request = pb.StreamGenerateRequest(request=self._canonical(_streamed(body)))
        async with opened(self.generation.StreamGenerate(request, metadata=_metadata(key, {}))) as call:
            async for message in call:
                for line in message.source_frames.splitlines():
                    if line.startswith(b"data: {"):
                        for choice in json.loads(line[6:])["choices"]:
                            if text := choice["delta"].get("content"):
                                yield text

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> Answer:
        answer, first = Answer(), True
        try:
            request = pb.StreamGenerateRequest(request=self._canonical(_streamed(body)))
            call = self.generation.StreamGenerate(request, metadata=_metadata(key, headers))
            async with opened(call):
                async for message in call:
                    first = False
                    _accumulate(answer, message)
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _grpc_error(error, text=answer.text, after_first_byte=not first)
        answer.headers = dict(await call.initial_metadata())
        return answer

    async def models(self, key: str | None = KEY) -> list[str]:
        response = await self.list.ListModels(pb.ListModelsRequest(), metadata=_metadata(key, {}))
        return [model.id for model in response.models]


def _accumulate(answer: Answer, message: pb.StreamGenerateResponse) -> None:
    for line in message.source_frames.split(b"\n"):
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:])["choices"]:
                answer.text += choice["delta"].get("content") or ""
                answer.finish = choice["finish_reason"] or answer.finish
    for event in message.events:
        match event.WhichOneof("kind"):
            case "started":
                answer.model = event.started.model
            case "usage":
                answer.total_tokens = event.usage.input_tokens + event.usage.output_tokens
            case "text_delta":
                answer.text += event.text_delta
            case "finished":
                answer.finish = {pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}[
                    event.finished.finish_reason
                ]


def _decoded(body: bytes) -> pb.GenerateRequest:
    return FORMATS["chat"].decode_request(body, {}).canonical


def _undecoded(body: bytes) -> pb.GenerateRequest:
    return pb.GenerateRequest(source=pb.SourceDocument(format="chat", body=body))


def _streamed(body: bytes) -> bytes:
    """The body with `stream: true`, which is what makes a chat body ask for a stream."""
    try:
        whole = json.loads(body)
    except ValueError:
        return body
    return json.dumps({**whole, "stream": True}).encode() if isinstance(whole, dict) else body


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict]:  # type: ignore[type-arg]
    async for line in response.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 1 << 20):
        yield body[start : start + (1 << 20)]


def _authorization(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


def _metadata(key: str | None, headers: Mapping[str, str]) -> grpc.aio.Metadata:
    return grpc.aio.Metadata(*_authorization(key).items(), *headers.items())


def _http_error(answer: Answer, error: dict) -> Answer:  # type: ignore[type-arg]
    answer.message, answer.field, answer.code = error["message"], error["param"] or "", error["code"]
    assert answer.code is not None or error["type"]
    return answer


def _grpc_error(error: grpc.aio.AioRpcError | UmgError, text: str = "", *, after_first_byte: bool = False) -> Answer:
    known = error if isinstance(error, UmgError) else from_rpc(error)
    headers = {} if isinstance(error, UmgError) else dict(error.initial_metadata() or ())
    if "retry_after_seconds" in known.metadata:
        headers["retry-after"] = known.metadata["retry_after_seconds"]
    return Answer(
        status=200 if after_first_byte else HTTP_STATUS[known.reason],
        reason=known.name,
        message=known.message,
        text=text,
        field=known.metadata.get("field", ""),
        headers=headers,
        after_first_byte=after_first_byte,
    )


class CopyingChannel(InProcessChannel):
    """The channel without a socket, save that no message that passes is the sender's own: whoever changed one after it
    was handed over, or relied on a change, would be found out.
    """

    def __init__(self, channel: InProcessChannel) -> None:
        self._channel = channel

    def unary_unary(self, method: str, *_: object, **__: object) -> Callable[..., object]:
        inner = self._channel.unary_unary(method)

        def call(request: Message, **options: object) -> object:
            made = inner(_copy(request), **options)
            made._answer = _copied(made._answer)
            return made

        return call

    def unary_stream(self, method: str, *_: object, **__: object) -> Callable[..., object]:
        inner = self._channel.unary_stream(method)

        def call(request: Message, **options: object) -> object:
            made = inner(_copy(request), **options)
            made._messages = _copies(made._messages)
            return made

        return call


def _copy(message: Message) -> Message:
    return type(message).FromString(message.SerializeToString())


async def _copied(answer: Awaitable[Message]) -> Message:
    return _copy(await answer)


async def _copies(messages: AsyncGenerator[Message, None]) -> AsyncGenerator[Message, None]:
    async with aclosing(messages):
        async for message in messages:
            yield _copy(message)


async def _serve(stack: AsyncExitStack, config: Config, data: Path, **options: object) -> Gateway:
    made = Options(None, **{"http": ANY, "grpc": ANY, "data": data, **options})  # type: ignore[arg-type]
    return await stack.enter_async_context(gateway(made, config, {"UMG_API_KEY": KEY}, None))


@asynccontextmanager
async def face(name: str, config: Config, data: Path) -> AsyncGenerator[Face, None]:
    """The gateway of a config, met in one of the four ways."""
    async with AsyncExitStack() as stack:
        match name:
            case "http, in process":
                state = await _serve(stack, config, data)
                assert state.http is not None
                session = await stack.enter_async_context(aiohttp.ClientSession())
                yield HttpFace(name, state.http, session)
            case "http, in process, copied":
                service = await stack.enter_async_context(open_service(config, data, None))
                await ensure_bootstrap(service.store, data, KEY)
                settings = Settings(ready=lambda: True, metrics=lambda: (b"", "text/plain"))
                runner = make_runner(make_app(CopyingChannel(service.channel()), settings))
                await runner.setup()
                stack.push_async_callback(runner.cleanup)
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                session = await stack.enter_async_context(aiohttp.ClientSession())
                yield HttpFace(name, Address("127.0.0.1", runner.addresses[0][1]), session)
            case "http, apart":
                behind = await _serve(stack, config, data, faces=("grpc",))
                front = await _serve(stack, config, data, faces=("http",), grpc=behind.grpc)
                assert front.http is not None
                session = await stack.enter_async_context(aiohttp.ClientSession())
                yield HttpFace(name, front.http, session)
            case "grpc, in process":
                state = await _serve(stack, config, data)
                assert state.service is not None
                yield GrpcFace(name, state.service.channel(), decodes=True)
            case "grpc":
                state = await _serve(stack, config, data)
                channel = await stack.enter_async_context(grpc.aio.insecure_channel(str(state.grpc)))
                yield GrpcFace(name, channel, decodes=False)


NAMES = ("http, in process", "http, in process, copied", "http, apart", "grpc, in process", "grpc")
__all__ = ["KEY", "NAMES", "Answer", "Face", "GrpcFace", "HttpFace", "aclosing", "face"]

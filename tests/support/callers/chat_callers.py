"""Test callers of chat completions over every transport (HTTP, gRPC), with one form of results."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aiohttp
import grpc

from http_facade.exchange.grpc_service_calls import opened
from tests.support.callers.requests import Json
from tests.support.callers.transports import (
    CallResult,
    GrpcTransport,
    HttpTransport,
    credentials,
    error_fields,
    metadata,
    open_caller,
)
from tests.support.gateways import KEY
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FORMATS


@dataclass
class ChatResult(CallResult):
    """Result of a chat call: the response or the error that the caller received."""

    code: str | None = None  # of the body of an HTTP error
    text: str = ""
    finish: str = ""
    total_tokens: int = 0
    after_first_byte: bool = False  # a failure: whether it occurred in the middle of a stream

    def read_whole_response(self, body: Json) -> None:
        choice = body["choices"][0]
        self.text, self.finish, self.model = choice["message"]["content"], choice["finish_reason"], body["model"]

    def read_chunk(self, chunk: Json) -> None:
        for choice in chunk["choices"]:
            self.text += choice["delta"].get("content") or ""
            self.finish = choice["finish_reason"] or self.finish


class ChatCaller(Protocol):
    async def call(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult: ...

    def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        """Yield the text of a streamed answer. Closing the generator closes the call."""
        ...

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult:
        """Call the model with streaming. Return the aggregated answer, or the error."""
        ...

    async def models(self, key: str | None = KEY) -> list[str]:
        """Return the model ids that the key may use."""
        ...


class HttpChatCaller:
    """Caller of chat completions over HTTP, without an SDK."""

    def __init__(self, transport: HttpTransport) -> None:
        self.name = transport.name
        self.url = transport.url
        self._session = transport.session

    async def call(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult:
        async with self._post(body, key, headers) as response:
            whole = await response.json()
            answer = ChatResult(response.status, headers=response.headers)
            if response.status != 200:
                return _http_error(answer, whole["error"])
            answer.read_whole_response(whole)
            answer.total_tokens = whole["usage"]["total_tokens"]
            return answer

    async def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        async with self._post(_streamed(body), key, {}) as response:
            assert response.status == 200, await response.text()
            async for event in _events(response):
                for text in _texts(event):
                    yield text

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult:
        async with self._post(_streamed(body), key, headers) as response:
            answer = ChatResult(response.status, headers=response.headers)
            if response.status != 200:
                return _http_error(answer, (await response.json())["error"])
            assert response.content_type == "text/event-stream"
            async for event in _events(response):
                if "error" in event:
                    answer.after_first_byte = True
                    return _http_error(answer, event["error"])
                answer.model = event["model"]
                answer.read_chunk(event)
                if event.get("usage"):
                    answer.total_tokens = event["usage"]["total_tokens"]
            return answer

    async def models(self, key: str | None = KEY) -> list[str]:
        async with self._session.get(f"{self.url}/v1/models", headers=credentials(key)) as response:
            assert response.status == 200, await response.text()
            return [model["id"] for model in (await response.json())["data"]]

    def _post(self, body: bytes, key: str | None, headers: Mapping[str, str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        sent = {"content-type": "application/json", **credentials(key), **headers}
        data = aiohttp.BytesPayload(body) if len(body) < 1 << 20 else _pieces(body)
        return self._session.post(f"{self.url}/v1/chat/completions", data=data, headers=sent)


class GrpcChatCaller:
    """Caller of chat completions over gRPC: bodies are sent as source documents."""

    def __init__(self, transport: GrpcTransport) -> None:
        self.name = transport.name
        self._canonical = _decoded if transport.decodes else _undecoded
        self.channel = transport.channel
        self.generation = rpc.GenerationServiceStub(self.channel)
        self.list = rpc.ModelServiceStub(self.channel)

    async def call(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult:
        try:
            call = self.generation.Generate(self._canonical(body), metadata=metadata(key, headers))
            response = await call
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _grpc_error(error)
        answer = ChatResult(headers=dict(await call.initial_metadata()))
        if response.source.body:
            answer.read_whole_response(json.loads(response.source.body))
            assert answer.model == response.model
        answer.model = response.model
        answer.total_tokens = response.usage.input_tokens + response.usage.output_tokens
        return answer

    async def deltas(self, body: bytes, key: str | None = KEY) -> AsyncGenerator[str, None]:
        request = pb.StreamGenerateRequest(request=self._canonical(_streamed(body)))
        call = self.generation.StreamGenerate(request, metadata=metadata(key, {}))
        async with opened(call):
            async for message in call:
                for chunk in _chunks(message):
                    for text in _texts(chunk):
                        yield text

    async def stream(self, body: bytes, key: str | None = KEY, **headers: str) -> ChatResult:
        answer, first = ChatResult(), True
        try:
            request = pb.StreamGenerateRequest(request=self._canonical(_streamed(body)))
            call = self.generation.StreamGenerate(request, metadata=metadata(key, headers))
            async with opened(call):
                async for message in call:
                    first = False
                    _accumulate(answer, message)
        except (grpc.aio.AioRpcError, UmgError) as error:
            return _grpc_error(error, text=answer.text, after_first_byte=not first)
        answer.headers = dict(await call.initial_metadata())
        return answer

    async def models(self, key: str | None = KEY) -> list[str]:
        response = await self.list.ListModels(pb.ListModelsRequest(), metadata=metadata(key, {}))
        return [model.id for model in response.models]


def _accumulate(answer: ChatResult, message: pb.StreamGenerateResponse) -> None:
    for chunk in _chunks(message):
        answer.read_chunk(chunk)
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


def _chunks(message: pb.StreamGenerateResponse) -> Iterator[Json]:
    for line in message.source_frames.split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


def _texts(chunk: Json) -> Iterator[str]:
    return (text for choice in chunk["choices"] if (text := choice["delta"].get("content")))


def _decoded(body: bytes) -> pb.GenerateRequest:
    return TEXT_FORMATS["chat"].decode_request(body, {}).canonical


def _undecoded(body: bytes) -> pb.GenerateRequest:
    return pb.GenerateRequest(source=pb.SourceDocument(format="chat", body=body))


def _streamed(body: bytes) -> bytes:
    try:
        whole = json.loads(body)
    except ValueError:
        return body
    return json.dumps({**whole, "stream": True}).encode() if isinstance(whole, dict) else body


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Json]:
    async for line in response.content:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), 1 << 20):
        yield body[start : start + (1 << 20)]


def _http_error(answer: ChatResult, error: Json) -> ChatResult:
    answer.message, answer.field, answer.code = error["message"], error["param"] or "", error["code"]
    assert answer.code is not None or error["type"]
    return answer


def _grpc_error(
    error: grpc.aio.AioRpcError | UmgError, text: str = "", *, after_first_byte: bool = False
) -> ChatResult:
    result = ChatResult(**error_fields(error), text=text, after_first_byte=after_first_byte)
    if after_first_byte:
        result.status = 200
    return result


def chat_caller(
    name: str, config: str | Config, data: Path
) -> AbstractAsyncContextManager[HttpChatCaller | GrpcChatCaller]:
    """Run a gateway with this config. Yield a chat caller of it over the transport `name`."""
    return open_caller(name, config, data, HttpChatCaller, GrpcChatCaller)

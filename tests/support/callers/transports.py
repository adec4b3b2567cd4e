"""Transports over which tests call a gateway: HTTP and gRPC, each with and without a socket to the service."""

import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import grpc
from google.protobuf.message import Message

from http_facade.app import Runner, make_app
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.server_settings import Settings
from tests.support.callers.text_format_clients import bearer
from tests.support.databases import create_database
from tests.support.gateways import ANY, KEY
from umg_grpc.access.bootstrap_key import ensure_bootstrap
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.base.inprocess_channel import (
    InProcessChannel,
    InProcessStreamMethod,
    InProcessUnaryCall,
    InProcessUnaryMethod,
)
from umg_grpc.config import Config, parse
from umg_grpc.process.serve_options import Options
from umg_grpc.process.serve_process import Gateway, gateway
from umg_grpc.process.service_factory import open_service
from umg_grpc.wire.errors.http_status import HTTP_STATUS


@dataclass
class CallResult:
    """Result of a test call, with the same fields for HTTP and gRPC."""

    status: int = 200  # of HTTP; for gRPC that of its reason
    reason: str = ""  # "" where the transport does not return it
    message: str = ""
    field: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    model: str = ""


def error_fields(error: grpc.aio.AioRpcError | UmgError) -> dict[str, Any]:
    """Return the fields of a `CallResult` for an error over gRPC."""
    known = error if isinstance(error, UmgError) else from_rpc(error)
    headers = {} if isinstance(error, UmgError) else dict(error.trailing_metadata() or ())
    if "retry_after_seconds" in known.metadata:
        headers["retry-after"] = known.metadata["retry_after_seconds"]
    return {
        "status": HTTP_STATUS[known.reason],
        "reason": known.name,
        "message": known.message,
        "field": known.metadata.get("field", ""),
        "headers": headers,
    }


def credentials(key: str | None) -> dict[str, str]:
    return {} if key is None else bearer(key)


def metadata(key: str | None, headers: Mapping[str, str]) -> grpc.aio.Metadata:
    return grpc.aio.Metadata(*credentials(key).items(), *headers.items())


@dataclass
class HttpTransport:
    """Transport over the gateway's HTTP server."""

    name: str
    url: str
    session: aiohttp.ClientSession


@dataclass
class GrpcTransport:
    """Transport over generated gRPC stubs. A body is sent as the source document; on the channel without a socket it is
    decoded before, as in our own HTTP server: only that channel is trusted with both.
    """

    name: str
    channel: grpc.aio.Channel
    decodes: bool = False


class CopyingChannel(InProcessChannel):
    """Channel without a socket that copies every message it passes on, to reveal code that changes a message after it
    was sent, or relies on a change.
    """

    def __init__(self, channel: InProcessChannel) -> None:
        self._channel = channel

    def unary_unary(self, method: str, *_: object, **__: object) -> "CopyingMethod":
        return CopyingMethod(self._channel.unary_unary(method))

    def unary_stream(self, method: str, *_: object, **__: object) -> "CopyingMethod":
        return CopyingMethod(self._channel.unary_stream(method))


@dataclass
class CopyingMethod:
    """Method of a `CopyingChannel`, which copies requests and responses."""

    inner: InProcessUnaryMethod | InProcessStreamMethod

    def with_attachment(self, attachment: object) -> "CopyingMethod":
        return CopyingMethod(self.inner.with_attachment(attachment))

    def __call__(self, request: Message, **options: object) -> object:
        call = self.inner(_copy(request), **options)
        if isinstance(call, InProcessUnaryCall):
            call._response = _copied(call._response)
        else:
            call._messages = _copies(call._messages)
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


TRANSPORTS = ("http, in process", "http, in process, copied", "http, apart", "grpc, in process", "grpc")


@asynccontextmanager
async def open_transport(
    name: str, config: str | Config, data: Path
) -> AsyncGenerator[HttpTransport | GrpcTransport, None]:
    config = parse(config, "test.yaml", {}) if isinstance(config, str) else config
    await create_database(data)
    async with AsyncExitStack() as stack:
        match name:
            case "grpc, in process":
                state = await _serve(stack, config, data)
                assert state.service is not None
                yield GrpcTransport(name, state.service.channel(), decodes=True)
                return
            case "grpc":
                state = await _serve(stack, config, data)
                yield GrpcTransport(name, await stack.enter_async_context(grpc.aio.insecure_channel(str(state.grpc))))
                return
            case "http, in process, copied":
                service = await stack.enter_async_context(open_service(config, data, None))
                await ensure_bootstrap(service.store, data, KEY)
                settings = Settings(ready=Readiness, metrics=lambda: (b"", "text/plain"))
                runner = Runner(make_app(CopyingChannel(service.channel()), settings))
                await runner.setup()
                stack.push_async_callback(runner.cleanup)
                url = f"http://127.0.0.1:{await runner.listen('127.0.0.1', 0)}"
            case "http, in process":
                url = f"http://{(await _serve(stack, config, data)).http}"
            case "http, apart":
                behind = await _serve(stack, config, data, faces=("grpc",))
                url = f"http://{(await _serve(stack, config, data, faces=('http',), grpc=behind.grpc)).http}"
        yield HttpTransport(name, url, await stack.enter_async_context(aiohttp.ClientSession()))


HttpCallerT = TypeVar("HttpCallerT")
GrpcCallerT = TypeVar("GrpcCallerT")


@asynccontextmanager
async def open_caller(
    name: str,
    config: str | Config,
    data: Path,
    http_caller: Callable[[HttpTransport], HttpCallerT],
    grpc_caller: Callable[[GrpcTransport], GrpcCallerT],
) -> AsyncGenerator[HttpCallerT | GrpcCallerT, None]:
    """Run a gateway with this config. Yield a caller of it over the transport `name`."""
    async with open_transport(name, config, data) as transport:
        yield http_caller(transport) if isinstance(transport, HttpTransport) else grpc_caller(transport)

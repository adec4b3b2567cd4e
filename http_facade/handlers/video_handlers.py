"""Handlers of video tasks: submit, query, list, delete and remix, and the notifications that providers send."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

import grpc
from aiohttp import hdrs, web

from http_facade.exchange.grpc_service_calls import initial_headers, keyless_metadata, metadata
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.key_check import KeyCheck
from http_facade.exchange.multipart_form_parser import parse_form
from http_facade.exchange.request_bodies import JSON_TYPE, BodyReader, read_body
from http_facade.exchange.server_settings import Settings
from http_facade.handlers.video_download_handler import VideoContent
from http_facade.routes import Route, Shape
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.video import VIDEO_FACES, video_object_caller_api

Submission = TypeVar("Submission", pb.CreateVideoTaskRequest, pb.RemixVideoTaskRequest)
Submitted = TypeVar("Submitted", pb.CreateVideoTaskResponse, pb.RemixVideoTaskResponse)
Created: TypeAlias = pb.CreateVideoTaskRequest | pb.GetVideoTaskRequest

IDEMPOTENCY_KEY = "Idempotency-Key"
MAX_KEY_CHARACTERS = 255
RETRY_COUNT = "x-stainless-retry-count"
"""Header by which SDKs state that a request repeats an earlier one; the service returns the task of that one."""
CALLBACK_LIMIT_BYTES = 2**20
SIGNATURE_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")

UNKNOWN_OUTCOMES = frozenset(
    {
        pb.ERROR_REASON_UPSTREAM_TIMEOUT,
        pb.ERROR_REASON_UPSTREAM_CUT,
        pb.ERROR_REASON_INTERNAL,
        pb.ERROR_REASON_CANCELLED,
        pb.ERROR_REASON_DEADLINE_EXCEEDED,
    }
)
"""Reasons after which a provider may have accepted the task: an SDK that repeats the submission could pay twice."""


class VideoHandlers:
    """Handlers of the video operations in the wire format of one vendor's API."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face, self._kind = route.format, route.kind
        self._codec = VIDEO_FACES[route.format]
        self._stub = rpc.VideoServiceStub(channel)
        self._keys = KeyCheck(route.format, channel, settings)
        self._bodies = BodyReader(route.format, (), channel, settings)
        self._content = VideoContent(route.format, channel)
        self._settings = settings

    def handler(self, shape: Shape) -> Callable[[HttpExchange], Awaitable[web.StreamResponse]]:
        """Return the handler method for an operation on video tasks."""
        return {
            Shape.CREATE_VIDEO: self.create,
            Shape.GET_VIDEO: self.get,
            Shape.LIST_VIDEOS: self.list,
            Shape.DELETE_VIDEO: self.delete,
            Shape.REMIX_VIDEO: self.remix,
            Shape.GET_VIDEO_CONTENT: self.content,
            Shape.RECEIVE_VIDEO_CALLBACK: self.receive_callback,
        }[shape]

    async def create(self, exchange: HttpExchange) -> web.StreamResponse:
        """Submit a task and return it. On the one path of the API below `/vidF`, existing tasks may be queried, too."""
        parameters = self._parameters(exchange)

        def decode(body: bytes, *_: object) -> Created:
            query = self._codec.decode_posted_query
            return (query and query(body, parameters)) or self._codec.decode_create(body, parameters)

        def decode_form(body: bytes, content_type: str) -> Created:
            if self._codec.decode_form is None:
                raise ValueError(f"{self._face} has no forms")
            return self._codec.decode_form(list(parse_form(body, content_type)), parameters)

        request = await self._bodies.read(exchange, decode, decode_form if self._codec.decode_form else None)
        if isinstance(request, pb.GetVideoTaskRequest):
            return await self._get(exchange, request)
        return await self._submit(exchange, self._stub.CreateVideoTask, request)

    async def remix(self, exchange: HttpExchange) -> web.StreamResponse:
        """Submit a video task that changes the video of a finished task. Return the new task."""
        parameters = exchange.parameters
        request = await self._bodies.read(
            exchange, lambda body, *_: video_object_caller_api.decode_remix(body, parameters)
        )
        return await self._submit(exchange, self._stub.RemixVideoTask, request)

    async def get(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return the state of a video task."""
        await self._keys.check(exchange)
        return await self._get(exchange, self._codec.decode_query(self._parameters(exchange)))

    async def list(self, exchange: HttpExchange) -> web.StreamResponse:
        """Return a page of the caller's video tasks in this format."""
        await self._keys.check(exchange)
        request = video_object_caller_api.decode_list(exchange.request.query)
        page = await self._stub.ListVideoTasks(request, metadata=metadata(exchange, self._face))
        return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=video_object_caller_api.encode_list(page))

    async def delete(self, exchange: HttpExchange) -> web.StreamResponse:
        """Delete a finished video task, or cancel one that has not started. Return the confirmation."""
        request = pb.DeleteVideoTaskRequest(task_id=exchange.parameters["task_id"], entry=self._codec.entry)
        deleted = await self._stub.DeleteVideoTask(request, metadata=metadata(exchange, self._face))
        return web.Response(
            headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=video_object_caller_api.encode_deleted(deleted.task)
        )

    async def content(self, exchange: HttpExchange) -> web.StreamResponse:
        """Send the bytes of a finished video or a range of them; only headers for HEAD."""
        await self._keys.check(exchange)
        return await self._content.get(exchange)

    async def receive_callback(self, exchange: HttpExchange) -> web.StreamResponse:
        """Record a provider's notification about a task. The signature in the path authenticates the provider."""
        limit = min(CALLBACK_LIMIT_BYTES, self._settings.body_limit_bytes)
        body = await read_body(exchange, limit, self._settings.upload_seconds)
        sent = exchange.request.headers
        request = pb.ReceiveVideoCallbackRequest(
            task_id=exchange.parameters["task_id"],
            signature=exchange.parameters["signature"],
            body=body,
            headers={name: sent[name] for name in SIGNATURE_HEADERS if name in sent},
        )
        await self._stub.ReceiveVideoCallback(request, metadata=keyless_metadata(exchange, self._face))
        return web.json_response({"code": 0, "message": "success"})

    def _parameters(self, exchange: HttpExchange) -> dict[str, str]:
        query = exchange.request.query
        given = {name: ",".join(query.getall(name)) for name in query}
        return given | dict(exchange.parameters) | ({"kind": self._kind} if self._kind else {})

    async def _get(self, exchange: HttpExchange, request: pb.GetVideoTaskRequest) -> web.StreamResponse:
        call = self._stub.GetVideoTask(request, metadata=metadata(exchange, self._face))
        found = await call
        headers = {hdrs.CONTENT_TYPE: JSON_TYPE, **await initial_headers(call)}
        return web.Response(headers=headers, body=self._codec.encode_task(found.task, exchange.request_id))

    async def _submit(
        self,
        exchange: HttpExchange,
        method: "grpc.aio.UnaryUnaryMultiCallable[Submission, Submitted]",
        request: Submission,
    ) -> web.StreamResponse:
        """Submit a task by the RPC `method`, with the idempotency key of the headers. Return the new task."""
        if (key := _idempotency_key(exchange)) is not None:
            request.idempotency_key = key
        pairs = metadata(exchange, self._face)
        if (count := exchange.request.headers.get(RETRY_COUNT, "")).isdecimal() and count.isascii():
            pairs.append((RETRY_COUNT, count))
        call = method(request, metadata=pairs)
        try:
            response = await call
        except grpc.aio.AioRpcError as failure:
            exchange.may_retry = from_rpc(failure).reason not in UNKNOWN_OUTCOMES
            raise
        headers = {hdrs.CONTENT_TYPE: JSON_TYPE, **await initial_headers(call)}
        return web.Response(headers=headers, body=self._codec.encode_created(response.task, exchange.request_id))


def _idempotency_key(exchange: HttpExchange) -> str | None:
    key = exchange.request.headers.get(IDEMPOTENCY_KEY)
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise invalid(IDEMPOTENCY_KEY, f"expected 1 to {MAX_KEY_CHARACTERS} characters; send another key")
    return key

"""Downloads of finished videos: `GET /v1/videos/{task_id}/content`, streamed from the service as the client reads."""

import grpc
from aiohttp import hdrs, web

from http_facade.exchange.conditional_requests import RANGE_HEADER
from http_facade.exchange.grpc_service_calls import metadata, opened
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.response_head import begin_response
from http_facade.handlers.result_file_handlers import SAFE_TYPES
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.json_decoding import echo, invalid

CACHE_CONTROL = "public, max-age=86400"
DOWNLOAD_VARIANTS = {
    "video": pb.VIDEO_VARIANT_VIDEO,
    "thumbnail": pb.VIDEO_VARIANT_THUMBNAIL,
    "spritesheet": pb.VIDEO_VARIANT_SPRITESHEET,
    "last_frame": pb.VIDEO_VARIANT_LAST_FRAME,
}
MAX_INDEX_DIGITS = 4
MIME_TYPE = "video/mp4"


class VideoContent:
    """Handler of downloads of the results of video tasks."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.VideoServiceStub(channel)

    async def get(self, exchange: HttpExchange) -> web.StreamResponse:
        """Send the video or the requested range; only headers for HEAD, or 304 if the client's copy is current."""
        request, wanted = exchange.request, _wanted(exchange)
        conditional = request.if_none_match is not None or hdrs.IF_RANGE in request.headers
        if conditional or request.method == hdrs.METH_HEAD:
            head = await self._head(exchange, wanted)
            if _is_unchanged(request, head):
                return web.Response(status=304, headers=_headers(head))
            if request.method == hdrs.METH_HEAD:
                response = web.StreamResponse(headers=_headers(head))
                if head.HasField("total_bytes"):
                    response.content_length = head.total_bytes
                return response
            if not _matches(request.headers.get(hdrs.IF_RANGE), head):
                wanted.ClearField("range")
        return await self._send(exchange, wanted)

    async def _head(self, exchange: HttpExchange, wanted: pb.DownloadVideoRequest) -> pb.ContentHead:
        head_request = pb.DownloadVideoRequest()
        head_request.CopyFrom(wanted)
        head_request.range.CopyFrom(pb.ByteRange(limit=0, offset=0))
        call = self._stub.DownloadVideo(head_request, metadata=metadata(exchange, self._face))
        async with opened(call):
            async for message in call:
                return message.head
        raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the result could not be read; try again")

    async def _send(self, exchange: HttpExchange, wanted: pb.DownloadVideoRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        call = self._stub.DownloadVideo(wanted, metadata=metadata(exchange, self._face))
        async with opened(call):
            async for message in call:
                if message.WhichOneof("kind") == "head":  # an earlier failure is a JSON error
                    response = _response(message.head, is_part=wanted.HasField("range"))
                    await begin_response(exchange, response)
                else:
                    await response.write(message.chunk)
        return response


def _wanted(exchange: HttpExchange) -> pb.DownloadVideoRequest:
    """Return the request of `VideoService.DownloadVideo` from the path, the query and the `Range` header."""
    query = exchange.request.query
    wanted = pb.DownloadVideoRequest(task_id=exchange.parameters["task_id"])
    if (index := query.get("index")) is not None:
        if not (index.isascii() and index.isdecimal() and len(index) <= MAX_INDEX_DIGITS):
            raise invalid("index", "expected a whole number from 0; correct it")
        wanted.index = int(index)
    if (variant := query.get("variant")) is not None:
        if variant not in DOWNLOAD_VARIANTS:
            raise invalid("variant", f"{echo(variant)} is not one of its values: {', '.join(DOWNLOAD_VARIANTS)}")
        wanted.variant = DOWNLOAD_VARIANTS[variant]
    part = RANGE_HEADER.fullmatch(exchange.request.headers.get(hdrs.RANGE, "").replace(" ", ""))
    if part is not None and exchange.request.method == hdrs.METH_GET:
        if part["suffix"] is not None:
            wanted.range.limit = int(part["suffix"])
        elif part["last"] is None:
            wanted.range.offset = int(part["first"])
        elif int(part["last"]) >= int(part["first"]):
            wanted.range.offset = int(part["first"])
            wanted.range.limit = int(part["last"]) - int(part["first"]) + 1
    return wanted


def _response(head: pb.ContentHead, *, is_part: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers=_headers(head))
    length = head.length_bytes if head.HasField("length_bytes") else None
    if length is not None:
        response.content_length = length
    elif head.offset:
        raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider did not report the length; request all bytes")
    if is_part and length:
        total = str(head.total_bytes) if head.HasField("total_bytes") else "*"
        response.set_status(206)
        response.headers[hdrs.CONTENT_RANGE] = f"bytes {head.offset}-{head.offset + length - 1}/{total}"
    return response


def _headers(head: pb.ContentHead) -> dict[str, str]:
    headers = {
        hdrs.CONTENT_TYPE: head.mime_type or MIME_TYPE,
        hdrs.CACHE_CONTROL: CACHE_CONTROL,
        hdrs.VARY: hdrs.AUTHORIZATION,  # caches must not give one caller's video to another
        hdrs.ACCEPT_RANGES: "bytes",
        **SAFE_TYPES,
    }
    if head.etag:
        headers[hdrs.ETAG] = f'"{head.etag}"'
    return headers


def _is_unchanged(request: web.BaseRequest, head: pb.ContentHead) -> bool:
    return bool(head.etag) and any(tag.value in (head.etag, "*") for tag in request.if_none_match or ())


def _matches(if_range: str | None, head: pb.ContentHead) -> bool:
    return if_range is None or (bool(head.etag) and if_range.strip() == f'"{head.etag}"')

"""Handler of downloads of result files by signed links (`GET /files/{token}`): the token is the credential."""

import time
from datetime import UTC, datetime

import grpc
from aiohttp import hdrs, web

from http_facade.exchange.conditional_requests import Representation
from http_facade.exchange.grpc_service_calls import keyless_metadata, opened
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.response_head import begin_response
from umg_grpc.v1 import pb, rpc

SAFE_TYPES = {"x-content-type-options": "nosniff", "content-security-policy": "default-src 'none'; sandbox"}
"""Headers that keep a browser from running anything in a file."""


class FileHandlers:
    """Handler of downloads of result files, which streams their bytes as fast as the client reads."""

    def __init__(self, face: str, channel: grpc.aio.Channel) -> None:
        self._face = face
        self._stub = rpc.FileServiceStub(channel)

    async def get(self, exchange: HttpExchange) -> web.StreamResponse:
        """Send the file or the requested range; only headers for HEAD, or 304 if the client's copy is current."""
        request, token = exchange.request, exchange.parameters["token"]
        metadata = keyless_metadata(exchange, self._face)
        file = (await self._stub.GetFile(pb.GetFileRequest(token=token), metadata=metadata)).file
        created = datetime.fromtimestamp(file.create_time.seconds, UTC)
        representation = Representation(file.size_bytes, file.etag, created)
        headers = _headers(file) | representation.headers
        if representation.is_unchanged(request):
            return web.Response(status=304, headers=headers)
        part = representation.select(request.headers) if request.method == hdrs.METH_GET else None
        start, end = part or (0, file.size_bytes)
        response = web.StreamResponse(status=200 if part is None else 206, headers=headers)
        response.content_type = file.mime_type
        response.content_length = end - start
        if part is not None:
            response.headers[hdrs.CONTENT_RANGE] = f"bytes {start}-{end - 1}/{file.size_bytes}"
        if request.method == hdrs.METH_HEAD or start == end:
            return response
        wanted = pb.DownloadFileRequest(token=token, range=pb.ByteRange(offset=start, limit=end - start))
        call = self._stub.DownloadFile(wanted, metadata=metadata)
        async with opened(call):
            async for message in call:
                if message.WhichOneof("kind") == "head":  # an earlier failure is a JSON error
                    await begin_response(exchange, response)
                else:
                    await response.write(message.chunk)
        return response


def _headers(file: pb.File) -> dict[str, str]:
    rest = max(0, file.expire_time.seconds - int(time.time()))
    return {
        hdrs.CACHE_CONTROL: f"private, max-age={rest}",
        hdrs.CONTENT_DISPOSITION: f'inline; filename="{file.file_name}"',
        **SAFE_TYPES,
    }

"""Rejections of model calls under overload, written without parsing the requests.

If a rejection took a third of the time of a response, a threefold load would leave no time for responses. Therefore
only target, length, request id and origin of a rejected request are read from its bytes.
"""

import re
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import hdrs, web

from http_facade.exchange.error_responses import error_response
from http_facade.exchange.http_exchange import REQUEST_ID_HEADERS
from http_facade.routes import model_call_route
from umg_grpc.base.errors import UmgError
from umg_grpc.base.request_ids import is_request_id, request_id_of

SERVER_NAME = "umg"

_LINE = re.compile(rb"POST (/[!-~]{1,2048}) HTTP/1\.1\r\n")
_LENGTH, _REQUEST_ID, _CONNECTION = b"\r\ncontent-length:", b"\r\nx-request-id:", b"\r\nconnection:"
_ORIGIN = b"\r\norigin:"
_UNUSUAL = re.compile(rb"\r\n(?:transfer-encoding|expect|upgrade|[ \t])")
_OPTIONAL = re.compile(rb"\r\n(?:x-request-id|connection|origin):")


class ModelCall(NamedTuple):
    """Properties of a rejected model call on which its error response depends, read from the bytes of the request."""

    error_format: str
    request_id: str
    """Valid request id of the caller, or ""."""
    origin: str
    """Origin of the page that calls, or ""."""


def parse_model_call(data: bytes) -> ModelCall | None:
    """Return the properties of the model call in `data`. None if `data` is not exactly one complete request to a model,
    or has unusual headers, which only the HTTP parser reads correctly.
    """
    line, end = _LINE.match(data), data.find(b"\r\n\r\n")
    if line is None or end < 0:
        return None
    start = line.end() - 2
    head = data[start : end + 2].lower()
    if _UNUSUAL.search(head) is not None:
        return None
    length = _value(head, _LENGTH)
    if length is None or not length.isdigit() or len(length) > 9 or int(length) != len(data) - end - 4:
        return None
    route = model_call_route("POST", line[1].decode())
    if route is None:
        return None
    if _OPTIONAL.search(head) is None:
        return ModelCall(route.error_format, "", "")
    if _value(head, _CONNECTION) not in {b"", b"keep-alive"}:
        return None
    request_id = _written_value(data, start, head, _REQUEST_ID)
    origin = _written_value(data, start, head, _ORIGIN)
    return ModelCall(route.error_format, request_id if is_request_id(request_id) else "", origin)


def _value(head: bytes, name: bytes) -> bytes | None:
    """Return the value of a header in the lower-case `head`; b"" if it is missing, None if it is repeated."""
    at = head.find(name)
    if at < 0:
        return b""
    if head.find(name, at + 1) >= 0:
        return None
    at += len(name)
    return head[at : head.index(b"\r\n", at)].strip()


def _written_value(data: bytes, start: int, head: bytes, name: bytes) -> str:
    at = head.find(name)
    if at < 0:
        return ""
    at += start + len(name)
    return data[at : data.index(b"\r\n", at)].strip().decode("latin-1")


class Refusals:
    """Encoder of the responses to calls that are rejected under overload. Once a second, a response is encoded in each
    format; calls get copies of it with their own request ids.
    """

    def __init__(self) -> None:
        self._written: dict[tuple[str | None, str], tuple[int, bytes, bytes]] = {}  # (second, response, id in it)

    def write(self, error: UmgError, call: ModelCall) -> bytes:
        """Return the HTTP response that rejects a model call. It is a copy of a response that is encoded once a second,
        and keeps the connection open. For calls without a request id of the caller.
        """
        second = int(time.time())
        known = self._written.get((error.cause, call.error_format))
        if known is None or known[0] != second:
            request_id = request_id_of()
            response = self._response(error, call.error_format, request_id)
            known = self._written[error.cause, call.error_format] = second, response, request_id.encode()
        _, response, request_id_in_it = known
        return response.replace(request_id_in_it, request_id_of().encode())

    def _response(self, error: UmgError, error_format: str, request_id: str) -> bytes:
        error.metadata["request_id"] = request_id
        return encode_http(error_response(error, error_format), request_id, close=False)


def encode_http(response: web.Response, request_id: str, *, close: bool) -> bytes:
    """Return a response in HTTP/1.1 with the headers of all responses. `close`: the connection closes after it."""
    body = response.body if isinstance(response.body, bytes) else b""
    headers: dict[str, object] = {
        **response.headers,
        hdrs.CONTENT_LENGTH: len(body),
        hdrs.DATE: formatdate(usegmt=True),
        hdrs.SERVER: SERVER_NAME,
        **dict.fromkeys(REQUEST_ID_HEADERS, request_id),
        hdrs.CONNECTION: "close" if close else "keep-alive",
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n{head}\r\n".encode() + body

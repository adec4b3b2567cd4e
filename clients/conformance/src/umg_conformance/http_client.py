"""HTTP client of the kit, which sends the requests of checks and reads responses, also streams of events."""

import base64
import json
from urllib.parse import quote

import aiohttp
from msgspec import UNSET
from yarl import URL

from umg_conformance.call_responses import CallResponse, enveloped, envelopes, json_or_text, server_sent_events
from umg_conformance.check_files import FilePart, Request

WRONG_KEY = "sk-umg-conformance-wrong"
EVENT_STREAM = "text/event-stream"
ENVELOPE_PREFIX = "application/connect+"
FILE_TYPES = ("image/", "video/", "audio/", "application/octet-stream")
"""Types of bodies that are no text."""


class UnreachableError(Exception):
    """Error for a call without a response of the server, or without the awaited value in time."""


class HttpCaller:
    """HTTP client of one server (base URL) with one API key."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, key: str, seconds: float) -> None:
        self._session = session
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._seconds = seconds

    async def call(self, request: Request) -> CallResponse:
        """Send a request over HTTP. Return its response with any status. Raise UnreachableError if there is none."""
        headers, query = {**_credentials(request, self._key), **request.headers}, dict(request.query)
        if request.auth == "query":
            query["key"] = self._key
        body, own = _body(request)
        if own and not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = own
        path = quote(request.path, safe="/:?=&%")
        address = f"{self._base_url}{path}" if request.path.startswith("/") else request.path
        limit = aiohttp.ClientTimeout(total=request.deadline or self._seconds)
        try:
            async with self._session.request(
                *(request.method, URL(address, encoded=True).update_query(query)),
                data=body,
                headers=headers,
                timeout=limit,
                allow_redirects=False,
            ) as reply:
                return await _read(reply)
        except TimeoutError:
            raise UnreachableError(f"{request.method} {request.path}: no response in {limit.total:g} s") from None
        except aiohttp.ClientError as error:
            raise UnreachableError(f"{request.method} {request.path}: {str(error) or type(error).__name__}") from None


def _credentials(request: Request, key: str) -> dict[str, str]:
    match request.auth:
        case "bearer":
            return {"authorization": f"Bearer {key}"}
        case "wrong":
            return {"authorization": f"Bearer {WRONG_KEY}"}
        case "x-api-key" | "x-goog-api-key":
            return {request.auth: key}
        case "query" | "none":
            return {}


def _body(request: Request) -> tuple[bytes | aiohttp.FormData | None, str]:
    if request.form:
        form = aiohttp.FormData(default_to_multipart=True)
        for name, value in request.form.items():
            if isinstance(value, FilePart):
                file = base64.b64decode(value.base64)
                form.add_field(name, file, filename=value.filename, content_type=value.type)
            else:
                form.add_field(name, value)
        return form, ""
    if request.text is not UNSET:
        return str(request.text).encode(), "application/json"
    if request.body is UNSET:
        return None, ""
    body = json.dumps(request.body, ensure_ascii=False).encode()
    return (enveloped(body), "application/connect+json") if request.envelopes else (body, "application/json")


async def _read(reply: aiohttp.ClientResponse) -> CallResponse:
    body, cut = bytearray(), False
    try:
        async for piece in reply.content.iter_any():
            body += piece
    except (aiohttp.ClientPayloadError, ConnectionResetError):
        cut = True
    headers = {name.lower(): value for name, value in reply.headers.items()}
    content_type = headers.get("content-type", "")
    if content_type.startswith(FILE_TYPES):
        return CallResponse(reply.status, headers, size=len(body), cut=cut)
    if content_type.startswith(ENVELOPE_PREFIX):
        return CallResponse(reply.status, headers, events=envelopes(bytes(body)), size=len(body), cut=cut)
    text = body.decode(errors="replace")
    if content_type.startswith(EVENT_STREAM):
        events = server_sent_events(text)
        return CallResponse(reply.status, headers, events=events, text=text, size=len(body), cut=cut)
    return CallResponse(reply.status, headers, body=json_or_text(text), text=text, size=len(body), cut=cut)

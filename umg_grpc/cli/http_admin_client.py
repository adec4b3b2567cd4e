"""Client of a running gateway's administration API over HTTP."""

import asyncio
import re
import ssl
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from email.message import Message as Headers
from http.client import HTTPException
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    Request,
    build_opener,
)

import msgspec
from google.protobuf.message import Message

from http_facade.handlers.admin_rpc_table import METHODS, SELF
from http_facade.routes import ROUTES
from umg_grpc.base.proxy_rules import ProxyError
from umg_grpc.cli.admin_client import VARIABLE, CommandError, ResponseT, method_name
from umg_grpc.cli.environment_proxy import proxy_handler
from umg_grpc.config import Address
from umg_grpc.wire.protobuf_json import from_json, to_query

WAIT_SECONDS = 60.0
PATH_CHARACTERS = "/%:@!$&'()*+,;="
"""Characters of a path that are sent as they are, beside letters, digits and `_.-~` (RFC 3986, section 3.3)."""


class NoRedirects(HTTPRedirectHandler):
    """HTTP handler that follows no redirects, which could send the API key to another server."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Headers, newurl: str) -> None:
        """Return None, so that the redirect is not followed."""


class RemoteAdmin:
    """Administration client of a running gateway over HTTP.

    It uses the standard library, whose import takes a tenth of the time of aiohttp's.
    """

    keys_per_page = 1000  # as many as earlier versions of a gateway allow

    def __init__(self, opener: OpenerDirector, gateway: str, key: str) -> None:
        self._opener = opener
        self._gateway = gateway
        self._headers = {"authorization": f"Bearer {key}", "accept": "application/json"}

    @classmethod
    @asynccontextmanager
    async def opened(cls, gateway: str, key: str) -> "AsyncGenerator[RemoteAdmin, None]":
        """Yield a client of the gateway at the URL `gateway`, which sends the API key `key`.

        Raise CommandError for an invalid URL, or one with credentials in it.
        """
        try:
            parts = urlsplit(gateway)
        except ValueError:  # brackets without an IPv6 address
            parts = urlsplit("")
        if parts.username is not None:
            raise CommandError(
                "--gateway: a user name and a password in the URL are not accepted; remove them, and set the key by "
                f"{VARIABLE} or --api-key-file"
            )
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(
                f"--gateway: {gateway!r} is no URL, such as https://gateway.example or http://127.0.0.1:8080"
            )
        is_local = parts.hostname == "localhost" or Address(parts.hostname, 0).is_loopback
        if parts.scheme == "http" and not is_local:
            print("umg: warning: the key is sent unencrypted; use https in --gateway", file=sys.stderr)
        try:
            proxies = proxy_handler(gateway)
        except ProxyError as error:
            raise CommandError(f"{error}; or set NO_PROXY to the host of the gateway") from None
        ascii_path = parts._replace(path=quote(parts.path, safe=PATH_CHARACTERS)).geturl()
        yield cls(build_opener(proxies, NoRedirects), ascii_path.rstrip("/"), key)

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the HTTP path of the RPC for the type of `request`, and return its response of the type `kind`.

        Raise UmgError or CommandError if it fails.
        """
        name = method_name(request)
        route = next(row for row in ROUTES if row.shape in METHODS and METHODS[row.shape].name == name)
        path, encode = route.name, METHODS[route.shape].encode
        in_path = re.findall(r"\{(\w+)\}", path)
        for field in in_path:
            path = path.replace(f"{{{field}}}", quote(getattr(request, field) or SELF, safe=""))
        body = encode(request) if encode is not None else None
        query = [pair for pair in to_query(request) if pair[0] not in in_path] if encode is None else []
        response = await self._send(route.method, path, query, body)
        try:
            return from_json(kind, response)
        except (TypeError, ValueError):
            raise CommandError(f"the answer of {self._gateway}{path} cannot be read: is it a gateway?") from None

    async def _send(self, method: str, path: str, query: list[tuple[str, str]], body: object) -> dict[str, object]:
        url = self._gateway + path
        data = msgspec.json.encode(body) if body is not None else None
        headers = {**self._headers, "content-type": "application/json"} if body is not None else self._headers
        request = Request(f"{url}?{urlencode(query)}" if query else url, data, headers, method=method)  # noqa: S310  checked
        try:
            status, kind, text = await self._answer(request)
        except (HTTPException, OSError, UnicodeError) as error:  # UnicodeError: a host that is no name of a domain
            cause = error.reason if isinstance(error, URLError) else error
            if isinstance(cause, ssl.SSLError):
                remedy = "set SSL_CERT_FILE to a file with its authority, or correct --gateway"
                raise CommandError(f"no TLS connection to {self._gateway}: {cause}; {remedy}") from None
            reason = "no answer in time" if isinstance(cause, TimeoutError) else str(cause) or type(cause).__name__
            message = f"the gateway at {self._gateway} cannot be reached: {reason}; check --gateway, and that it runs"
            raise CommandError(message) from None
        try:
            found = msgspec.json.decode(text, type=dict[str, object])
        except msgspec.DecodeError:
            problem = f"{url} answers with status {status} and {kind or 'no content'} instead of JSON"
            raise CommandError(f"{problem}; set --gateway to the HTTP face of a gateway") from None
        if status != 200:
            raise CommandError(_explained(status, found, self._gateway))
        return found

    async def _answer(self, request: Request) -> tuple[int, str, bytes]:
        """Send a request. It waits in a daemon thread, so that Ctrl-C ends the command at once."""
        loop = asyncio.get_running_loop()
        response: asyncio.Future[tuple[int, str, bytes]] = loop.create_future()

        def finish(result: tuple[int, str, bytes] | Exception) -> None:
            if response.done():  # cancelled
                return
            if isinstance(result, Exception):
                response.set_exception(result)
            else:
                response.set_result(result)

        def exchange() -> None:
            result: tuple[int, str, bytes] | Exception
            try:
                result = self._exchange(request)
            except Exception as failure:  # passed on to the call
                result = failure
            with suppress(RuntimeError):  # the event loop is closed
                loop.call_soon_threadsafe(finish, result)

        threading.Thread(target=exchange, name="call of the gateway", daemon=True).start()
        return await response

    def _exchange(self, request: Request) -> tuple[int, str, bytes]:
        """Send a request, and block until its response."""
        try:
            response = self._opener.open(request, timeout=WAIT_SECONDS)
        except HTTPError as error:
            response = error  # a response too, with another status
        with response:
            return response.status, response.headers.get_content_type(), response.read()


def _explained(status: int, body: dict[str, object], gateway: str) -> str:
    """Return the error message, with the remedy, for an error response of `gateway` (its URL) with this status and JSON
    body.
    """
    error = body.get("error")
    message = str(error.get("message", "")) if isinstance(error, dict) else ""
    reason = message or f"status {status}"
    match status:
        case 401:
            return f"{gateway} does not accept the key: {reason}; correct {VARIABLE} or --api-key-file"
        case 403:
            return f"{reason}; `umg keys create --admin` makes one, and the first key is one"
        case _ if not message:
            return f"{gateway} answers with status {status}; set --gateway to the HTTP face of a gateway"
        case _:  # the message of any other status explains itself
            return message

"""Client of the administration service of a running gateway, by the Connect protocol over HTTP."""

import ssl
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.message import Message as Headers
from functools import partial
from http.client import HTTPException
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

import msgspec
from google.protobuf import json_format
from google.protobuf.message import Message

from umg_grpc.base.daemon_threads import in_daemon_thread
from umg_grpc.base.proxy_rules import ProxyError
from umg_grpc.cli.admin_client import ADMIN_KEY_VARIABLE, CommandError, ResponseT, method_name, service_name
from umg_grpc.cli.environment_proxy import proxy_handler
from umg_grpc.config import Address

WAIT_SECONDS = 60.0
PATH_CHARACTERS = "/%:@!$&'()*+,;="
"""Characters of a path that are sent as they are, beside letters, digits and `_.-~` (RFC 3986, section 3.3)."""


class NoRedirects(HTTPRedirectHandler):
    """HTTP handler that follows no redirects: a redirect could send the API key to another server."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Headers, newurl: str) -> None:
        """Return None, so that the redirect is not followed."""


class RemoteAdmin:
    """Administration client over HTTP by the standard library, whose import takes a tenth of the time of aiohttp's."""

    def __init__(self, opener: OpenerDirector, gateway: str, key: str) -> None:
        self._opener = opener
        self._gateway = gateway
        self._headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}

    @classmethod
    @asynccontextmanager
    async def opened(cls, gateway: str, key: str) -> "AsyncGenerator[RemoteAdmin, None]":
        """Yield a client of the gateway at a URL. Raise CommandError for an invalid URL, or one with credentials."""
        try:
            parts = urlsplit(gateway)
        except ValueError:  # brackets without an IPv6 address
            parts = urlsplit("")
        if parts.username is not None:
            raise CommandError(
                "--gateway: a user name and a password in the URL are not accepted; remove them, and set the key by "
                f"{ADMIN_KEY_VARIABLE} or --api-key-file"
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
        url = f"{self._gateway}/{service_name(request)}/{method_name(request)}"
        response = await self._send(url, json_format.MessageToJson(request).encode())
        try:
            return json_format.ParseDict(response, kind(), ignore_unknown_fields=True)
        except json_format.ParseError:
            raise CommandError(f"the response of {url} cannot be read: is it a gateway?") from None

    async def _send(self, url: str, body: bytes) -> dict[str, object]:
        request = Request(url, body, self._headers)  # noqa: S310  checked
        try:
            status, kind, text = await self._answer(request)
        except (HTTPException, OSError, UnicodeError) as error:  # UnicodeError: a host that is no name of a domain
            cause = error.reason if isinstance(error, URLError) else error
            if isinstance(cause, ssl.SSLError):
                remedy = "set SSL_CERT_FILE to a file with its authority, or correct --gateway"
                raise CommandError(f"no TLS connection to {self._gateway}: {cause}; {remedy}") from None
            reason = "no response in time" if isinstance(cause, TimeoutError) else str(cause) or type(cause).__name__
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
        """Send a request. A daemon thread waits for the response, so that Ctrl-C ends the command at once."""
        return await in_daemon_thread(partial(self._exchange, request), "call of the gateway")

    def _exchange(self, request: Request) -> tuple[int, str, bytes]:
        """Send a request, and block until its response."""
        try:
            response = self._opener.open(request, timeout=WAIT_SECONDS)
        except HTTPError as error:
            response = error  # a response too, with another status
        with response:
            return response.status, response.headers.get_content_type(), response.read()


def _explained(status: int, body: dict[str, object], gateway: str) -> str:
    """Return the error message, with the remedy, for an error response of the gateway at the URL."""
    message = str(body.get("message", ""))
    reason = message or f"status {status}"
    match status:
        case 401:
            return f"{gateway} does not accept the key: {reason}; correct {ADMIN_KEY_VARIABLE} or --api-key-file"
        case 403:
            return f"{reason}; `umg keys create --admin` makes one, and the first key is one"
        case _ if not message:
            return f"{gateway} answers with status {status}; set --gateway to the HTTP face of a gateway"
        case _:  # the message of any other status explains itself
            return message

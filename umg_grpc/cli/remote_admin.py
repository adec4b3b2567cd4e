"""Client of the administration of a gateway over HTTP."""

import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from google.protobuf.message import Message

from http_facade.admin_handlers import METHODS, SELF
from http_facade.routes import ROUTES
from umg_grpc.cli.admin_client import VARIABLE, CommandError, ResponseT, method_name
from umg_grpc.config import Address
from umg_grpc.wire.message_json import from_json, to_query

TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10)


class RemoteAdmin:
    """Client of the HTTP face of a gateway."""

    def __init__(self, session: aiohttp.ClientSession, gateway: str) -> None:
        self._session = session
        self._gateway = gateway

    @classmethod
    @asynccontextmanager
    async def opened(cls, gateway: str, key: str) -> "AsyncGenerator[RemoteAdmin, None]":
        """Yield a client of the gateway at a URL. Raise CommandError if it is no URL of HTTP."""
        parts = urlsplit(gateway)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(
                f"--gateway: {gateway!r} is no URL, such as https://gateway.example or http://127.0.0.1:8080"
            )
        is_local = parts.hostname == "localhost" or Address(parts.hostname, 0).is_loopback
        if parts.scheme == "http" and not is_local:
            print("umg: warning: the key is sent unencrypted; use https in --gateway", file=sys.stderr)
        headers = {"authorization": f"Bearer {key}", "accept": "application/json"}
        # not `trust_env`, which also reads a user name and a password from ~/.netrc
        proxy = None if is_local or proxy_bypass(parts.hostname) else getproxies().get(parts.scheme)
        async with aiohttp.ClientSession(headers=headers, timeout=TIMEOUT, proxy=proxy) as session:
            yield cls(session, gateway.rstrip("/"))

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response, see `AdminClient`."""
        name = method_name(request)
        route = next(row for row in ROUTES if row.shape in METHODS and METHODS[row.shape].name == name)
        path, encode = route.name, METHODS[route.shape].encode
        in_path = re.findall(r"\{(\w+)\}", path)
        for field in in_path:
            path = path.replace(f"{{{field}}}", quote(getattr(request, field) or SELF, safe=""))
        body = encode(request) if encode is not None else None
        query = [pair for pair in to_query(request) if pair[0] not in in_path] if encode is None else []
        answer = await self._send(route.method, path, query, body)
        try:
            return from_json(kind, answer)
        except (TypeError, ValueError):
            raise CommandError(f"the answer of {self._gateway}{path} cannot be read: is it a gateway?") from None

    async def _send(self, method: str, path: str, query: list[tuple[str, str]], body: object) -> dict[str, object]:
        url = self._gateway + path
        try:
            async with self._session.request(method, url, params=query, json=body, allow_redirects=False) as answer:
                status, kind, text = answer.status, answer.content_type, await answer.read()
        except aiohttp.ClientSSLError as error:
            remedy = "set SSL_CERT_FILE to a file with its authority, or correct --gateway"
            raise CommandError(f"no TLS connection to {self._gateway}: {error}; {remedy}") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or "no answer in time"
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


def _explained(status: int, body: dict[str, object], gateway: str) -> str:
    """Return the message for an answer that is an error, with the remedy."""
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

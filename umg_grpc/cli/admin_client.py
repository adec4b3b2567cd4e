"""Calls of `umg.v1.AdminService` by commands: on the database of a config, or at a gateway over HTTP."""

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
import typer
from google.protobuf.message import Message

from umg_grpc.cli.config import load
from umg_grpc.config import Address
from umg_grpc.errors import UmgError
from umg_grpc.store import StoreError, open_store

VARIABLE = "UMG_ADMIN_KEY"
TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=10)

ResponseT = TypeVar("ResponseT", bound=Message)


class AdminClient(Protocol):
    """Client of the service."""

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response of the method whose request this is. Raise UmgError or CommandError."""
        ...


class CommandError(Exception):
    """Failure of a command, whose message names the remedy."""


@dataclass(frozen=True)
class AdminTarget:
    """The database or the gateway that a command works on."""

    config: Path | None
    """File of the config; None for the built-in one."""
    data: Path
    gateway: str = ""
    """URL of the gateway's HTTP face; "" for the database of the config."""
    key_file: Path | None = None
    """File with the key for the gateway; None for the one of the environment."""


@asynccontextmanager
async def opened(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield a client. Failures are printed to standard error and exit with 1."""
    try:
        if target.gateway:
            async with RemoteAdmin.opened(target.gateway, admin_key(target.key_file)) as client:
                yield client
        else:
            async with _local(target) as client:
                yield client
    except (UmgError, StoreError, CommandError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def admin_key(file: Path | None) -> str:
    """Return the key for a gateway. Raise CommandError if there is none."""
    try:
        key = os.environ.get(VARIABLE, "") if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--api-key-file: {file} cannot be read: {error}") from None
    key = key.strip()
    if not key:
        place = VARIABLE if file is None else f"the file {file}"
        raise CommandError(f"--gateway needs the key of an administrator: put it into {place}")
    if not (key.isascii() and key.isprintable()):
        raise CommandError(f"a key has visible ASCII characters only; correct {file or VARIABLE}")
    return key


@asynccontextmanager
async def _local(target: AdminTarget) -> AsyncGenerator[AdminClient, None]:
    """Yield a client of the service on the store of the config, which must exist: keys in a new one would be unknown to
    the gateway.
    """
    # imported here: the service is slow to import, and a remote gateway needs none
    from umg_grpc.routing import Router
    from umg_grpc.service.pipeline.channels import Channels
    from umg_grpc.service.servicers.admin import AdminServicer
    from umg_grpc.service.servicers.channel_report import ChannelReport
    from umg_grpc.store.channel_failures import read_failures

    config = load(target.config)
    store = await open_store(config.database, target.data, create=False)
    try:
        report = ChannelReport(Channels(Router(config)), list, partial(read_failures, target.data))
        yield LocalAdmin(AdminServicer(store, report))
    finally:
        await store.aclose()


class LocalAdmin:
    """Client of the service in this process, as an administrator."""

    def __init__(self, servicer: object) -> None:
        self._servicer = servicer

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response, see `AdminClient`."""
        from umg_grpc.access.caller import Caller
        from umg_grpc.service.pipeline.call import CURRENT, Call

        name = _method_name(request)
        call = Call(name, {}, trusted=True, request_id="umg")
        call.known_caller = Caller("", "umg", (), None, None, administrator=True)
        CURRENT.set(call)
        response: ResponseT = await getattr(self._servicer, name)(request, None)
        return response


class RemoteAdmin:
    """Client of the HTTP face of a gateway."""

    def __init__(self, session: aiohttp.ClientSession, gateway: str) -> None:
        self._session = session
        self._gateway = gateway

    @classmethod
    @asynccontextmanager
    async def opened(cls, gateway: str, key: str) -> "AsyncGenerator[RemoteAdmin, None]":
        """Yield a client of the gateway at a URL. Raise CommandError for another text."""
        parts = urlsplit(gateway)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(
                f"--gateway: {gateway!r} is no URL, such as https://gateway.example or http://127.0.0.1:8080"
            )
        if parts.scheme == "http" and not (parts.hostname == "localhost" or Address(parts.hostname, 0).is_loopback):
            print("umg: warning: the key is sent unencrypted; use https in --gateway", file=sys.stderr)
        headers = {"authorization": f"Bearer {key}", "accept": "application/json"}
        async with aiohttp.ClientSession(headers=headers, timeout=TIMEOUT, trust_env=True) as session:
            yield cls(session, gateway.rstrip("/"))

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Return the response, see `AdminClient`."""
        # imported here: commands on a database need no HTTP
        from http_facade.admin_handlers import METHODS, SELF
        from http_facade.routes import ROUTES
        from umg_grpc.wire.message_json import from_json, to_query

        name = _method_name(request)
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
        case _:
            return message


def _method_name(request: Message) -> str:
    return request.DESCRIPTOR.name.removesuffix("Request")

"""Calls through HTTP proxies: tunnels to providers over TLS, and requests that the proxy forwards."""

import asyncio
import gc
import ssl
from dataclasses import dataclass, field, replace
from functools import cache

import pytest
import trustme

from tests.support.providers.raw import (
    PATIENT,
    HandleConnection,
    Link,
    Run,
    Send,
    answering,
    chunked,
    each_loop,
    each_way,
    failed,
    on_each_loop,
    outgoing,
    provider,
)
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http1.client import Client


@dataclass
class Relay:
    """Proxy that connects to the target of each request and relays the bytes in both directions."""

    heads: list[bytes] = field(default_factory=list)

    async def handle(self, link: Link) -> None:
        head = await link.reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target, _ = head.split(b" ", 2)
        host, _, port = target.removeprefix(b"http://").partition(b"/")[0].decode().partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            await link.send(b"HTTP/1.1 200 Connection established\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(head)
        try:
            await asyncio.gather(_copy(link.reader, writer), _copy(reader, link.writer))
        finally:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # the other side left
    writer.close()


@cache
def trust() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the context of servers named localhost, and one that trusts their certificate authority."""
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(theirs)
    authority.configure_trust(ours)
    return theirs, ours


def through(url: str, user: str = "") -> str:
    return url.replace("://", f"://{user}").removesuffix("/v1/x")


@dataclass(frozen=True)
class Way:
    id: str
    secure: bool  # the provider uses TLS
    secure_proxy: bool


WAYS = [
    Way("plain by a plain proxy", secure=False, secure_proxy=False),
    Way("plain by a proxy over TLS", secure=False, secure_proxy=True),
    Way("TLS by a plain proxy", secure=True, secure_proxy=False),
    Way("TLS by a proxy over TLS", secure=True, secure_proxy=True),
]


@each_way
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
@on_each_loop
async def test_calls_go_through_the_proxy_with_its_credentials_and_use_a_connection_again(way: Way, send: Send) -> None:
    theirs, ours = trust()

    seen: list[bytes] = []

    async def handle(link: Link) -> None:
        while True:
            head, _ = await link.request()
            seen.append(head)
            await link.send(chunked())

    relay = Relay()
    async with (
        provider(handle, tls=theirs if way.secure else None) as made,
        provider(relay.handle, tls=theirs if way.secure_proxy else None) as proxy,
        Client.opened() as client,
    ):
        call = outgoing(made, tls=ours, proxy=through(proxy.url, "me:p%40ss@"))
        for _ in range(2):
            assert await send(client, call) == b"hello"
        host = made.url.partition("://")[2].partition("/")[0]
        [head] = relay.heads
        lines = head.decode().split("\r\n")
        assert lines[:2] == [
            f"CONNECT {host} HTTP/1.1" if way.secure else f"POST {made.url} HTTP/1.1",
            f"Host: {host}",
        ]
        assert "Proxy-Authorization: Basic bWU6cEBzcw==" in lines
        assert len(seen) == 2
        assert seen[0].startswith(b"POST /v1/x HTTP/1.1\r\n" if way.secure else f"POST {made.url} ".encode())
        assert (b"Proxy-Authorization" in seen[0]) is not way.secure


@each_way
@on_each_loop
async def test_a_provider_behind_a_proxy_is_verified_by_its_certificate(send: Send) -> None:
    theirs, _ = trust()

    async with (
        provider(answering(chunked()), tls=theirs) as made,
        provider(Relay().handle) as proxy,
        Client.opened() as client,
    ):
        error = await failed(send(client, outgoing(made, proxy=through(proxy.url))))
        assert (error.name, error.failure) == ("UPSTREAM_UNREACHABLE", Failure.NOT_SENT)


@dataclass(frozen=True)
class Refused:
    id: str
    handle: HandleConnection
    reason: str = "UPSTREAM_UNREACHABLE"
    failure: Failure = Failure.NOT_SENT


def proxy_sending(*pieces: bytes, then: str = "close") -> HandleConnection:
    """Return a proxy that reads a request without a body and sends the pieces."""

    async def handle(link: Link) -> None:
        await link.reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            await link.send(piece)
        if then == "wait":
            await link.left()

    return handle


REFUSED = [
    Refused(
        "it wants credentials", proxy_sending(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"), failure=Failure.DOWN
    ),
    Refused("it forbids", proxy_sending(b"HTTP/1.0 403 No\r\n\r\nnever", then="wait"), failure=Failure.DOWN),
    Refused(
        "it does not reach the provider", proxy_sending(b"HTTP/1.1 502 No\r\nContent-Length: 2\r\n\r\nno", then="wait")
    ),
    Refused("it closes", proxy_sending()),
    Refused("it closes in its head", proxy_sending(b"HTTP/1.1 200 OK\r\n")),
    Refused("it is no proxy", proxy_sending(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", then="wait")),
    Refused(
        "it sends more than its head", proxy_sending(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", then="wait")
    ),
    Refused("its head does not end", proxy_sending(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20000, then="wait")),
    Refused("it closes in the handshake", proxy_sending(b"HTTP/1.1 200 OK\r\n\r\n")),
    Refused("a silent proxy", proxy_sending(then="wait"), "UPSTREAM_TIMEOUT"),
    Refused("nothing follows its head", proxy_sending(b"HTTP/1.1 200 OK\r\n\r\n", then="wait"), "UPSTREAM_TIMEOUT"),
]


@each_way
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
@on_each_loop
async def test_a_tunnel_that_is_not_made_sends_the_provider_nothing(case: Refused, send: Send) -> None:
    connect = 0.1 if case.reason == "UPSTREAM_TIMEOUT" else 10

    async with Client.opened() as client, provider(case.handle) as proxy:
        deadlines = replace(PATIENT, connect=connect)
        call = outgoing(proxy, url="https://provider.example/v1", proxy=through(proxy.url), deadlines=deadlines)
        for _ in range(2):
            error = await failed(send(client, call))
            assert (error.name, error.failure) == (case.reason, case.failure)


@each_way
@on_each_loop
async def test_a_proxy_that_is_not_there_is_unreachable(send: Send) -> None:
    async with provider(answering(chunked())) as made, Client.opened() as client:
        error = await failed(send(client, outgoing(made, proxy="http://127.0.0.1:1")))
        assert (error.name, error.failure) == ("UPSTREAM_UNREACHABLE", Failure.NOT_SENT)


@each_way
@each_loop
def test_a_caller_that_leaves_at_any_moment_leaves_no_tunnel_open(send: Send, run: Run) -> None:
    theirs, ours = trust()

    async def main() -> None:
        for turns in range(0, 48, 2):  # iterations of the event loop that suffice to connect, send and receive
            async with (
                provider(answering(chunked()), tls=theirs) as made,
                provider(Relay().handle) as proxy,
                Client.opened() as client,
            ):
                call = outgoing(made, tls=ours, proxy=through(proxy.url))
                sent = asyncio.ensure_future(send(client, call))
                for _ in range(turns):
                    await asyncio.sleep(0)
                sent.cancel()
                await asyncio.wait({sent})
                assert await send(client, call) == b"hello"

    run(main())
    gc.collect()  # a socket that was not closed would warn

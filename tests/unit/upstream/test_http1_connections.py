"""Connections of our own to providers: their lifetime, and the calls that may use them."""

import asyncio
import gc
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass, replace
from weakref import ref

import pytest
import trustme
import uvloop

from tests.support.providers.raw import (
    HELLO,
    PATIENT,
    Link,
    Provider,
    Run,
    answering,
    chunked,
    each_loop,
    on_each_loop,
    outgoing,
    provider,
    refused,
    sized,
)
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.dns_cache import DnsCache


@on_each_loop
async def test_a_connection_that_the_provider_closed_is_not_used_again() -> None:
    async def handle(link: Link) -> None:
        await link.request()
        await link.send(HELLO)
        link.writer.write_eof()
        await link.left()
        left.set()

    async with provider(handle) as made, Client.opened() as client:
        for _ in range(3):
            left = asyncio.Event()
            assert (await client.fetch(outgoing(made))).body == b"hello"
            await asyncio.wait_for(left.wait(), 60)
        assert len(made.links) == 3


@on_each_loop
async def test_an_unused_connection_is_closed_in_time() -> None:
    async with provider(answering(HELLO)) as made:
        client = Client(idle=0.05)
        await client.fetch(outgoing(made))
        await asyncio.wait_for(made.links[0].writer.wait_closed(), 60)
        await client.fetch(outgoing(made))
        assert len(made.links) == 2
        await client.close()


class State:
    """State of a call."""


STATE: ContextVar[State] = ContextVar("state of the call")


def test_an_idle_connection_keeps_nothing_of_its_calls_in_memory() -> None:
    """Check the context of the call that opened the connection, and the last response.

    Only on uvloop: a cancelled timer of asyncio keeps its context until it would have run.
    """

    async def main() -> None:
        async with provider(answering(HELLO)) as made, Client.opened() as client:

            async def call() -> tuple[ref[State], ref[object]]:
                STATE.set(state := State())
                exchange = await client.open(outgoing(made))
                assert [chunk async for chunk in exchange.chunks()] == [b"hello"]
                return ref(state), ref(exchange.response.headers)

            found = [await asyncio.create_task(call()) for _ in range(2)]
            await asyncio.sleep(0)  # the loop forgets the task that ended last
            gc.collect()
            assert [kept() for pair in found for kept in pair] == [None] * 4
            assert len(made.links) == 1

    uvloop.run(main())


@each_loop
def test_a_closed_connection_is_freed_before_the_next_garbage_collection(run: Run) -> None:
    async def main() -> None:
        async with provider(answering(HELLO)) as made, Client.opened() as client:
            assert (await client.fetch(outgoing(made))).body == b"hello"

    run(main())  # the first call imports and caches
    gc.collect()
    run(main())
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        assert not [value for value in gc.garbage if type(value).__module__.startswith("umg_grpc.upstream")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@on_each_loop
async def test_a_connection_is_pooled_no_longer_after_a_long_call() -> None:
    """Keep a connection whose timer was set during a long call."""

    async def handle(link: Link) -> None:
        await link.request()
        await asyncio.sleep(0.12)  # longer than an idle connection is kept
        await link.send(HELLO)
        await link.left()
        left.set()

    left = asyncio.Event()
    async with provider(handle) as made:
        client = Client(idle=0.05)
        await client.fetch(outgoing(made, deadlines=Deadlines(60, 60, 60, 60)))
        await asyncio.wait_for(left.wait(), 60)
        await client.close()


@on_each_loop
async def test_a_thousand_calls_at_once_have_a_connection_each_and_use_them_again() -> None:
    waiting = 0
    all_waiting = asyncio.Event()

    async def handle(link: Link) -> None:
        nonlocal waiting
        while True:
            _, body = await link.request()
            waiting += 1
            if waiting == 1000:
                all_waiting.set()
            await all_waiting.wait()
            await link.send(sized(body))

    async with provider(handle) as made, Client.opened() as client:
        for _ in range(2):
            calls = (client.fetch(outgoing(made, b"%d" % number)) for number in range(1000))
            answers = await asyncio.gather(*calls)
            assert [answer.body for answer in answers] == [b"%d" % number for number in range(1000)]
        assert len(made.links) == 1000


@on_each_loop
async def test_a_name_is_looked_up_and_reached() -> None:
    async with provider(answering(HELLO)) as made, Client.opened() as client:
        call = outgoing(made, url=made.url.replace("127.0.0.1", "localhost"))
        answers = await asyncio.gather(*(client.fetch(call) for _ in range(20)))
        assert {answer.body for answer in answers} == {b"hello"}


@each_loop
def test_an_address_of_ip_6_is_reached(run: Run) -> None:
    async def main() -> None:
        async with provider(answering(HELLO), host="::1") as made, Client.opened() as client:
            assert (await client.fetch(outgoing(made))).body == b"hello"

    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    run(main())


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "http://nobody.invalid/x", "https://127.0.0.1:1/x"])
@on_each_loop
async def test_a_provider_that_is_not_there_is_unreachable(url: str) -> None:
    async with Client.opened() as client:
        for _ in range(2):
            assert await refused(client, outgoing(Provider(url))) == ("UPSTREAM_UNREACHABLE", {})


# --- closed from this side


@dataclass(frozen=True)
class Stalled:
    id: str
    sent: bytes


STALLED = [Stalled("before the response", b""), Stalled("in the head", HELLO[:9]), Stalled("in the body", HELLO[:-1])]


@pytest.mark.parametrize("case", STALLED, ids=lambda case: case.id)
@pytest.mark.parametrize("size", [2, 20 << 20], ids=["short", "long"])
@on_each_loop
async def test_an_answer_that_does_not_come_in_time_is_given_up(case: Stalled, size: int) -> None:
    async def handle(link: Link) -> None:
        await link.request(body=False)
        await link.send(case.sent)
        await link.left()

    async with provider(handle) as made, Client.opened() as client:
        call = outgoing(made, b"x" * size, deadlines=replace(PATIENT, total=0.1))
        assert await refused(client, call) == ("UPSTREAM_TIMEOUT", {"deadline": "total"})


@on_each_loop
async def test_a_pooled_connection_has_the_deadline_of_each_call() -> None:
    async def silent(link: Link) -> None:
        await link.request()
        await link.send(HELLO)
        await link.left()

    async with provider(silent) as made, Client.opened() as client:
        await client.fetch(outgoing(made))
        assert await refused(client, outgoing(made, deadlines=replace(PATIENT, total=0.1))) == (
            "UPSTREAM_TIMEOUT",
            {"deadline": "total"},
        )
        assert len(made.links) == 1


@pytest.mark.parametrize(("connect", "total", "name"), [(0.1, 5, "connect"), (5, 0.1, "total")])
@on_each_loop
async def test_a_connection_that_is_not_made_in_time_is_given_up(connect: float, total: float, name: str) -> None:
    async with provider(Link.left) as made, Client.opened() as client:  # the provider does not speak TLS
        deadlines = replace(PATIENT, connect=connect, total=total)
        call = outgoing(made, url=made.url.replace("http:", "https:"), deadlines=deadlines)
        assert await refused(client, call) == ("UPSTREAM_TIMEOUT", {"deadline": name})


@pytest.mark.parametrize("case", STALLED, ids=lambda case: case.id)
@pytest.mark.parametrize("size", [2, 20 << 20], ids=["short", "long"])
@on_each_loop
async def test_a_caller_that_leaves_closes_the_connection_at_once(case: Stalled, size: int) -> None:
    async def handle(link: Link) -> None:
        await link.request(body=False)
        await link.send(case.sent)
        there.set()
        await link.left()
        left.set()

    there, left = asyncio.Event(), asyncio.Event()
    async with provider(handle) as made, Client.opened() as client:
        call = asyncio.create_task(client.fetch(outgoing(made, b"x" * size)))
        await there.wait()
        call.cancel()
        await asyncio.wait_for(left.wait(), 60)
        with pytest.raises(asyncio.CancelledError):
            await call


@on_each_loop
async def test_a_caller_that_leaves_with_its_answer_leaves_no_connection_to_two() -> None:
    """Cancel a caller whose answer has arrived, before it is resumed."""

    async with provider(answering(HELLO)) as made, Client.opened() as client:
        await client.fetch(outgoing(made))
        for turns in range(30):
            call = asyncio.create_task(client.fetch(outgoing(made)))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            after = await asyncio.gather(*(client.fetch(outgoing(made)) for _ in range(3)))
            assert [answer.body for answer in after] == [b"hello"] * 3
            await asyncio.wait({call})


@on_each_loop
async def test_the_end_closes_all_connections_those_in_use_too() -> None:
    async def handle(link: Link) -> None:
        _, body = await link.request()
        if body == b"stay":
            requested.set()
        else:
            await link.send(HELLO)
        await link.left()

    requested = asyncio.Event()
    async with provider(handle) as made:
        async with Client.opened() as client:
            call = asyncio.create_task(client.fetch(outgoing(made, b"stay")))
            await asyncio.gather(*(client.fetch(outgoing(made)) for _ in range(5)))
            await requested.wait()
        with pytest.raises(UmgError) as caught:
            await call
        assert caught.value.name == "UPSTREAM_CUT"


TURNS = range(24)
"""Iterations of the event loop that suffice to connect, send and receive."""


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "over TLS"])
@each_loop
def test_a_caller_that_leaves_at_any_moment_leaves_nothing_open(secure: bool, run: Run) -> None:
    theirs, ours = trust("localhost") if secure else (None, None)

    async def main() -> None:
        for turns in TURNS:
            async with provider(answering(HELLO), tls=theirs) as made, Client.opened() as client:
                call = asyncio.create_task(client.fetch(outgoing(made, tls=ours)))
                for _ in range(turns):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait({call})
                assert (await client.fetch(outgoing(made, tls=ours))).body == b"hello"

    run(main())
    gc.collect()  # a socket that was not closed would warn


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "over TLS"])
@each_loop
def test_the_end_at_any_moment_leaves_nothing_open(secure: bool, run: Run) -> None:
    theirs, ours = trust("localhost") if secure else (None, None)

    async def main() -> None:
        for turns in TURNS:
            async with provider(answering(HELLO), tls=theirs) as made:
                async with Client.opened() as client:
                    call = asyncio.create_task(client.fetch(outgoing(made, tls=ours)))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                await asyncio.wait({call}, timeout=20)
                assert call.done()
                error = call.exception()
                assert error is None or isinstance(error, UmgError)

    run(main())
    gc.collect()


# --- TLS


def trust(name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of a provider of this name, and of a gateway that trusts its certificate authority."""
    authority = trustme.CA()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(theirs)
    authority.configure_trust(ours)
    return theirs, ours


@dataclass(frozen=True)
class Trust:
    id: str
    issued: str  # the name in the certificate
    believed: bool  # its authority is trusted
    reached: bool


TRUST = [
    Trust("a certificate of a known authority", "localhost", believed=True, reached=True),
    Trust("an unknown authority", "localhost", believed=False, reached=False),
    Trust("another host's certificate", "other.example", believed=True, reached=False),
]


@pytest.mark.parametrize("case", TRUST, ids=lambda case: case.id)
@on_each_loop
async def test_a_provider_over_tls_is_verified_by_its_certificate(case: Trust) -> None:
    theirs, ours = trust(case.issued)
    if not case.believed:
        ours = ssl.create_default_context()

    async with provider(answering(chunked()), tls=theirs) as made, Client.opened() as client:
        for size in (2, 20 << 20):
            call = outgoing(made, b"x" * size, tls=ours)
            if case.reached:
                assert (await client.fetch(call)).body == b"hello"
                assert len(made.links) == 1
            else:
                assert await refused(client, call) == ("UPSTREAM_UNREACHABLE", {})
        # another channel need not trust the same authority
        assert await refused(client, outgoing(made)) == ("UPSTREAM_UNREACHABLE", {})


# --- names


@on_each_loop
async def test_concurrent_lookups_of_a_name_are_one_and_its_addresses_are_rotated() -> None:
    names = DnsCache()
    found = await asyncio.gather(*(names.addresses("localhost", 80) for _ in range(4)))
    assert {address for addresses in found for address in addresses} == set(found[0])
    assert [addresses[0] for addresses in found] == [found[0][turn % len(found[0])] for turn in range(4)]
    await names.close()


@on_each_loop
async def test_a_name_that_is_not_found_is_resolved_again() -> None:
    names = DnsCache()
    for _ in range(2):
        found = await asyncio.gather(*(names.addresses("nobody.invalid", 80) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(error, OSError) for error in found)
    left = asyncio.create_task(names.addresses("nobody.invalid", 80))
    await asyncio.sleep(0)
    left.cancel()
    await names.close()

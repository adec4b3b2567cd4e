"""Failures on the way to a provider, and their meaning for a retry."""

import asyncio
import os
import resource
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

import pytest

from tests.support.providers.raw import (
    HELLO,
    LINE,
    PATIENT,
    HandleConnection,
    Link,
    Send,
    answering,
    each_way,
    failed,
    on_each_loop,
    outgoing,
    provider,
    sized,
    stall,
)
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines

NO_SERVER = "http://127.0.0.1:1/v1/x"

# --- classification of each fault


@dataclass(frozen=True)
class Fault:
    id: str
    handle: HandleConnection
    reason: str
    failure: Failure | None
    deadlines: Deadlines = PATIENT
    url: str = ""


SHORT = replace(PATIENT, first_byte=0.1, total=0.1)
HURRIED = PATIENT.within(0.1)
FAULTS = [
    Fault("no server", stall, "UPSTREAM_UNREACHABLE", Failure.NOT_SENT, url=NO_SERVER),
    Fault("no host of that name", stall, "UPSTREAM_UNREACHABLE", Failure.NOT_SENT, url="http://nobody.invalid/x"),
    Fault("a certificate that is none", stall, "UPSTREAM_UNREACHABLE", Failure.NOT_SENT, url="https:"),
    Fault("closed before the response", answering(then="close"), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("reset before the response", answering(then="reset"), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("closed in the body", answering(HELLO[:-2], then="close"), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("reset in the body", answering(HELLO[:-2], then="reset"), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("no HTTP", answering(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", then="close"), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("gzip that is none", answering(sized(b"hello", LINE + b"Content-Encoding: gzip\r\n")), "UPSTREAM_CUT", Failure.AMBIGUOUS),
    Fault("too slow", stall, "UPSTREAM_TIMEOUT", Failure.AMBIGUOUS, replace(PATIENT, first_byte=0.1, total=2)),
    Fault("too slow for the caller", stall, "DEADLINE_EXCEEDED", None, HURRIED),
    Fault("too slow to connect", Link.left, "UPSTREAM_TIMEOUT", Failure.NOT_SENT, replace(PATIENT, connect=0.1), "https:"),
    Fault("too slow to connect in all", Link.left, "UPSTREAM_TIMEOUT", Failure.NOT_SENT, SHORT, "https:"),
    Fault("too slow to connect for the caller", Link.left, "DEADLINE_EXCEEDED", None, HURRIED, "https:"),
]  # fmt: skip


@each_way
@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.id)
@on_each_loop
async def test_a_fault_states_whether_the_provider_may_have_received_something(case: Fault, send: Send) -> None:
    handle = _no_tls if case.url == "https:" and case.reason == "UPSTREAM_UNREACHABLE" else case.handle
    async with provider(handle) as made, Client.opened() as client:
        url = made.url.replace("http:", "https:") if case.url == "https:" else case.url or made.url
        error = await failed(send(client, outgoing(made, url=url, deadlines=case.deadlines)))
    assert (error.name, error.failure) == (case.reason, case.failure)


async def _no_tls(link: Link) -> None:
    await link.reader.read(1)
    await link.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_call_whose_time_is_over_is_nobodys_failure() -> None:
    with pytest.raises(UmgError) as caught:
        PATIENT.within(0)
    assert (caught.value.name, caught.value.failure) == ("DEADLINE_EXCEEDED", None)
    assert caught.value.metadata == {"deadline": "total"}


# --- reused connections


def _ends_after_one(end: str) -> Callable[[Link], Awaitable[None]]:
    async def handle(link: Link) -> None:
        """Read a second request on the connection, and do not answer it."""
        await link.request()
        await link.send(HELLO)
        await link.request()
        if end == "reset":
            link.reset()

    return handle


@each_way
@pytest.mark.parametrize("end", ["close", "reset"])
@on_each_loop
async def test_a_closed_pooled_connection_is_replaced(end: str, send: Send) -> None:
    async with provider(_ends_after_one(end)) as made, Client.opened() as client:
        for _ in range(3):
            assert await send(client, outgoing(made))
        assert len(made.links) == 3


@each_way
@pytest.mark.parametrize("end", ["close", "reset"])
@on_each_loop
async def test_a_request_that_is_not_repeatable_is_not_sent_again(end: str, send: Send) -> None:
    async with provider(_ends_after_one(end)) as made, Client.opened() as client:
        await send(client, outgoing(made))
        error = await failed(send(client, outgoing(made, repeatable=False)))
        assert (error.name, error.failure) == ("UPSTREAM_CUT", Failure.AMBIGUOUS)
        assert error.cause.startswith("stale: ")
        assert len(made.links) == 1
        assert await send(client, outgoing(made, repeatable=False))


@each_way
@on_each_loop
async def test_a_new_connection_that_breaks_is_not_replaced(send: Send) -> None:
    async with provider(answering(then="close")) as made, Client.opened() as client:
        await failed(send(client, outgoing(made)))
        assert len(made.links) == 1


@each_way
@on_each_loop
async def test_a_provider_that_began_to_process_a_call_is_not_called_again(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umg_grpc.upstream.http1.client.STALE_SECONDS", -1.0)

    async with provider(_ends_after_one("close")) as made, Client.opened() as client:
        await send(client, outgoing(made))
        error = await failed(send(client, outgoing(made)))
        assert (error.failure, len(made.links)) == (Failure.AMBIGUOUS, 1)


@each_way
@on_each_loop
async def test_an_answer_that_began_on_a_pooled_connection_is_not_requested_again(send: Send) -> None:
    async def handle(link: Link) -> None:
        await link.request()
        await link.send(HELLO)
        await link.request()
        await link.send(HELLO[:-2])

    async with provider(handle) as made, Client.opened() as client:
        await send(client, outgoing(made))
        error = await failed(send(client, outgoing(made)))
        assert (error.failure, len(made.links)) == (Failure.AMBIGUOUS, 1)


@on_each_loop
async def test_a_restart_of_the_provider_costs_one_attempt_with_any_pooled_connections() -> None:
    """Restart a provider, which does not answer on its old connections: the first that shows it closes them all."""

    together = asyncio.Barrier(10)
    old_requests = 0

    async def handle(link: Link) -> None:
        nonlocal old_requests
        is_old = len(made.links) <= 10
        await link.request()
        if is_old:
            await together.wait()
        await link.send(HELLO)
        await link.request()
        old_requests += is_old

    async with provider(handle) as made, Client.opened() as client:
        await asyncio.gather(*(client.fetch(outgoing(made)) for _ in range(10)))
        for _ in range(5):
            await client.fetch(outgoing(made))
        assert old_requests == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_gateway_without_free_files_does_not_blame_the_provider(streamed: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with provider(answering(HELLO)) as made, Client.opened() as client:
        call = outgoing(made)
        with ExitStack() as stack:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            with suppress(OSError):
                while True:
                    stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            with pytest.raises(UmgError) as caught:
                await (client.open(call) if streamed else client.fetch(call))
    assert (caught.value.name, caught.value.failure, caught.value.retry_after) == ("UNAVAILABLE", None, 1)

"""Refresh of credentials in a thread: once for all calls, ahead of the expiry, with the old ones as long as they are valid."""

import asyncio
from dataclasses import dataclass, field
from math import inf
from threading import Event, Thread

import pytest

from tests.support.providers.raw import PATIENT, failed
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http.signing.refreshed_credentials import BearerToken, Credentials, RefreshedSigner
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb

NOW = 1_800_000_000.0
REQUEST = OutgoingRequest("http://a/", {}, b"", PATIENT)


@dataclass
class Source:
    now: list[float]
    title = "Test"
    seconds: float = 3600
    renewal: float = inf
    problem: str = ""
    reads: int = 0
    ends: Event = field(default_factory=Event)
    waits: Event = field(default_factory=Event)

    def read(self) -> Credentials:
        self.reads += 1
        ends = self.ends
        self.waits.set()
        ends.wait()
        if self.problem:
            raise OSError(self.problem)
        return Credentials(BearerToken(f"token-{self.reads}"), self.now[0] + self.seconds, self.now[0] + self.renewal)


@dataclass
class Setting:
    source: Source
    signer: RefreshedSigner
    counted: list[tuple[str, str]]

    def later(self, seconds: float) -> None:
        self.source.now[0] += seconds

    async def token(self) -> str:
        return (await self.signer.headers(REQUEST))["Authorization"].removeprefix("Bearer ")

    async def finished(self) -> None:
        assert self.signer._refresh is not None
        self.source.ends.set()
        await asyncio.shield(self.signer._refresh)


@pytest.fixture
def made() -> Setting:
    source = Source([NOW])
    counted: list[tuple[str, str]] = []
    signer = RefreshedSigner(
        source, channel="a", count=lambda *labels: counted.append(labels), now=lambda: source.now[0]
    )
    return Setting(source, signer, counted)


async def first(made: Setting) -> None:
    made.source.ends.set()
    assert await made.token() == "token-1"
    made.source.ends.clear()


async def test_concurrent_calls_wait_for_one_read(made: Setting) -> None:
    calls = [asyncio.create_task(made.token()) for _ in range(20)]
    await asyncio.sleep(0)
    calls[0].cancel()
    made.source.ends.set()
    assert set(await asyncio.gather(*calls[1:])) == {"token-1"}
    assert made.source.reads == 1
    assert made.counted == [("a", "refreshed")]


async def test_calls_go_on_with_valid_credentials_while_new_ones_are_read(made: Setting) -> None:
    await first(made)
    made.later(3600 - 301)
    assert await made.token() == "token-1"
    assert made.source.reads == 1
    made.later(2)
    assert [await made.token() for _ in range(5)] == ["token-1"] * 5
    await made.finished()
    assert await made.token() == "token-2"
    assert made.source.reads == 2


async def test_a_failed_read_keeps_valid_credentials_and_is_repeated_later(made: Setting) -> None:
    await first(made)
    made.later(3600 - 200)
    made.source.problem = "the issuer is down"
    assert await made.token() == "token-1"
    await made.finished()
    assert [await made.token() for _ in range(5)] == ["token-1"] * 5
    assert made.source.reads == 2  # the next one only after a while
    made.source.problem = ""
    made.later(31)
    assert await made.token() == "token-1"
    await made.finished()
    assert await made.token() == "token-3"
    assert made.counted == [("a", "refreshed"), ("a", "failed"), ("a", "refreshed")]


async def test_expired_credentials_are_not_sent(made: Setting) -> None:
    await first(made)
    made.later(3600 - 5)  # the calls in transit would be late
    made.source.problem = "the issuer is down"
    made.source.ends.set()
    error = await failed(made.token())
    assert (error.reason, error.failure) == (pb.ERROR_REASON_UPSTREAM_UNREACHABLE, Failure.NOT_SENT)
    assert "channel a: no valid credentials of Test could be got; the operator has to check" in error.message
    assert "the issuer is down" in error.cause
    assert "the issuer is down" not in error.message
    assert "the issuer is down" in (await failed(made.token())).cause  # without another read at once
    assert made.source.reads == 2
    made.later(3)
    made.source.problem = ""
    assert await made.token() == "token-3"


SHORT = OutgoingRequest("http://a/", {}, b"", Deadlines(connect=60, first_byte=60, idle=60, total=0.01))


async def hang(made: Setting) -> None:
    """Call with a library that does not return, and let the bound of its read pass."""
    made.source.waits.clear()
    assert (await failed(made.signer.headers(SHORT))).failure is Failure.NOT_SENT
    await asyncio.to_thread(made.source.waits.wait)
    made.later(31)


async def test_a_library_that_does_not_return_holds_a_call_for_its_own_time_only(made: Setting) -> None:
    error = await failed(made.signer.headers(SHORT))
    assert (error.failure, made.source.reads) == (Failure.NOT_SENT, 1)
    made.later(29)
    assert (await failed(made.signer.headers(SHORT))).failure is Failure.NOT_SENT
    assert (made.source.reads, made.counted) == (1, [])
    made.source.ends.set()


async def test_another_read_is_started_beside_one_that_does_not_return(made: Setting) -> None:
    await hang(made)
    hung, made.source.ends = made.source.ends, Event()
    made.source.ends.set()
    assert await made.token() == "token-2"
    assert made.counted == [("a", "failed"), ("a", "refreshed")]
    hung.set()


async def test_each_read_that_does_not_return_doubles_the_time_until_the_next_one(made: Setting) -> None:
    await hang(made)
    await hang(made)
    assert (await failed(made.signer.headers(SHORT))).failure is Failure.NOT_SENT
    assert (made.source.reads, made.counted) == (2, [("a", "failed")])
    made.later(30)
    assert (await failed(made.signer.headers(SHORT))).failure is Failure.NOT_SENT
    assert made.source.reads == 3
    made.source.ends.set()


async def test_credentials_of_a_read_that_was_given_up_serve_the_calls_that_wait(made: Setting) -> None:
    await hang(made)
    hung, made.source.ends = made.source.ends, Event()
    call = asyncio.create_task(made.token())
    await asyncio.sleep(0)
    hung.set()
    assert (await call).startswith("token-")
    made.source.ends.set()


async def test_rejected_credentials_are_replaced_once(made: Setting) -> None:
    await first(made)
    assert not made.signer.discard()  # only just made
    made.later(60)
    assert await made.token() == "token-1"
    assert made.signer.discard()
    made.source.ends.set()
    assert set(await asyncio.gather(*(made.token() for _ in range(5)))) == {"token-2"}
    assert await made.token() == "token-2"
    assert not made.signer.discard()
    assert made.source.reads == 2


async def test_a_call_with_credentials_that_are_replaced_already_is_repeated(made: Setting) -> None:
    await first(made)
    made.later(60)
    sent, rejected = asyncio.Event(), asyncio.Event()

    async def call() -> bool:
        await made.token()
        sent.set()
        await rejected.wait()
        return made.signer.discard()

    slow = asyncio.create_task(call())
    await sent.wait()
    assert made.signer.discard()
    made.source.ends.set()
    assert await made.token() == "token-2"
    rejected.set()
    assert await slow
    assert await made.token() == "token-2"


async def test_rejected_credentials_are_used_again_if_no_others_are_to_be_had(made: Setting) -> None:
    await first(made)
    made.later(60)
    assert made.signer.discard()
    made.source.problem = "the issuer is down"
    made.source.ends.set()
    assert await made.token() == "token-1"


@pytest.mark.parametrize("seconds", [1.0, 600.0, inf])
async def test_credentials_of_any_lifetime_are_used(made: Setting, seconds: float) -> None:
    made.source.seconds = seconds
    await first(made)
    made.later(min(seconds, 10**9) * 0.45)
    assert await made.token() == "token-1"
    assert made.source.reads == 1


async def test_credentials_that_are_expired_already_are_a_failure(made: Setting) -> None:
    made.source.seconds = -1
    made.source.ends.set()
    assert "expired" in (await failed(made.token())).cause


async def test_a_gateway_that_ended_is_not_called_by_a_late_read(made: Setting) -> None:
    call = asyncio.create_task(made.token())
    await asyncio.sleep(0)
    call.cancel()
    loop = asyncio.new_event_loop()
    loop.close()
    made.source.ends.set()
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    made.signer._read(loop, done, NOW)
    assert not done.done()


@pytest.mark.parametrize(("advice", "earlier", "later"), [(1000, 999, 1001), (-5, 899, 901), (9000, 3299, 3301)])
async def test_the_issuer_may_advise_an_earlier_renewal(
    made: Setting, advice: float, earlier: float, later: float
) -> None:
    made.source.renewal = advice
    await first(made)
    made.later(earlier)
    await made.token()
    assert made.source.reads == 1
    made.later(later - earlier)
    await made.token()
    await made.finished()
    assert made.source.reads == 2


async def test_a_library_that_ends_the_thread_is_a_failure(made: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave() -> Credentials:
        raise SystemExit

    monkeypatch.setattr(made.source, "read", leave)
    assert "SystemExit" in (await failed(made.token())).cause


async def test_a_machine_without_threads_is_a_failure(made: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
    assert "can't start new thread" in (await failed(made.token())).cause
    monkeypatch.undo()
    made.source.ends.set()
    made.later(3)
    assert await made.token() == "token-1"

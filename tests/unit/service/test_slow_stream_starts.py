"""Early headers of streams whose first message is late: the times, and the one timer."""

import asyncio
from dataclasses import dataclass
from math import inf

import pytest

from umg_grpc.base.inprocess_channel import InProcessContext, Pairs
from umg_grpc.service.pipeline import early_response_headers
from umg_grpc.service.pipeline.call_state import Arrival, Call
from umg_grpc.service.pipeline.early_response_headers import SlowStarts


class Caller(InProcessContext):
    """Context of a caller, which records the headers that it gets early."""

    def __init__(self) -> None:
        super().__init__((), None)
        self.headers: asyncio.Future[Pairs] = asyncio.get_running_loop().create_future()
        self.on_early_metadata = self.headers.set_result


def call() -> Call:
    return Call(Arrival("/umg.v1.GenerationService/StreamGenerate", {}, trusted=True, request_id="req_1"))


@dataclass(frozen=True)
class Wait:
    id: str
    headers_after: float
    answered_seconds: float
    answers: bool


WAITS = [
    Wait("a status of 200 and no content", headers_after=600, answered_seconds=0.02, answers=True),
    Wait("no status", headers_after=0.02, answered_seconds=600, answers=False),
]


@pytest.mark.parametrize("case", WAITS, ids=lambda case: case.id)
async def test_the_headers_known_so_far_are_sent_after(case: Wait, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_response_headers, "ANSWERED_SECONDS", case.answered_seconds)
    starts, caller, made = SlowStarts(case.headers_after), Caller(), call()
    stream = starts.add(made, caller)
    made.headers["x-umg-dropped"] = "seed"
    if case.answers:
        stream.answered_at = stream.began_at
    async with asyncio.timeout(60):
        assert await caller.headers == (("x-umg-dropped", "seed"), ("x-umg-waiting", "true"))
    assert starts.end(stream)


async def test_a_stream_without_a_status_waits_longer_than_an_answered_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_response_headers, "ANSWERED_SECONDS", 0.02)
    starts, silent, answered = SlowStarts(600), Caller(), Caller()
    first = starts.add(call(), silent)
    second = starts.add(call(), answered)
    assert first.answered_at == inf
    second.answered_at = second.began_at
    async with asyncio.timeout(60):
        await answered.headers
    assert not silent.headers.done()
    assert not starts.end(first)


async def test_a_stream_that_began_gets_no_early_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_response_headers, "ANSWERED_SECONDS", 0.02)
    starts, begun, waiting = SlowStarts(0.02), Caller(), Caller()
    assert not starts.end(starts.add(call(), begun))
    starts.add(call(), waiting)
    async with asyncio.timeout(60):
        await waiting.headers
    assert not begun.headers.done()

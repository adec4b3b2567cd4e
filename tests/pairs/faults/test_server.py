"""Faulty provider: it carries out its orders, on which the table depends."""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.support.providers.faulty import FAULTS, NONE, Strikes, faulty_upstream, struck
from tests.support.providers.faulty.fault_plans import MIXES, Order, parsed
from tests.support.providers.faulty.right_answers import text

SECONDS = 180
"""Longest time for the start or the end of a process, on a busy machine."""

NONCES = [f"nonce-{number:04x}" for number in range(2000)]


@dataclass(frozen=True)
class ParsedPlan:
    id: str
    order: str
    read: Order | None


ORDERS = [
    ParsedPlan("a fault", "reset-mid", Order(("reset-mid",))),
    ParsedPlan("a share of the calls", "reset-mid@20", Order(("reset-mid",), 20)),
    ParsedPlan("several, some of the time, later", "status-500,gzip@20+50", Order(("status-500", "gzip"), 20, 0.05)),
    ParsedPlan("a mix", "any+1", Order(("any",), seconds=0.001)),
    ParsedPlan("a name that is none", "reset-everything", None),
    ParsedPlan("no order", "v1", None),
]


@pytest.mark.parametrize("case", ORDERS, ids=lambda case: case.id)
def test_orders_are_read_and_written(case: ParsedPlan) -> None:
    assert parsed(case.order) == case.read
    assert case.read is None or str(case.read) == case.order


def test_the_share_that_was_ordered_is_struck_and_the_same_calls_each_time() -> None:
    faults = [struck("before@20", nonce, streamed=True) for nonce in NONCES]
    assert 0.15 < sum(fault is not NONE for fault in faults) / len(NONCES) < 0.25
    assert {fault.strikes(streamed=True) for fault in faults if fault is not NONE} == {Strikes.BEFORE}
    assert faults == [struck("before@20", nonce, streamed=True) for nonce in NONCES]
    assert faults != [struck("before@20", nonce, streamed=True, seed=1) for nonce in NONCES]
    assert {struck("reset-mid", nonce, streamed=False) for nonce in NONCES} == {NONE}  # only streams have a middle


def test_a_mix_has_no_fault_of_the_callers() -> None:
    assert not [fault for mix in MIXES.values() for fault in mix if fault.callers]
    assert len(MIXES["any"]) > len(MIXES["before"]) > len(MIXES["after"]) > 10


async def post_nonce(session: aiohttp.ClientSession, url: str, nonce: str) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": nonce}]}
    async with session.post(f"{url}/chat/completions", json=body) as answer:
        return await answer.json()


async def test_calls_are_counted_and_a_right_answer_repeats_its_nonce() -> None:
    async with faulty_upstream() as upstream, aiohttp.ClientSession() as session:
        answers = await asyncio.gather(*(post_nonce(session, upstream.url(), nonce) for nonce in NONCES[:5]))
        assert [each["choices"][0]["message"]["content"] for each in answers] == [text(each) for each in NONCES[:5]]
        assert (upstream.count("none").calls, upstream.under_way) == (5, 0)
        assert 0 < upstream.open <= 5
        leaving = asyncio.create_task(post_nonce(session, upstream.url("stalls-at-once"), "nonce-1"))
        async with asyncio.timeout(SECONDS):
            while not upstream.count("stalls-at-once").calls:  # noqa: ASYNC110  no event reports it
                await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.wait([leaving])
        assert not await upstream.still_at_work()
        async with session.get(f"{upstream.root}/-/counts") as response:
            counts = (await response.json())["orders"]
        assert counts["stalls-at-once"] == {"calls": 1, "under_way": 0, "left": 1}


async def test_the_server_refuses_connections_or_leaves_them_silent_on_command() -> None:
    async with faulty_upstream() as upstream, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await post_nonce(session, upstream.url("refuses"), "nonce-1")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(post_nonce(session, upstream.url("takes-no-connection"), "nonce-1"), 0.2)


async def test_it_serves_in_a_process_of_its_own() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.providers.faulty", stdin=pipe, stdout=pipe
    )
    assert process.stdout is not None
    root = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode().strip()
    async with aiohttp.ClientSession() as session:
        assert text("nonce-7") in json.dumps(
            await post_nonce(session, f"{root}/none/v1", "nonce-7"), ensure_ascii=False
        )
    await asyncio.wait_for(process.communicate(b""), SECONDS)  # closes its input
    assert process.returncode == 0


def test_every_fault_strikes_something() -> None:
    assert not [name for name, fault in FAULTS.items() if fault.whole is None and fault.stream is None]

"""Large streams share the event loop."""

import asyncio
from contextlib import aclosing

from tests.support.providers.raw import LINE, Link, provider
from tests.unit.upstream.test_http_channel import CHAT, CHUNK, REQUEST, channel
from umg_grpc.upstream.event_loop_budget import RoundBudget
from umg_grpc.upstream.http.text_generation import HttpText
from umg_grpc.upstream.http1.client import Client


async def test_streams_are_translated_in_order_and_other_calls_continue_in_each_round() -> None:
    budget, seen = RoundBudget(10), list[str]()

    async def stream(name: str) -> None:
        for _ in range(3):
            await budget.take(10)
            seen.append(name)

    async def small() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append("small")

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(stream(name))
        group.create_task(small())
    # the first finds an empty round; from then on they take turns
    assert [name for name in seen if name != "small"] == ["a", *("a", "b", "c") * 2, "b", "c"]
    assert len(seen) - 1 - seen[::-1].index("small") < 6  # it is done before most of the large ones


async def test_a_round_has_no_more_work_than_its_budget_however_small_the_pieces() -> None:
    budget, rounds, done = RoundBudget(100), [0], asyncio.Event()

    async def count_rounds() -> None:
        while not done.is_set():
            await asyncio.sleep(0)
            rounds.append(0)

    async def stream(size: int) -> None:
        await budget.take(size)
        rounds[-1] += size

    counting = asyncio.create_task(count_rounds())
    async with asyncio.TaskGroup() as group:
        for size in [30] * 40 + [250] + [1] * 200:
            group.create_task(stream(size))
    done.set()
    await counting
    assert sum(rounds) == 30 * 40 + 250 + 200
    assert sorted(rounds)[-2:] == [100, 250]  # a piece larger than the budget has a round of its own


async def test_a_cancelled_task_is_passed_over() -> None:
    budget, seen = RoundBudget(1), list[int]()

    async def stream(number: int) -> None:
        await budget.take(1)
        seen.append(number)

    tasks = [asyncio.create_task(stream(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await budget.take(1)
    assert seen == [0, 2, 3]


class RecordingBudget(RoundBudget):
    def __init__(self) -> None:
        super().__init__()
        self.taken: list[int] = []

    async def take(self, size: int) -> None:
        await super().take(size)
        self.taken.append(size)


async def test_reads_of_any_but_the_smallest_size_are_counted_before_they_are_decoded() -> None:
    chunks = [CHUNK % b"null", (CHUNK % b"null") * 40, (CHUNK % b"null") * 40, CHUNK % b'"stop"' + b"data: [DONE]\n\n"]
    seen = asyncio.Event()

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(LINE + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for chunk in chunks:
            seen.clear()
            await link.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await seen.wait()
        await link.send(b"0\r\n\r\n")

    async with provider(handle) as made, Client.opened() as client:
        client.streams = budget = RecordingBudget()
        text = HttpText(channel(client, made), [CHAT])
        call = text.prepare(CHAT.decode_request(REQUEST, {}).canonical, "m", stream=True)
        async with aclosing(call.stream(10)) as messages:
            async for _ in messages:
                seen.set()
    assert budget.taken == [len(chunks[1]), len(chunks[2])]

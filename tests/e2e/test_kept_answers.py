"""Answers that are given again: when, to whom, and what their callers are told."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.e2e.scripted import Scripted, status, well
from tests.e2e.test_survival import CHAT, World, world
from umg_grpc.access.keys import Keys

EMBED = "/v1/embeddings"
FIXED = {"temperature": 0}
KEPT = "models: {m: {cache: 1h}}\n"


class Gate:
    """A provider that answers when it is told to."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def say(self, request: web.Request, made: Scripted) -> web.StreamResponse:
        await self.open.wait()
        return await well(request, made)


async def said(made: World, path: str = CHAT, *, stream: bool = False, **headers: str) -> tuple[str, str]:
    """What `x-umg-cache` says, and the answer."""
    told = await made.ask(path, stream=stream, body=FIXED if path == CHAT else {}, **headers)
    assert told.status == 200, told.body
    return told.headers.get("x-umg-cache", ""), told.text or str(told.body)


@pytest.mark.parametrize(("path", "stream"), [(CHAT, False), (CHAT, True), (EMBED, False)])
async def test_the_same_question_has_the_same_answer_where_the_model_says_so(
    tmp_path: Path, path: str, stream: bool
) -> None:
    async with world(tmp_path, {"a": [well]}, rest=KEPT) as made:
        first, second = await said(made, path, stream=stream), await said(made, path, stream=stream)
        assert (first[0], second[0]) == ("miss", "hit")
        assert first[1] == second[1]
        assert made.counts == {"a": 1}
        told = await made.ask(path, stream=stream, body={"user": "another", **FIXED} if path == CHAT else {"user": "u"})
        assert told.headers["x-umg-cache"] == "miss"


async def test_whole_and_streamed_answers_lie_apart(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [well]}, rest=KEPT) as made:
        assert [(await said(made, stream=stream))[0] for stream in (False, True, False, True)] == ["miss"] * 2 + [
            "hit"
        ] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_caller_asks_for_it_or_does_without(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path, {"a": [well]}) as made:
        assert [(await said(made, stream=stream))[0] for _ in range(2)] == ["", ""]
        asked = [(await said(made, stream=stream, x_umg_cache="5m"))[0] for _ in range(2)]
        assert asked == ["miss", "hit"]
        assert (await said(made, stream=stream, x_umg_cache="off"))[0] == ""
        assert made.counts == {"a": 4}
        refused = await made.ask(x_umg_cache="often")
        assert (refused.status, refused.body["error"]["param"]) == (400, "x-umg-cache")


async def test_what_may_be_answered_in_several_ways_is_not_kept(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [well]}, rest=KEPT) as made:
        told = [await made.ask() for _ in range(2)]
        assert [answer.headers["x-umg-cache"] for answer in told] == ["bypass"] * 2
        assert made.counts == {"a": 2}


async def test_no_key_gets_what_another_asked(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [well]}, rest=KEPT) as made:
        _, other = await Keys(made.gateway.service.store).create("other")
        assert (await said(made))[0] == "miss"
        assert (await said(made, authorization=f"Bearer {other}"))[0] == "miss"
        assert made.counts == {"a": 2}


@pytest.mark.parametrize(("path", "stream"), [(CHAT, False), (CHAT, True), (EMBED, False)])
async def test_of_many_at_once_one_is_answered_by_the_provider(tmp_path: Path, path: str, stream: bool) -> None:
    gate = Gate()
    async with world(tmp_path, {"a": [gate.say]}, rest=KEPT) as made:
        asks = [asyncio.create_task(said(made, path, stream=stream)) for _ in range(20)]
        await made["a"].arrived.get()
        gate.open.set()
        told = await asyncio.gather(*asks)
        assert sorted(outcome for outcome, _ in told) == ["hit"] * 19 + ["miss"]
        assert len({answer for _, answer in told}) == 1
        assert made.counts == {"a": 1}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_when_the_one_that_asks_leaves_the_next_asks(tmp_path: Path, stream: bool) -> None:
    gate = Gate()
    async with world(tmp_path, {"a": [gate.say]}, rest=KEPT) as made:
        first = asyncio.create_task(said(made, stream=stream))
        await made["a"].arrived.get()
        others = [asyncio.create_task(said(made, stream=stream)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()
        await made["a"].arrived.get()
        gate.open.set()
        assert max(outcome for outcome, _ in await asyncio.gather(*others)) == "miss"
        assert made.counts == {"a": 2}


async def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [status(400), well]}, rest=KEPT) as made:
        assert (await made.ask(body=FIXED)).status == 400
        assert [(await said(made))[0] for _ in range(2)] == ["miss", "hit"]

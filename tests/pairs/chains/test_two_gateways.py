"""A gateway behind a gateway, each in a process of its own: every habit of every server reaches callers through both, in
one format, as through one.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.chains.effects import NO_HEALING, REQUEST, seen
from tests.pairs.chains.habits import HABITS, Habit
from tests.pairs.chains.servers import serve
from tests.pairs.table import ROOTS, STRICT_ROOTS, TEXT_FACES
from tests.support import processes
from tests.support.callers.http_caller import HttpAnswer, HttpCaller, events_before_error
from tests.support.gateways import channel
from umg_grpc.base.errors import UmgError

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "sk-umg-of-the-tests-of-chains"
OPTIONS = "retries: {repeats: 0}\nbreaker: {failures: 1000000}\n"


@dataclass(frozen=True)
class Chain:
    """Callers of both gateways."""

    front: HttpCaller
    behind: HttpCaller


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Chain, None]:
    """Yield two gateways: the one behind has a channel for each habit, the one in front a channel for each format."""
    folder = tmp_path_factory.mktemp("chain")
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(serve({habit.id: habit for habit in HABITS}))
        urls = {habit.id: f"{servers.url}/{habit.id}{STRICT_ROOTS[habit.protocol]}" for habit in HABITS}
        habits = [channel(each.id, each.protocol, urls[each.id], each.id, "theirs") + NO_HEALING for each in HABITS]
        behind = await stack.enter_async_context(process(folder / "behind", habits))
        formats = [channel(name, name, behind.url + root, f"{name}/*", "'*'") for name, root in ROOTS.items()]
        front = await stack.enter_async_context(process(folder / "front", [each + NO_HEALING for each in formats]))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Chain(HttpCaller(session, front.url, KEY), HttpCaller(session, behind.url, KEY))


def process(folder: Path, channels: list[str]) -> AbstractAsyncContextManager[processes.Served]:
    """Return the context of a gateway with these channels, whose key is also that of the gateway behind it."""
    folder.mkdir()
    config = folder / "config.yaml"
    config.write_text(OPTIONS + "channels:\n" + "".join(channels).replace("sk-umg-end-to-end", KEY))
    return processes.serve(folder / "data", "--config", str(config), environment={"UMG_API_KEY": KEY})


async def call(caller: HttpCaller, face: str, model: str, *, stream: bool) -> HttpAnswer:
    return await caller.send(face, model, TEXT_FACES[face].body(REQUEST, model, stream=stream), stream=stream)


CASES = [
    (habit, face, stream)
    for habit in HABITS
    for face in TEXT_FACES
    for stream in habit.forms
    if habit.effect.error or habit.effect.broken or face == habit.protocol
]
"""Failures in every format; the content of answers where both gateways pass it through."""
NAMES = [f"{habit.id}-{face}-{'streamed' if stream else 'whole'}" for habit, face, stream in CASES]


@pytest.mark.parametrize(("habit", "face", "stream"), CASES, ids=NAMES)
async def test_two_gateways_are_as_one(chain: Chain, habit: Habit, face: str, stream: bool) -> None:
    effect = habit.effect
    got = await call(chain.front, face, f"{face}/{habit.id}", stream=stream)
    one = await call(chain.behind, face, habit.id, stream=stream)
    assert (got.status, got.stream) == (one.status, one.stream), got.body
    assert got.headers["x-request-id"] != one.headers["x-request-id"]
    assert got.headers.get("retry-after") == one.headers.get("retry-after")
    if got.status != 200:
        assert (got.is_error, got.error.reason) == (True, one.error.reason), got.body
        return
    if not effect.broken and not effect.error:
        assert seen(got.canonical, effect) == effect, got.body
        return
    with pytest.raises(UmgError) as caught:
        got.canonical  # noqa: B018
    assert effect.message in caught.value.message
    assert "".join(event.text_delta for event in events_before_error(face, got.body)) == effect.text

"""Every habit of every server, for callers of every format, streamed and not: they get the content, the end, the usage
and the error that the server means, and a strict client of the chat format can read it.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from msgspec import structs
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tests.pairs.chains.effects import NO_HEALING, REQUEST, seen
from tests.pairs.chains.habits import HABITS, Effect, Habit
from tests.pairs.chains.servers import Servers, serve
from tests.pairs.table import STRICT_ROOTS, TEXT_FACES
from tests.support.callers.http_caller import HttpAnswer, HttpCaller, events_before_error
from tests.support.gateways import channel, running
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.core.stream_aggregator import StreamAggregator
from umg_grpc.wire.errors.http_status import http_status

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEALTHY = Habit(
    id="healthy",
    server="any",
    source="",
    as_of="",
    effect=Effect("Healthy"),
    body={"choices": [{"index": 0, "message": {"role": "assistant", "content": "Healthy"}, "finish_reason": "stop"}]},
    chunks=None,
)


@dataclass(frozen=True)
class Gateway:
    caller: HttpCaller
    servers: Servers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gateway, None]:
    """Yield a gateway with a channel for each habit, and for each failure a model with a healthy channel behind it."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(serve({habit.id: habit for habit in (*HABITS, HEALTHY)}))
        config = "retries: {repeats: 0}\nchannels:\n"
        for habit in HABITS:
            base = f"{servers.url}/{habit.id}{STRICT_ROOTS[habit.protocol]}"
            config += channel(habit.id, habit.protocol, base, habit.id, "theirs") + NO_HEALING
            if habit.effect.error:
                model, healthy = f"two-{habit.id}", f"{servers.url}/healthy/v1"
                config += channel(f"first-{habit.id}", habit.protocol, base, model, "theirs") + NO_HEALING
                config += channel(f"second-{habit.id}", "chat", healthy, model, "theirs") + "    priority: 2\n"
        running_gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("habits")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Gateway(HttpCaller(session, running_gateway.url, running_gateway.key), servers)


LENIENT = {("id",), ("created",), ("object",), ("model",)}
"""Members that no client needs: the SDKs of all languages leave them out if a server does."""


def assert_strict(face: str, got: HttpAnswer) -> None:
    """Fail unless the types of the vendor's SDK accept the choices of a response of the chat format."""
    if face != "chat":
        return
    read = ChatCompletionChunk if got.stream else ChatCompletion
    for event in data_of_events(got.body) if got.stream else [got.body]:
        problems = [each for each in problems_of(read, event) if each["loc"] not in LENIENT]
        assert problems == [], event


def problems_of(read: type[ChatCompletionChunk] | type[ChatCompletion], event: bytes) -> list[ErrorDetails]:
    try:
        read.model_validate_json(event)
    except ValidationError as error:
        return error.errors()
    return []


def data_of_events(stream: bytes) -> list[bytes]:
    """Return the data of the events of a stream up to its end marker, as an SDK reads them."""
    lines = re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))
    data = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    return data[: data.index(b"[DONE]")]


CASES = [(habit, face, stream) for habit in HABITS for face in TEXT_FACES for stream in habit.forms]
NAMES = [f"{habit.id}-{face}-{'streamed' if stream else 'whole'}" for habit, face, stream in CASES]


@pytest.mark.parametrize(("habit", "face", "stream"), CASES, ids=NAMES)
async def test_a_caller_gets_the_content_that_the_server_means(
    gateway: Gateway, habit: Habit, face: str, stream: bool
) -> None:
    effect, body = habit.effect, TEXT_FACES[face].body(REQUEST, habit.id, stream=stream)
    got = await gateway.caller.send(face, habit.id, body, stream=stream)
    if effect.error and got.status != 200:
        reason = pb.ErrorReason.Value(f"ERROR_REASON_{effect.error}")
        assert got.is_error
        expected = http_status(UmgError(reason, "", upstream_status=str(habit.status)), face)
        assert (got.status, effect.message in got.body.decode()) == (expected, True), got.body
        waits = got.headers.get("retry-after")
        assert (None if waits is None else int(waits)) == effect.retry_after
        return
    assert (got.status, got.stream) == (200, stream), got.body
    if not effect.broken and not effect.error:
        assert_strict(face, got)
        assert seen(got.canonical, effect) == effect, got.body
        return
    with pytest.raises(UmgError) as caught:
        got.canonical  # noqa: B018
    assert effect.message in caught.value.message
    assert "".join(event.text_delta for event in events_before_error(face, got.body)) == effect.text


FAILURES = [habit for habit in HABITS if habit.effect.error]


@pytest.mark.parametrize("face", ["chat", "messages"])
@pytest.mark.parametrize("habit", FAILURES, ids=lambda habit: habit.id)
async def test_a_failure_is_repeated_on_another_channel_where_that_may_help(
    gateway: Gateway, habit: Habit, face: str
) -> None:
    for stream in habit.forms:
        model = f"two-{habit.id}"
        got = await gateway.caller.send(
            face, model, TEXT_FACES[face].body(REQUEST, model, stream=stream), stream=stream
        )
        assert ("Healthy" in got.body.decode()) == habit.effect.retryable, got.body


STREAMS = [
    habit
    for habit in HABITS
    if (habit.chunks or habit.events) and not (habit.effect.error or habit.effect.broken or habit.is_json)
]


@pytest.mark.parametrize("habit", STREAMS, ids=lambda habit: habit.id)
async def test_a_stream_has_the_same_content_however_its_bytes_are_cut(habit: Habit) -> None:
    data = structs.replace(habit, coding="").data
    for size in (1, 7, len(data)):
        decoder = TEXT_UPSTREAMS[habit.protocol].translating_decoder(pb.GenerateRequest(model="m"))
        aggregator = StreamAggregator()
        for at in range(0, len(data), size):
            if (message := decoder.feed(data[at : at + size])) is not None:
                aggregator.feed(message)
        if (last := decoder.close()) is not None:
            aggregator.feed(last)
        assert seen(aggregator.response(), habit.effect) == habit.effect


async def test_every_habit_has_a_source_outside_of_this_project_and_a_name_of_its_own() -> None:
    assert len({habit.id for habit in HABITS}) == len(HABITS)
    for habit in HABITS:
        assert "#" in habit.source or "/" in habit.source, habit.id
